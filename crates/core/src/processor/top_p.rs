//! Top-p (nucleus): keeps the most probable tokens that together reach a mass. <https://arxiv.org/abs/1904.09751>.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::softmax::{find_few, softmax, softmax_of_few};
use crate::row::Row;

/// Forbids the least probable tokens while their cumulative probability is at most `1 - top_p`; Python's
/// `TopPLogitsWarper`. Sampling only.
///
/// The order is by score, and among equal scores the lower index is removed first. The cumulative sum runs from the
/// least probable token upwards in `f64`; each value is rounded to `f32` and compared with `1 - top_p` as `f32`.
///
/// Cost: one softmax and two passes over the vocabulary, which is not sorted: probabilities are summed in buckets of
/// nearly the same size, and only the bucket in which the bound lies is looked into. The result is that of the sorted
/// sum: where the sum comes so near to the bound that the order of additions could matter, the sorted sum decides.
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
    /// Sum of the probabilities in each bucket.
    mass: Vec<f64>,
    order: Vec<u32>,
}

/// Probabilities whose bits differ only below this place share a bucket: 64 buckets for each power of two.
const SHIFT: u32 = 17;

/// Buckets for `0.0..=1.0`.
const BUCKETS: usize = (1.0f32.to_bits() >> SHIFT) as usize + 1;

/// Below this many candidates sorting is as cheap as selecting.
const SMALL: usize = 64;

/// Up to so many candidates (after `top_k`, say) only they are looked at.
const FEW: usize = 1024;

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
        Ok(TopP {
            tail: (1.0 - top_p) as f32,
            keep: min_tokens_to_keep,
            probabilities: Vec::new(),
            mass: Vec::new(),
            order: Vec::new(),
        })
    }

    /// Removes among the candidates in `self.order`, whose probabilities are given in the same order.
    fn sort_few(&mut self, scores: &mut [f32]) {
        let mut candidates: Vec<(u32, f32)> =
            self.order.iter().copied().zip(self.probabilities.iter().copied()).collect();
        candidates.sort_unstable_by(|a, b| ascending(scores, &a.0, &b.0));
        let most = candidates.len().saturating_sub(self.keep);
        let mut sum = 0.0f64;
        for (id, probability) in candidates.into_iter().take(most) {
            sum += f64::from(probability);
            if sum as f32 > self.tail {
                break;
            }
            scores[id as usize] = f32::NEG_INFINITY;
        }
    }

    /// Removes by buckets; false, with nothing removed, when the bound is too near to a sum to tell.
    fn select(&mut self, scores: &mut [f32]) -> bool {
        let probabilities = &self.probabilities;
        // A sum rounds to at most `tail` exactly when it lies below the midpoint to the next f32.
        let bound = (f64::from(self.tail) + f64::from(self.tail.next_up())) / 2.0;
        self.mass.clear();
        self.mass.resize(BUCKETS, 0.0);
        for &probability in probabilities {
            if probability > 0.0 {
                self.mass[(probability.to_bits() >> SHIFT) as usize] += f64::from(probability);
            }
        }
        let mut removed = 0.0f64;
        let inside = self.mass.iter().position(|mass| {
            let falls = removed + mass < bound - DOUBT;
            removed += if falls { *mass } else { 0.0 };
            !falls
        });
        let Some(inside) = inside else { return false };
        let edge = |bucket: usize| f32::from_bits((bucket as u32) << SHIFT);
        let (lowest, above) = (edge(inside), edge(inside + 1));
        let mut stay = 0;
        self.order.clear();
        for (id, &probability) in probabilities.iter().enumerate() {
            if probability >= above {
                stay += 1;
            } else if probability >= lowest {
                self.order.push(id as u32);
            }
        }
        let Some(fall) = self.split(scores, removed, bound) else { return false };
        if stay + self.order.len() - fall < self.keep {
            return false;
        }
        for (score, &probability) in scores.iter_mut().zip(&self.probabilities) {
            *score = if probability < lowest { f32::NEG_INFINITY } else { *score };
        }
        self.remove(scores, fall);
        true
    }

    /// Orders `self.order` so far that its first ones are those that fall, and returns how many fall; `None` in doubt.
    /// `removed` is the sum of everything below.
    fn split(&mut self, scores: &[f32], mut removed: f64, bound: f64) -> Option<usize> {
        let mass = |id: &u32| f64::from(self.probabilities[*id as usize]);
        // order[..first] falls, order[end..] stays; between them it is open.
        let (mut first, mut end) = (0, self.order.len());
        while end - first > SMALL {
            let open = &mut self.order[first..end];
            let middle = open.len() / 2;
            open.select_nth_unstable_by(middle, |a, b| ascending(scores, a, b));
            let sum = removed + open[..=middle].iter().map(mass).sum::<f64>();
            if (sum - bound).abs() < DOUBT {
                return None;
            }
            if sum < bound {
                removed = sum;
                first += middle + 1;
            } else {
                end = first + middle;
            }
        }
        self.order[first..end].sort_unstable_by(|a, b| ascending(scores, a, b));
        for id in &self.order[first..end] {
            let sum = removed + mass(id);
            if (sum - bound).abs() < DOUBT {
                return None;
            }
            if sum > bound {
                break;
            }
            removed = sum;
            first += 1;
        }
        Some(first)
    }

    /// Removes by the sorted sum of the definition.
    fn sort(&mut self, scores: &mut [f32]) {
        self.order.clear();
        self.order.extend(0..scores.len() as u32);
        self.order.sort_unstable_by(|a, b| ascending(scores, a, b));
        let most = self.order.len().saturating_sub(self.keep);
        let mut sum = 0.0f64;
        let falling = self.order[..most].iter().take_while(|&&id| {
            sum += f64::from(self.probabilities[id as usize]);
            sum as f32 <= self.tail
        });
        let fall = falling.count();
        self.remove(scores, fall);
    }

    fn remove(&self, scores: &mut [f32], fall: usize) {
        for &id in &self.order[..fall] {
            scores[id as usize] = f32::NEG_INFINITY;
        }
    }
}

/// The order of removal: by score, and among equal scores the lower index first.
fn ascending(scores: &[f32], a: &u32, b: &u32) -> Ordering {
    let by_score = scores[*a as usize].partial_cmp(&scores[*b as usize]);
    by_score.unwrap_or(Ordering::Equal).then(a.cmp(b))
}

impl Processor for TopP {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if find_few(scores, FEW, &mut self.order) {
            softmax_of_few(scores, &self.order, &mut self.probabilities);
            self.sort_few(scores);
            return Ok(());
        }
        if softmax(scores, &mut self.probabilities).is_none() {
            return Ok(());
        }
        if !self.select(scores) {
            self.sort(scores);
        }
        Ok(())
    }
}
