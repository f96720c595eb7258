//! The wall-clock limit.

use std::fmt;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};

/// Ends every row once more than `max_time` has passed; Python's `MaxTimeCriteria`.
///
/// The clock starts when the criterion is made: after the inputs were prepared, before the first step. It is read once
/// per token, so a limit of 0 gives exactly one token.
#[doc(alias = "MaxTimeCriteria")]
pub struct Time {
    limit: Duration,
    elapsed: Box<dyn Fn() -> Duration + Send>,
}

impl Time {
    /// A limit that counts from now.
    pub fn new(limit: Duration) -> Self {
        let start = Instant::now();
        Time::with_clock(limit, move || start.elapsed())
    }

    /// A limit on a clock of the caller's, which tells the time since generation started.
    pub fn with_clock(limit: Duration, elapsed: impl Fn() -> Duration + Send + 'static) -> Self {
        Time { limit, elapsed: Box::new(elapsed) }
    }
}

impl Criterion for Time {
    fn check(&mut self, _row: &Row<'_>, _scores: &[f32]) -> Result<Option<FinishReason>> {
        Ok(((self.elapsed)() > self.limit).then_some(FinishReason::Time))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Time").field("limit", &self.limit).finish_non_exhaustive()
    }
}
