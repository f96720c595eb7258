//! People's things become prompts, and ids become people's things: tokenizers, chat templates, streaming text.
//!
//! This crate reads the text files of a model folder (`tokenizer.json`, `tokenizer_config.json`,
//! `chat_template.jinja`) and knows no graph.

pub mod chat;
pub mod text;
pub mod tokenizer;

pub use chat::{ChatOptions, ChatTemplate, Clock, ContinueFinalMessage, Message};
pub use text::{Healing, HealingChoice, Pieces, Shown, StopHold, TextStreamer};
pub use tokenizer::{Tokenizer, TokenizerPair};
