//! Tokens that must come at a certain place.

use crate::config::MaxLength;
use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// Leaves one token, with score 0, while the row has exactly one id; Python's `ForcedBOSTokenLogitsProcessor`.
#[doc(alias = "ForcedBOSTokenLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct ForcedBos {
    id: TokenId,
}

impl ForcedBos {
    /// The token that comes after a prompt of one token.
    pub fn new(id: TokenId) -> Self {
        ForcedBos { id }
    }
}

impl Processor for ForcedBos {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if row.ids.len() == 1 {
            force(scores, &[self.id], "forced_bos_token_id")?;
        }
        Ok(())
    }
}

/// Leaves the end tokens given, with score 0, at the last position that `max_length` allows; Python's
/// `ForcedEOSTokenLogitsProcessor`.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::config::MaxLength;
/// use unspool_core::processor::{ForcedEos, Processor};
///
/// let mut scores = [1.0, 2.0, 3.0, 4.0];
/// let row = Row { ids: &[0, 0, 0], prompt_len: 1, prompt: 0 };
/// ForcedEos::new(vec![1, 2], MaxLength::Total(4), None).apply(&row, &mut scores)?;
/// assert_eq!(scores, [f32::NEG_INFINITY, 0.0, 0.0, f32::NEG_INFINITY]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "ForcedEOSTokenLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct ForcedEos {
    ids: Vec<TokenId>,
    max_length: MaxLength,
    max_positions: Option<usize>,
}

impl ForcedEos {
    /// The tokens of which one must come last, and the lengths that end a row.
    pub fn new(ids: Vec<TokenId>, max_length: MaxLength, max_positions: Option<usize>) -> Self {
        ForcedEos { ids, max_length, max_positions }
    }
}

impl Processor for ForcedEos {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if row.ids.len() + 1 == self.max_length.total(row.prompt_len, self.max_positions) {
            force(scores, &self.ids, "forced_eos_token_id")?;
        }
        Ok(())
    }
}

fn force(scores: &mut [f32], ids: &[TokenId], field: &str) -> Result<()> {
    let vocab = scores.len();
    scores.fill(f32::NEG_INFINITY);
    for &id in ids {
        *scores
            .get_mut(id as usize)
            .ok_or_else(|| Error::invalid_input(format!("{field} is {id}, the vocabulary has {vocab} tokens")))? = 0.0;
    }
    Ok(())
}
