//! Scores that are no numbers.

use crate::error::Result;
use crate::processor::Processor;
use crate::row::Row;

/// Makes NaN 0 and infinities the largest finite numbers; Python's `InfNanRemoveLogitsProcessor`.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{InfNanRemove, Processor};
///
/// let mut scores = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0];
/// InfNanRemove.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [0.0, f32::MAX, f32::MIN, 1.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "InfNanRemoveLogitsProcessor")]
#[derive(Clone, Copy, Debug, Default)]
pub struct InfNanRemove;

impl Processor for InfNanRemove {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        for score in scores {
            *score = if score.is_nan() { 0.0 } else { score.clamp(f32::MIN, f32::MAX) };
        }
        Ok(())
    }
}
