//! Top-p (nucleus): keeps the most probable tokens that together reach a mass. <https://arxiv.org/abs/1904.09751>.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::softmax::softmax;
use crate::row::Row;

/// Forbids the least probable tokens while their cumulative probability is at most `1 - top_p`; Python's
/// `TopPLogitsWarper`. Sampling only.
///
/// The order is by score, and among equal scores the lower index is removed first. The cumulative sum runs from the
/// least probable token upwards in `f64`; each value is rounded to `f32` and compared with `1 - top_p` as `f32`.
///
/// Cost: one softmax, and a selection of the boundary in linear time; the vocabulary is not sorted. The result is that
/// of the sorted sum: where the sum comes so near to the bound that the order of additions could matter, the sorted
/// sum is what decides.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, TopP};
///
/// let logits = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
/// let mut scores = logits;
/// TopP::new(0.81, 1)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [logits[0], logits[1], logits[2], f32::NEG_INFINITY]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "TopPLogitsWarper")]
#[doc(alias = "nucleus")]
#[derive(Clone, Debug)]
pub struct TopP {
    /// `1 - top_p`: the mass that may be removed.
    tail: f32,
    keep: usize,
    probabilities: Vec<f32>,
    order: Vec<u32>,
}

/// Below this many candidates sorting is as cheap as selecting.
const SMALL: usize = 64;

/// Sums of any order agree to far better than this; a boundary that is nearer is decided by the sorted sum.
const DOUBT: f64 = 1e-10;

impl TopP {
    /// A mass in `0..=1`; `min_tokens_to_keep` tokens always stay (1, or more in beam search).
    ///
    /// # Errors
    ///
    /// A mass outside `0..=1` or NaN, or `min_tokens_to_keep` of 0.
    pub fn new(top_p: f64, min_tokens_to_keep: usize) -> Result<Self> {
        if !(0.0..=1.0).contains(&top_p) {
            return Err(Error::invalid_config(format!("top_p is {top_p}, expected a number from 0 to 1")));
        }
        if min_tokens_to_keep == 0 {
            return Err(Error::invalid_config("min_tokens_to_keep is 0, expected at least 1"));
        }
        Ok(TopP { tail: (1.0 - top_p) as f32, keep: min_tokens_to_keep, probabilities: Vec::new(), order: Vec::new() })
    }

    /// Leaves in `self.order` the ids that stay, by selection; false when the boundary is too near to tell.
    fn select(&mut self, scores: &[f32]) -> bool {
        let probabilities = &self.probabilities;
        let mass = |id: &u32| f64::from(probabilities[*id as usize]);
        // A sum rounds to at most `tail` exactly when it lies below the midpoint to the next f32.
        let bound = (f64::from(self.tail) + f64::from(self.tail.next_up())) / 2.0;
        // If every token up to this probability falls, their sum is still well inside the tail: all of them fall.
        let surely_below = (f64::from(self.tail) * 0.999 / scores.len() as f64) as f32;
        self.order.clear();
        let mut removed_mass = 0.0f64;
        for (id, &probability) in probabilities.iter().enumerate() {
            if probability < surely_below {
                removed_mass += f64::from(probability);
            } else {
                self.order.push(id as u32);
            }
        }
        // order[..first] falls, order[end..] stays; between them it is still open.
        let (mut first, mut end) = (0, self.order.len());
        while end - first > SMALL {
            let open = &mut self.order[first..end];
            let middle = open.len() / 2;
            open.select_nth_unstable_by(middle, |a, b| ascending(scores, a, b));
            let sum = removed_mass + open[..=middle].iter().map(mass).sum::<f64>();
            if (sum - bound).abs() < DOUBT {
                return false;
            }
            if sum < bound {
                removed_mass = sum;
                first += middle + 1;
            } else {
                end = first + middle;
            }
        }
        self.order[first..end].sort_unstable_by(|a, b| ascending(scores, a, b));
        while let Some(id) = self.order[first..end].first() {
            let sum = removed_mass + mass(id);
            if (sum - bound).abs() < DOUBT {
                return false;
            }
            if sum > bound {
                break;
            }
            removed_mass = sum;
            first += 1;
        }
        // The tokens that always stay are the last of the order; it is short of them only when nearly all fell.
        if self.order.len() - first < self.keep {
            return false;
        }
        self.order.drain(..first);
        true
    }

    /// Leaves in `self.order` the ids that stay, by the sorted sum of the definition.
    fn sort(&mut self, scores: &[f32]) {
        self.order.clear();
        self.order.extend(0..scores.len() as u32);
        self.order.sort_unstable_by(|a, b| ascending(scores, a, b));
        let most = self.order.len().saturating_sub(self.keep);
        let mut sum = 0.0f64;
        let removed = self.order[..most].iter().take_while(|&&id| {
            sum += f64::from(self.probabilities[id as usize]);
            sum as f32 <= self.tail
        });
        let removed = removed.count();
        self.order.drain(..removed);
    }
}

/// The order of removal: by score, and among equal scores the lower index first.
fn ascending(scores: &[f32], a: &u32, b: &u32) -> Ordering {
    let by_score = scores[*a as usize].partial_cmp(&scores[*b as usize]);
    by_score.unwrap_or(Ordering::Equal).then(a.cmp(b))
}

impl Processor for TopP {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if softmax(scores, &mut self.probabilities).is_none() {
            return Ok(());
        }
        if !self.select(scores) {
            self.sort(scores);
        }
        // The probabilities are not needed any more: a kept token is marked in its place.
        for &id in &self.order {
            self.probabilities[id as usize] = f32::INFINITY;
        }
        for (score, mark) in scores.iter_mut().zip(&self.probabilities) {
            if *mark != f32::INFINITY {
                *score = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }
}
