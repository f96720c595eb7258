//! How sure a drafting model is of its own token.

use crate::error::{Error, Result};
use crate::row::Row;
use crate::select::prob;
use crate::stop::{Criterion, FinishReason};

/// Ends a row when its newest token had a probability below a threshold; Python's `ConfidenceCriteria`, with which an
/// assistant stops drafting before the model it drafts for would refuse.
///
/// The probability is that of the processed scores, and the token stays in the row. Python looks at the first row only;
/// here each row is judged by its own token.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::stop::{Confidence, Criterion, FinishReason};
///
/// let row = Row { ids: &[5, 1], prompt_len: 1, prompt: 0 };
/// let mut criterion = Confidence::new(0.4)?;
/// assert_eq!(criterion.check(&row, &[0.0, 0.0])?, None);
/// assert_eq!(criterion.check(&row, &[0.0, 0.0, 0.0])?, Some(FinishReason::Confidence));
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "ConfidenceCriteria")]
#[derive(Clone, Debug)]
pub struct Confidence {
    threshold: f64,
}

impl Confidence {
    /// Ends rows at a token less probable than `threshold`.
    ///
    /// # Errors
    ///
    /// NaN. A threshold of 0 or below ends no row, one above 1 every row at its first token, as in Python.
    pub fn new(threshold: f64) -> Result<Self> {
        if threshold.is_nan() {
            return Err(Error::invalid_config("assistant_confidence_threshold is NaN, expected a number"));
        }
        Ok(Confidence { threshold })
    }
}

impl Criterion for Confidence {
    fn check(&mut self, row: &Row<'_>, scores: &[f32]) -> Result<Option<FinishReason>> {
        let Some(newest) = row.ids.last() else { return Ok(None) };
        let probability = f64::from(prob(scores, *newest));
        Ok((probability < self.threshold).then_some(FinishReason::Confidence))
    }
}
