//! Top-h: a share of the distribution's entropy. <https://arxiv.org/abs/2509.02510>.

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;

/// Candidates looked at.
const BEST: usize = 100;

/// Of the 100 best tokens, keeps the most probable ones whose entropy terms sum to at most `top_h` times the entropy of
/// the 100, and always the best; transformers 5's `TopHLogitsWarper`. Sampling only.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, TopH};
///
/// let mut scores = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
/// TopH::new(0.6)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores.iter().filter(|score| **score > f32::NEG_INFINITY).count(), 1);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "TopHLogitsWarper")]
#[derive(Clone, Debug)]
pub struct TopH {
    top_h: f32,
    order: Vec<u32>,
}

impl TopH {
    /// A share above 0 and up to 1.
    ///
    /// # Errors
    ///
    /// A share outside that range.
    pub fn new(top_h: f64) -> Result<Self> {
        if top_h > 0.0 && top_h <= 1.0 {
            return Ok(TopH { top_h: top_h as f32, order: Vec::new() });
        }
        Err(Error::invalid_config(format!("top_h is {top_h}, expected a number above 0 and up to 1")))
    }
}

impl Processor for TopH {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if scores.iter().any(|score| score.is_nan() || *score == f32::INFINITY) {
            return Ok(());
        }
        self.order.clear();
        self.order.extend(0..scores.len() as u32);
        let descending = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
        if self.order.len() > BEST {
            self.order.select_nth_unstable_by(BEST, descending);
            self.order.truncate(BEST);
        }
        self.order.sort_unstable_by(descending);
        let best: Vec<f32> = self.order.iter().map(|&id| scores[id as usize]).collect();
        let Some(&peak) = best.first().filter(|peak| peak.is_finite()) else { return Ok(()) };
        let mass: f64 = best.iter().map(|score| f64::from(score - peak).exp()).sum();
        let term = |score: &f32| {
            let log = f64::from(score - peak) - mass.ln();
            // What is no probability in f32 has no term in Python either.
            if log.exp() as f32 == 0.0 { f64::NAN } else { -log.exp() * log }
        };
        let bound = self.top_h * best.iter().map(term).filter(|term| !term.is_nan()).sum::<f64>() as f32;
        let mut sum = 0.0;
        // A term that is NaN ends the kept ones.
        let kept = best.iter().take_while(|score| {
            sum += term(score);
            sum as f32 <= bound
        });
        let kept = kept.count().max(1);
        let kept: Vec<(u32, f32)> = self.order[..kept].iter().copied().zip(best).collect();
        scores.fill(f32::NEG_INFINITY);
        for (id, score) in kept {
            scores[id as usize] = score;
        }
        Ok(())
    }
}
