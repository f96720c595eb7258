//! A graph under construction: nodes in order, constants inside the file or in the data file.

use std::collections::BTreeSet;

use super::data::{DataFile, Region};
use super::proto::{
    AttributeProto, AttributeType, DataLocation, DataType, DimensionProto, DimensionValue, GraphProto, ModelProto,
    NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};
use unspool_core::{Error, Result};

/// Version of the file format that is written; ONNX Runtime 1.20 and rten read it.
const IR_VERSION: i64 = 10;
/// Version of ONNX's own operators that is written.
const OPSET: i64 = 18;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// Integers.
    Ints(Vec<i64>),
}

/// An axis of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A fixed size.
    Fixed(usize),
    /// A named size.
    Named(&'static str),
}

/// One of the graphs that are built over the same constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Runs on every engine.
    Portable,
    /// Uses what only ONNX Runtime has.
    OnnxRuntime,
}

/// A graph under construction, in two variants that share most of their nodes.
#[derive(Debug)]
pub struct GraphBuilder {
    graph: GraphProto,
    /// For each node, the only variant that has it.
    only: Vec<Option<Variant>>,
    /// The variant that nodes are being added to; both when none.
    variant: Option<Variant>,
    data: DataFile,
    constants: BTreeSet<String>,
    apart: Vec<Apart>,
}

/// A graph of its own over the same constants.
#[derive(Debug)]
struct Apart {
    name: String,
    /// An input that only this graph has.
    input: Option<ValueInfoProto>,
    outputs: Vec<Tap>,
}

/// A value that a graph of its own returns.
#[derive(Clone, Debug)]
pub struct Tap {
    value: String,
    output: ValueInfoProto,
}

impl Tap {
    /// The f32 `value` is returned as `output`, with these axes.
    pub fn new(value: &str, output: &str, dims: &[Dim]) -> Self {
        Tap { value: value.to_owned(), output: value_info(output, DataType::Float, dims) }
    }
}

/// The messages of a finished build.
#[derive(Clone, Debug)]
pub struct Built {
    /// The whole graph.
    pub whole: Variants,
    /// The graphs set [`apart`](GraphBuilder::apart), with their names.
    pub apart: Vec<(String, Variants)>,
}

/// One graph, for every engine and for one.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The graph that runs on every engine.
    pub portable: ModelProto,
    /// The one that uses what only ONNX Runtime has; absent when it is the same.
    pub onnx_runtime: Option<ModelProto>,
}

impl GraphBuilder {
    /// An empty graph whose large constants go to `data`.
    pub fn new(name: &str, data: DataFile) -> Self {
        let graph = GraphProto { name: name.to_owned(), ..GraphProto::default() };
        GraphBuilder { graph, only: Vec::new(), variant: None, data, constants: BTreeSet::new(), apart: Vec::new() }
    }

    /// Runs `add` so that its nodes belong to `variant` alone. The other variant must get nodes with the same outputs.
    pub fn only<T>(&mut self, variant: Variant, add: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.variant.replace(variant);
        let added = add(self);
        self.variant = before;
        added
    }

    /// Declares an input and returns its name.
    pub fn input(&mut self, name: &str, dtype: DataType, dims: &[Dim]) -> String {
        self.graph.input.push(value_info(name, dtype, dims));
        name.to_owned()
    }

    /// Declares that the value `name` is an output.
    pub fn output(&mut self, name: &str, dtype: DataType, dims: &[Dim]) {
        self.graph.output.push(value_info(name, dtype, dims));
    }

    /// Declares a graph of its own over the same constants: the nodes that lead to `outputs`, and the inputs that they need,
    /// of the whole graph's and `input` (name and axes, f32).
    pub fn apart(&mut self, name: &str, input: Option<(&str, &[Dim])>, outputs: Vec<Tap>) {
        let input = input.map(|(name, dims)| value_info(name, DataType::Float, dims));
        self.apart.push(Apart { name: name.to_owned(), input, outputs });
    }

