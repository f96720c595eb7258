//! Standard output that never panics: a reader that went away ends the program quietly.

use std::io::{self, Write};

use unspool::Error;

use crate::failure::Failure;

/// Writes `text` to standard output at once.
///
/// # Errors
///
/// [`Failure::Quiet`] when the reader went away.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
}

/// Writes `text` and a line's end.
///
/// # Errors
///
/// As [`write()`].
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).map_err(failed)
}

/// What a failed write means for the program.
pub fn failed(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::Quiet
    } else {
        Failure::Error(Error::io("standard output could not be written").because(error))
    }
}
