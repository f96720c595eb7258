//! When a row is done, one criterion a file.

pub mod any;
pub mod confidence;
pub mod contract;
pub mod eos;
pub mod max_length;
pub mod max_time;
pub mod stop_strings;

pub use any::AnyOf;
pub use confidence::Confidence;
pub use contract::{Criterion, FinishReason};
pub use eos::Eos;
pub use max_length::Length;
pub use max_time::Time;
pub use stop_strings::StopStrings;

#[cfg(test)]
mod tests;
