use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use prost::Message;
use unspool_core::{Error, Result};

use super::*;
use crate::onnx::proto::{ModelProto, NodeProto, TensorProto};
use crate::onnx::{DataFile, GraphBuilder, Variants};
use crate::weights::{BlockRows, Form, Matrix, MatrixKind, Requantised, Source};

/// A checkpoint in memory.
#[derive(Default)]
struct Memory {
    tensors: BTreeMap<String, (Matrix, Vec<f32>, BlockRows)>,
    state: u64,
}

const Q4_0: MatrixKind = MatrixKind::Blocks { block: 32, min: -8, max: 7, affine: false };
const Q4_1: MatrixKind = MatrixKind::Blocks { block: 32, min: 0, max: 15, affine: true };
const Q5_1: MatrixKind = MatrixKind::Blocks { block: 32, min: 0, max: 31, affine: true };
const Q6_K: MatrixKind = MatrixKind::Blocks { block: 16, min: -32, max: 31, affine: false };
const Q8_0: MatrixKind = MatrixKind::Blocks { block: 32, min: -128, max: 127, affine: false };

impl Memory {
    fn random(&mut self) -> f32 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    }

    fn add(&mut self, name: &str, rows: usize, cols: usize, kind: MatrixKind) {
        let mut blocks = BlockRows::default();
        let mut values = Vec::new();
        match kind {
            MatrixKind::Float => values = (0..rows * cols).map(|_| self.random()).collect(),
            MatrixKind::Blocks { block, min, max, affine } => {
                for _ in 0..rows * cols / block {
                    let short = |value: f32| half::f16::from_f32(value).to_f32();
                    let (scale, offset) = (short(self.random() / f32::from(max)), short(self.random() / 2.0));
                    blocks.scale.push(scale);
                    if affine {
                        blocks.offset.push(offset);
                    }
                    for index in 0..block {
                        let span = f32::from(max - min) + 1.0;
                        let q = match index {
                            0 => max,
                            1 => min,
                            _ => min + ((self.random() + 0.5) * span).floor() as i16,
                        };
                        blocks.q.push(q as i8);
                        values.push(scale * f32::from(q) + if affine { offset } else { 0.0 });
                    }
                }
            }
        }
        self.tensors.insert(name.to_owned(), (Matrix { rows, cols, kind }, values, blocks));
    }

    fn entry(&self, name: &str) -> Result<&(Matrix, Vec<f32>, BlockRows)> {
        self.tensors.get(name).ok_or_else(|| Error::invalid_model("no such tensor").at(name))
    }
}

impl Source for Memory {
    fn matrix(&self, name: &str) -> Option<Matrix> {
        self.tensors.get(name).map(|(matrix, _, _)| *matrix)
    }

    fn floats(&self, name: &str, rows: Range<usize>, out: &mut Vec<f32>) -> Result<()> {
        let (matrix, values, _) = self.entry(name)?;
        out.extend_from_slice(&values[rows.start * matrix.cols..rows.end * matrix.cols]);
        Ok(())
    }

    fn blocks(&self, name: &str, rows: Range<usize>, out: &mut BlockRows) -> Result<()> {
        let (matrix, _, blocks) = self.entry(name)?;
        let MatrixKind::Blocks { block, affine, .. } = matrix.kind else {
            return Err(Error::invalid_model("not in blocks").at(name));
        };
        let span = rows.start * matrix.cols / block..rows.end * matrix.cols / block;
        out.q.extend_from_slice(&blocks.q[rows.start * matrix.cols..rows.end * matrix.cols]);
        out.scale.extend_from_slice(&blocks.scale[span.clone()]);
        if affine {
            out.offset.extend_from_slice(&blocks.offset[span]);
        }
        Ok(())
    }
}

fn decoder() -> Decoder {
    Decoder {
        layers: 2,
        hidden: 64,
        intermediate: 96,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        vocab: 40,
        max_positions: 64,
        norm_epsilon: 1e-5,
        rope: Rope { theta: 10_000.0, scaling: RopeScaling::None },
        sliding_windows: vec![None, Some(8)],
        tied: true,
    }
}

