//! Answers as events while they are written on another thread: an iterator, and a stream of a task.
//!
//! The queue has no bound: a slow reader never holds up the rows, and what waits is at most the text of the call. A reader
//! who leaves ends every row with its next token, and then the thread.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures_channel::mpsc::UnboundedReceiver;
use futures_core::Stream;
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TimedOut};
use unspool_core::{Error, Result};

use crate::answers::Answers;
use crate::call::Call;
use crate::pipeline::Pipeline;
use crate::prompt::Prompts;
use crate::text::TextSink;

/// One event of [`TextEvents`] or a [`TextStream`]; every event names its row.
#[derive(Clone, Debug, PartialEq)]
pub enum TextEvent {
    /// Text of a row, never empty.
    Text {
        /// Index of the prompt in the call.
        prompt: usize,
        /// Index of the sequence among those of the prompt.
        sequence: usize,
        /// The text that follows the row's text so far.
        text: String,
    },
    /// A row has ended; nothing more comes of it.
    End {
        /// Index of the prompt in the call.
        prompt: usize,
        /// Index of the sequence among those of the prompt.
        sequence: usize,
        /// Why it ended.
        reason: FinishReason,
    },
}

/// What the writing thread says.
enum Said {
    Event(TextEvent),
    /// The last word: everything that was written, or why nothing more is.
    Done(Box<Result<Answers>>),
}

/// Events of a generation that runs on a thread of its own: an iterator that waits for the next one; Python's
/// `TextIteratorStreamer`, for any number of rows.
///
/// Rows come mixed, as they are written; of each row the texts, then its end. The last item is an error when the generation
/// fails; afterwards there is `None`.
/// Dropping it ends the generation with the next token.
///
/// ```no_run
/// use unspool::{Call, TextEvent};
///
/// # fn main() -> unspool::Result<()> {
/// let pipeline = unspool::open("models/smollm2")?;
/// let mut events = pipeline.text_events(["Roses are red,", "Once upon a time"], &Call::new())?;
/// for event in &mut events {
///     match event? {
///         TextEvent::Text { prompt, text, .. } => println!("{prompt}: {text:?}"),
///         TextEvent::End { prompt, reason, .. } => println!("{prompt} ended: {reason:?}"),
///     }
/// }
/// let answers = events.answers()?;
/// println!("{} tokens", answers.timing.new_tokens);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "TextIteratorStreamer")]
pub struct TextEvents {
    said: Receiver<Said>,
    ending: Ending,
}

/// The same events as a [`Stream`] of any runtime; Python's `AsyncTextIteratorStreamer`, for any number of rows.
///
/// It ends, fails and is left as [`TextEvents`] is.
///
/// ```no_run
/// use std::future::poll_fn;
/// use std::pin::Pin;
///
/// use futures_core::Stream;
/// use unspool::{Call, Pipeline, TextEvent};
///
/// async fn tell(pipeline: &Pipeline) -> unspool::Result<()> {
///     let mut stream = pipeline.text_stream("The sea is", &Call::new())?;
///     // Or `while let Some(event) = stream.next().await`, with the StreamExt of futures or tokio.
///     while let Some(event) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
///         if let TextEvent::Text { text, .. } = event? {
///             print!("{text}");
///         }
///     }
///     Ok(())
/// }
/// ```
#[doc(alias = "AsyncTextIteratorStreamer")]
pub struct TextStream {
    said: UnboundedReceiver<Said>,
    ending: Ending,
}

/// How the reader and the generation part.
struct Ending {
    /// Is true when the reader is gone.
    left: Arc<AtomicBool>,
    /// `None` while the generation runs.
    answers: Option<Result<Answers>>,
}

impl Pipeline {
    /// Starts to write on from one or many prompts on a thread of its own, and gives the events of all rows to an iterator.
    /// Lengths and pieces are those of [`stream`](Pipeline::stream).
    ///
    /// # Errors
    ///
    /// When a setting or a prompt is not usable, or the model has no tokenizer. What fails later is an item of the
    /// iterator.
    pub fn text_events(&self, prompts: impl Prompts, call: &Call) -> Result<TextEvents> {
        let (sender, said) = mpsc::channel();
        let left = self.start(prompts, call, move |what| sender.send(what).is_ok())?;
        Ok(TextEvents { said, ending: Ending { left, answers: None } })
    }

    /// As [`text_events`](Pipeline::text_events), as a stream of a task: no runtime of its own, no thread of the runtime is
    /// held up.
    ///
    /// # Errors
    ///
    /// As [`text_events`](Pipeline::text_events).
    pub fn text_stream(&self, prompts: impl Prompts, call: &Call) -> Result<TextStream> {
        let (sender, said) = futures_channel::mpsc::unbounded();
        let left = self.start(prompts, call, move |what| sender.unbounded_send(what).is_ok())?;
        Ok(TextStream { said, ending: Ending { left, answers: None } })
    }

