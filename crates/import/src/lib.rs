//! GGUF and safetensors checkpoints become model folders with an ONNX graph.

pub mod checkpoint;
mod folder;
pub mod gguf;
pub mod graph;
mod import;
pub mod onnx;
pub mod quant;
pub mod safetensors;
pub mod tokenizer;
pub mod weights;

pub use import::{ImportOptions, ImportReport, OnProgress, Progress, TensorReport, Weights, import};
