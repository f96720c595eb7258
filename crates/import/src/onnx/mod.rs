//! Writing ONNX: the protobuf messages, the graph under construction, and the file of weights beside it.

mod builder;
mod data;
pub mod proto;

pub use builder::{Attribute, Built, Dim, GraphBuilder, Tap, Variant, Variants};
pub use data::{DataFile, Region};
