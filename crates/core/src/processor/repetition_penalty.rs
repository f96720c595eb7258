//! Repetition penalty: tokens that occurred become less likely. CTRL, <https://arxiv.org/abs/1909.05858>.

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;

/// Penalises every token of the row (prompt included), once however often it occurred; Python's
/// `RepetitionPenaltyLogitsProcessor`.
///
/// A negative score is multiplied by the penalty, any other is divided by it. Ids outside the vocabulary are ignored.
/// Rows have no padding here, so padding is never penalised. Cost: one pass over the row's ids.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, RepetitionPenalty};
///
/// let mut scores = [2.0, -2.0, 0.0, 4.0];
/// let row = Row { ids: &[0, 1, 1, 2], prompt_len: 4, prompt: 0 };
/// RepetitionPenalty::new(2.0)?.apply(&row, &mut scores)?;
/// assert_eq!(scores, [1.0, -4.0, 0.0, 4.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "RepetitionPenaltyLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct RepetitionPenalty {
    penalty: f32,
    /// One bit per vocabulary entry; all zero between calls.
    seen: Vec<u64>,
}

impl RepetitionPenalty {
    /// A penalty above 0; above 1 discourages repetition, below 1 encourages it.
    ///
    /// # Errors
    ///
    /// Anything but a finite number above 0 (also as `f32`).
    pub fn new(penalty: f64) -> Result<Self> {
        let factor = penalty as f32;
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(Error::invalid_config(format!(
                "repetition_penalty is {penalty}, expected a number above 0 (1.0 switches it off)"
            )));
        }
        Ok(RepetitionPenalty { penalty: factor, seen: Vec::new() })
    }
}

impl Processor for RepetitionPenalty {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        self.seen.resize(scores.len().div_ceil(64), 0);
        for &id in row.ids {
            let (word, bit) = (id as usize / 64, 1u64 << (id % 64));
            let (Some(score), Some(seen)) = (scores.get_mut(id as usize), self.seen.get_mut(word)) else { continue };
            if *seen & bit == 0 {
                *seen |= bit;
                *score = if *score < 0.0 { *score * self.penalty } else { *score / self.penalty };
            }
        }
        for &id in row.ids {
            if let Some(seen) = self.seen.get_mut(id as usize / 64) {
                *seen = 0;
            }
        }
        Ok(())
    }
}
