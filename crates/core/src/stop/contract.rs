//! The contract of a stopping criterion.

use crate::error::Result;
use crate::row::Row;

/// Why a row ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// An end-of-sequence token was written (it is part of the row).
    Eos,
    /// The row reached its maximum length.
    Length,
    /// A stop string was written; the token that completed it is part of the row.
    StopString,
    /// `max_time` passed.
    Time,
    /// A drafting model was not sure enough of its token.
    Confidence,
    /// The caller's sink asked to stop.
    Cancelled,
    /// A caller's own criterion, by its name.
    Custom(String),
}

impl FinishReason {
    /// The word used in JSON: `eos`, `length`, `stop_string`, `time`, `confidence`, `cancelled` or the criterion's own name.
    pub fn as_str(&self) -> &str {
        match self {
            FinishReason::Eos => "eos",
            FinishReason::Length => "length",
            FinishReason::StopString => "stop_string",
            FinishReason::Time => "time",
            FinishReason::Confidence => "confidence",
            FinishReason::Cancelled => "cancelled",
            FinishReason::Custom(name) => name,
        }
    }
}

/// Decides after each token whether a row is done; Python's `StoppingCriteria`.
pub trait Criterion: Send {
    /// `row` includes the token just written; `scores` are the processed scores it was picked from, `[vocab] f32`.
    ///
    /// # Errors
    ///
    /// When a caller's callback fails.
    fn check(&mut self, row: &Row<'_>, scores: &[f32]) -> Result<Option<FinishReason>>;
}

/// A closure is a criterion.
impl<F> Criterion for F
where
    F: FnMut(&Row<'_>, &[f32]) -> Result<Option<FinishReason>> + Send,
{
    fn check(&mut self, row: &Row<'_>, scores: &[f32]) -> Result<Option<FinishReason>> {
        self(row, scores)
    }
}
