//! Tokens as an iterator on another thread; Python's `TextIteratorStreamer` before the text.
//!
//! The queue has no bound: a slow reader never holds up the rows, and what waits is at most the tokens of the request. A
//! reader who left ends his rows: the sink then answers [`Flow::Stop`].

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::contract::{Flow, TokenEvent, TokenSink};
use crate::stop::FinishReason;

/// One message of a [`TokenStream`]; every message names its row.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// A token of a row.
    Token(TokenEvent),
    /// A row has ended.
    End {
        /// The row, as in [`TokenEvent::row`].
        row: usize,
        /// Why it ended.
        reason: FinishReason,
    },
}

/// The writing end; give it to the generation, on the thread that runs it.
#[derive(Debug)]
pub struct ChannelSink(Sender<StreamEvent>);

/// The reading end: an iterator that waits for the next event and ends when the [`ChannelSink`] is dropped.
#[derive(Debug)]
pub struct TokenStream(Receiver<StreamEvent>);

/// A sink and the stream that receives what it is told.
///
/// ```
/// use unspool_core::stream::{StreamEvent, TokenEvent, TokenSink, channel};
///
/// let (mut sink, stream) = channel();
/// std::thread::spawn(move || sink.put(&TokenEvent { row: 0, token: 5, logprob: None }));
/// assert!(matches!(stream.collect::<Vec<_>>()[..], [StreamEvent::Token(TokenEvent { row: 0, token: 5, .. })]));
/// ```
#[doc(alias = "TextIteratorStreamer")]
pub fn channel() -> (ChannelSink, TokenStream) {
    let (sender, receiver) = mpsc::channel();
    (ChannelSink(sender), TokenStream(receiver))
}

impl TokenSink for ChannelSink {
    fn put(&mut self, event: &TokenEvent) -> Flow {
        match self.0.send(StreamEvent::Token(*event)) {
            Ok(()) => Flow::Continue,
            Err(_) => Flow::Stop,
        }
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        // A reader who left does not need to hear of the end.
        let _ = self.0.send(StreamEvent::End { row, reason: reason.clone() });
    }
}

impl TokenStream {
    /// The next event, waiting at most `timeout`; `Ok(None)` when the generation is over.
    ///
    /// # Errors
    ///
    /// When `timeout` passes first.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<StreamEvent>, TimedOut> {
        match self.0.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(TimedOut),
        }
    }
}

/// No event came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl std::fmt::Display for TimedOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no token came within the timeout; wait longer, or check that the generation still runs")
    }
}

impl std::error::Error for TimedOut {}

impl Iterator for TokenStream {
    type Item = StreamEvent;

    fn next(&mut self) -> Option<StreamEvent> {
        self.0.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(row: usize, token: u32) -> TokenEvent {
        TokenEvent { row, token, logprob: None }
    }

    #[test]
    fn events_arrive_in_order_and_the_stream_ends_with_the_sink() {
        let (mut sink, stream) = channel();
        let writer = std::thread::spawn(move || {
            assert_eq!(sink.put(&event(0, 4)), Flow::Continue);
            assert_eq!(sink.put(&event(1, 5)), Flow::Continue);
            sink.end(1, &FinishReason::Eos);
        });
        let events: Vec<_> = stream.collect();
        writer.join().unwrap();
        let end = StreamEvent::End { row: 1, reason: FinishReason::Eos };
        assert_eq!(events, [StreamEvent::Token(event(0, 4)), StreamEvent::Token(event(1, 5)), end]);
    }

    #[test]
    fn a_reader_who_left_stops_the_row() {
        let (mut sink, stream) = channel();
        drop(stream);
        assert_eq!(sink.put(&event(0, 4)), Flow::Stop);
        sink.end(0, &FinishReason::Cancelled);
    }

    #[test]
    fn waiting_has_a_limit() {
        let (sink, mut stream) = channel();
        assert_eq!(stream.next_timeout(Duration::from_millis(1)), Err(TimedOut));
        drop(sink);
        assert_eq!(stream.next_timeout(Duration::from_millis(1)), Ok(None));
    }
}
