//! How many parameters a graph has, and how they are stored.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use memmap2::Mmap;
use prost::Message;
use prost::bytes::Bytes;
use serde::Serialize;
use unspool_core::{Error, Result};

use crate::OnnxModel;
use crate::graph::external;
use crate::graph::proto::{Graph, Model, Node, Tensor};

/// The weights of a graph, as they are stored: a matrix that an exporter wrote twice counts twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphWeights {
    /// Numbers of the weights; tables of angles, scales and zero points are none.
    pub parameters: u64,
    /// Bytes of the graph's file and of its external data.
    pub bytes_on_disk: u64,
    /// The same by kind, the most parameters first.
    pub kinds: Vec<WeightKind>,
}

/// Weights that are stored in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WeightKind {
    /// `f32`, `f16`, `bf16`, `int8`, or of quantised blocks `int4, blocks of 32`.
    pub kind: String,
    /// Their numbers.
    pub parameters: u64,
    /// Their bytes, with scales and zero points.
    pub bytes: u64,
}

impl OnnxModel {
    /// Counts the weights of the graph: reads the graph's file again, but not its external data.
    ///
    /// # Errors
    ///
    /// When a file is gone or was changed since the model was opened.
    pub fn weights(&self) -> Result<GraphWeights> {
        let path = Path::new(&self.description().graph);
        let failed = |error: std::io::Error| Error::io("the graph cannot be read").at(path.display()).because(error);
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the map is only read, while this function runs; a file that another process changes meanwhile can at
        // worst give wrong counts or an error, since every byte is decoded with bounds checks.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let size = map.len() as u64;
        let model = Model::decode(Bytes::from_owner(map)).map_err(|error| {
            Error::invalid_model("this is not a readable ONNX graph; download or export it again").because(error)
        })?;
        let files = external::check(&model, path, path.parent().unwrap_or(Path::new(".")))?;
        let bytes_on_disk = files.values().fold(size, |sum, file| sum.saturating_add(file.size));
        let graph = model.graph.unwrap_or_default();
        let mut found = Found::default();
        found.graph(&graph);
        Ok(found.weights(bytes_on_disk))
    }
}

/// What a node says about a constant that it reads.
enum Use {
    /// Packed integers: how they are called, and how many numbers they are when the shape does not tell.
    Packed(String, Option<u64>),
    /// Scales, zero points or angles, which belong to the packed integers named, if any.
    Beside(Option<String>),
}

#[derive(Default)]
struct Found<'g> {
    constants: HashMap<&'g str, &'g Tensor>,
    uses: HashMap<&'g str, Use>,
}

impl<'g> Found<'g> {
    fn graph(&mut self, graph: &'g Graph) {
        self.constants(graph);
        graph.walk(&mut |_, node| {
            self.node(node);
            for attribute in &node.attribute {
                attribute.g.iter().chain(&attribute.graphs).for_each(|inner| self.constants(inner));
            }
        });
    }

    fn constants(&mut self, graph: &'g Graph) {
        for tensor in &graph.initializer {
            self.constants.insert(&tensor.name, tensor);
        }
    }

    fn node(&mut self, node: &'g Node) {
        let input = |at: usize| node.input.get(at).map(String::as_str).filter(|name| !name.is_empty());
        let blocks = |bits| format!("int{bits}, blocks of {}", node.int("block_size", 128));
        let (packed, kind, count, beside): (usize, String, Option<u64>, &[usize]) = match node.op_type.as_str() {
            "MatMulNBits" => {
                let count = |name| u64::try_from(node.int(name, 0)).unwrap_or(0);
                (1, blocks(node.int("bits", 4)), Some(count("K").saturating_mul(count("N"))), &[2, 3])
            }
            "GatherBlockQuantized" => (0, blocks(node.int("bits", 4)), None, &[2, 3]),
            "DequantizeLinear" => (0, String::new(), None, &[1, 2]),
            "GroupQueryAttention" => return self.angles(&[input(7), input(8)]),
            "RotaryEmbedding" => return self.angles(&[input(2), input(3)]),
            _ => return,
        };
        let Some(name) = input(packed) else { return };
        if !kind.is_empty() {
            self.uses.insert(name, Use::Packed(kind, count));
        }
        for beside in beside.iter().filter_map(|at| input(*at)) {
            self.uses.insert(beside, Use::Beside(Some(name.to_owned())));
        }
    }

