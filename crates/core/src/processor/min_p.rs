//! Min-p: keeps tokens with at least a share of the best probability. <https://arxiv.org/abs/2407.01082>.

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::softmax::softmax;
use crate::row::Row;

/// Forbids every token whose probability is below `min_p` times the largest; Python's `MinPLogitsWarper`. Sampling only.
///
/// The comparison is strict, so a token exactly at the bound stays. Cost: one softmax.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{MinP, Processor};
///
/// let logits = [0.5f32.ln(), 0.25f32.ln(), 0.25f32.ln()];
/// let row = Row { ids: &[0], prompt_len: 1, prompt: 0 };
/// let mut scores = logits;
/// MinP::new(0.4, 1)?.apply(&row, &mut scores)?;
/// assert_eq!(scores, logits);
/// MinP::new(0.6, 1)?.apply(&row, &mut scores)?;
/// assert_eq!(scores, [logits[0], f32::NEG_INFINITY, f32::NEG_INFINITY]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "MinPLogitsWarper")]
#[derive(Clone, Debug)]
pub struct MinP {
    min_p: f32,
    keep: usize,
    probabilities: Vec<f32>,
    best: Vec<u32>,
}

impl MinP {
    /// A share in `0..=1`; `min_tokens_to_keep` tokens always stay (1, or more in beam search; lower index first in a
    /// tie).
    ///
    /// # Errors
    ///
    /// A share outside `0..=1` or NaN, or `min_tokens_to_keep` of 0.
    pub fn new(min_p: f64, min_tokens_to_keep: usize) -> Result<Self> {
        if !(0.0..=1.0).contains(&min_p) {
            return Err(Error::invalid_config(format!("min_p is {min_p}, expected a number from 0 to 1")));
        }
        if min_tokens_to_keep == 0 {
            return Err(Error::invalid_config("min_tokens_to_keep is 0, expected at least 1"));
        }
        Ok(MinP { min_p: min_p as f32, keep: min_tokens_to_keep, probabilities: Vec::new(), best: Vec::new() })
    }

    /// Fills `self.best` with the `keep` most probable tokens, best first.
    fn find_best(&mut self) {
        self.best.clear();
        for (id, probability) in self.probabilities.iter().enumerate() {
            let place = self.best.partition_point(|&other| self.probabilities[other as usize] >= *probability);
            if place < self.keep {
                self.best.truncate(self.keep - 1);
                self.best.insert(place, id as u32);
            }
        }
    }
}

impl Processor for MinP {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let Some(largest) = softmax(scores, &mut self.probabilities) else { return Ok(()) };
        let bound = self.min_p * largest;
        // The most probable token is never below its own share, so the search is for beams only.
        if self.keep > 1 {
            self.find_best();
            for &id in &self.best {
                self.probabilities[id as usize] = f32::INFINITY;
            }
        }
        for (score, &probability) in scores.iter_mut().zip(&self.probabilities) {
            *score = if probability < bound { f32::NEG_INFINITY } else { *score };
        }
        Ok(())
    }
}
