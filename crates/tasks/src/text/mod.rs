//! Ids become text while they are written.

pub mod heal;
pub mod pieces;
pub mod stop_hold;
pub mod streamer;

pub use heal::{Healing, HealingChoice};
pub use pieces::Pieces;
pub use stop_hold::{Shown, StopHold};
pub use streamer::TextStreamer;
