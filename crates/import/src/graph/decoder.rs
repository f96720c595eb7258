//! The decoder's graph, from ids to logits.
//!
//! Hidden states are flat, `[positions, width]` with `positions = batch_size * sequence_length`: a product and what is
//! added to it are then one `Gemm`. Only attention and the cut to the last positions see the rows apart.

use std::collections::HashMap;

use unspool_core::{Error, Result};

use super::contract::{Decoder, Extent};
use super::embedding::{look_up_floats, look_up_nibbles};
use super::output;
use super::projection::{Matrices, Products, Stored, WeightNote};
use super::rope::{fill_up, rope_tables};
use crate::onnx::proto::DataType;
use crate::onnx::{Attribute, Dim, GraphBuilder};
use crate::weights::{Form, Source, store_rows};

const EMBEDDINGS: &str = "model.embed_tokens.weight";
/// Positions above this are no whole numbers in f32.
const MAX_POSITIONS: usize = 1 << 24;
/// Positions whose tables are in memory at once.
const ROTARY_CHUNK: usize = 1 << 14;
pub(super) const BATCH: Dim = Dim::Named("batch_size");
pub(super) const TOTAL: Dim = Dim::Named("total_sequence_length");

/// Writes the decoder into `graph` and returns how each tensor was written.
///
/// Inputs: `input_ids [batch_size, sequence_length] int64`, `attention_mask [batch_size, total_sequence_length] int64`,
/// `past_key_values.N.key` and `.value [batch_size, kv_heads, past_sequence_length, cached_head_dim] f32`, and
/// `logits_to_keep [1] int64`: the logits of that many last positions are computed, of all for 0. Outputs:
/// `logits [batch_size, kept, vocab] f32` and `present.N.key` and `.value`.
///
/// With `extent.hidden_states` also `hidden_states.N [batch_size, sequence_length, hidden] f32`: the embeddings, the states
/// after each layer but the last, and the last one's after the final norm, of every position. The output matrix alone,
/// `hidden_states [1, sequence_length, hidden]` to `logits`, is then a graph of its own over the same constants.
///
/// Each layer count in `extent.early_exits` makes a graph of its own over the same constants: the model that ends after its
/// first layers, with their caches alone.
///
/// `extent.float` dequantises every tensor. `written` is called with each finished tensor's name; its error ends the work.
///
/// # Errors
///
/// When a tensor is missing or has another shape than `decoder` says, an exit is not inside the model, or writing fails.
pub fn build(
    graph: &mut GraphBuilder,
    source: &dyn Source,
    decoder: &Decoder,
    extent: &Extent,
    written: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<Vec<WeightNote>> {
    let matrices = Matrices { source, float: extent.float, notes: Vec::new(), written };
    let (products, shared) = (Products::default(), Shared::default());
    let mut writer = Writer { graph, decoder, matrices, products, shared, hidden_states: extent.hidden_states };
    let mut exits = output::exits(&extent.early_exits, decoder.layers)?;
    writer.inputs()?;
    let (mut hidden, table) = writer.embeddings()?;
    let mut branch = None;
    for layer in 0..decoder.layers {
        (hidden, branch) = writer.layer(layer, &hidden, branch)?;
        for exit in exits.iter_mut().filter(|exit| exit.layers == layer + 1) {
            (exit.hidden, exit.branch) = (hidden.clone(), branch.clone());
        }
    }
    let end = writer.logits(&hidden, branch, table)?;
    for exit in exits {
        writer.exit(exit, &end)?;
    }
    Ok(writer.matrices.notes)
}

/// The shape of one part of a layer's cache.
pub(super) fn cache(decoder: &Decoder, length: Dim) -> [Dim; 4] {
    [BATCH, Dim::Fixed(decoder.kv_heads), length, Dim::Fixed(decoder.cached_head_dim())]
}

/// Values that every layer reads.
#[derive(Default)]
struct Shared {
    lengths: String,
    total: String,
    first_kept: String,
    /// `[batch_size]`, of shape `[1]`.
    batch: String,
    /// By width `n`: the shape `[batch_size, -1, n]`.
    by_row: HashMap<usize, String>,
}

pub(super) struct Writer<'a, 's> {
    pub(super) graph: &'a mut GraphBuilder,
    pub(super) decoder: &'a Decoder,
    pub(super) matrices: Matrices<'s>,
    pub(super) products: Products,
    shared: Shared,
    /// Whether hidden states are among the outputs.
    pub(super) hidden_states: bool,
}

impl Writer<'_, '_> {
    /// Inputs, outputs, what is derived from the mask, and the rotary tables.
    fn inputs(&mut self) -> Result<()> {
        let (graph, decoder) = (&mut *self.graph, self.decoder);
        let sequence = Dim::Named("sequence_length");
        graph.input("input_ids", DataType::Int64, &[BATCH, sequence.clone()]);
        let mask = graph.input("attention_mask", DataType::Int64, &[BATCH, TOTAL]);
        for layer in 0..decoder.layers {
            for part in ["key", "value"] {
                let past = format!("past_key_values.{layer}.{part}");
                graph.input(&past, DataType::Float, &cache(decoder, Dim::Named("past_sequence_length")));
            }
        }
        let keep = graph.input("logits_to_keep", DataType::Int64, &[Dim::Fixed(1)]);
        self.outputs(sequence);
        let graph = &mut *self.graph;

        let (one, first) = (graph.ints(&[1]), graph.int_scalar(1));
        let to_int32 = [("to", Attribute::Int(DataType::Int32 as i64))];
        let lengths = graph.op("/mask/ReduceSum", "ReduceSum", &[&mask, &one], &[("keepdims", Attribute::Int(0))]);
        let lengths = graph.op("/mask/Sub", "Sub", &[&lengths, &one], &[]);
        let total = graph.op("/mask/Shape", "Shape", &[&mask], &[]);
        let total = graph.op("/mask/Gather", "Gather", &[&total, &first], &[("axis", Attribute::Int(0))]);
        self.shared = Shared {
            lengths: graph.op("/mask/lengths", "Cast", &[&lengths], &to_int32),
            total: graph.op("/mask/total", "Cast", &[&total], &to_int32),
            // A slice that starts at -n keeps the last n positions, and one that starts at 0 keeps all.
            first_kept: graph.op("/logits_to_keep/Neg", "Neg", &[&keep], &[]),
            batch: graph.op("/batch_size", "Shape", &["input_ids"], &[("end", Attribute::Int(1))]),
            by_row: HashMap::new(),
        };

        self.rotary_tables()
    }

    /// Cosines and sines of every position, some thousand positions at a time.
    fn rotary_tables(&mut self) -> Result<()> {
        let decoder = self.decoder;
        if decoder.max_positions > MAX_POSITIONS {
            return Err(Error::unsupported(format!(
                "the model claims {} positions, rotary tables are built for at most {MAX_POSITIONS}",
                decoder.max_positions
            )));
        }
        let (own, pairs) = (decoder.head_dim / 2, decoder.cached_head_dim() / 2);
        let dims = [decoder.max_positions, pairs];
        let cos_cache = self.graph.external("cos_cache", DataType::Float, &dims)?;
        let sin_cache = self.graph.external("sin_cache", DataType::Float, &dims)?;
        for start in (0..decoder.max_positions).step_by(ROTARY_CHUNK) {
            let end = decoder.max_positions.min(start + ROTARY_CHUNK);
            let (cos, sin) = rope_tables(&decoder.rope, decoder.head_dim, start..end);
            self.graph.write_floats(cos_cache, (start * pairs) as u64, &fill_up(cos, own, pairs, 1.0))?;
            self.graph.write_floats(sin_cache, (start * pairs) as u64, &fill_up(sin, own, pairs, 0.0))?;
        }
        Ok(())
    }

    /// The embeddings of the ids, and the output matrix when it is the same table.
    fn embeddings(&mut self) -> Result<(String, Option<Stored>)> {
        let (vocab, hidden) = (self.decoder.vocab, self.decoder.hidden);
        let form = self.matrices.form(EMBEDDINGS, vocab, hidden)?;
        let (rows, stored) = match form {
            Form::Float => {
                let source = self.matrices.source;
                let table = store_rows(self.graph, source, EMBEDDINGS, EMBEDDINGS, &[vocab, hidden])?;
                self.matrices.note(EMBEDDINGS, form)?;
                let rows = look_up_floats(self.graph, &table, "input_ids", hidden);
                (rows, Stored::FloatRows(table))
            }
            Form::Nibbles(_) => {
                let stored = self.matrices.store(self.graph, EMBEDDINGS, &[(EMBEDDINGS.to_owned(), form)])?;
                let Stored::Nibbles(table) = &stored else {
                    return Err(Error::invalid_model("the embedding table was not packed").at(EMBEDDINGS));
                };
                (look_up_nibbles(self.graph, table, "input_ids"), stored)
            }
        };
        Ok((rows, self.decoder.tied.then_some(stored)))
    }

    /// One layer. `residual` plus `branch` are the hidden states that come in; the same pair goes out.
    fn layer(&mut self, layer: usize, residual: &str, branch: Option<String>) -> Result<(String, Option<String>)> {
        let tensor = |part: &str| format!("model.layers.{layer}.{part}");
        let name = |part: &str| format!("/model/layers.{layer}/{part}");
        let (hidden, intermediate) = (self.decoder.hidden, self.decoder.intermediate);
        let attention_width = self.width(self.decoder.heads)?;

        let weight = self.vector(&tensor("input_layernorm.weight"), hidden)?;
        let (normed, residual) = self.norm(&name("input_layernorm"), &weight, residual, branch, true);
        if self.hidden_states {
            self.hidden_state(layer, &residual);
        }
        let mut attended = self.attention(layer, &normed)?;
        let mut residual = residual;
        if layer + 1 == self.decoder.layers && !self.hidden_states {
            attended = self.keep_last(&name("attn/kept"), &attended);
            let rows = self.apart(&name("residual/rows"), &residual, hidden);
            let kept = self.keep_last(&name("residual/kept"), &rows);
            residual = self.flat(&name("residual/flat"), &kept, hidden);
            self.products.ends_prompt = true;
        }
        let attended = self.flat(&name("attn/flat"), &attended, attention_width);
        let output = [(tensor("self_attn.o_proj.weight"), hidden)];
        let stored = self.matrices.store_joined(self.graph, &output[0].0, &output, attention_width)?;
        let mut attended = self.multiply(&name("attn/o_proj"), &attended, &stored)?;
        if self.has(&tensor("self_attn.o_proj.bias")) {
            let bias = [(tensor("self_attn.o_proj.bias"), hidden)];
            attended = self.add_bias(&name("attn/o_proj/bias"), &attended, &bias)?;
        }

        let weight = self.vector(&tensor("post_attention_layernorm.weight"), hidden)?;
        let (normed, residual) = self.norm(&name("post_attention_layernorm"), &weight, &residual, Some(attended), true);
        let parts = [(tensor("mlp.gate_proj.weight"), intermediate), (tensor("mlp.up_proj.weight"), intermediate)];
        let joined = tensor("mlp.gate_up_proj.weight");
        let stored = self.matrices.store_joined(self.graph, &joined, &parts, hidden)?;
        let (gate, up) = if let [gate, up] = &stored[..] {
            (
                self.multiply_one(&name("mlp/gate_proj"), &normed, gate)?,
                self.multiply_one(&name("mlp/up_proj"), &normed, up)?,
            )
        } else {
            let both = self.multiply(&name("mlp/gate_up_proj"), &normed, &stored)?;
            let parts = [name("mlp/gate"), name("mlp/up")];
            self.split(&name("mlp/Split"), &both, &parts, &[intermediate, intermediate]);
            let [gate, up] = parts;
            (gate, up)
        };
        let graph = &mut *self.graph;
        let sigmoid = graph.op(&name("mlp/act_fn/Sigmoid"), "Sigmoid", &[&gate], &[]);
        let silu = graph.op(&name("mlp/act_fn/Mul"), "Mul", &[&gate, &sigmoid], &[]);
        let product = graph.op(&name("mlp/Mul"), "Mul", &[&silu, &up], &[]);
        let down = [(tensor("mlp.down_proj.weight"), hidden)];
        let stored = self.matrices.store_joined(self.graph, &down[0].0, &down, intermediate)?;
        let down = self.multiply(&name("mlp/down_proj"), &product, &stored)?;
        Ok((residual, Some(down)))
    }

    /// Queries, keys and values of `normed`, and their attention.
    fn attention(&mut self, layer: usize, normed: &str) -> Result<String> {
        let tensor = |part: &str| format!("model.layers.{layer}.self_attn.{part}");
        let name = |part: &str| format!("/model/layers.{layer}/attn/{part}");
        let decoder = self.decoder;
        let (query, cached) = (self.width(decoder.heads)?, self.width(decoder.kv_heads)?);
        let widths = [("q_proj", query), ("k_proj", cached), ("v_proj", cached)];
        let normalised = self.has(&tensor("q_norm.weight"));

        let parts = widths.map(|(part, width)| (tensor(&format!("{part}.weight")), width));
        let biases = widths.map(|(part, width)| (tensor(&format!("{part}.bias")), width));
        let biased = self.has(&biases[0].0);
        let stored = self.matrices.store_joined(self.graph, &tensor("qkv_proj.weight"), &parts, decoder.hidden)?;

        let mut heads = [String::new(), String::new(), String::new()];
        if let [_] = &stored[..] {
            let mut packed = self.multiply(&name("qkv_proj"), normed, &stored)?;
            if biased {
                packed = self.add_bias(&name("qkv_proj/bias"), &packed, &biases)?;
            }
            if normalised {
                heads = ["q", "k", "v"].map(&name);
                self.split(&name("Split"), &packed, &heads, &widths.map(|(_, width)| width));
            } else {
                heads[0] = packed;
            }
        } else {
            for (index, matrix) in stored.iter().enumerate() {
                let part = widths[index].0;
                heads[index] = self.multiply_one(&name(part), normed, matrix)?;
                if biased {
                    let bias = [biases[index].clone()];
                    heads[index] = self.add_bias(&name(&format!("{part}/bias")), &heads[index], &bias)?;
                }
            }
        }
        if normalised {
            heads[0] = self.head_norm(&name("q_norm"), &tensor("q_norm.weight"), &heads[0])?;
            heads[1] = self.head_norm(&name("k_norm"), &tensor("k_norm.weight"), &heads[1])?;
        }
        if heads[1].is_empty() {
            heads[0] = self.heads_of_rows(&name("qkv"), &heads[0], decoder.heads + 2 * decoder.kv_heads)?;
        } else {
            let counts = [decoder.heads, decoder.kv_heads, decoder.kv_heads];
            for ((head, count), part) in heads.iter_mut().zip(counts).zip(["q", "k", "v"]) {
                *head = self.heads_of_rows(&name(part), head, count)?;
            }
        }

        let window = decoder.sliding_windows.get(layer).copied().flatten();
        let attributes = [
            ("num_heads", Attribute::Int(decoder.heads as i64)),
            ("kv_num_heads", Attribute::Int(decoder.kv_heads as i64)),
            ("scale", Attribute::Float((1.0 / (decoder.head_dim as f64).sqrt()) as f32)),
            ("local_window_size", Attribute::Int(window.map_or(-1, |window| window as i64))),
            ("do_rotary", Attribute::Int(1)),
            ("rotary_interleaved", Attribute::Int(0)),
        ];
        let (past, present) = (format!("past_key_values.{layer}"), format!("present.{layer}"));
        let (past_key, past_value) = (format!("{past}.key"), format!("{past}.value"));
        let (present_key, present_value) = (format!("{present}.key"), format!("{present}.value"));
        let output = name("GroupQueryAttention/output_0");
        let shared = &self.shared;
        self.graph.node(
            "com.microsoft",
            &name("GroupQueryAttention"),
            "GroupQueryAttention",
            &[
                &heads[0],
                &heads[1],
                &heads[2],
                &past_key,
                &past_value,
                &shared.lengths,
                &shared.total,
                "cos_cache",
                "sin_cache",
            ],
            &[&output, &present_key, &present_value],
            &attributes,
        );
        self.attended_heads(&name("attended"), output)
    }

    /// The root-mean-square norm of `residual + branch`, and that sum (when `keep_sum`).
    pub(super) fn norm(
        &mut self,
        name: &str,
        weight: &str,
        residual: &str,
        branch: Option<String>,
        keep_sum: bool,
    ) -> (String, String) {
        let epsilon = ("epsilon", Attribute::Float(self.decoder.norm_epsilon));
        let Some(branch) = branch else {
            return (self.simple_norm(name, residual, weight), residual.to_owned());
        };
        let (normed, sum) = (format!("{name}/output_0"), format!("{name}/output_3"));
        let outputs: &[&str] = if keep_sum { &[&normed, "", "", &sum] } else { &[&normed] };
        let inputs = [residual, branch.as_str(), weight];
        self.graph.node("com.microsoft", name, "SkipSimplifiedLayerNormalization", &inputs, outputs, &[epsilon]);
        (normed, sum)
    }

    fn simple_norm(&mut self, name: &str, input: &str, weight: &str) -> String {
        let attributes = [
            ("epsilon", Attribute::Float(self.decoder.norm_epsilon)),
            ("axis", Attribute::Int(-1)),
            ("stash_type", Attribute::Int(1)),
        ];
        self.graph.op(name, "SimplifiedLayerNormalization", &[input, weight], &attributes)
    }

    /// The norm of each head by itself (Qwen3), `[positions * heads, head_dim]`.
    fn head_norm(&mut self, name: &str, tensor: &str, input: &str) -> Result<String> {
        let weight = self.vector(tensor, self.decoder.head_dim)?;
        let by_head = self.flat(&format!("{name}/heads"), input, self.decoder.head_dim);
        Ok(self.simple_norm(name, &by_head, &weight))
    }

    /// The shape `[batch_size, -1, width]`.
    pub(super) fn row_shape(&mut self, width: usize) -> String {
        if let Some(known) = self.shared.by_row.get(&width) {
            return known.clone();
        }
        let graph = &mut *self.graph;
        let rest = graph.ints(&[-1, width as i64]);
        let axis = [("axis", Attribute::Int(0))];
        let shape = graph.op(&format!("/rows/{width}"), "Concat", &[&self.shared.batch, &rest], &axis);
        self.shared.by_row.insert(width, shape.clone());
        shape
    }

    /// Flat states as `[batch_size, sequence_length, width]`.
    pub(super) fn apart(&mut self, name: &str, input: &str, width: usize) -> String {
        let shape = self.row_shape(width);
        self.graph.op(name, "Reshape", &[input, &shape], &[])
    }

    /// States as `[positions, width]`.
    pub(super) fn flat(&mut self, name: &str, input: &str, width: usize) -> String {
        let shape = self.graph.ints(&[-1, width as i64]);
        self.graph.op(name, "Reshape", &[input, &shape], &[])
    }

    /// Of `[batch_size, sequence_length, width]`, the positions whose logits are asked for.
    pub(super) fn keep_last(&mut self, name: &str, input: &str) -> String {
        let (end, axis) = (self.graph.ints(&[i64::MAX]), self.graph.ints(&[1]));
        self.graph.op(name, "Slice", &[input, &self.shared.first_kept, &end, &axis], &[])
    }

    fn multiply(&mut self, name: &str, input: &str, stored: &[Stored]) -> Result<String> {
        stored.first().map_or_else(|| Ok(String::new()), |stored| self.multiply_one(name, input, stored))
    }

    pub(super) fn multiply_one(&mut self, name: &str, input: &str, stored: &Stored) -> Result<String> {
        self.products.multiply(self.graph, name, input, stored)
    }

    fn split(&mut self, name: &str, input: &str, parts: &[String], widths: &[usize]) {
        let widths: Vec<i64> = widths.iter().map(|&width| width as i64).collect();
        let widths = self.graph.ints(&widths);
        let outputs: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.graph.node("", name, "Split", &[input, &widths], &outputs, &[("axis", Attribute::Int(-1))]);
    }

    /// Adds the vectors `parts` (name and length), laid end to end.
    fn add_bias(&mut self, name: &str, input: &str, parts: &[(String, usize)]) -> Result<String> {
        let mut values = Vec::new();
        for (tensor, width) in parts {
            self.check_vector(tensor, *width)?;
            let rows = self.matrices.source.matrix(tensor).map_or(0, |matrix| matrix.rows);
            self.matrices.source.floats(tensor, 0..rows, &mut values)?;
            self.matrices.note(tensor, Form::Float)?;
        }
        let constant = format!("{name}/values");
        let region = self.graph.external(&constant, DataType::Float, &[values.len()])?;
        self.graph.write_floats(region, 0, &values)?;
        Ok(self.graph.op(name, "Add", &[input, &constant], &[]))
    }

    pub(super) fn vector(&mut self, tensor: &str, width: usize) -> Result<String> {
        self.check_vector(tensor, width)?;
        let name = store_rows(self.graph, self.matrices.source, tensor, tensor, &[width])?;
        self.matrices.note(tensor, Form::Float)?;
        Ok(name)
    }

    fn check_vector(&self, tensor: &str, width: usize) -> Result<()> {
        match self.matrices.source.matrix(tensor) {
            Some(matrix) if matrix.rows.checked_mul(matrix.cols) == Some(width) => Ok(()),
            Some(matrix) => Err(Error::invalid_model(format!(
                "got {} x {} elements, the configuration expects {width}",
                matrix.rows, matrix.cols
            ))
            .at(tensor)),
            None => Err(Error::invalid_model("the checkpoint has no such tensor").at(tensor)),
        }
    }

    fn has(&self, tensor: &str) -> bool {
        self.matrices.source.matrix(tensor).is_some()
    }

    pub(super) fn width(&self, heads: usize) -> Result<usize> {
        heads
            .checked_mul(self.decoder.head_dim)
            .ok_or_else(|| Error::invalid_model(format!("{heads} heads of {} are too many", self.decoder.head_dim)))
    }
}
