//! One view of a Llama-like checkpoint, whether GGUF or safetensors: checked sizes, and tensors by Hugging Face's names
//! in Hugging Face's row order.

mod config_json;
mod family;
mod gguf_metadata;
mod hyper;
mod open;
mod role;
mod source;
mod tensor;
#[cfg(test)]
mod tests;

pub use hyper::Hyper;
pub use open::Checkpoint;
pub use role::{LayerRole, Role};
pub use tensor::Tensor;
