//! An ONNX graph becomes an Unspool model.
//!
//! A decoder graph is opened from a model folder ([`OnnxModel::open`]): [`graph`] reads what the file declares and decides
//! the cache mode from it alone, [`engine`] loads it into the built-in engine (rten) or ONNX Runtime, and [`cache`] holds
//! one session type per cache mode.

pub mod cache;
pub mod description;
pub mod engine;
mod exits;
pub mod folder;
pub mod graph;
mod head;
pub mod model;
pub mod weights;

pub use description::{Description, EngineSupport};
pub use engine::{EngineChoice, NO_ORT_HINT};
pub use graph::CacheMode;
pub use model::{OnnxModel, OnnxOptions};
pub use weights::{GraphWeights, WeightKind};
