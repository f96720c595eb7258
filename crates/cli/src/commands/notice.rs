//! Lines on standard error that are no errors.

use std::io::Write;
use std::path::Path;

use unspool::{OpenOptions, Pipeline};

use crate::failure::Failure;

/// Says one line on standard error.
pub fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Opens a model, and says what the user should know: that a checkpoint was imported, and how to be faster.
///
/// # Errors
///
/// When it cannot be opened.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Pipeline, Failure> {
    let opened = Pipeline::open_telling(path, options, &mut |line: &str| say(line))?;
    if let Some(hint) = opened.description().and_then(|description| description.engine_hint.as_deref()) {
        say(hint);
    }
    Ok(opened)
}

/// Warnings about settings, one line each.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
}
