//! Lengths before which no end token may come.

use crate::error::Result;
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// Forbids the end tokens while the row, prompt counted, is shorter than `min_length`; Python's
/// `MinLengthLogitsProcessor`.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{MinLength, Processor};
///
/// let mut scores = [1.0, 2.0, 3.0];
/// MinLength::new(3, vec![1]).apply(&Row { ids: &[0, 2], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [1.0, f32::NEG_INFINITY, 3.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "MinLengthLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct MinLength {
    min_length: usize,
    eos: Vec<TokenId>,
}

impl MinLength {
    /// A length in tokens, and the end tokens; those outside the vocabulary are ignored.
    pub fn new(min_length: usize, eos: Vec<TokenId>) -> Self {
        MinLength { min_length, eos }
    }
}

impl Processor for MinLength {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if row.ids.len() < self.min_length {
            forbid(scores, &self.eos);
        }
        Ok(())
    }
}

/// Forbids the end tokens while the row has fewer than `min_new_tokens` new tokens; Python's
/// `MinNewTokensLengthLogitsProcessor`.
#[doc(alias = "MinNewTokensLengthLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct MinNewTokens {
    min_new_tokens: usize,
    eos: Vec<TokenId>,
}

impl MinNewTokens {
    /// A number of tokens, and the end tokens; those outside the vocabulary are ignored.
    pub fn new(min_new_tokens: usize, eos: Vec<TokenId>) -> Self {
        MinNewTokens { min_new_tokens, eos }
    }
}

impl Processor for MinNewTokens {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if row.new_tokens().len() < self.min_new_tokens {
            forbid(scores, &self.eos);
        }
        Ok(())
    }
}

/// Forbids `ids`; those outside the vocabulary are ignored.
pub(super) fn forbid(scores: &mut [f32], ids: &[TokenId]) {
    for &id in ids {
        if let Some(score) = scores.get_mut(id as usize) {
            *score = f32::NEG_INFINITY;
        }
    }
}