    /// Runs the call on a thread that tells everything to `say`, which answers whether there is still a reader.
    fn start(
        &self,
        prompts: impl Prompts,
        call: &Call,
        say: impl FnMut(Said) -> bool + Send + 'static,
    ) -> Result<Arc<AtomicBool>> {
        self.tokenizer()?;
        let (ids, call) = self.prepare(&prompts.into_prompts(), call)?;
        let (settings, _) = self.settings(&call)?;
        let left = Arc::new(AtomicBool::new(false));
        let mut telling = Telling { say, sequences: settings.num_return_sequences.max(1), left: Arc::clone(&left) };
        let pipeline = self.clone();
        let run = move || {
            let answers = pipeline.stream_ids(ids, &call, &mut telling);
            (telling.say)(Said::Done(Box::new(answers)));
        };
        let thread = thread::Builder::new().name("unspool text".to_owned());
        thread
            .spawn(run)
            .map_err(|error| Error::engine("no thread could be started for the generation").because(error))?;
        Ok(left)
    }
}

/// The sink on the writing thread.
struct Telling<S> {
    say: S,
    sequences: usize,
    left: Arc<AtomicBool>,
}

impl<S: FnMut(Said) -> bool + Send> TextSink for Telling<S> {
    fn text(&mut self, row: usize, piece: &str) -> Flow {
        let (prompt, sequence) = (row / self.sequences, row % self.sequences);
        let event = || TextEvent::Text { prompt, sequence, text: piece.to_owned() };
        // A row may write for long without showing anything; its reader may have left all the same.
        let heard = !self.left.load(Ordering::Relaxed) && (piece.is_empty() || (self.say)(Said::Event(event())));
        if heard { Flow::Continue } else { Flow::Stop }
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        let (prompt, sequence) = (row / self.sequences, row % self.sequences);
        (self.say)(Said::Event(TextEvent::End { prompt, sequence, reason: reason.clone() }));
    }
}

impl Ending {
    /// The item that `said` is; nothing said means that the writing thread died.
    fn item(&mut self, said: Option<Said>) -> Option<Result<TextEvent>> {
        let answers = match said {
            Some(Said::Event(event)) => return Some(Ok(event)),
            Some(Said::Done(answers)) => *answers,
            None => Err(Error::engine("the generation's thread ended without an answer")),
        };
        match answers {
            Ok(answers) => {
                self.answers = Some(Ok(answers));
                None
            }
            Err(error) => {
                self.answers = Some(Err(Error::engine("the generation failed, as the last event told")));
                Some(Err(error))
            }
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.left.store(true, Ordering::Relaxed);
    }
}

impl TextEvents {
    /// The next event, waiting at most `timeout`; `Ok(None)` when the generation is over.
    ///
    /// # Errors
    ///
    /// When `timeout` passes first. The error of the generation is inside the item.
    pub fn next_timeout(&mut self, timeout: Duration) -> std::result::Result<Option<Result<TextEvent>>, TimedOut> {
        if self.ending.answers.is_some() {
            return Ok(None);
        }
        match self.said.recv_timeout(timeout) {
            Ok(said) => Ok(self.ending.item(Some(said))),
            Err(RecvTimeoutError::Disconnected) => Ok(self.ending.item(None)),
            Err(RecvTimeoutError::Timeout) => Err(TimedOut),
        }
    }

    /// Waits for the end of the generation, events that were not read left out; everything that was written.
    ///
    /// # Errors
    ///
    /// When the generation fails or has failed.
    pub fn answers(mut self) -> Result<Answers> {
        for event in &mut self {
            event?;
        }
        // The iterator ends only with the answers, or after an error.
        self.ending.answers.take().unwrap_or_else(|| Err(Error::engine("the generation gave no answers")))
    }
}

impl Iterator for TextEvents {
    type Item = Result<TextEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ending.answers.is_some() {
            return None;
        }
        let said = self.said.recv().ok();
        self.ending.item(said)
    }
}

impl TextStream {
    /// Everything that was written, once the stream has ended; before that, and after an error, `None`.
    pub fn answers(&self) -> Option<&Answers> {
        self.ending.answers.as_ref()?.as_ref().ok()
    }
}

impl Stream for TextStream {
    type Item = Result<TextEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ending.answers.is_some() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.said).poll_next(context) {
            Poll::Ready(said) => Poll::Ready(self.ending.item(said)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl std::fmt::Debug for TextEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextEvents").field("ended", &self.ending.answers.is_some()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TextStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextStream").field("ended", &self.ending.answers.is_some()).finish_non_exhaustive()
    }
}
