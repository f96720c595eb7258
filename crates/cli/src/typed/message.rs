//! Lines that arrive together are one message: text pasted into a terminal that does not mark pastes.

use crate::failure::Failure;

/// What follows a line at once, without waiting for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another whole line.
    Line(String),
    /// The beginning of a line that has no end yet; empty when there is nothing.
    Begun(String),
}

/// Where lines are typed.
pub trait Typed {
    /// Waits for a line that goes on from `begun`, which can still be edited; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be read.
    fn line(&mut self, begun: &str) -> Result<Option<String>, Failure>;

    /// What is there already, behind the line that ended last.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be read.
    fn next(&mut self) -> Result<Next, Failure>;
}

/// Waits for a message: a line with all lines that arrived together with it. A line that was begun by the same paste is
/// left for the person to finish.
///
/// # Errors
///
/// When the terminal cannot be read.
pub fn message(typed: &mut impl Typed) -> Result<Option<String>, Failure> {
    let mut begun = String::new();
    loop {
        let Some(mut message) = typed.line(&begun)? else { return Ok(None) };
        begun = loop {
            match typed.next()? {
                Next::Line(line) => {
                    message.push('\n');
                    message.push_str(&line);
                }
                Next::Begun(rest) if rest.is_empty() => return Ok(Some(message)),
                Next::Begun(rest) => break format!("{message}\n{rest}"),
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Bursts of text, each of which arrives at once.
    struct Bursts(VecDeque<&'static str>);

    impl Bursts {
        fn take_line(&mut self) -> Option<&'static str> {
            let burst = self.0.front_mut()?;
            let (line, rest) = burst.split_once('\n')?;
            *burst = rest;
            Some(line)
        }
    }

    impl Typed for Bursts {
        fn line(&mut self, begun: &str) -> Result<Option<String>, Failure> {
            let mut line = begun.to_owned();
            while !self.0.is_empty() {
                if let Some(end) = self.take_line() {
                    return Ok(Some(line + end));
                }
                line.push_str(self.0.pop_front().unwrap_or_default());
            }
            Ok(None)
        }

        fn next(&mut self) -> Result<Next, Failure> {
            Ok(match self.take_line() {
                Some(line) => Next::Line(line.to_owned()),
                None => Next::Begun(self.0.pop_front().unwrap_or_default().to_owned()),
            })
        }
    }

    #[test]
    fn lines_that_arrive_together_are_one_message() {
        for (bursts, expected) in [
            (&["one\n", "two\n"][..], &["one", "two"][..]),
            (&["one\ntwo\nthree\n"], &["one\ntwo\nthree"]),
            (&["one\n\n  two\n", "three\n"], &["one\n\n  two", "three"]),
            (&["one\ntwo", " more\n", "three\n"], &["one\ntwo more", "three"]),
            (&["Explain: ", "one\ntwo\n"], &["Explain: one\ntwo"]),
        ] {
            let mut typed = Bursts(bursts.iter().copied().collect());
            let said: Vec<String> = std::iter::from_fn(|| message(&mut typed).unwrap()).collect();
            assert_eq!(said, expected, "{bursts:?}");
        }
    }
}
