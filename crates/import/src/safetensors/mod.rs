//! Safetensors checkpoints: one file, or shards with an index, over memory maps.

mod file;
mod header;
#[cfg(test)]
pub(crate) mod sample;
mod shards;
#[cfg(test)]
mod tests;

pub use file::{SafetensorsFile, SafetensorsTensor};
pub use shards::Safetensors;
pub(crate) use shards::weight_files;
