//! Answers as text while they are written.

use std::collections::BTreeMap;

use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_core::{Settings, TokenId};
use unspool_tasks::{Pieces, Shown, StopHold, TextStreamer, Tokenizer};

/// Receives text as it is generated; Python's `TextStreamer`, for any number of rows.
///
/// [`stdout`](crate::stdout) is a sink that prints.
///
/// How the text is cut is said by [`Streaming`]; a piece never ends inside a character. A closure over the row and the
/// piece is a sink.
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
    /// A generation begins; its rows count from 0.
    fn begin(&mut self) {}

    /// A token of `row` was written; `piece` is the text that is shown with it, often empty. A prompt that is shown is one
    /// piece before all others. `row` is `prompt * num_return_sequences + sequence`.
    fn text(&mut self, row: usize, piece: &str) -> Flow;

    /// Asked before every step of a search with beams: whether to go on.
    fn poll(&mut self) -> Flow {
        Flow::Continue
    }

    /// `done` of the `total` tokens of all prompts have run; called before the first chunk and after each.
    fn prefill(&mut self, done: usize, total: usize) {
        let _ = (done, total);
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

/// Which pieces a streamed text comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamBy {
    /// As soon as a token makes text certain. No part of a stop string is shown that may still turn out to be one.
    #[default]
    Token,
    /// Exactly the pieces of Python's `TextStreamer`: letters, digits and spaces at once, text with a symbol up to its last
    /// space, everything at a line's end or a CJK character. A stop string is held back only where it is to be left out
    /// ([`Shown::Cut`]).
    Word,
}

/// What a text stream shows, and in which pieces.
///
/// ```
/// use unspool::{Call, StreamBy, Streaming};
///
/// let words = Call::new().streaming(Streaming { by: StreamBy::Word, ..Streaming::default() });
/// let as_python = Call::new().streaming(Streaming::text_streamer());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streaming {
    /// The pieces.
    pub by: StreamBy,
    /// Leave the prompt out; else each row's prompt comes first. True unless set.
    pub skip_prompt: bool,
    /// Leave special tokens out. True unless set.
    pub skip_special_tokens: bool,
}

impl Default for Streaming {
    fn default() -> Self {
        Streaming { by: StreamBy::Token, skip_prompt: true, skip_special_tokens: true }
    }
}

impl Streaming {
    /// Python's `TextStreamer(tokenizer)`: its pieces, with the prompt and with special tokens.
    #[doc(alias = "TextStreamer")]
    pub fn text_streamer() -> Self {
        Streaming { by: StreamBy::Word, skip_prompt: false, skip_special_tokens: false }
    }
}

/// One row's text in the making.
enum RowText {
    Certain(Pieces),
    Words(TextStreamer),
}

impl RowText {
    fn new(tokenizer: &Tokenizer, streaming: Streaming) -> Self {
        let skip = streaming.skip_special_tokens;
        match streaming.by {
            StreamBy::Token => RowText::Certain(Pieces::new(tokenizer, skip)),
            StreamBy::Word => RowText::Words(TextStreamer::new(tokenizer).skip_special_tokens(skip)),
        }
    }

    fn put(&mut self, ids: &[TokenId]) -> String {
        match self {
            RowText::Certain(pieces) => ids.iter().filter_map(|&id| pieces.push(id)).collect(),
            // Every call may show text, so a call without a token is one too many.
            RowText::Words(_) if ids.is_empty() => String::new(),
            RowText::Words(streamer) => streamer.put(ids).unwrap_or_default(),
        }
    }

    fn end(&mut self) -> String {
        match self {
            RowText::Certain(pieces) => pieces.finish().unwrap_or_default(),
            RowText::Words(streamer) => streamer.end(),
        }
    }
}

/// One row of a stream.
struct StreamedRow {
    text: RowText,
    hold: StopHold,
    /// An end token that may have ended the row, and then is no part of its text.
    ending: Option<TokenId>,
}

impl StreamedRow {
    /// The text that tokens make certain.
    fn put(&mut self, ids: &[TokenId]) -> String {
        let ended: Vec<TokenId> = self.ending.take().into_iter().collect();
        let text = self.text.put(&ended) + &self.text.put(ids);
        self.hold.push(&text)
    }

    /// The rest of the text.
    fn end(&mut self, reason: &FinishReason, shown: Shown) -> String {
        if *reason == FinishReason::Eos {
            self.ending = None;
        }
        let mut rest = self.put(&[]);
        rest.push_str(&self.hold.push(&self.text.end()));
        rest.push_str(&self.hold.finish(*reason == FinishReason::StopString, shown));
        rest
    }
}

/// Turns the tokens of a generation into text for a [`TextSink`].
pub struct Streamed<'a> {
    tokenizer: &'a Tokenizer,
    stop_strings: Vec<String>,
    eos_token_id: Vec<TokenId>,
    shown: Shown,
    streaming: Streaming,
    rows: BTreeMap<usize, StreamedRow>,
    sink: &'a mut dyn TextSink,
}

impl<'a> Streamed<'a> {
    /// Gives `sink` the text of every row of a generation with these settings.
    pub fn new(
        tokenizer: &'a Tokenizer,
        settings: &Settings,
        shown: Shown,
        streaming: Streaming,
        sink: &'a mut dyn TextSink,
    ) -> Self {
        let held = streaming.by == StreamBy::Token || shown == Shown::Cut;
        let stop_strings = if held { settings.stop_strings.clone() } else { Vec::new() };
        // Who asks for special tokens sees the end token too.
        let eos_token_id = if streaming.skip_special_tokens { settings.eos_token_id.clone() } else { Vec::new() };
        sink.begin();
        Streamed { tokenizer, stop_strings, eos_token_id, shown, streaming, rows: BTreeMap::new(), sink }
    }

    fn row(&mut self, row: usize) -> &mut StreamedRow {
        self.rows.entry(row).or_insert_with(|| StreamedRow {
            text: RowText::new(self.tokenizer, self.streaming),
            hold: StopHold::new(self.stop_strings.iter().cloned()),
            ending: None,
        })
    }
}

impl TokenSink for Streamed<'_> {
    fn begin(&mut self, row: usize, prompt: &[TokenId]) {
        if !self.streaming.skip_prompt {
            // A stop string that begins in the prompt can end the row too, so the prompt goes the same way.
            let piece = self.row(row).put(prompt);
            self.sink.text(row, &piece);
        }
    }

    fn put(&mut self, event: &TokenEvent) -> Flow {
        let is_end = self.eos_token_id.contains(&event.token);
        let row = self.row(event.row);
        let piece = row.put(if is_end { &[] } else { std::slice::from_ref(&event.token) });
        row.ending = is_end.then_some(event.token);
        self.sink.text(event.row, &piece)
    }

    fn prefill(&mut self, done: usize, total: usize) {
        self.sink.prefill(done, total);
    }

    fn poll(&mut self) -> Flow {
        self.sink.poll()
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        if let Some(mut ended) = self.rows.remove(&row) {
            let rest = ended.end(reason, self.shown);
            if !rest.is_empty() {
                self.sink.text(row, &rest);
            }
        }
        self.sink.end(row, reason);
    }
}
