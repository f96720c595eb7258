//! No run of tokens may occur twice. <https://arxiv.org/abs/1705.04304>.

use std::num::NonZeroUsize;

use crate::error::Result;
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// Forbids every token that would repeat a run of `n` tokens of the row, prompt counted; Python's
/// `NoRepeatNGramLogitsProcessor`.
///
/// Cost: one pass over the row's ids.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{NoRepeatNGram, Processor};
///
/// let mut scores = [0.0; 4];
/// let rule = NoRepeatNGram::new(2.try_into()?);
/// { rule }.apply(&Row { ids: &[1, 2, 3, 1], prompt_len: 4, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [0.0, 0.0, f32::NEG_INFINITY, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "NoRepeatNGramLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct NoRepeatNGram {
    size: usize,
}

impl NoRepeatNGram {
    /// A length of runs in tokens.
    pub fn new(size: NonZeroUsize) -> Self {
        NoRepeatNGram { size: size.get() }
    }
}

impl Processor for NoRepeatNGram {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        forbid_followers(row.ids, row.ids, self.size, scores);
        Ok(())
    }
}

/// Forbids every token that would repeat a run of `n` tokens of the source: the encoder's input, or the prompt of a
/// decoder-only model; Python's `EncoderNoRepeatNGramLogitsProcessor`.
#[doc(alias = "EncoderNoRepeatNGramLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct EncoderNoRepeatNGram {
    size: usize,
}

impl EncoderNoRepeatNGram {
    /// A length of runs in tokens.
    pub fn new(size: NonZeroUsize) -> Self {
        EncoderNoRepeatNGram { size: size.get() }
    }
}

impl Processor for EncoderNoRepeatNGram {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        forbid_followers(row.prompt(), row.ids, self.size, scores);
        Ok(())
    }
}

/// Forbids what followed, anywhere in `source`, the `size - 1` tokens that `ids` end with.
fn forbid_followers(source: &[TokenId], ids: &[TokenId], size: usize, scores: &mut [f32]) {
    let Some(start) = (ids.len() + 1).checked_sub(size) else { return };
    let last = ids.get(start..).unwrap_or_default();
    for window in source.windows(size) {
        if let Some((follower, before)) = window.split_last()
            && before == last
            && let Some(score) = scores.get_mut(*follower as usize)
        {
            *score = f32::NEG_INFINITY;
        }
    }
}