/// Random tensors for [`decoder`]; `matrix` is the kind of layer matrices, `table` that of the embeddings.
fn checkpoint(matrix: MatrixKind, table: MatrixKind, biases: bool, norms: bool) -> Memory {
    let mut memory = Memory { state: 7, ..Memory::default() };
    memory.add("model.embed_tokens.weight", 40, 64, table);
    memory.add("model.norm.weight", 1, 64, MatrixKind::Float);
    for layer in 0..2 {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        for (part, rows, cols) in [
            ("self_attn.q_proj", 128, 64),
            ("self_attn.k_proj", 64, 64),
            ("self_attn.v_proj", 64, 64),
            ("self_attn.o_proj", 64, 128),
            ("mlp.gate_proj", 96, 64),
            ("mlp.up_proj", 96, 64),
            ("mlp.down_proj", 64, 96),
        ] {
            memory.add(&name(&format!("{part}.weight")), rows, cols, matrix);
            if biases && cols == 64 && part.starts_with("self_attn") {
                memory.add(&name(&format!("{part}.bias")), 1, rows, MatrixKind::Float);
            }
        }
        for part in ["input_layernorm.weight", "post_attention_layernorm.weight"] {
            memory.add(&name(part), 1, 64, MatrixKind::Float);
        }
        for part in ["self_attn.q_norm.weight", "self_attn.k_norm.weight"].iter().filter(|_| norms) {
            memory.add(&name(part), 1, 32, MatrixKind::Float);
        }
    }
    memory
}

/// The graph for every engine, the one for ONNX Runtime (the same where it has nothing of its own), and the notes.
fn write(
    source: &dyn Source,
    decoder: &Decoder,
    float: bool,
    folder: &Path,
) -> Result<(ModelProto, ModelProto, Vec<WeightNote>)> {
    let mut graph = GraphBuilder::new("decoder", DataFile::create(folder, "model.onnx.data")?);
    let extent = Extent { float, ..Extent::default() };
    let notes = build(&mut graph, source, decoder, &extent, &mut |_| Ok(()))?;
    let Variants { portable, onnx_runtime: special } = graph.finish()?.whole;
    let saved = |model: &ModelProto, name: &str| {
        let bytes = model.encode_to_vec();
        std::fs::write(folder.join(name), &bytes).unwrap();
        ModelProto::decode(&bytes[..]).unwrap()
    };
    let special = saved(special.as_ref().unwrap_or(&portable), "token.onnx");
    Ok((saved(&portable, "model.onnx"), special, notes))
}

#[derive(Clone)]
struct Written {
    model: ModelProto,
    notes: Vec<WeightNote>,
    data: Vec<u8>,
}

fn written(source: &dyn Source, decoder: &Decoder, float: bool) -> Written {
    both(source, decoder, float)[0].clone()
}

/// The graph for every engine and the one for ONNX Runtime.
fn both(source: &dyn Source, decoder: &Decoder, float: bool) -> [Written; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (portable, special, notes) = write(source, decoder, float, folder.path()).unwrap();
    let data = std::fs::read(folder.path().join("model.onnx.data")).unwrap();
    [portable, special].map(|model| Written { model, notes: notes.clone(), data: data.clone() })
}

impl Written {
    fn constant(&self, name: &str) -> Option<&TensorProto> {
        self.model.graph.as_ref()?.initializer.iter().find(|constant| constant.name == name)
    }

    fn bytes(&self, name: &str) -> (&[u8], Vec<usize>) {
        let constant = self.constant(name).unwrap_or_else(|| panic!("no constant {name}"));
        let number = |key: &str| {
            let entry = constant.external_data.iter().find(|entry| entry.key == key).unwrap();
            entry.value.parse::<usize>().unwrap()
        };
        let dims = constant.dims.iter().map(|&dim| dim as usize).collect();
        assert_eq!(number("offset") % 4096, 0);
        (&self.data[number("offset")..number("offset") + number("length")], dims)
    }

    fn floats(&self, name: &str) -> (Vec<f32>, Vec<usize>) {
        let (bytes, dims) = self.bytes(name);
        (bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(), dims)
    }

