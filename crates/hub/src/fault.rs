//! A failure of a download, and whether it may go away by itself.

use std::time::Duration;

use unspool_core::{Error, Result};

/// Tries of one file, when what failed may go away by itself.
const TRIES: u32 = 3;

/// What failed.
#[derive(Debug)]
pub struct Fault {
    error: Error,
    /// Whether another try may succeed.
    passing: bool,
}

impl Fault {
    /// A failure that another try may not meet, if `passing`.
    pub fn new(error: Error, passing: bool) -> Self {
        Fault { error, passing }
    }

    /// A failure that another try may not meet.
    pub fn passing(error: Error) -> Self {
        Fault::new(error, true)
    }
}

/// Most failures stay what they are.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::new(error, false)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}

/// Tries `attempt` again, after a moment, while it fails with what may go away.
///
/// # Errors
///
/// That of the last try.
pub fn retried<T>(mut attempt: impl FnMut() -> Result<T, Fault>) -> Result<T> {
    for tried in 1..TRIES {
        match attempt() {
            Err(fault) if fault.passing => std::thread::sleep(Duration::from_millis(300) * tried),
            result => return Ok(result?),
        }
    }
    Ok(attempt()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_go_away_is_tried_again() {
        let count = |passing, succeeds_at| {
            let mut tries = 0;
            let result = retried(|| {
                tries += 1;
                if tries == succeeds_at { Ok(()) } else { Err(Fault::new(Error::network("no"), passing)) }
            });
            (tries, result.is_ok())
        };
        assert_eq!(count(true, 3), (3, true));
        assert_eq!(count(true, 9), (3, false));
        assert_eq!(count(false, 2), (1, false));
    }
}
