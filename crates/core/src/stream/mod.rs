//! Telling tokens while they are written.

pub mod channel;
pub mod contract;

pub use channel::{ChannelSink, StreamEvent, TimedOut, TokenStream, channel};
pub use contract::{Flow, TokenEvent, TokenSink};
