//! Multiplying with a stored matrix, in whichever form it was stored.

use std::collections::HashMap;

use unspool_core::{Error, Result};

use crate::onnx::{Attribute, GraphBuilder};
use crate::weights::{Form, NibbleWeights, Nibbles, Source, pack_nibbles, store_transposed};

/// `accuracy_level` of `MatMulNBits` that lets an engine round the input to 8 bits per block.
const INT8_ACTIVATIONS: i64 = 4;

/// A matrix (or several stacked along the outputs) in the graph's constants.
#[derive(Clone, Debug)]
pub enum Stored {
    /// f32 `[inputs, outputs]`.
    Float(String),
    /// f32 `[outputs, inputs]`, shared with a table whose rows are gathered.
    FloatRows(String),
    /// 4-bit integers.
    Nibbles(NibbleWeights),
}

/// How one tensor was written, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightNote {
    /// Hugging Face name of the tensor.
    pub tensor: String,
    /// How it is said in the graph.
    pub form: Form,
}

/// Chooses forms and writes matrices; remembers what it wrote.
pub(super) struct Matrices<'a> {
    pub(super) source: &'a dyn Source,
    /// Whether quantised tensors are dequantised.
    pub(super) float: bool,
    pub(super) notes: Vec<WeightNote>,
    /// Called with each finished tensor's name.
    pub(super) written: &'a mut dyn FnMut(&str) -> Result<()>,
}

impl Matrices<'_> {
    /// The form of a tensor, after checking its shape.
    pub(super) fn form(&self, tensor: &str, outputs: usize, inputs: usize) -> Result<Form> {
        let matrix = self
            .source
            .matrix(tensor)
            .ok_or_else(|| Error::invalid_model("the checkpoint has no such tensor").at(tensor))?;
        if (matrix.rows, matrix.cols) != (outputs, inputs) {
            return Err(Error::invalid_model(format!(
                "got a matrix of {} x {}, the configuration expects {outputs} x {inputs}",
                matrix.rows, matrix.cols
            ))
            .at(tensor));
        }
        Ok(match Nibbles::keeping(&matrix) {
            Some(nibbles) if !self.float => Form::Nibbles(nibbles),
            _ => Form::Float,
        })
    }

    /// Writes tensors whose forms join as one matrix named `name`.
    pub(super) fn store(&mut self, graph: &mut GraphBuilder, name: &str, tensors: &[(String, Form)]) -> Result<Stored> {
        let nibbles: Option<Vec<(String, Nibbles)>> = tensors
            .iter()
            .map(|(tensor, form)| match form {
                Form::Nibbles(nibbles) => Some((tensor.clone(), *nibbles)),
                Form::Float => None,
            })
            .collect();
        let stored = match nibbles {
            Some(parts) => Stored::Nibbles(pack_nibbles(graph, self.source, name, &parts)?),
            None => {
                let parts: Vec<String> = tensors.iter().map(|(tensor, _)| tensor.clone()).collect();
                Stored::Float(store_transposed(graph, self.source, &format!("{name}_f32"), &parts)?)
            }
        };
        for (tensor, form) in tensors {
            self.note(tensor, *form)?;
        }
        Ok(stored)
    }

    /// Writes `tensors` (name and outputs) as one matrix when their forms join, else as one each.
    pub(super) fn store_joined(
        &mut self,
        graph: &mut GraphBuilder,
        name: &str,
        tensors: &[(String, usize)],
        inputs: usize,
    ) -> Result<Vec<Stored>> {
        let mut forms = Vec::new();
        for (tensor, outputs) in tensors {
            forms.push((tensor.clone(), self.form(tensor, *outputs, inputs)?));
        }
        if forms.windows(2).all(|pair| matches!(pair, [a, b] if a.1.joins(&b.1))) {
            return Ok(vec![self.store(graph, name, &forms)?]);
        }
        forms.into_iter().map(|entry| self.store(graph, &entry.0.clone(), &[entry])).collect()
    }

    pub(super) fn note(&mut self, tensor: &str, form: Form) -> Result<()> {
        self.notes.push(WeightNote { tensor: tensor.to_owned(), form });
        (self.written)(tensor)
    }
}

/// Multiplications; what several of them need of one input (its double, its block sums) is computed once.
#[derive(Default)]
pub(super) struct Products {
    doubled: HashMap<String, String>,
    sums: HashMap<(String, usize), String>,
}

impl Products {
    /// `input [positions, inputs]` times a stored matrix, `[positions, outputs]`.
    pub(super) fn multiply(&mut self, graph: &mut GraphBuilder, name: &str, input: &str, stored: &Stored) -> String {
        match stored {
            Stored::Float(weight) => graph.op(name, "MatMul", &[input, weight], &[]),
            Stored::FloatRows(table) => graph.op(name, "Gemm", &[input, table], &[("transB", Attribute::Int(1))]),
            Stored::Nibbles(weights) => self.multiply_nibbles(graph, name, input, weights),
        }
    }

    fn multiply_nibbles(
        &mut self,
        graph: &mut GraphBuilder,
        name: &str,
        input: &str,
        weights: &NibbleWeights,
    ) -> String {
        let fed = if weights.planes == 2 { self.double(graph, input) } else { input.to_owned() };
        let attributes = [
            ("K", Attribute::Int((weights.inputs * weights.planes) as i64)),
            ("N", Attribute::Int(weights.outputs as i64)),
            ("bits", Attribute::Int(4)),
            ("block_size", Attribute::Int(weights.block as i64)),
            ("accuracy_level", Attribute::Int(INT8_ACTIVATIONS)),
        ];
        let inputs = [fed.as_str(), &weights.packed, &weights.scales];
        let scaled = format!("{name}/scaled");
        graph.node("com.microsoft", &format!("{name}/MatMulNBits"), "MatMulNBits", &inputs, &[&scaled], &attributes);
        let Some(offsets) = &weights.offsets else {
            return scaled;
        };
        let sums = self.block_sums(graph, input, weights.inputs, weights.block);
        graph.op(name, "Gemm", &[&sums, offsets, &scaled], &[])
    }

    fn double(&mut self, graph: &mut GraphBuilder, input: &str) -> String {
        if let Some(known) = self.doubled.get(input) {
            return known.clone();
        }
        let doubled = graph.op(&format!("{input}/doubled"), "Concat", &[input, input], &[("axis", Attribute::Int(-1))]);
        self.doubled.insert(input.to_owned(), doubled.clone());
        doubled
    }

    fn block_sums(&mut self, graph: &mut GraphBuilder, input: &str, inputs: usize, block: usize) -> String {
        let key = (input.to_owned(), block);
        if let Some(known) = self.sums.get(&key) {
            return known.clone();
        }
        let shape = graph.ints(&[-1, (inputs / block) as i64, block as i64]);
        let blocks = graph.op(&format!("{input}/blocks_{block}"), "Reshape", &[input, &shape], &[]);
        let last = graph.ints(&[-1]);
        let sums = graph.op(
            &format!("{input}/sums_{block}"),
            "ReduceSum",
            &[&blocks, &last],
            &[("keepdims", Attribute::Int(0))],
        );
        self.sums.insert(key, sums.clone());
        sums
    }
}
