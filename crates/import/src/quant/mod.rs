//! The block formats of GGUF: raw bytes become f32 values, or the scales and integers that a graph can keep.

mod blocks;
mod contract;
mod float;
mod ggml_type;
mod k_scales;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
#[cfg(test)]
mod tests;

pub use blocks::{Groups, dequantize, groups};
pub use contract::{Group, MAX_GROUP};
pub use ggml_type::GgmlType;
