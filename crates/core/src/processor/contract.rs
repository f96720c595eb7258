//! The contract of a rule.

use std::any::{TypeId, type_name};

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

    /// The rule's own type: a caller's rule takes the place of a built one of the same kind.
    fn kind(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<Self>()
    }

    /// What the rule is called in messages.
    fn name(&self) -> &'static str {
        let path = type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path)
    }
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
