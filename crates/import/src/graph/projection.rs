//! Multiplying with a stored matrix, in whichever form it was stored.

use std::collections::HashMap;

use unspool_core::{Error, Result};

use crate::onnx::proto::DataType;
use crate::onnx::{Attribute, GraphBuilder, Variant};
use crate::weights::{Form, NibbleWeights, Nibbles, Source, pack_nibbles, store_transposed};

/// `accuracy_level` of `MatMulNBits` for inputs that may be rounded to 8 bits per block.
const INT8_ACTIVATIONS: i64 = 4;
/// Elements of the largest matrix that sums blocks: 64 KiB, which stay in a core's own cache beside the weights that
/// stream through it; at 288 KiB a reduction was faster.
const SUM_MATRIX: usize = 1 << 14;

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

/// How `MatMulNBits` reads a packed matrix.
struct View {
    bits: i64,
    /// Whether an engine may round the input to 8 bits per block.
    rounds: bool,
    inputs: usize,
    block: usize,
    outputs: usize,
}

impl View {
    /// Multiplies `operands` (input, packed integers, scales and maybe zero points), and adds the product of `sums`.
    fn multiply(
        &self,
        graph: &mut GraphBuilder,
        name: &str,
        operands: Vec<String>,
        sums: Option<[String; 2]>,
    ) -> String {
        let mut attributes = vec![
            ("K", Attribute::Int(self.inputs as i64)),
            ("N", Attribute::Int(self.outputs as i64)),
            ("bits", Attribute::Int(self.bits)),
            ("block_size", Attribute::Int(self.block as i64)),
        ];
        if self.rounds {
            attributes.push(("accuracy_level", Attribute::Int(INT8_ACTIVATIONS)));
        }
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let own = format!("{name}/output_0");
        let Some([sums, offsets]) = sums else {
            graph.node("com.microsoft", name, "MatMulNBits", &operands, &[&own], &attributes);
            return own;
        };
        let (inner, scaled) = (format!("{name}/MatMulNBits"), format!("{name}/scaled"));
        graph.node("com.microsoft", &inner, "MatMulNBits", &operands, &[&scaled], &attributes);
        graph.op(name, "Gemm", &[&sums, &offsets, &scaled], &[])
    }
}

/// Multiplications; what several of them need of one input (its pairs, its block sums) is computed once.
#[derive(Default)]
pub(super) struct Products {
    /// Whether only the last position of a prompt gets here. rten would round it as it rounds a token by itself.
    pub(super) ends_prompt: bool,
    pairs: HashMap<String, String>,
    sums: HashMap<(String, usize), String>,
    /// By width and block: the matrix of ones and zeros that sums blocks.
    ones: HashMap<(usize, usize), String>,
}

impl Products {
    /// `input [positions, inputs]` times a stored matrix, `[positions, outputs]`.
    ///
    /// # Errors
    ///
    /// When writing a constant fails.
    pub(super) fn multiply(
        &mut self,
        graph: &mut GraphBuilder,
        name: &str,
        input: &str,
        stored: &Stored,
    ) -> Result<String> {
        match stored {
            Stored::Float(weight) => Ok(graph.op(name, "MatMul", &[input, weight], &[])),
            Stored::FloatRows(table) => Ok(graph.op(name, "Gemm", &[input, table], &[("transB", Attribute::Int(1))])),
            Stored::Nibbles(weights) => self.multiply_nibbles(graph, name, input, weights),
        }
    }

