//! The contract of a rule.

use crate::error::Result;
use crate::row::Row;

/// A rule over one row's scores; Python's `LogitsProcessor` (and its warpers).
///
/// A rule sees ONE row at a time, so that the same rule serves single rows, batches and beams.
pub trait Processor: Send {
    /// Changes `scores`, `[vocab] f32`, in place. Minus infinity means forbidden.
    ///
    /// # Errors
    ///
    /// When the rule cannot be applied to this row (an id outside the vocabulary, a failed callback).
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()>;
}

/// A closure is a rule.
impl<F> Processor for F
where
    F: FnMut(&Row<'_>, &mut [f32]) -> Result<()> + Send,
{
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        self(row, scores)
    }
}
