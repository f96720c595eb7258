//! Unspool: the whole of Hugging Face `generate()` in Rust, without Python.
//!
//! This crate is the face of the house: it joins a model (an ONNX graph, or a checkpoint that is imported first), its
//! tokenizer, its chat template and its generation settings into a [`Pipeline`].
//!
//! ```no_run
//! use unspool::{Call, Flow};
//!
//! # fn main() -> unspool::Result<()> {
//! let pipeline = unspool::open("models/smollm2")?;
//!
//! // One prompt or many; every field of Python's GenerationConfig by its own name.
//! let call = Call::new().set("max_new_tokens", 40)?;
//! let answers = pipeline.generate(["Roses are red,", "Once upon a time"], &call)?;
//! for answer in &answers.answers {
//!     println!("{}", answer.texts[0]);
//! }
//!
//! // The text while it is written.
//! pipeline.stream("The sea is", &call, &mut |_row: usize, piece: &str| {
//!     print!("{piece}");
//!     Flow::Continue
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! A conversation keeps its cache between turns: [`Pipeline::conversation`]. Rules, criteria and sinks of your own go
//! through [`Pipeline::generate_ids`]. Any implementation of [`Model`] can take the place of a graph:
//! [`Pipeline::from_parts`].
//!
//! What the parts are made of: [`unspool_core`] (ids in, ids out), [`unspool_onnx`] (graphs and engines),
//! [`unspool_import`] (checkpoints) and [`unspool_tasks`] (text).

mod assistant;
pub mod cache;
pub mod call;
pub mod conversation;
pub mod detector;
pub mod embedding;
pub mod events;
mod heal;
pub mod open;
pub mod pipeline;
pub mod prompt;
pub mod scoring;
pub mod text;

pub use cache::cache_folder;
pub use call::{Call, DefaultLength, random_seed};
pub use conversation::{Context, Conversation, Turn};
pub use detector::open_synth_id_detector;
pub use embedding::EmbedOptions;
pub use events::{TextEvent, TextEvents, TextStream};
pub use open::{OpenOptions, is_checkpoint, locate};
pub use pipeline::{Answer, Answers, Pipeline};
pub use prompt::{Chat, Prompt, Prompts};
pub use scoring::{Scorable, ScoreOptions};
pub use text::{StreamBy, Streaming, TextSink};

pub use unspool_core::config::{self, GenerationConfig};
pub use unspool_core::decode::{CustomGenerate, Prepared};
pub use unspool_core::draft::{self, Draft};
pub use unspool_core::embed::{Pooling, check as check_embeddable};
pub use unspool_core::score::{ScoredText, TextScore, score};
pub use unspool_core::select;
pub use unspool_core::stop::{self, FinishReason};
pub use unspool_core::stream::{self, Flow, TokenEvent, TokenSink};
pub use unspool_core::{
    AttentionMask, DraftCounts, Error, ErrorKind, Keep, Logits, Model, Own, Peers, PromptOutput, Result, Row, RowInput,
    Sequence, Session, SessionOptions, Settings, StepStates, Timing, TokenId, check_ids, processor,
};
pub use unspool_core::{file, json};
#[cfg(feature = "hub")]
pub use unspool_hub as hub;
pub use unspool_import::{ImportOptions, ImportReport, OnProgress, Progress, Weights, import};
pub use unspool_onnx::{CacheMode, Description, EngineChoice, EngineSupport, GraphWeights, WeightKind};
pub use unspool_tasks::{
    ChatOptions, ChatTemplate, Clock, ContinueFinalMessage, Message, Shown, TextStreamer, Tokenizer,
};

/// Opens a model with the usual options: a model folder, a `.gguf` file, a safetensors checkpoint, or a model of the Hugging
/// Face Hub by its name (`org/name`), which is fetched once.
///
/// # Errors
///
/// As [`Pipeline::open`].
pub fn open(path: impl AsRef<std::path::Path>) -> Result<Pipeline> {
    Pipeline::open(path, &OpenOptions::default())
}