    /// Adds an operator of ONNX's own set with one output, and returns that output's name.
    pub fn op(&mut self, name: &str, op_type: &str, inputs: &[&str], attributes: &[(&str, Attribute)]) -> String {
        let output = format!("{name}/output_0");
        self.node("", name, op_type, inputs, &[&output], attributes);
        output
    }

    /// Adds an operator of any domain with named outputs (empty names leave optional ones out).
    pub fn node(
        &mut self,
        domain: &str,
        name: &str,
        op_type: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) {
        self.only.push(self.variant);
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: outputs.iter().map(|&output| output.to_owned()).collect(),
            name: name.to_owned(),
            op_type: op_type.to_owned(),
            attribute: attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            domain: domain.to_owned(),
        });
    }

    /// A small int64 constant of shape `[values.len()]`; equal ones are shared.
    pub fn ints(&mut self, values: &[i64]) -> String {
        let name = format!("/constants/int64/[{}]", list(values));
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.small(name, DataType::Int64, vec![values.len() as i64], raw)
    }

    /// A small int64 constant without axes; equal ones are shared.
    pub fn int_scalar(&mut self, value: i64) -> String {
        let name = format!("/constants/int64/{value}");
        self.small(name, DataType::Int64, Vec::new(), value.to_le_bytes().to_vec())
    }

    /// A small f32 constant without axes; equal ones are shared.
    pub fn float_scalar(&mut self, value: f32) -> String {
        let name = format!("/constants/f32/{value:?}");
        self.small(name, DataType::Float, Vec::new(), value.to_le_bytes().to_vec())
    }

    /// A small f32 constant of shape `[values.len()]`; equal ones are shared.
    pub fn floats(&mut self, values: &[f32]) -> String {
        let name = format!("/constants/f32/{values:?}");
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.small(name, DataType::Float, vec![values.len() as i64], raw)
    }

    fn small(&mut self, name: String, dtype: DataType, dims: Vec<i64>, raw: Vec<u8>) -> String {
        if self.constants.insert(name.clone()) {
            self.graph.initializer.push(TensorProto {
                dims,
                data_type: Some(dtype as i32),
                name: name.clone(),
                raw_data: Some(raw),
                ..TensorProto::default()
            });
        }
        name
    }

    /// Declares a constant of the data file and sets its bytes aside; fill them through [`write`](Self::write).
    ///
    /// # Errors
    ///
    /// When the shape's size overflows or the disk refuses.
    pub fn external(&mut self, name: &str, dtype: DataType, dims: &[usize]) -> Result<Region> {
        let width = match dtype {
            DataType::Float | DataType::Int32 => 4,
            DataType::Int64 => 8,
            DataType::Uint8 | DataType::Undefined => 1_usize,
        };
        let length = dims
            .iter()
            .try_fold(width, |size, &dim| size.checked_mul(dim))
            .ok_or_else(|| Error::invalid_model(format!("a tensor of shape {dims:?} is too large")).at(name))?;
        let region = self.data.reserve(length as u64)?;
        let entry = |key: &str, value: String| StringStringEntryProto { key: key.to_owned(), value };
        self.graph.initializer.push(TensorProto {
            dims: dims.iter().map(|&dim| dim as i64).collect(),
            data_type: Some(dtype as i32),
            name: name.to_owned(),
            external_data: vec![
                entry("location", self.data.name().to_owned()),
                entry("offset", region.offset.to_string()),
                entry("length", region.length.to_string()),
            ],
            data_location: Some(DataLocation::External as i32),
            ..TensorProto::default()
        });
        Ok(region)
    }

    /// Writes `bytes` at byte `at` of a constant's region.
    ///
    /// # Errors
    ///
    /// When they do not fit or writing fails.
    pub fn write(&mut self, region: Region, at: u64, bytes: &[u8]) -> Result<()> {
        self.data.write(region, at, bytes)
    }

    /// Writes `values` (f32, little endian) at element `at` of a constant's region.
    ///
    /// # Errors
    ///
    /// When they do not fit or writing fails.
    pub fn write_floats(&mut self, region: Region, at: u64, values: &[f32]) -> Result<()> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let at = at.checked_mul(4).ok_or_else(|| Error::invalid_model("a tensor is too large"))?;
        self.data.write(region, at, &bytes)
    }

    /// Bytes of the data file so far.
    pub fn data_len(&self) -> u64 {
        self.data.len()
    }

    /// Finishes the data file and returns the messages.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub fn finish(self) -> Result<Built> {
        self.data.finish()?;
        let whole = variants(&self.graph, &self.only);
        let apart = self.apart.into_iter().map(|apart| {
            let (name, graph) = (apart.name.clone(), apart.of(&self.graph));
            (name, variants(&graph, &self.only))
        });
        Ok(Built { apart: apart.collect(), whole })
    }
}

