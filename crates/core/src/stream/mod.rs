//! Telling tokens while they are written.

pub mod asynchronous;
pub mod channel;
pub mod contract;

pub use asynchronous::{AsyncSink, AsyncTokenStream, async_channel};
pub use channel::{ChannelSink, StreamEvent, TimedOut, TokenStream, channel};
pub use contract::{Flow, TokenEvent, TokenSink};
