//! GGUF files (versions 2 and 3, little endian): metadata and tensors over a memory map, nothing believed unchecked.

mod bytes;
mod cursor;
mod file;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use bytes::Bytes;
pub use file::{Gguf, TensorInfo, TensorView};
pub use value::{Array, Value};
