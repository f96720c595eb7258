//! Processed scores become log-probabilities again.

use crate::error::Result;
use crate::processor::Processor;
use crate::processor::softmax::log_softmax;
use crate::row::Row;

/// The log-softmax of the scores; Python's `LogitNormalization` (`renormalize_logits`).
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{LogitNormalization, Processor};
///
/// let mut scores = [0.0, 0.0, f32::NEG_INFINITY];
/// LogitNormalization.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert!((scores[0] - 0.5f32.ln()).abs() < 1e-6 && scores[2] == f32::NEG_INFINITY);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LogitNormalization;

impl Processor for LogitNormalization {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        log_softmax(scores);
        Ok(())
    }
}
