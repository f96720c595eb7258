//! What a graph declares, read from the file alone: inputs, outputs, roles, cache mode, external data.

pub mod cache_mode;
#[cfg_attr(not(feature = "rten"), allow(dead_code, reason = "only the built-in engine is given files by plain names"))]
pub mod external;
pub mod hidden;
mod limits;
mod needs;
pub(crate) mod proto;
pub mod read;
pub mod signature;
#[cfg_attr(not(feature = "rten"), allow(dead_code, reason = "only the built-in engine is given files by plain names"))]
mod wire;

pub use cache_mode::CacheMode;
pub use hidden::Hidden;
pub use signature::{CacheSlot, ElementType, Io, Signature};
