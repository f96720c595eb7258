//! Two engines behind one small contract; cargo features of their names leave one out.

pub mod choose;
pub mod contract;
#[cfg(feature = "ort")]
pub mod ort;
#[cfg(feature = "rten")]
pub mod rten;

pub use choose::{EngineChoice, NO_ORT_HINT};
