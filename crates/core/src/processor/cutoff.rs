//! Epsilon and eta: a smallest probability. <https://arxiv.org/abs/2210.15191>.

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::softmax::{entropy, log_mass, softmax};
use crate::row::Row;

/// Forbids tokens less probable than `epsilon`; Python's `EpsilonLogitsWarper`. Sampling only.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Epsilon, Processor};
///
/// let mut scores = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
/// Epsilon::new(0.2, 1)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores.map(|score| score > f32::NEG_INFINITY), [true, true, false, false]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "EpsilonLogitsWarper")]
#[derive(Clone, Debug)]
pub struct Epsilon {
    cutoff: Cutoff,
}

impl Epsilon {
    /// A probability between 0 and 1; `min_tokens_to_keep` tokens always stay (1, or more in beam search).
    ///
    /// # Errors
    ///
    /// A number outside that range, or `min_tokens_to_keep` of 0.
    pub fn new(epsilon: f64, min_tokens_to_keep: usize) -> Result<Self> {
        Ok(Epsilon { cutoff: Cutoff::new("epsilon_cutoff", epsilon, min_tokens_to_keep)? })
    }
}

impl Processor for Epsilon {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let epsilon = self.cutoff.epsilon as f32;
        self.cutoff.apply(scores, epsilon);
        Ok(())
    }
}

/// Forbids tokens less probable than `min(epsilon, sqrt(epsilon) * exp(-entropy))`; Python's `EtaLogitsWarper`. Sampling
/// only.
#[doc(alias = "EtaLogitsWarper")]
#[derive(Clone, Debug)]
pub struct Eta {
    cutoff: Cutoff,
}

impl Eta {
    /// A probability between 0 and 1; `min_tokens_to_keep` tokens always stay (1, or more in beam search).
    ///
    /// # Errors
    ///
    /// A number outside that range, or `min_tokens_to_keep` of 0.
    pub fn new(epsilon: f64, min_tokens_to_keep: usize) -> Result<Self> {
        Ok(Eta { cutoff: Cutoff::new("eta_cutoff", epsilon, min_tokens_to_keep)? })
    }
}

impl Processor for Eta {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let epsilon = self.cutoff.epsilon as f32;
        let eta = epsilon.min(epsilon.sqrt() * (-entropy(scores, log_mass(scores))).exp() as f32);
        self.cutoff.apply(scores, eta);
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Cutoff {
    epsilon: f64,
    keep: usize,
    probabilities: Vec<f32>,
    best: Vec<f32>,
}

impl Cutoff {
    fn new(field: &str, epsilon: f64, keep: usize) -> Result<Self> {
        if !(epsilon > 0.0 && epsilon < 1.0) {
            return Err(Error::invalid_config(format!("{field} is {epsilon}, expected a number between 0 and 1")));
        }
        if keep == 0 {
            return Err(Error::invalid_config("min_tokens_to_keep is 0, expected at least 1"));
        }
        Ok(Cutoff { epsilon, keep, probabilities: Vec::new(), best: Vec::new() })
    }

    /// Forbids what is less probable than `bound`, except scores that reach the `keep`-th largest.
    fn apply(&mut self, scores: &mut [f32], bound: f32) {
        if softmax(scores, &mut self.probabilities).is_none() {
            return;
        }
        self.best.clear();
        self.best.extend_from_slice(scores);
        let keep = self.keep.min(self.best.len());
        let (_, least, _) = self.best.select_nth_unstable_by(keep - 1, |a, b| b.total_cmp(a));
        for (score, probability) in scores.iter_mut().zip(&self.probabilities) {
            if *probability < bound && *score < *least {
                *score = f32::NEG_INFINITY;
            }
        }
    }
}
