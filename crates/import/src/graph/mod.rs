//! The graph of a Llama-like decoder, shaped like those of ONNX Runtime GenAI's model builder.

mod contract;
mod decoder;
mod embedding;
mod heads;
mod output;
mod projection;
mod rope;
#[cfg(test)]
pub(crate) mod tests;

pub use contract::{Decoder, Extent, Rope, RopeScaling};
pub use decoder::build;
pub use output::HEAD_GRAPH;
pub use projection::{Stored, WeightNote};
pub use rope::rope_tables;
