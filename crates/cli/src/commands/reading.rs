//! Texts that are read in batches, one JSON line for each: what `score` and `embed` share.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;
use unspool::{Pipeline, Prompt, Result, TokenId};

use super::notice;
use crate::args::texts::TextArgs;
use crate::batch::results::{Wanted, check_place};
use crate::batch::row::Keys;
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::summary::counted;
use crate::print::{out, progress};

/// Checks, before a model is opened, that the results may be put at `out`, and that this is not the `input`, the file of
/// the option `name`.
///
/// # Errors
///
/// When it is, or something is there that must not be replaced.
pub fn check_out(out: Option<&PathBuf>, force: bool, input: Option<&PathBuf>, name: &str) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    let same =
        |input: &PathBuf| input.canonicalize().is_ok_and(|input| out.canonicalize().is_ok_and(|out| out == input));
    if input.is_some_and(same) {
        return Err(Failure::usage(format!("--out is the file of {name}; give another name")));
    }
    Ok(check_place(out, force)?)
}

/// Warns once when ids among `prompts` hold padding.
///
/// # Errors
///
/// When the model's settings cannot be honoured.
pub fn warn_of_padding<'a>(pipeline: &Pipeline, prompts: impl Iterator<Item = &'a Prompt>) -> Result<(), Failure> {
    for prompt in prompts {
        if let Some(warning) = pipeline.padding_warning(prompt)? {
            notice::warn(&[warning]);
            break;
        }
    }
    Ok(())
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
    keys: &[Keys],
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
    let wanted = Wanted { target, run, prompts: ids, keys, force: args.force };
    let Some(mut results) = wanted.open()? else {
        notice::finished(target);
        return Ok(());
    };
    let (before, begin) = (results.done().min(ids.len()), Instant::now());
    let bar = progress::prompts(texts.len() as u64, results.done() as u64);
    while results.done() < texts.len() {
        let first = results.done();
        let part = texts.get(first..texts.len().min(first + batch)).unwrap_or_default();
        let lines = lines_of(first, part)?;
        if interrupt::pressed() {
            bar.abandon();
            notice::say(&format!(
                "stopped after {first} of {} texts; run the same command again to continue",
                texts.len()
            ));
            return Err(Failure::Interrupted);
        }
        results.add(&lines)?;
        bar.set_position(results.done() as u64);
    }
    bar.finish_and_clear();
    results.finish()?;
    let tokens = counted(ids.iter().skip(before).map(Vec::len).sum(), "token");
    let (texts, seconds) = (counted(ids.len() - before, "text"), begin.elapsed().as_secs_f64());
    notice::say(&format!("{texts}, {tokens} in {seconds:.1} s, written to {}", target.display()));
    Ok(())
}
