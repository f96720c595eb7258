//! The ground of Unspool: prompt ids in, token ids out.
//!
//! The data's way: prompt -> tokens -> step -> logits -> processors -> selection -> stopping -> stream.
//! This crate knows no ONNX, no tokenizer and no file format but `generation_config.json`.

pub mod build;
pub mod config;
pub mod decode;
pub mod draft;
pub mod embed;
pub mod error;
pub mod file;
pub mod generate;
pub mod hidden;
pub mod json;
pub mod logits;
mod memory;
pub mod model;
pub mod output;
pub mod own;
pub mod processor;
pub mod rng;
pub mod row;
pub mod score;
pub mod select;
pub mod stop;
pub mod stream;
pub mod sync;
pub mod token;
pub mod vocabulary;

pub use config::Settings;
pub use decode::{AttentionMask, KeptSession};
pub use draft::{Assist, Assistant, Draft};
pub use error::{Error, ErrorKind, Result};
pub use generate::{Request, generate, generate_kept};
pub use hidden::{HiddenAsk, HiddenShape, HiddenStates, StepStates};
pub use logits::Logits;
pub use model::{Keep, Model, RowInput, Session, SessionOptions, Together};
pub use output::{DraftCounts, Output, PromptOutput, Sequence, Timing};
pub use own::Own;
pub use row::Row;
pub use sync::Peers;
pub use token::{TokenId, check_ids};
pub use vocabulary::{TextUnit, Vocabulary};
