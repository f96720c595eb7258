//! Recorded answers of Python `generate()`, replayed on every engine and cache mode.
//!
//! A case's way: [`golden`] (what Python was asked and returned) -> [`replay`] (the same question to Unspool) ->
//! [`compare`] (within which [`compare::Tolerance`], and why) -> [`verdict`] -> [`baseline`] (a ratchet: a case may get
//! better, never worse).
//!
//! `unspool-conformance` runs it from the command line; `tests/conformance.rs` runs it on the models in `models/`.

pub mod baseline;
pub mod compare;
pub mod engine;
pub mod golden;
pub mod perplexity;
pub mod replay;
pub mod smollm2;
pub mod verdict;

pub use baseline::Baseline;
pub use engine::Engine;
pub use verdict::Verdict;

/// The samples of the pages are compiled.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/library.md")]
    struct Library;
}
