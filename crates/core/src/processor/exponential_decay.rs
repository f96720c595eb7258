//! An end token that becomes likelier and likelier.

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// After `start` new tokens, adds `|score| * (factor^(tokens after start) - 1)` to the end tokens; Python's
/// `ExponentialDecayLengthPenalty`. As in transformers 5, a forbidden (or infinite) end token stays as
/// it is, and an end token listed twice counts once.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{ExponentialDecay, Processor};
///
/// let mut scores = [-4.0, 1.0];
/// let row = Row { ids: &[1; 5], prompt_len: 2, prompt: 0 };
/// ExponentialDecay::new(1, 2.0, vec![0])?.apply(&row, &mut scores)?;
/// assert_eq!(scores, [8.0, 1.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "ExponentialDecayLengthPenalty")]
#[derive(Clone, Debug)]
pub struct ExponentialDecay {
    start: i64,
    factor: f64,
    eos: Vec<TokenId>,
}

impl ExponentialDecay {
    /// New tokens before it begins, the factor, and the end tokens.
    ///
    /// # Errors
    ///
    /// No end token, or a factor that is not finite.
    pub fn new(start: i64, factor: f64, mut eos: Vec<TokenId>) -> Result<Self> {
        if eos.is_empty() {
            return Err(Error::invalid_config(
                "exponential_decay_length_penalty is set, but no eos_token_id is known; set eos_token_id",
            ));
        }
        if !factor.is_finite() {
            return Err(Error::invalid_config(format!(
                "exponential_decay_length_penalty has the factor {factor}, expected a finite number"
            )));
        }
        eos.sort_unstable();
        eos.dedup();
        Ok(ExponentialDecay { start, factor, eos })
    }
}

impl Processor for ExponentialDecay {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let after = i64::try_from(row.new_tokens().len()).unwrap_or(i64::MAX).saturating_sub(self.start);
        if after <= 0 {
            return Ok(());
        }
        let grown = (self.factor.powf(after as f64) - 1.0) as f32;
        for &id in &self.eos {
            if let Some(score) = scores.get_mut(id as usize).filter(|score| score.is_finite()) {
                *score += score.abs() * grown;
            }
        }
        Ok(())
    }
}
