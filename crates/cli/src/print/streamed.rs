//! Answers on standard output while they are written, in the order of the prompts.

use std::time::Instant;

use unspool::{FinishReason, Flow, TextSink};

use super::out;
use super::progress::PromptBar;
use crate::failure::Failure;
use crate::interrupt;

/// Writes the first unfinished answer as it comes and keeps what the later ones say until it is their turn.
///
/// Every answer ends with a line's end.
#[derive(Debug, Default)]
pub struct Ordered {
    /// The answer being shown.
    current: usize,
    /// What the answers from `current` on have not shown yet, and whether they ended.
    waiting: std::collections::BTreeMap<usize, (String, bool)>,
    failure: Option<Failure>,
    reading: PromptBar,
    first: Option<Instant>,
}

impl Ordered {
    /// The end of the program that a write asked for, if any.
    ///
    /// # Errors
    ///
    /// When standard output could not be written.
    pub fn result(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// When the first token came.
    pub fn first_token(&self) -> Option<Instant> {
        self.first
    }

    fn show(&mut self, text: &str) {
        if self.failure.is_none()
            && let Err(failure) = out::write(text)
        {
            self.failure = Some(failure);
        }
    }

    fn advance(&mut self) {
        while let Some((text, ended)) = self.waiting.remove(&self.current) {
            self.show(&text);
            if !ended {
                return;
            }
            self.show("\n");
            self.current += 1;
        }
    }
}

impl TextSink for Ordered {
    fn prefill(&mut self, done: usize, total: usize) {
        self.reading.at(done, total);
    }

    fn text(&mut self, row: usize, piece: &str) -> Flow {
        self.first.get_or_insert_with(Instant::now);
        self.waiting.entry(row).or_default().0.push_str(piece);
        self.advance();
        self.poll()
    }

    fn poll(&mut self) -> Flow {
        if self.failure.is_some() || interrupt::pressed() { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, row: usize, _reason: &FinishReason) {
        self.waiting.entry(row).or_default().1 = true;
        self.advance();
    }
}