    fn multiply_nibbles(
        &mut self,
        graph: &mut GraphBuilder,
        name: &str,
        input: &str,
        weights: &NibbleWeights,
    ) -> Result<String> {
        let sums = match &weights.offsets {
            Some(offsets) => Some([self.block_sums(graph, input, weights.inputs, weights.block)?, offsets.clone()]),
            None => None,
        };
        let operands = |fed: &str| vec![fed.to_owned(), weights.packed.clone(), weights.scales.clone()];
        let outputs = weights.outputs;
        let Some(bytes) = &weights.bytes else {
            let view = |rounds| View { bits: 4, rounds, inputs: weights.inputs, block: weights.block, outputs };
            if !self.ends_prompt {
                return Ok(view(true).multiply(graph, name, operands(input), sums));
            }
            graph.only(Variant::Portable, |graph| view(false).multiply(graph, name, operands(input), sums.clone()));
            return Ok(
                graph.only(Variant::OnnxRuntime, |graph| view(true).multiply(graph, name, operands(input), sums))
            );
        };
        let pairs = self.pairs(graph, input, weights.inputs);
        // Beside its 16-fold an input would be rounded to a few values: a whole percent of perplexity, measured on rten.
        let view = View { bits: 4, rounds: false, inputs: weights.inputs * 2, block: weights.block * 2, outputs };
        graph.only(Variant::Portable, |graph| view.multiply(graph, name, operands(&pairs), sums.clone()));
        let view = View { bits: 8, rounds: true, inputs: weights.inputs, block: weights.block, outputs };
        let mut operands = operands(input);
        operands.extend(bytes.zero_points.clone());
        let sums = sums.filter(|_| bytes.offsets);
        Ok(graph.only(Variant::OnnxRuntime, |graph| view.multiply(graph, name, operands, sums)))
    }

    /// Each element of the input and 16 times it, side by side: what the two halves of a byte are multiplied with.
    fn pairs(&mut self, graph: &mut GraphBuilder, input: &str, inputs: usize) -> String {
        if let Some(known) = self.pairs.get(input) {
            return known.clone();
        }
        let (last, factors) = (graph.ints(&[-1]), graph.floats(&[1.0, 16.0]));
        let column = graph.op(&format!("{input}/column"), "Unsqueeze", &[input, &last], &[]);
        let both = graph.op(&format!("{input}/both"), "Mul", &[&column, &factors], &[]);
        let shape = graph.ints(&[-1, inputs as i64 * 2]);
        let pairs = graph.op(&format!("{input}/pairs"), "Reshape", &[&both, &shape], &[]);
        self.pairs.insert(input.to_owned(), pairs.clone());
        pairs
    }

    /// The sums of the input's blocks, `[positions, inputs / block]`. On ONNX Runtime one product with ones and zeros takes
    /// less than a reshape and a reduction, while its matrix is small.
    fn block_sums(&mut self, graph: &mut GraphBuilder, input: &str, inputs: usize, block: usize) -> Result<String> {
        let key = (input.to_owned(), block);
        if let Some(known) = self.sums.get(&key) {
            return Ok(known.clone());
        }
        let blocks = inputs / block;
        let name = format!("{input}/sums_{block}");
        let reduce = |graph: &mut GraphBuilder| {
            let (shape, last) = (graph.ints(&[-1, blocks as i64, block as i64]), graph.ints(&[-1]));
            let apart = graph.op(&format!("{input}/blocks_{block}"), "Reshape", &[input, &shape], &[]);
            graph.op(&name, "ReduceSum", &[&apart, &last], &[("keepdims", Attribute::Int(0))])
        };
        let sums = if inputs.saturating_mul(blocks) > SUM_MATRIX {
            reduce(graph)
        } else {
            let ones = match self.ones.get(&(inputs, block)) {
                Some(known) => known.clone(),
                None => {
                    let constant = format!("/constants/sums/{inputs}x{blocks}");
                    let region = graph.external(&constant, DataType::Float, &[inputs, blocks])?;
                    let row = |at: usize| (0..blocks).map(move |block_at| f32::from(u8::from(at / block == block_at)));
                    graph.write_floats(region, 0, &(0..inputs).flat_map(row).collect::<Vec<_>>())?;
                    self.ones.insert((inputs, block), constant.clone());
                    constant
                }
            };
            graph.only(Variant::Portable, reduce);
            graph.only(Variant::OnnxRuntime, |graph| graph.op(&name, "MatMul", &[input, &ones], &[]))
        };
        self.sums.insert(key, sums.clone());
        Ok(sums)
    }
}
