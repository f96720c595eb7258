//! The end of the decoder's graph: the last norm, the output matrix, and what else is returned.

use std::collections::BTreeSet;

use unspool_core::{Error, Result};

use super::decoder::{BATCH, TOTAL, Writer, cache};
use super::projection::Stored;
use crate::onnx::proto::DataType;
use crate::onnx::{Dim, Tap};

const HEAD: &str = "lm_head.weight";
/// The file's stem of the output matrix by itself.
pub const HEAD_GRAPH: &str = "head";

/// The file's stem of the model that ends after `layers` layers.
pub fn exit_graph(layers: usize) -> String {
    format!("exit_{layers}")
}

/// What the output with hidden state `state` is called.
fn hidden_state(state: usize) -> String {
    format!("hidden_states.{state}")
}

/// A model that ends early: `hidden` plus `branch` are the states after its last layer.
pub(super) struct Exit {
    pub(super) layers: usize,
    pub(super) hidden: String,
    pub(super) branch: Option<String>,
}

/// The constants that end a model, wherever it ends.
pub(super) struct End {
    norm: String,
    head: Stored,
}

/// The exits asked for, each once, in order.
///
/// # Errors
///
/// One that is not inside a model of `layers` layers.
pub(super) fn exits(wanted: &[usize], layers: usize) -> Result<Vec<Exit>> {
    let wanted: BTreeSet<usize> = wanted.iter().copied().collect();
    let exit = |after: usize| {
        if after == 0 || after >= layers {
            return Err(Error::invalid_input(format!(
                "an early exit after {after} layers; the model has {layers}, so expected 1 to {}",
                layers.saturating_sub(1)
            )));
        }
        Ok(Exit { layers: after, hidden: String::new(), branch: None })
    };
    wanted.into_iter().map(exit).collect()
}

impl Writer<'_, '_> {
    /// Declares what the graph returns.
    pub(super) fn outputs(&mut self, sequence: Dim) {
        let decoder = self.decoder;
        self.graph.output("logits", DataType::Float, &self.logits_shape());
        for layer in 0..decoder.layers {
            for part in ["key", "value"] {
                self.graph.output(&present(layer, part), DataType::Float, &cache(decoder, TOTAL));
            }
        }
        let states = if self.hidden_states { decoder.layers + 1 } else { 0 };
        for state in 0..states {
            let dims = [BATCH, sequence.clone(), Dim::Fixed(decoder.hidden)];
            self.graph.output(&hidden_state(state), DataType::Float, &dims);
        }
    }

    fn logits_shape(&self) -> [Dim; 3] {
        [BATCH, Dim::Named("kept_sequence_length"), Dim::Fixed(self.decoder.vocab)]
    }

    /// The last norm and the output matrix, which is `table` where the model shares it.
    pub(super) fn logits(&mut self, hidden: &str, branch: Option<String>, table: Option<Stored>) -> Result<End> {
        let norm = self.vector("model.norm.weight", self.decoder.hidden)?;
        let (mut normed, _) = self.norm("/model/norm", &norm, hidden, branch, false);
        if self.hidden_states {
            let rows = self.hidden_state(self.decoder.layers, &normed);
            normed = self.last_states("/model/norm", &rows);
        }
        let head = match table {
            Some(table) => table,
            None => {
                let form = self.matrices.form(HEAD, self.decoder.vocab, self.decoder.hidden)?;
                self.matrices.store(self.graph, HEAD, &[(HEAD.to_owned(), form)])?
            }
        };
        let product = self.multiply_one("/lm_head", &normed, &head)?;
        let shape = self.row_shape(self.decoder.vocab);
        self.graph.node("", "/logits", "Reshape", &[&product, &shape], &["logits"], &[]);
        if self.hidden_states {
            self.head_alone(&head)?;
        }
        Ok(End { norm, head })
    }

    /// The model that ends at `exit`, as a graph of its own over the same constants.
    pub(super) fn exit(&mut self, exit: Exit, end: &End) -> Result<()> {
        let Exit { layers, hidden, branch } = exit;
        let name = |part: &str| format!("/exit.{layers}/{part}");
        let (normed, _) = self.norm(&name("norm"), &end.norm, &hidden, branch, false);
        let rows = self.apart(&name("norm/rows"), &normed, self.decoder.hidden);
        let kept = self.last_states(&name("norm"), &rows);
        let product = self.multiply_one(&name("lm_head"), &kept, &end.head)?;
        let shape = self.row_shape(self.decoder.vocab);
        let logits = self.graph.op(&name("logits"), "Reshape", &[&product, &shape], &[]);

        let mut outputs = vec![Tap::new(&logits, "logits", &self.logits_shape())];
        for part in (0..layers).flat_map(|layer| ["key", "value"].map(|part| present(layer, part))) {
            outputs.push(Tap::new(&part, &part, &cache(self.decoder, TOTAL)));
        }
        self.graph.apart(&exit_graph(layers), None, outputs);
        Ok(())
    }

    /// Of states `[batch_size, sequence_length, hidden]`, flat, those of the positions whose logits are asked for.
    fn last_states(&mut self, name: &str, rows: &str) -> String {
        let kept = self.keep_last(&format!("{name}/kept"), rows);
        self.products.ends_prompt = true;
        self.flat(&format!("{name}/flat"), &kept, self.decoder.hidden)
    }

    /// Makes flat states the output that holds hidden state `state`, and returns its name.
    pub(super) fn hidden_state(&mut self, state: usize, flat: &str) -> String {
        let (name, shape) = (hidden_state(state), self.row_shape(self.decoder.hidden));
        self.graph.node("", &format!("/{name}/Reshape"), "Reshape", &[flat, &shape], &[&name], &[]);
        name
    }

    /// The output matrix as a graph of its own, for the hidden states of earlier layers.
    fn head_alone(&mut self, stored: &Stored) -> Result<()> {
        let (hidden, vocab) = (self.decoder.hidden, self.decoder.vocab);
        let flat = self.flat("/head/flat", "hidden_states", hidden);
        let product = self.multiply_one("/head/lm_head", &flat, stored)?;
        let shape = self.graph.ints(&[1, -1, vocab as i64]);
        let logits = self.graph.op("/head/logits", "Reshape", &[&product, &shape], &[]);
        let dims = |width| [Dim::Fixed(1), Dim::Named("sequence_length"), Dim::Fixed(width)];
        let output = Tap::new(&logits, "logits", &dims(vocab));
        self.graph.apart(HEAD_GRAPH, Some(("hidden_states", &dims(hidden))), vec![output]);
        Ok(())
    }
}

/// What the cache of a layer is called when it is returned.
fn present(layer: usize, part: &str) -> String {
    format!("present.{layer}.{part}")
}
