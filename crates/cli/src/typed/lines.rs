//! Where the messages of a conversation come from.

use std::io::{BufRead, IsTerminal, Read};

use unspool::Error;

use super::editor::LineEditor;
use super::message::message;
use crate::failure::Failure;

/// The longest line of a pipe, in bytes.
const LONGEST: u64 = 16 << 20;

/// An editor on a terminal, else the lines of standard input.
pub enum Lines {
    /// A person types.
    Edited(Box<LineEditor>),
    /// A program writes; the number of lines so far.
    Plain(usize),
}

impl Lines {
    /// What standard input is.
    pub fn open() -> Self {
        let editor = if std::io::stdin().is_terminal() { LineEditor::open() } else { None };
        editor.map_or(Lines::Plain(0), |editor| Lines::Edited(Box::new(editor)))
    }

    /// Whether a person types.
    pub fn for_people(&self) -> bool {
        matches!(self, Lines::Edited(_))
    }

    /// The next message; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// When the input cannot be read, or a line of a pipe is too long or not UTF-8.
    pub fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Lines::Edited(editor) => {
                let said = message(&mut **editor)?;
                if let Some(said) = &said {
                    editor.remember(said);
                }
                Ok(said)
            }
            Lines::Plain(count) => {
                *count += 1;
                Ok(plain(&mut std::io::stdin().lock(), *count)?)
            }
        }
    }

    /// Writes the history.
    pub fn close(&mut self) {
        if let Lines::Edited(editor) = self {
            editor.close();
        }
    }
}

/// Line `number` of `input`, without a byte order mark.
fn plain(input: &mut impl BufRead, number: usize) -> unspool::Result<Option<String>> {
    let mut line = Vec::new();
    let failed = |error| Error::io("standard input could not be read").because(error);
    input.take(LONGEST + 1).read_until(b'\n', &mut line).map_err(failed)?;
    if line.is_empty() {
        return Ok(None);
    }
    let place = format!("line {number} of standard input");
    if line.len() as u64 > LONGEST {
        return Err(
            Error::invalid_input(format!("this line has more than {LONGEST} bytes; say less at once")).at(place)
        );
    }
    let text = String::from_utf8(line)
        .map_err(|error| Error::invalid_input("this line is not UTF-8").at(place).because(error.utf8_error()))?;
    Ok(Some(match text.strip_prefix('\u{feff}') {
        Some(rest) if number == 1 => rest.to_owned(),
        _ => text,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_pipe_are_bounded_and_utf8() {
        let mut input = &b"\xef\xbb\xbfone\ntwo"[..];
        assert_eq!(plain(&mut input, 1).unwrap().unwrap(), "one\n");
        assert_eq!(plain(&mut input, 2).unwrap().unwrap(), "two");
        assert_eq!(plain(&mut input, 3).unwrap(), None);
        let error = plain(&mut &b"caf\xe9\n"[..], 4).unwrap_err().to_string();
        assert!(error.contains("line 4 of standard input") && error.contains("UTF-8"), "{error}");
        let mut endless = std::io::BufReader::new(std::io::repeat(b'a'));
        let error = plain(&mut endless, 1).unwrap_err().to_string();
        assert!(error.contains("16777216 bytes"), "{error}");
    }
}
