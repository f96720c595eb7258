//! The parts of the ONNX protobuf that a signature is read from. Weights are not copied.

use prost::bytes::Bytes;

/// `ModelProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Model {
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<Function>,
}

/// `FunctionProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Function {
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<Node>,
}

/// `GraphProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<Node>,
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<Sparse>,
}

/// `SparseTensorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sparse {
    #[prost(message, optional, tag = "1")]
    pub values: Option<Tensor>,
    #[prost(message, optional, tag = "2")]
    pub indices: Option<Tensor>,
}

/// `NodeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Node {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub i: i64,
    #[prost(message, optional, tag = "5")]
    pub t: Option<Tensor>,
    #[prost(message, optional, tag = "6")]
    pub g: Option<Graph>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    #[prost(message, repeated, tag = "10")]
    pub tensors: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub graphs: Vec<Graph>,
    #[prost(message, optional, tag = "22")]
    pub sparse_tensor: Option<Sparse>,
    #[prost(message, repeated, tag = "23")]
    pub sparse_tensors: Vec<Sparse>,
}

/// `TensorProto`, whose elements stay where they are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// `int32_data`, packed as in the file.
    #[prost(bytes = "bytes", tag = "5")]
    pub int32_data: Bytes,
    /// `int64_data`, packed as in the file.
    #[prost(bytes = "bytes", tag = "7")]
    pub int64_data: Bytes,
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<Entry>,
}

/// `StringStringEntryProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `ValueInfoProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<Type>,
}

/// `TypeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Type {
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorType>,
}

/// `TypeProto.Tensor`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorType {
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// `TensorShapeProto.Dimension`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub dim_param: Option<String>,
}

impl Model {
    /// All nodes: those of the graph, of its functions, and of all subgraphs (branches, loop bodies).
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        self.graph.iter().for_each(|graph| graph.walk(&mut |_, node| visit(node)));
        self.functions.iter().flat_map(|function| &function.node).for_each(|node| node.walk(visit));
    }

    /// All tensors that the file describes, wherever they stand.
    pub fn tensors(&self) -> Vec<&Tensor> {
        let mut found = Vec::new();
        self.graph.iter().for_each(|graph| graph.tensors(&mut found));
        self.walk(&mut |node| {
            for attribute in &node.attribute {
                found.extend(attribute.t.iter().chain(&attribute.tensors));
                let sparse = attribute.sparse_tensor.iter().chain(&attribute.sparse_tensors);
                found.extend(sparse.flat_map(|sparse| sparse.values.iter().chain(&sparse.indices)));
                attribute.g.iter().chain(&attribute.graphs).for_each(|graph| graph.tensors(&mut found));
            }
        });
        found
    }
}

impl Graph {
    fn tensors<'a>(&'a self, found: &mut Vec<&'a Tensor>) {
        let sparse = self.sparse_initializer.iter().flat_map(|sparse| sparse.values.iter().chain(&sparse.indices));
        found.extend(self.initializer.iter().chain(sparse));
    }

    /// All nodes, with those of subgraphs (branches, loop bodies).
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Graph, &'a Node)) {
        for node in &self.node {
            visit(self, node);
            for attribute in &node.attribute {
                for graph in attribute.g.iter().chain(&attribute.graphs) {
                    graph.walk(visit);
                }
            }
        }
    }
}

impl Node {
    /// This node and all those of its subgraphs.
    fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        visit(self);
        for attribute in &self.attribute {
            for graph in attribute.g.iter().chain(&attribute.graphs) {
                graph.node.iter().for_each(|node| node.walk(visit));
            }
        }
    }

    /// The integer attribute `name`, or `default`.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute.iter().find(|a| a.name == name).map_or(default, |a| a.i)
    }
}
