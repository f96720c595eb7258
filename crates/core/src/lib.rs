//! The ground of Unspool: prompt ids in, token ids out.
//!
//! The data's way: prompt -> tokens -> step -> logits -> processors -> selection -> stopping -> stream.
//! This crate knows no ONNX, no tokenizer and no file format but `generation_config.json`.

pub mod build;
pub mod config;
pub mod decode;
pub mod draft;
pub mod error;
pub mod generate;
pub mod logits;
pub mod model;
pub mod output;
pub mod processor;
pub mod rng;
pub mod row;
pub mod select;
pub mod stop;
pub mod stream;
pub mod token;
pub mod vocabulary;

pub use config::Settings;
pub use decode::KeptSession;
pub use draft::{Assist, Assistant, Draft};
pub use error::{Error, ErrorKind, Result};
pub use generate::{Request, generate, generate_kept};
pub use logits::Logits;
pub use model::{Keep, Model, RowInput, Session, SessionOptions, Together};
pub use output::{DraftCounts, Output, PromptOutput, Sequence, Timing};
pub use row::Row;
pub use token::TokenId;
pub use vocabulary::{TextUnit, Vocabulary};
