//! Two engines behind one small contract.

pub mod choose;
pub mod contract;
pub mod ort;
pub mod rten;

pub use choose::EngineChoice;
