//! Never shows half a stop string.

/// Whether the stop string that ended a text is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// The whole text, the stop string and what follows it in the same token included: what Python returns.
    #[default]
    Keep,
    /// The text before the stop string.
    Cut,
}

/// Holds back the end of a streamed text as long as it may be the beginning of a stop string.
///
/// Put the pieces of [`Pieces`](super::Pieces) through [`push`](StopHold::push); at the end say whether a stop string
/// ended the row.
///
/// ```
/// use unspool_tasks::{Shown, StopHold};
///
/// let mut hold = StopHold::new(["\nUser:"]);
/// assert_eq!(hold.push("Hello\nUs"), "Hello");
/// assert_eq!(hold.push("ers"), "\nUsers");
/// assert_eq!(hold.push("\nUser: x"), "");
/// assert_eq!(hold.finish(true, Shown::Cut), "");
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopHold {
    stops: Vec<String>,
    held: String,
    searched: usize,
    found: bool,
}

impl StopHold {
    /// A filter for these stop strings; empty ones are left out.
    pub fn new<S: Into<String>>(stop_strings: impl IntoIterator<Item = S>) -> StopHold {
        let stops = stop_strings.into_iter().map(Into::into).filter(|stop: &String| !stop.is_empty()).collect();
        StopHold { stops, ..StopHold::default() }
    }

    /// Adds a piece; the text that no stop string can reach any more.
    ///
    /// A stop string inside the text holds everything from its beginning: if the row goes on (the tokens, not the
    /// text, decide that), the next piece releases it.
    pub fn push(&mut self, piece: &str) -> String {
        if self.found && !piece.is_empty() {
            // The row went on after a stop string, so that string was none: only a later one can end the row.
            self.found = false;
            self.searched = self.held.len();
        }
        self.held.push_str(piece);
        let from = self.first_stop();
        self.found = from.is_some();
        let keep = from.unwrap_or_else(|| self.first_beginning());
        let rest = self.held.split_off(keep);
        self.searched = self.searched.saturating_sub(keep);
        std::mem::replace(&mut self.held, rest)
    }

    /// Ends the text. `stopped` says whether a stop string ended the row; with [`Shown::Cut`] it and what follows is
    /// not shown.
    pub fn finish(&mut self, stopped: bool, shown: Shown) -> String {
        if stopped && shown == Shown::Cut {
            let end = self.first_stop().unwrap_or(self.held.len());
            self.held.truncate(end);
        }
        self.searched = 0;
        self.found = false;
        std::mem::take(&mut self.held)
    }

    /// A whole text that a stop string ended, without that string and what follows it: [`Shown::Cut`] at once.
    pub fn cut<'t>(&self, text: &'t str) -> &'t str {
        // Any earlier occurrence would have ended the text there.
        let first = self.stops.iter().filter_map(|stop| text.find(stop.as_str())).min();
        first.and_then(|end| text.get(..end)).unwrap_or(text)
    }

    /// The earliest beginning of a whole stop string that ends after the searched part.
    fn first_stop(&self) -> Option<usize> {
        self.stops
            .iter()
            .filter_map(|stop| {
                let mut from = self.searched.saturating_sub(stop.len() - 1);
                while !self.held.is_char_boundary(from) {
                    from += 1;
                }
                let found = self.held[from..].match_indices(stop.as_str());
                found.map(|(at, _)| from + at).find(|at| at + stop.len() > self.searched)
            })
            .min()
    }

    /// Where the longest end of the text that begins a stop string starts.
    fn first_beginning(&self) -> usize {
        let longest = self.stops.iter().map(|stop| stop.len() - 1).max().unwrap_or(0);
        let mut from = self.held.len().saturating_sub(longest);
        while !self.held.is_char_boundary(from) {
            from += 1;
        }
        let tail = &self.held[from..];
        let begins = |at: &usize| self.stops.iter().any(|stop| stop.starts_with(&tail[*at..]));
        tail.char_indices().map(|(at, _)| at).find(begins).map_or(self.held.len(), |at| from + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str], stopped: bool, shown: Shown) -> (Vec<String>, String) {
        let mut hold = StopHold::new(stops.iter().copied());
        let given = pieces.iter().map(|piece| hold.push(piece)).collect();
        (given, hold.finish(stopped, shown))
    }

    #[test]
    fn holds_the_beginning_of_a_stop_string_and_releases_it_when_it_was_none() {
        let (given, rest) = run(&["stop"], &["a st", "o", "ne st"], false, Shown::Keep);
        assert_eq!(given, ["a ", "", "stone "]);
        assert_eq!(rest, "st");
    }

    #[test]
    fn keeps_or_cuts_the_stop_string_that_ended_the_row() {
        assert_eq!(
            run(&["stop"], &["go st", "op!"], true, Shown::Keep),
            (vec!["go ".into(), "".into()], "stop!".into())
        );
        assert_eq!(run(&["stop"], &["go st", "op!"], true, Shown::Cut), (vec!["go ".into(), "".into()], "".into()));
        assert_eq!(StopHold::new(["stop", "p"]).cut("go stop!"), "go ");
        assert_eq!(StopHold::new(["stop"]).cut("go on"), "go on");
    }

    #[test]
    fn a_stop_string_that_did_not_end_the_row_is_released_by_the_next_piece() {
        let (given, rest) = run(&["stop"], &["stop", " and st", "op"], true, Shown::Cut);
        assert_eq!(given, ["", "stop and ", ""]);
        assert_eq!(rest, "");
    }

    #[test]
    fn without_stop_strings_everything_passes() {
        assert_eq!(run(&[], &["a", "", "b"], false, Shown::Cut), (vec!["a".into(), "".into(), "b".into()], "".into()));
        assert_eq!(run(&[""], &["a"], false, Shown::Keep), (vec!["a".into()], "".into()));
    }

    #[test]
    fn several_stop_strings_hold_the_longest_beginning() {
        let (given, rest) = run(&["é!", "\n\n", "aé"], &["xaé", "?", "a\n", "é", "!"], true, Shown::Cut);
        assert_eq!(given, ["x", "aé?", "a", "\n", ""]);
        assert_eq!(rest, "");
    }

    #[test]
    fn kept_pieces_put_together_are_the_text() {
        let text = "stststop sto stopstop s";
        for size in 1..6 {
            let mut hold = StopHold::new(["stop", "op s"]);
            let chars = text.chars().collect::<Vec<_>>();
            let mut shown = String::new();
            for piece in chars.chunks(size) {
                shown += &hold.push(&piece.iter().collect::<String>());
            }
            shown += &hold.finish(true, Shown::Keep);
            assert_eq!(shown, text);
        }
    }
}
