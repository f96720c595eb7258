//! Telling tokens while they are written.

pub mod contract;

pub use contract::{Flow, TokenEvent, TokenSink};
