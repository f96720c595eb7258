//! Unspool: the whole of Hugging Face `generate()` in Rust, without Python.
//!
//! A [`Pipeline`] joins a model (an ONNX graph, or a checkpoint that is imported first), its tokenizer, its chat template
//! and its generation settings. This crate is the only dependency that a program needs.
//!
//! ```no_run
//! use unspool::Call;
//!
//! # fn main() -> unspool::Result<()> {
//! let pipeline = unspool::open("models/smollm2")?;
//!
//! // One prompt or many; every field of Python's GenerationConfig is a method of the same name.
//! let call = Call::new().max_new_tokens(40).do_sample(true).temperature(0.8).seed(7);
//! for answer in pipeline.generate(["Roses are red,", "Once upon a time"], &call)? {
//!     println!("{answer}");
//! }
//!
//! // The text as it is generated.
//! pipeline.stream("The sea is", &call, &mut unspool::stdout())?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | opening a model | [`open`](fn@open), [`OpenOptions`], [`Pipeline`] |
//! | settings, seeds, log-probabilities | [`Call`] |
//! | what was generated | [`Answers`], [`Answer`], [`Sequence`] |
//! | text as it is generated | [`Pipeline::stream`], [`stdout`], [`TextSink`]; on another thread [`Pipeline::text_events`], [`Pipeline::text_stream`] |
//! | chats | [`Pipeline::conversation`], [`Conversation`]; prompts with tools: [`Chat`] |
//! | rules, criteria and drafts of one's own | [`Call::processor`], [`Call::criterion`], [`Call::draft`] |
//! | a smaller model that drafts | [`Pipeline::with_assistant`] |
//! | scores and vectors of texts | [`Pipeline::score`], [`Pipeline::embed`] |
//! | watermarks | [`Call::watermarking_config`], [`processor::WatermarkDetector`] |
//! | a model of one's own | [`Model`], [`Session`], [`Pipeline::from_parts`] |
//! | token ids alone, without texts | [`generate`](fn@generate), [`Request`], [`Settings`] |
//! | errors | [`Error`], [`ErrorKind`] |
//!
//! `docs/library.md` in the repository is a guide, and `examples/` has a short program for each of these.

pub mod answers;
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
mod setters;
pub mod text;
pub mod writer;

pub use answers::{Answer, Answers};
pub use cache::cache_folder;
pub use call::{Call, DefaultLength, random_seed};
pub use conversation::{Context, Conversation, Turn};
pub use detector::open_synth_id_detector;
pub use embedding::EmbedOptions;
pub use events::{TextEvent, TextEvents, TextStream};
pub use open::{OpenOptions, is_checkpoint, locate};
pub use pipeline::Pipeline;
pub use prompt::{Chat, Prompt, Prompts};
pub use scoring::{Scorable, ScoreOptions};
pub use text::{StreamBy, Streaming, TextSink};
pub use writer::{WriterSink, stdout};

/// JSON, as tools, documents and settings of several types take it.
pub use serde_json::{Value, json};
pub use unspool_core::config::{self, GenerationConfig};
pub use unspool_core::decode::{CustomGenerate, Prepared};
pub use unspool_core::draft::{self, Draft};
pub use unspool_core::embed::{Pooling, check as check_embeddable};
pub use unspool_core::processor::{self, Processor};
pub use unspool_core::score::{ScoredText, TextScore, score};
pub use unspool_core::select;
pub use unspool_core::stop::{self, Criterion, FinishReason};
pub use unspool_core::stream::{self, Flow, TokenEvent, TokenSink};
pub use unspool_core::{
    Assist, AttentionMask, DraftCounts, Error, ErrorKind, HiddenAsk, HiddenShape, HiddenStates, Keep, KeptSession,
    Logits, Model, Output, Own, Peers, PromptOutput, Request, Result, Row, RowInput, Sequence, Session, SessionOptions,
    Settings, StepStates, TextUnit, Timing, Together, TokenId, Vocabulary, check_ids, generate, generate_kept,
};
pub use unspool_core::{file, json};
#[cfg(feature = "hub")]
pub use unspool_hub as hub;
pub use unspool_import::{ImportOptions, ImportReport, OnProgress, Progress, Weights, import};
pub use unspool_onnx::{CacheMode, Description, EngineChoice, EngineSupport, GraphWeights, NO_ORT_HINT, WeightKind};
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

/// The code of the guide and of the README, which is compiled with the tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/library.md")]
    struct Guide;

    #[doc = include_str!("../../../README.md")]
    struct Readme;
}
