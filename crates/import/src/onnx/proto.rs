//! The part of ONNX's protobuf schema that a decoder graph needs, with the tag numbers of `onnx.proto`.
//!
//! Scalars that ONNX's checker wants to see even when they are zero are `Option`.

use prost::{Enumeration, Message, Oneof};

/// A whole file: a graph, the operator sets it uses and who wrote it.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, optional, tag = "1")]
    pub ir_version: Option<i64>,
    /// Program that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Version of that program.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Operator sets in use.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

/// One operator set: a domain (empty for ONNX's own) and its version.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Domain of the operators.
    #[prost(string, optional, tag = "1")]
    pub domain: Option<String>,
    /// Version of the set.
    #[prost(int64, optional, tag = "2")]
    pub version: Option<i64>,
}

/// Nodes in topological order, constants, and what goes in and out.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// Operators, each after those whose outputs it reads.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name of the graph.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// One operator with its inputs (an empty name leaves an optional one out), outputs and attributes.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the inputs.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the outputs.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name of the node.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// Domain of the operator, empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// One attribute; `type` says which field holds the value.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A float.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Which field is set.
    #[prost(enumeration = "AttributeType", optional, tag = "20")]
    pub r#type: Option<i32>,
}

/// The kinds of attribute in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum AttributeType {
    /// Not set.
    Undefined = 0,
    /// `f`.
    Float = 1,
    /// `i`.
    Int = 2,
    /// `ints`.
    Ints = 7,
}

/// A constant, its bytes inside the file (`raw_data`) or in a file beside it (`external_data`).
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Shape.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Element type.
    #[prost(enumeration = "DataType", optional, tag = "2")]
    pub data_type: Option<i32>,
    /// Name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements, little endian.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub raw_data: Option<Vec<u8>>,
    /// `location`, `offset` and `length` of the elements in another file.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// Where the elements are.
    #[prost(enumeration = "DataLocation", optional, tag = "14")]
    pub data_location: Option<i32>,
}

/// Where a constant's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum DataLocation {
    /// In this file.
    Default = 0,
    /// In a file beside it.
    External = 1,
}

/// Element types in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum DataType {
    /// Not set.
    Undefined = 0,
    /// 32-bit float.
    Float = 1,
    /// Unsigned byte.
    Uint8 = 2,
    /// 32-bit integer.
    Int32 = 6,
    /// 64-bit integer.
    Int64 = 7,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// Key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Name and type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// The type of a value; only tensors are used.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// A tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// Element type and shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// Element type.
    #[prost(enumeration = "DataType", optional, tag = "1")]
    pub elem_type: Option<i32>,
    /// Shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape with fixed and named axes.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// Axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// One axis.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// Its size or its name.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// Size or name of an axis.
#[derive(Clone, PartialEq, Oneof)]
pub enum DimensionValue {
    /// A fixed size.
    #[prost(int64, tag = "1")]
    DimValue(i64),
    /// A symbolic size.
    #[prost(string, tag = "2")]
    DimParam(String),
}