impl Apart {
    /// This graph, with all of the whole one's nodes and constants.
    fn of(self, whole: &GraphProto) -> GraphProto {
        let mut graph = whole.clone();
        graph.input.extend(self.input);
        graph.output.clear();
        for Tap { value, output } in self.outputs {
            if value != output.name {
                let names = graph.node.iter_mut().flat_map(|node| node.output.iter_mut().chain(&mut node.input));
                for name in names {
                    // The whole graph's value of this name gives way.
                    if *name == output.name {
                        name.insert_str(0, "/whole/");
                    } else if *name == value {
                        name.clone_from(&output.name);
                    }
                }
            }
            graph.output.push(output);
        }
        graph
    }
}

/// A graph in both variants.
fn variants(graph: &GraphProto, only: &[Option<Variant>]) -> Variants {
    let portable = variant(graph, only, Variant::Portable);
    let onnx_runtime = variant(graph, only, Variant::OnnxRuntime);
    Variants { onnx_runtime: (onnx_runtime != portable).then(|| model(onnx_runtime)), portable: model(portable) }
}

fn model(graph: GraphProto) -> ModelProto {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) };
    ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: "unspool".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        graph: Some(graph),
        opset_import: vec![opset("", OPSET), opset("com.microsoft", 1)],
    }
}

/// The nodes of one variant that an output needs, and the inputs and constants that those read.
fn variant(graph: &GraphProto, only: &[Option<Variant>], variant: Variant) -> GraphProto {
    let mut needed: BTreeSet<&str> = graph.output.iter().map(|output| output.name.as_str()).collect();
    let mut nodes = Vec::new();
    for (node, only) in graph.node.iter().zip(only).rev() {
        let wanted = only.is_none_or(|only| only == variant);
        if wanted && node.output.iter().any(|output| needed.contains(output.as_str())) {
            needed.extend(node.input.iter().map(String::as_str));
            nodes.push(node.clone());
        }
    }
    nodes.reverse();
    let constants = graph.initializer.iter().filter(|constant| needed.contains(constant.name.as_str()));
    let inputs = graph.input.iter().filter(|input| needed.contains(input.name.as_str()));
    GraphProto {
        node: nodes,
        initializer: constants.cloned().collect(),
        input: inputs.cloned().collect(),
        ..graph.clone()
    }
}

fn list(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut proto = AttributeProto { name: name.to_owned(), ..AttributeProto::default() };
    let kind = match value {
        Attribute::Int(value) => {
            proto.i = Some(*value);
            AttributeType::Int
        }
        Attribute::Float(value) => {
            proto.f = Some(*value);
            AttributeType::Float
        }
        Attribute::Ints(values) => {
            proto.ints.clone_from(values);
            AttributeType::Ints
        }
    };
    proto.r#type = Some(kind as i32);
    proto
}

fn value_info(name: &str, dtype: DataType, dims: &[Dim]) -> ValueInfoProto {
    let dim = dims
        .iter()
        .map(|dim| DimensionProto {
            value: Some(match dim {
                Dim::Fixed(size) => DimensionValue::DimValue(*size as i64),
                Dim::Named(name) => DimensionValue::DimParam((*name).to_owned()),
            }),
        })
        .collect();
    let tensor_type = TensorTypeProto { elem_type: Some(dtype as i32), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type: Some(tensor_type) }) }
}
