//! ONNX Runtime, when its library is found at run time.

mod decoder;
pub mod library;
mod raw;

pub use decoder::OrtEngine;
