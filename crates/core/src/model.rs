//! The port that models implement: a [`Model`] opens a [`Session`] for some rows.
//!
//! A row is one sequence being written. The loops above this port never see padding: rows have their own lengths and may
//! bring different numbers of tokens to a step.
//!
//! Every implementation keeps three laws, which are property tests:
//!
//! 1. Batch law: a row's logits do not depend on the rows beside it.
//! 2. Step law: a prompt in one step, in chunks of any sizes, or token by token gives the same logits.
//! 3. Cache law: after any walk of `step`, `reorder` and `crop` the next logits equal those of a fresh session that was
//!    fed the same tokens.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hidden::{HiddenAsk, HiddenShape, HiddenStates};
use crate::logits::Logits;
use crate::token::TokenId;

/// A model that maps a row's tokens to scores over the vocabulary for the next token.
pub trait Model: Send + Sync {
    /// Entries of the vocabulary (the last axis of the logits).
    fn vocab_size(&self) -> usize;

    /// The largest number of tokens a row may hold, when the model has such a limit.
    fn max_positions(&self) -> Option<usize>;

    /// Bytes that the caches of one row take for each token: what a request may need is bounded by it before it starts. 0
    /// when the model has no cache, or does not say.
    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    /// Opens a session of `options.rows` empty rows. The session shares the model's weights and may outlive `self`.
    ///
    /// # Errors
    ///
    /// When memory for the caches is refused, or the engine fails.
    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>>;

    /// Which hidden states [`Session::step_hidden`] can give; `None` when it cannot give any.
    fn hidden(&self) -> Option<HiddenShape> {
        None
    }

    /// Applies the output matrix to hidden states: `states` is `[positions, width] f32`, and `logits` becomes
    /// `[positions, vocab] f32`.
    ///
    /// # Errors
    ///
    /// When the model cannot do that by itself (refused by name), or the engine fails.
    #[doc(alias = "lm_head")]
    fn head(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<()> {
        let _ = (states, logits);
        Err(Error::unsupported(
            "this model cannot apply its output matrix to a hidden state by itself; import a checkpoint with \
             `unspool import --hidden-states` for that",
        ))
    }

    /// The model that ends after its first `layers` layers, whose states go through the last norm and the output matrix. It
    /// drafts for the whole one (`assistant_early_exit`).
    ///
    /// # Errors
    ///
    /// When the model cannot end there (refused by name, with the exits that it has), or the engine fails.
    #[doc(alias = "EarlyExitCandidateGenerator")]
    fn early_exit(&self, layers: usize) -> Result<Arc<dyn Model>> {
        Err(Error::unsupported(format!(
            "assistant_early_exit={layers}: this model has no early exits; import a checkpoint with `unspool import \
             --early-exit {layers}` for that"
        )))
    }
}

/// What a session is opened for.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Rows to begin with, all empty. At least 1.
    pub rows: usize,
    /// Tokens a row is expected to reach; a hint for the size of the caches, not a limit.
    pub capacity: usize,
}

/// Which positions of a row's new tokens a step returns scores for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// None (an inner chunk of a prompt).
    None,
    /// The last new token only.
    Last,
    /// Every new token (verification of drafts, scoring of text).
    All,
}

/// What one row brings to a step.
#[derive(Clone, Copy, Debug)]
pub struct RowInput<'a> {
    /// New tokens, appended after the row's own; may be empty, and then the row keeps nothing.
    pub tokens: &'a [TokenId],
    /// Which of their scores are returned.
    pub keep: Keep,
}

/// How the scores of several tokens in one step compare with those of one token a step: whether drafts can be verified
/// together and nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// They are the same up to float noise.
    Same,
    /// They differ by more: the engine rounds the activations of single tokens in another way than those of several.
    Differ,
}

/// Rows being written, with their caches.
pub trait Session: Send {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Tokens that `row` holds.
    fn len(&self, row: usize) -> usize;

    /// Appends each row's new tokens and returns the scores asked for, in row order.
    ///
    /// `rows` has one entry per row of the session.
    ///
    /// # Errors
    ///
    /// An id outside the vocabulary, a row beyond the model's positions, or a failure of the engine. After an engine
    /// error the session is not usable any more.
    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>>;

    /// As [`step`](Session::step), and also returns the hidden states that `ask` names, of the new tokens of every row.
    ///
    /// # Errors
    ///
    /// As [`step`](Session::step); and when the model does not give these hidden states, which is refused by name before
    /// anything runs.
    fn step_hidden(&mut self, rows: &[RowInput<'_>], ask: &HiddenAsk<'_>) -> Result<(Logits<'_>, HiddenStates<'_>)> {
        let _ = rows;
        Err(ask.refused(None))
    }

    /// New row `i` continues old row `from[i]`; `from` may repeat, drop and permute rows.
    ///
    /// # Errors
    ///
    /// An index outside the rows.
    fn reorder(&mut self, from: &[usize]) -> Result<()>;

    /// Whether [`crop`](Session::crop) works on this session; asked before a mode that needs it starts.
    fn can_crop(&self) -> bool;

    /// How several tokens in one step compare with one token a step.
    fn together(&self) -> Together {
        Together::Same
    }

    /// `row` forgets its tokens after the first `len`.
    ///
    /// # Errors
    ///
    /// When the cache cannot be rolled back, or `len` is above the row's length.
    fn crop(&mut self, row: usize, len: usize) -> Result<()>;
}
