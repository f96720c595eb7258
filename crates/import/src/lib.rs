//! GGUF and safetensors checkpoints become model folders with an ONNX graph.

pub mod checkpoint;
mod folder;
pub mod gguf;
pub mod graph;
mod import;
pub mod lock;
pub mod manifest;
pub mod onnx;
mod progress;
pub mod quant;
pub mod safetensors;
pub mod staging;
pub mod tokenizer;
pub mod weights;

pub use folder::files_read;
pub use import::{ImportOptions, ImportReport, TensorReport, Weights, import};
pub use progress::{OnProgress, Progress};