    fn angles(&mut self, names: &[Option<&'g str>]) {
        self.uses.extend(names.iter().flatten().map(|name| (*name, Use::Beside(None))));
    }

    /// The kind and the numbers of a constant; `None` for what is no weight.
    fn counted(&self, tensor: &Tensor) -> Option<(String, u64)> {
        let own = element(tensor.data_type)?;
        let elements = elements(tensor);
        match self.uses.get(tensor.name.as_str()) {
            Some(Use::Beside(_)) => None,
            Some(Use::Packed(kind, Some(count))) => Some((kind.clone(), *count)),
            Some(Use::Packed(kind, None)) => {
                // Several small numbers share a byte when the elements are bytes.
                let bits =
                    kind.trim_start_matches("int").split(',').next()?.parse::<u64>().ok().filter(|bits| *bits > 0)?;
                let each = if own.bits == 8 { 8 / bits.min(8) } else { 1 };
                Some((kind.clone(), elements.saturating_mul(each)))
            }
            // Counts and shapes are 64-bit integers, factors have no axis.
            None if tensor.dims.is_empty() || own.name.is_empty() => None,
            None => Some((own.name.to_owned(), elements)),
        }
    }

    fn weights(&self, bytes_on_disk: u64) -> GraphWeights {
        let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut kind_of: HashMap<&str, String> = HashMap::new();
        for (name, tensor) in &self.constants {
            let Some((kind, count)) = self.counted(tensor) else { continue };
            let sums = kinds.entry(kind.clone()).or_default();
            sums.0 = sums.0.saturating_add(count);
            sums.1 = sums.1.saturating_add(bytes(tensor));
            kind_of.insert(name, kind);
        }
        for (name, tensor) in &self.constants {
            let Some(Use::Beside(Some(packed))) = self.uses.get(name) else { continue };
            if let Some(sums) = kind_of.get(packed.as_str()).and_then(|kind| kinds.get_mut(kind)) {
                sums.1 = sums.1.saturating_add(bytes(tensor));
            }
        }
        let kind = |(kind, (parameters, bytes))| WeightKind { kind, parameters, bytes };
        let mut kinds: Vec<WeightKind> = kinds.into_iter().map(kind).collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.parameters));
        let parameters = kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(kind.parameters));
        GraphWeights { parameters, bytes_on_disk, kinds }
    }
}

/// An element type of weights; without a name it is no weight by itself.
struct Element {
    name: &'static str,
    bits: u64,
}

/// The element type of a number in `TensorProto.DataType`; `None` for texts and what is not known.
fn element(number: i32) -> Option<Element> {
    let (name, bits) = match number {
        1 => ("f32", 32),
        2 | 3 => ("int8", 8),
        4 | 5 => ("int16", 16),
        6 | 12 => ("", 32),
        7 | 13 => ("", 64),
        9 => ("", 8),
        10 => ("f16", 16),
        11 => ("f64", 64),
        16 => ("bf16", 16),
        17..=20 => ("f8", 8),
        21 | 22 => ("int4", 4),
        23 => ("f4", 4),
        _ => return None,
    };
    Some(Element { name, bits })
}

fn elements(tensor: &Tensor) -> u64 {
    tensor.dims.iter().fold(1u64, |product, dim| product.saturating_mul(u64::try_from(*dim).unwrap_or(0)))
}

fn bytes(tensor: &Tensor) -> u64 {
    element(tensor.data_type).map_or(0, |element| elements(tensor).saturating_mul(element.bits).div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnnxOptions;
    use crate::engine::EngineChoice;

    fn weights(name: &str) -> GraphWeights {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models").join(name);
        let options = OnnxOptions { engine: EngineChoice::Rten, ..OnnxOptions::default() };
        OnnxModel::open(&folder, &options).unwrap().weights().unwrap()
    }

    fn kind(kind: &str, parameters: u64, bytes: u64) -> WeightKind {
        WeightKind { kind: kind.to_owned(), parameters, bytes }
    }

    #[test]
    fn float_weights_are_those_of_the_checkpoint() {
        // The checkpoint beside it holds as many: 112,256 numbers and a header.
        let found = weights("llama");
        let checkpoint = 2 * 300 * 64 + 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128) + 5 * 64;
        assert_eq!(found.parameters, checkpoint);
        assert_eq!(found.kinds, [kind("f32", checkpoint, 4 * checkpoint)]);
        assert_eq!(found.bytes_on_disk, 544_379);
    }

    #[test]
    fn quantised_blocks_count_with_their_scales_and_without_angles() {
        let found = weights("llama-genai-int4");
        let packed = 300 * 64 + 2 * (128 * 64 + 64 * 64 + 3 * 64 * 128);
        let floats = 300 * 64 + 5 * 64;
        let blocks = packed / 32;
        assert_eq!(
            found.kinds,
            [kind("int4, blocks of 32", packed, packed / 2 + 4 * blocks), kind("f32", floats, 4 * floats)]
        );
        assert_eq!(found.parameters, packed + floats);
        assert_eq!(found.bytes_on_disk, 18_226 + 152_544);
    }
}