    /// The matrix `[outputs, inputs]` that the constants of `name` say.
    fn matrix(&self, name: &str) -> Vec<f32> {
        if let Some(float) = self.constant(&format!("{name}_f32")).map(|constant| constant.name.clone()) {
            let (values, dims) = self.floats(&float);
            return (0..dims[1])
                .flat_map(|row| (0..dims[0]).map(move |col| (row, col)))
                .map(|(row, col)| values[col * dims[1] + row])
                .collect();
        }
        let quant = format!("{name}_quant");
        let (packed, dims) = self.bytes(&quant);
        let (scales, scale_dims) = self.floats(&format!("{name}_scales"));
        let node = self.nodes().find(|node| node.op_type == "MatMulNBits" && node.input[1] == quant).unwrap();
        let attribute = |name: &str| {
            node.attribute.iter().find(|attribute| attribute.name == name).and_then(|found| found.i).unwrap() as usize
        };
        let (outputs, fed, block) = (dims[0], attribute("K"), attribute("block_size"));
        assert_eq!(dims[1..], [fed / block, block * attribute("bits") / 8]);
        assert_eq!(scale_dims, [outputs, fed / block]);
        // What one element of the input is fed as: itself, or itself and its 16-fold.
        let factors: &[f32] = if node.input[0].ends_with("/pairs/output_0") { &[1.0, 16.0] } else { &[1.0] };
        let zero_points = node.input.get(3).map(|points| self.bytes(points).0);
        let added = self.nodes().find(|other| other.op_type == "Gemm" && other.input[2] == node.output[0]);
        let offsets = added.map(|node| self.floats(&node.input[1]).0);
        let (inputs, blocks) = (fed / factors.len(), fed / block);
        let mut values = Vec::new();
        for row in 0..outputs {
            for col in 0..inputs {
                let group = row * blocks + col * factors.len() / block;
                let mut value = 0.0_f32;
                for (half, factor) in factors.iter().enumerate() {
                    let at = col * factors.len() + half;
                    let (integer, zero) = if attribute("bits") == 8 {
                        (packed[row * fed + at], zero_points.map_or(128, |points| points[group]))
                    } else {
                        let byte = packed[(row * fed + at) / 2];
                        (if at.is_multiple_of(2) { byte & 15 } else { byte >> 4 }, 8)
                    };
                    value += (f32::from(integer) - f32::from(zero)) * scales[group] * factor;
                }
                if let Some(offsets) = &offsets {
                    value += offsets[group % blocks * outputs + row];
                }
                values.push(value);
            }
        }
        values
    }

    fn nodes(&self) -> impl Iterator<Item = &NodeProto> {
        self.model.graph.as_ref().unwrap().node.iter()
    }

    fn count(&self, op_type: &str) -> usize {
        self.nodes().filter(|node| node.op_type == op_type).count()
    }
}

#[test]
fn every_kind_of_block_decodes_to_the_checkpoint_s_values() {
    for kind in [Q4_0, Q4_1, Q5_1, Q6_K, Q8_0, MatrixKind::Float] {
        let source = checkpoint(kind, Q8_0, false, false);
        for got in both(&source, &decoder(), false) {
            let affine = matches!(kind, MatrixKind::Blocks { affine: true, .. });
            for (joined, parts) in [
                (
                    "model.layers.1.self_attn.qkv_proj.weight",
                    &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"][..],
                ),
                ("model.layers.1.mlp.gate_up_proj.weight", &["mlp.gate_proj", "mlp.up_proj"]),
                ("model.layers.1.mlp.down_proj.weight", &["mlp.down_proj"]),
            ] {
                let expected: Vec<f32> = parts
                    .iter()
                    .flat_map(|part| source.tensors[&format!("model.layers.1.{part}.weight")].1.clone())
                    .collect();
                let values = got.matrix(joined);
                assert_eq!(values.len(), expected.len(), "{joined} of {kind:?}");
                for (value, expected) in values.iter().zip(&expected) {
                    let slack = if affine { 2e-7 } else { 0.0 };
                    assert!((value - expected).abs() <= slack, "{joined} of {kind:?}: {value} for {expected}");
                }
            }
            assert_eq!(got.matrix("model.embed_tokens.weight"), source.tensors["model.embed_tokens.weight"].1);
        }
    }
}

#[test]
fn float_weights_are_the_dequantised_ones_bit_for_bit() {
    let source = checkpoint(Q4_1, Q8_0, false, false);
    let got = written(&source, &decoder(), true);
    let expected = &source.tensors["model.layers.0.self_attn.o_proj.weight"].1;
    assert_eq!(&got.matrix("model.layers.0.self_attn.o_proj.weight"), expected);
    assert_eq!(got.floats("model.embed_tokens.weight").0, source.tensors["model.embed_tokens.weight"].1);
    assert_eq!(got.count("MatMulNBits"), 0);
    assert_eq!(got.count("Gemm"), 1, "the tied table lies in the file once");
    assert!(got.notes.iter().all(|note| note.form == Form::Float));
}

