//! Streams of text into a writer.

use std::collections::BTreeMap;
use std::io::{self, Write};

use unspool_core::stop::FinishReason;
use unspool_core::stream::Flow;

use crate::text::TextSink;

/// Writes text as it is generated, each piece at once (it flushes), and a line end after each row; Python's `TextStreamer`.
///
/// Rows are written one after the other: the text of a later one waits until those before it have ended. When the writer
/// fails (a closed pipe, a full disk), the generation stops and [`error`](WriterSink::error) says why.
///
/// ```
/// use unspool::{Flow, FinishReason, TextSink, WriterSink};
///
/// let mut sink = WriterSink::new(Vec::new());
/// sink.text(0, "Hello");
/// sink.text(1, "Second");
/// sink.text(0, " there");
/// sink.end(0, &FinishReason::Eos);
/// sink.end(1, &FinishReason::Eos);
/// assert_eq!(sink.into_inner(), b"Hello there\nSecond\n");
/// ```
#[derive(Debug)]
pub struct WriterSink<W> {
    writer: W,
    /// The row that is written now.
    current: usize,
    /// The text of later rows, and whether they have ended.
    waiting: BTreeMap<usize, (String, bool)>,
    error: Option<io::Error>,
}

/// Prints text as it is generated: a [`WriterSink`] of the standard output.
///
/// ```no_run
/// use unspool::Call;
///
/// unspool::open("models/smollm2")?.stream("The sea is", &Call::new(), &mut unspool::stdout())?;
/// # Ok::<(), unspool::Error>(())
/// ```
pub fn stdout() -> WriterSink<io::Stdout> {
    WriterSink::new(io::stdout())
}

impl<W: Write> WriterSink<W> {
    /// A sink that writes to `writer`.
    pub fn new(writer: W) -> Self {
        WriterSink { writer, current: 0, waiting: BTreeMap::new(), error: None }
    }

    /// The failure of the writer that stopped the generation.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.writer
    }

    fn write(&mut self, text: &str) {
        if self.error.is_none() && !text.is_empty() {
            self.error = self.writer.write_all(text.as_bytes()).and_then(|()| self.writer.flush()).err();
        }
    }
}

impl<W: Write + Send> TextSink for WriterSink<W> {
    fn begin(&mut self) {
        self.current = 0;
        self.waiting.clear();
    }

    fn text(&mut self, row: usize, piece: &str) -> Flow {
        if row == self.current {
            self.write(piece);
        } else {
            self.waiting.entry(row).or_default().0.push_str(piece);
        }
        if self.error.is_some() { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, row: usize, _reason: &FinishReason) {
        if row != self.current {
            self.waiting.entry(row).or_default().1 = true;
            return;
        }
        self.write("\n");
        self.current += 1;
        while let Some((text, ended)) = self.waiting.remove(&self.current) {
            self.write(&text);
            if !ended {
                break;
            }
            self.write("\n");
            self.current += 1;
        }
    }
}
