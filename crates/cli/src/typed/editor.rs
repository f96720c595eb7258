//! The line editor of a terminal.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use rustyline::error::ReadlineError;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::{Completer, Context, Editor, Helper, Highlighter, Validator};
use unspool::{Error, cache_folder};

use super::message::{Next, Typed};
use super::nonblocking::Reopened;
use crate::failure::Failure;
use crate::print::out;

const PROMPT: &str = "> ";
/// One line up.
const UP: &str = "\x1b[A";
/// Terminals that the editor reads plain lines from.
const PLAIN: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Sees the line while it is edited, so that a line whose end did not arrive is not lost.
#[derive(Completer, Helper, Highlighter, Validator)]
struct Seen(Rc<RefCell<String>>);

impl Hinter for Seen {
    type Hint = String;

    fn hint(&self, line: &str, _pos: usize, _context: &Context<'_>) -> Option<String> {
        line.clone_into(&mut self.0.borrow_mut());
        None
    }
}

/// A line editor with a history that lasts.
pub struct LineEditor {
    editor: Editor<Seen, DefaultHistory>,
    line: Rc<RefCell<String>>,
    history: Option<PathBuf>,
    terminal: Option<Reopened>,
}

impl LineEditor {
    /// An editor on standard input; `None` when there can be none.
    pub fn open() -> Option<Self> {
        let mut editor = Editor::new().ok()?;
        let line = Rc::new(RefCell::new(String::new()));
        editor.set_helper(Some(Seen(Rc::clone(&line))));
        let history = cache_folder().ok().map(|folder| folder.join("history.txt"));
        if let Some(history) = &history {
            // The first conversation has no history yet.
            let _ = editor.load_history(history);
        }
        Some(LineEditor { editor, line, history, terminal: Reopened::new() })
    }

    /// Keeps `message` for the arrow keys.
    pub fn remember(&mut self, message: &str) {
        // A history that cannot grow is no reason to stop.
        let _ = self.editor.add_history_entry(message);
    }

    /// Writes the history.
    pub fn close(&mut self) {
        let Some(history) = &self.history else { return };
        if let Some(folder) = history.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        // A history that cannot be written is lost and nothing more.
        let _ = self.editor.save_history(history);
    }
}

fn unreadable(error: ReadlineError) -> Failure {
    Error::io("the terminal could not be read").because(error).into()
}

impl Typed for LineEditor {
    /// Ctrl-C clears the line.
    fn line(&mut self, begun: &str) -> Result<Option<String>, Failure> {
        let mut begun = begun;
        loop {
            match self.editor.readline_with_initial(PROMPT, (begun, "")) {
                Ok(line) => return Ok(Some(line)),
                Err(ReadlineError::Interrupted) => begun = "",
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(unreadable(error)),
            }
        }
    }

    fn next(&mut self) -> Result<Next, Failure> {
        let Some(terminal) = &self.terminal else { return Ok(Next::Begun(String::new())) };
        self.line.borrow_mut().clear();
        match terminal.without_waiting(|| self.editor.readline("")) {
            Some(Ok(line)) => Ok(Next::Line(line)),
            Some(Err(ReadlineError::Io(error))) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let begun = self.line.take();
                let plain = std::env::var("TERM").is_ok_and(|term| PLAIN.contains(&term.as_str()));
                if begun.is_empty() && !plain {
                    // The editor has ended its empty line.
                    out::write(UP)?;
                }
                Ok(Next::Begun(begun))
            }
            Some(Err(ReadlineError::Interrupted | ReadlineError::Eof)) | None => Ok(Next::Begun(String::new())),
            Some(Err(error)) => Err(unreadable(error)),
        }
    }
}
