//! Conversations become prompts: chat templates as Python's `apply_chat_template` renders them.

pub mod clock;
mod continuation;
mod dict;
mod environment;
mod filters;
mod format;
pub mod message;
mod methods;
pub mod options;
mod python;
mod source;
mod strings;
mod syntax;
pub mod template;
mod values;

pub use clock::Clock;
pub use message::Message;
pub use options::{ChatOptions, ContinueFinalMessage};
pub use template::ChatTemplate;
