//! Tokens as a stream of a task; Python's `AsyncTextIteratorStreamer` before the text.
//!
//! As with the iterator, the queue has no bound: a slow reader never holds up the rows, and a reader who left ends his rows.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures_core::Stream;

use super::channel::StreamEvent;
use super::contract::{Flow, TokenEvent, TokenSink};
use crate::stop::FinishReason;

/// The writing end; give it to the generation, on the thread that runs it.
#[derive(Debug)]
pub struct AsyncSink(UnboundedSender<StreamEvent>);

/// The reading end: a [`Stream`] of any runtime that ends when the [`AsyncSink`] is dropped.
#[derive(Debug)]
pub struct AsyncTokenStream(UnboundedReceiver<StreamEvent>);

/// A sink and the stream that receives what it is told.
///
/// Generation computes, so it belongs on a thread of its own (`tokio::task::spawn_blocking` and the like), and the task
/// awaits the stream.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
///
/// use futures_core::Stream;
/// use unspool_core::stream::{StreamEvent, TokenEvent, TokenSink, async_channel};
///
/// let (mut sink, stream) = async_channel();
/// sink.put(&TokenEvent { row: 0, token: 5, logprob: None });
/// let polled = pin!(stream).poll_next(&mut Context::from_waker(Waker::noop()));
/// assert!(matches!(polled, Poll::Ready(Some(StreamEvent::Token(TokenEvent { token: 5, .. })))));
/// ```
#[doc(alias = "AsyncTextIteratorStreamer")]
pub fn async_channel() -> (AsyncSink, AsyncTokenStream) {
    let (sender, receiver) = mpsc::unbounded();
    (AsyncSink(sender), AsyncTokenStream(receiver))
}

impl TokenSink for AsyncSink {
    fn put(&mut self, event: &TokenEvent) -> Flow {
        match self.0.unbounded_send(StreamEvent::Token(*event)) {
            Ok(()) => Flow::Continue,
            Err(_) => Flow::Stop,
        }
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        // A reader who left does not need to hear of the end.
        let _ = self.0.unbounded_send(StreamEvent::End { row, reason: reason.clone() });
    }
}

impl Stream for AsyncTokenStream {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        Pin::new(&mut self.0).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Wake, Waker};
    use std::thread::{self, Thread};

    use super::*;

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// What a runtime does: polls, and sleeps until it is woken.
    fn collect(stream: AsyncTokenStream) -> Vec<StreamEvent> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut stream = pin!(stream);
        let mut events = Vec::new();
        loop {
            match stream.as_mut().poll_next(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(event)) => events.push(event),
                Poll::Ready(None) => return events,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn a_sleeping_task_is_woken_and_the_stream_ends_with_the_sink() {
        let (mut sink, stream) = async_channel();
        let writer = thread::spawn(move || {
            for token in 0..3 {
                thread::yield_now();
                assert_eq!(sink.put(&TokenEvent { row: 1, token, logprob: None }), Flow::Continue);
            }
            sink.end(1, &FinishReason::Eos);
        });
        let events = collect(stream);
        writer.join().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[3], StreamEvent::End { row: 1, reason: FinishReason::Eos });
    }

    #[test]
    fn a_reader_who_left_stops_the_writer() {
        let (mut sink, stream) = async_channel();
        drop(stream);
        assert_eq!(sink.put(&TokenEvent { row: 0, token: 1, logprob: None }), Flow::Stop);
        sink.end(0, &FinishReason::Cancelled);
    }
}
