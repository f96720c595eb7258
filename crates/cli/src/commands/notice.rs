//! Lines on standard error that are no errors.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use unspool::{NO_ORT_HINT, OpenOptions, Pipeline, cache_folder};

use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::line::one_line;

static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only warnings and errors are printed: `--quiet`.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only warnings and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints one line on standard error, unless the user wants it quiet.
pub fn say(line: &str) {
    if !is_quiet() {
        print(line);
    }
}

/// Prints an error that does not end the program.
pub fn error(message: &str) {
    print(&format!("error: {message}"));
}

fn print(line: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", one_line(line)).as_bytes());
}

/// Says that a result is there already.
pub fn finished(target: &Path) {
    say(&format!("{} holds the result of this request already; --force makes it again", target.display()));
}

/// Opens a model, and says what the user should know: that a checkpoint was imported, and how to be faster.
///
/// # Errors
///
/// When it cannot be opened, or the user stops it; an import that was stopped leaves nothing behind.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Pipeline, Failure> {
    let _listening = interrupt::listen(Mode::SecondEnds);
    let opened = Pipeline::open_telling(path, options, &mut |line: &str| match line.strip_prefix("warning: ") {
        Some(warning) => warn(&[warning.to_owned()]),
        None => say(line),
    });
    if interrupt::pressed() {
        return Err(Failure::Interrupted);
    }
    let opened = opened?;
    if let Some(hint) = opened.description().and_then(|description| description.engine_hint.as_deref())
        && !is_quiet()
        && (hint != NO_ORT_HINT || first_time())
    {
        say(hint);
    }
    Ok(opened)
}

/// Whether this machine has not been told yet how to be faster: a marker in the cache folder remembers it.
fn first_time() -> bool {
    let Ok(folder) = cache_folder() else { return true };
    let marker = folder.join(".told-of-onnxruntime");
    let made = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::File::options().write(true).create_new(true).open(marker));
    !made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
}

/// Warnings of several calls, each line said once.
#[derive(Debug, Default)]
pub struct Warned(RefCell<BTreeSet<String>>);

impl Warned {
    /// Says those lines that were not said before.
    pub fn warn(&self, warnings: &[String]) {
        let new = |line: &&String| self.0.borrow_mut().insert(line.to_string());
        warn(&warnings.iter().filter(new).cloned().collect::<Vec<_>>());
    }
}

/// Warnings about settings, one line each.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        print(&format!("warning: {warning}"));
    }
}
