//! Answers as text while they are written.

use std::collections::BTreeMap;

use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_tasks::{Pieces, Shown, StopHold, Tokenizer};

/// Takes text as it becomes certain; Python's `TextStreamer`, for any number of rows.
///
/// A piece never ends inside a character and never shows a part of a stop string that may still turn out to be one. A
/// closure over the row and the piece is a sink.
///
/// ```
/// use unspool::{Flow, TextSink};
///
/// let mut told = String::new();
/// let mut sink = |_row: usize, piece: &str| {
///     told.push_str(piece);
///     Flow::Continue
/// };
/// assert_eq!(sink.text(0, "Hello"), Flow::Continue);
/// assert_eq!(told, "Hello");
/// ```
#[doc(alias = "TextStreamer")]
pub trait TextSink: Send {
    /// A token of `row` was written; `piece` is the text that became certain with it, often empty.
    /// `row` is `prompt * num_return_sequences + sequence`.
    fn text(&mut self, row: usize, piece: &str) -> Flow;

    /// Asked before every step of a search with beams: whether to go on.
    fn poll(&mut self) -> Flow {
        Flow::Continue
    }

    /// `row` has ended; called once per row, after its last piece.
    fn end(&mut self, row: usize, reason: &FinishReason) {
        let _ = (row, reason);
    }
}

impl<F: FnMut(usize, &str) -> Flow + Send> TextSink for F {
    fn text(&mut self, row: usize, piece: &str) -> Flow {
        self(row, piece)
    }
}

/// Turns the tokens of a generation into text for a [`TextSink`].
pub struct Streamed<'a> {
    tokenizer: &'a Tokenizer,
    stop_strings: &'a [String],
    shown: Shown,
    rows: BTreeMap<usize, (Pieces, StopHold)>,
    sink: &'a mut dyn TextSink,
}

impl<'a> Streamed<'a> {
    /// Tells `sink` the text of every row, without special tokens.
    pub fn new(tokenizer: &'a Tokenizer, stop_strings: &'a [String], shown: Shown, sink: &'a mut dyn TextSink) -> Self {
        Streamed { tokenizer, stop_strings, shown, rows: BTreeMap::new(), sink }
    }
}

impl TokenSink for Streamed<'_> {
    fn put(&mut self, event: &TokenEvent) -> Flow {
        let (pieces, hold) = self
            .rows
            .entry(event.row)
            .or_insert_with(|| (Pieces::new(self.tokenizer, true), StopHold::new(self.stop_strings.iter().cloned())));
        let piece = pieces.push(event.token).map(|piece| hold.push(&piece)).unwrap_or_default();
        self.sink.text(event.row, &piece)
    }

    fn poll(&mut self) -> Flow {
        self.sink.poll()
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        if let Some((mut pieces, mut hold)) = self.rows.remove(&row) {
            let mut rest = pieces.finish().map(|piece| hold.push(&piece)).unwrap_or_default();
            rest.push_str(&hold.finish(*reason == FinishReason::StopString, self.shown));
            if !rest.is_empty() {
                self.sink.text(row, &rest);
            }
        }
        self.sink.end(row, reason);
    }
}
