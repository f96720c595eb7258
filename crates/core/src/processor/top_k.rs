//! Top-k: keeps the k best tokens. <https://arxiv.org/abs/1805.04833>.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;

/// Forbids every token whose score is below the k-th largest; Python's `TopKLogitsWarper`. Sampling only.
///
/// Ties with the k-th score all survive, so more than k tokens may stay. A k above the vocabulary keeps everything.
/// Cost: one pass over the vocabulary with a small candidate buffer, no sort.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, TopK};
///
/// let mut scores = [3.0, 2.0, 2.0, 1.0];
/// TopK::new(2, 1)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [3.0, 2.0, 2.0, f32::NEG_INFINITY]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "TopKLogitsWarper")]
#[derive(Clone, Debug)]
pub struct TopK {
    k: usize,
    candidates: Vec<f32>,
}

/// Scores looked at together.
const BLOCK: usize = 32;

impl TopK {
    /// Keeps the best `top_k`, and never fewer than `min_tokens_to_keep` (1, or more in beam search).
    ///
    /// # Errors
    ///
    /// `top_k` or `min_tokens_to_keep` of 0.
    pub fn new(top_k: usize, min_tokens_to_keep: usize) -> Result<Self> {
        if top_k == 0 || min_tokens_to_keep == 0 {
            return Err(Error::invalid_config(format!(
                "top_k is {top_k} and min_tokens_to_keep is {min_tokens_to_keep}, expected both above 0"
            )));
        }
        Ok(TopK { k: top_k.max(min_tokens_to_keep), candidates: Vec::new() })
    }

    /// The k-th largest score, a NaN counting as the largest. `k` is in `1..=scores.len()`.
    fn kth_largest(&mut self, k: usize, scores: &[f32]) -> f32 {
        let bound = k.saturating_mul(4).max(1024);
        let mut threshold = f32::NEG_INFINITY;
        self.candidates.clear();
        for block in scores.chunks(BLOCK) {
            // Most blocks hold nothing near the best; one look at the whole block is vector code.
            let below = block.iter().fold(true, |below, &score| below & (score <= threshold));
            if below && self.candidates.len() >= k {
                continue;
            }
            self.candidates.extend(block.iter().map(|&score| if score.is_nan() { f32::NAN } else { score }));
            if self.candidates.len() >= bound {
                threshold = *self.candidates.select_nth_unstable_by(k - 1, descending).1;
                self.candidates.truncate(k);
            }
        }
        *self.candidates.select_nth_unstable_by(k - 1, descending).1
    }
}

fn descending(a: &f32, b: &f32) -> Ordering {
    b.total_cmp(a)
}

impl Processor for TopK {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if self.k >= scores.len() {
            return Ok(());
        }
        let threshold = self.kth_largest(self.k, scores);
        for score in scores {
            *score = if *score < threshold { f32::NEG_INFINITY } else { *score };
        }
        Ok(())
    }
}
