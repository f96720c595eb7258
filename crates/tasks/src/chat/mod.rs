//! Conversations become prompts: chat templates as Python's `apply_chat_template` renders them.

pub mod clock;
mod continuation;
mod environment;
mod generation;
pub mod message;
mod methods;
pub mod options;
mod python;
mod source;
pub mod template;

pub use clock::Clock;
pub use message::Message;
pub use options::{ChatOptions, ContinueFinalMessage};
pub use template::ChatTemplate;
