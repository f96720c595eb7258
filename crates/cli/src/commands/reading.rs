//! Texts that are read in batches, one JSON line for each: what `score` and `embed` share.

use std::path::Path;

use serde_json::Value;
use unspool::{Result, TokenId};

use super::notice;
use crate::args::texts::TextArgs;
use crate::batch::results::Results;
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::file::place;
use crate::print::{out, progress};

/// Checks, before a model is opened, that the file of results is not the file of texts.
///
/// # Errors
///
/// When it is, or something else than a file is in the results' place.
pub fn check_out(args: &TextArgs) -> Result<(), Failure> {
    let Some(target) = &args.out else { return Ok(()) };
    let real = place(target)?;
    match &args.texts {
        Some(file) if file.canonicalize().is_ok_and(|file| file == real) => {
            Err(Failure::usage("--out is the file of --texts; give another name"))
        }
        _ => Ok(()),
    }
}

/// Where the texts' JSON lines come from: a file, or standard input.
pub fn source(args: &TextArgs) -> &Path {
    args.texts.as_deref().unwrap_or(Path::new("-"))
}

/// Gives `line_of` every batch with the index of its first text, and prints the lines or writes them to `args.out`.
///
/// `ids` are the texts' tokens and `run` says what the results depend on besides them: a partial result goes on only when
/// both are the same.
///
/// # Errors
///
/// Those of `lines_of` and of the file; and when the user stops it.
pub fn in_batches<T>(
    args: &TextArgs,
    texts: &[T],
    ids: &[Vec<TokenId>],
    run: &Value,
    lines_of: impl Fn(usize, &[T]) -> Result<Vec<String>>,
) -> Result<(), Failure> {
    let batch = usize::try_from(args.batch_size).unwrap_or(1).max(1);
    let _listening = interrupt::listen(Mode::SecondEnds);
    let Some(target) = &args.out else {
        for (index, part) in texts.chunks(batch).enumerate() {
            for line in lines_of(index * batch, part)? {
                out::line(&line)?;
            }
            if interrupt::pressed() {
                return Err(Failure::Interrupted);
            }
        }
        return Ok(());
    };
    let mut results = Results::open(target, run, ids)?;
    let bar = progress::prompts(texts.len() as u64, results.done() as u64);
    while results.done() < texts.len() {
        let first = results.done();
        let part = texts.get(first..texts.len().min(first + batch)).unwrap_or_default();
        let lines = lines_of(first, part)?;
        if interrupt::pressed() {
            bar.abandon();
            notice::say(&format!("stopped after {first} of {} texts; the same command goes on there", texts.len()));
            return Err(Failure::Interrupted);
        }
        results.add(&lines)?;
        bar.set_position(results.done() as u64);
    }
    bar.finish_and_clear();
    Ok(results.finish()?)
}