#[test]
fn joins_matrices_and_counts_few_nodes() {
    let got = written(&checkpoint(Q4_1, Q8_0, false, false), &decoder(), false);
    assert_eq!(got.count("MatMulNBits"), 2 * 4 + 1);
    assert_eq!(got.count("ReduceSum"), 1 + 2 * 4 + 1, "mask, and one per input of a product");
    assert_eq!(got.count("GroupQueryAttention"), 2);
    assert_eq!(got.count("Concat"), 3, "the shapes of packed heads, hidden states and logits");
    assert_eq!(got.count("Gemm"), 2 * 4 + 1, "one per product with offsets");
    assert_eq!(got.count("Add"), 0, "offsets are added as they are multiplied");
    assert_eq!(got.count("Slice"), 2);
    let [got, special] = both(&checkpoint(Q4_1, Q8_0, false, false), &decoder(), false);
    assert_eq!(special.count("Gemm"), 2 * 4, "8-bit integers need no offsets");
    assert_eq!(special.count("Unsqueeze") + 1, got.count("Unsqueeze"), "nor the input twice");
    assert_eq!((special.count("ReduceSum"), special.count("MatMul")), (1, 2 * 4), "blocks are summed by a product");
    assert!(special.constant("model.embed_tokens.weight_offsets").is_none(), "a constant that is not read is left out");
    for graph in [got, special].map(|written| written.model.graph.unwrap()) {
        let mut known: Vec<&str> = graph.input.iter().map(|input| input.name.as_str()).collect();
        known.extend(graph.initializer.iter().map(|constant| constant.name.as_str()));
        known.push("");
        for node in &graph.node {
            for input in &node.input {
                assert!(known.contains(&input.as_str()), "{} reads {input} before it is there", node.name);
            }
            known.extend(node.output.iter().map(String::as_str));
        }
        for output in &graph.output {
            assert!(known.contains(&output.name.as_str()), "{} is nowhere computed", output.name);
        }
    }
}

#[test]
fn mixed_forms_are_kept_apart() {
    let mut source = checkpoint(Q4_1, Q8_0, true, false);
    source.add("model.layers.0.self_attn.v_proj.weight", 64, 64, Q6_K);
    let got = written(&source, &decoder(), false);
    assert_eq!(got.count("MatMulNBits"), 2 * 4 + 2 + 1);
    assert_eq!(
        got.matrix("model.layers.0.self_attn.v_proj.weight"),
        source.tensors["model.layers.0.self_attn.v_proj.weight"].1
    );
}

#[test]
fn head_norms_and_biases_have_their_nodes() {
    let qwen3 = written(&checkpoint(MatrixKind::Float, MatrixKind::Float, false, true), &decoder(), false);
    assert_eq!(qwen3.count("SimplifiedLayerNormalization"), 1 + 2 * 2);
    assert_eq!(qwen3.count("Split"), 2 * 2);
    let qwen2 = written(&checkpoint(MatrixKind::Float, MatrixKind::Float, true, false), &decoder(), false);
    assert_eq!(qwen2.count("Add"), 2);
    assert_eq!(qwen2.floats("/model/layers.0/attn/qkv_proj/bias/values").1, [256]);
}

#[test]
fn requantised_weights_stay_near() {
    let source = checkpoint(Q4_1, Q8_0, false, false);
    let name = "model.layers.0.mlp.down_proj.weight";
    let expected = &source.tensors[name].1;
    let error = |got: Written| {
        let values = got.matrix(name);
        values.iter().zip(expected).map(|(value, expected)| (value - expected).abs()).fold(0.0, f32::max)
    };
    let int8 = error(written(&Requantised::int8(&source), &decoder(), false));
    let int4 = error(written(&Requantised::int4(&source), &decoder(), false));
    assert!(int8 < 0.01 && int8 > 0.0 && int4 < 0.15 && int4 > int8, "{int8} {int4}");
}

#[test]
fn a_missing_or_misshapen_tensor_is_named() {
    let mut source = checkpoint(Q4_0, Q4_0, false, false);
    source.add("model.layers.1.mlp.up_proj.weight", 96, 32, Q4_0);
    let folder = tempfile::tempdir().unwrap();
    let error = write(&source, &decoder(), false, folder.path()).unwrap_err();
    assert!(error.to_string().contains("model.layers.1.mlp.up_proj.weight: got a matrix of 96 x 32"), "{error}");
    source.tensors.remove("model.layers.1.mlp.up_proj.weight");
    let error = write(&source, &decoder(), false, folder.path()).unwrap_err();
    assert!(error.to_string().contains("model.layers.1.mlp.up_proj.weight: the checkpoint has no such"), "{error}");
}

/// Leaves a graph of every form in the folder that `UNSPOOL_GRAPHS` names, for other programs to load.
#[test]
#[ignore = "writes files for other programs"]
fn writes_graphs_for_other_programs() {
    let Some(folder) = std::env::var_os("UNSPOOL_GRAPHS") else { return };
    let kinds = [("q4_0", Q4_0), ("q4_1", Q4_1), ("q6_k", Q6_K), ("q8_0", Q8_0), ("f32", MatrixKind::Float)];
    for (name, kind) in kinds {
        for (extra, biases, norms) in [("plain", false, false), ("biases", true, false), ("norms", false, true)] {
            for float in [false, true] {
                let folder =
                    Path::new(&folder).join(format!("{name}-{extra}-{}", if float { "float" } else { "keep" }));
                std::fs::create_dir_all(&folder).unwrap();
                write(&checkpoint(kind, kind, biases, norms), &decoder(), float, &folder).unwrap();
            }
        }
    }
}
