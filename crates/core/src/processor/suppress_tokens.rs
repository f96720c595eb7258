//! Tokens that may not be written, ever or first.

use crate::error::Result;
use crate::processor::Processor;
use crate::processor::min_length::forbid;
use crate::row::Row;
use crate::token::TokenId;

/// Forbids tokens at every step; Python's `SuppressTokensLogitsProcessor`. Ids outside the vocabulary are ignored.
#[doc(alias = "SuppressTokensLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct SuppressTokens {
    ids: Vec<TokenId>,
}

impl SuppressTokens {
    /// The tokens.
    pub fn new(ids: Vec<TokenId>) -> Self {
        SuppressTokens { ids }
    }
}

impl Processor for SuppressTokens {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        forbid(scores, &self.ids);
        Ok(())
    }
}

/// Forbids tokens at the first new position; Python's `SuppressTokensAtBeginLogitsProcessor`. After a prompt of at most
/// one token and a forced first token, at the second.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, SuppressTokensAtBegin};
///
/// let mut rule = SuppressTokensAtBegin::new(vec![1], false);
/// let mut scores = [1.0, 2.0];
/// rule.apply(&Row { ids: &[0, 0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [1.0, 2.0]);
/// rule.apply(&Row { ids: &[0, 0], prompt_len: 2, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [1.0, f32::NEG_INFINITY]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "SuppressTokensAtBeginLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct SuppressTokensAtBegin {
    ids: Vec<TokenId>,
    forced_bos: bool,
}

impl SuppressTokensAtBegin {
    /// The tokens, and whether a first token is forced after a prompt of one.
    pub fn new(ids: Vec<TokenId>, forced_bos: bool) -> Self {
        SuppressTokensAtBegin { ids, forced_bos }
    }
}

impl Processor for SuppressTokensAtBegin {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let shift = usize::from(self.forced_bos && row.prompt_len <= 1);
        if row.ids.len() == row.prompt_len + shift {
            forbid(scores, &self.ids);
        }
        Ok(())
    }
}
