//! Ids become text while they are written.

pub mod pieces;
pub mod stop_hold;

pub use pieces::Pieces;
pub use stop_hold::{Shown, StopHold};
