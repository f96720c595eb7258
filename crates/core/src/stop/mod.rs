//! When a row is done, one criterion a file.

pub mod contract;

pub use contract::{Criterion, FinishReason};
