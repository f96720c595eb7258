//! Locally typical sampling. <https://arxiv.org/abs/2202.00666>.

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::softmax::{entropy, log_mass, softmax};
use crate::row::Row;

/// Keeps the tokens whose surprise is nearest to the entropy until they have a mass; Python's `TypicalLogitsWarper`.
/// The most probable token may be removed. Sampling only.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, Typical};
///
/// let mut scores = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
/// Typical::new(0.2, 1)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert!(scores[1] > f32::NEG_INFINITY && scores[0] == f32::NEG_INFINITY);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "TypicalLogitsWarper")]
#[derive(Clone, Debug)]
pub struct Typical {
    mass: f32,
    keep: usize,
    probabilities: Vec<f32>,
    /// Distance from the entropy, and the token.
    order: Vec<(f32, u32)>,
}

impl Typical {
    /// A mass above 0 and below 1; `min_tokens_to_keep` tokens always stay (1, or more in beam search).
    ///
    /// # Errors
    ///
    /// A mass outside that range, or `min_tokens_to_keep` of 0.
    pub fn new(mass: f64, min_tokens_to_keep: usize) -> Result<Self> {
        if !(mass > 0.0 && mass < 1.0) {
            return Err(Error::invalid_config(format!("typical_p is {mass}, expected a number between 0 and 1")));
        }
        if min_tokens_to_keep == 0 {
            return Err(Error::invalid_config("min_tokens_to_keep is 0, expected at least 1"));
        }
        Ok(Typical { mass: mass as f32, keep: min_tokens_to_keep, probabilities: Vec::new(), order: Vec::new() })
    }
}

impl Processor for Typical {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if softmax(scores, &mut self.probabilities).is_none() {
            return Ok(());
        }
        let log_mass = log_mass(scores);
        let entropy = entropy(scores, log_mass);
        let distance = |score: f32| ((log_mass - f64::from(score)) as f32 - entropy as f32).abs();
        self.order.clear();
        // A forbidden token is infinitely far away and adds nothing to the mass.
        let candidates = scores.iter().zip(0..).filter(|(score, _)| **score > f32::NEG_INFINITY);
        self.order.extend(candidates.map(|(score, id)| (distance(*score), id)));
        self.order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut sum = 0.0f64;
        let reached = self.order.iter().position(|(_, id)| {
            sum += f64::from(self.probabilities[*id as usize]);
            sum as f32 >= self.mass
        });
        let last = reached.unwrap_or(self.order.len().saturating_sub(1));
        let Some(&(bound, _)) = self.order.get(last) else { return Ok(()) };
        for (place, (distance, id)) in self.order.iter().enumerate() {
            if *distance > bound && place >= self.keep {
                scores[*id as usize] = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }
}
