//! What sessions do alike in every cache mode: checking what is asked, and handing out what a step collected.

use unspool_core::{HiddenAsk, HiddenShape, HiddenStates, Logits, Result, RowInput, Session, Together};

use super::runner::{Collector, Runner, check_crop, check_reorder};

/// Rows in one cache mode. Indices and lengths that arrive here are checked.
pub trait Rows: Send {
    /// The graph.
    fn runner(&self) -> &Runner;

    /// Where a step's results are collected.
    fn collector(&mut self) -> &mut Collector;

    /// Number of rows.
    fn count(&self) -> usize;

    /// Tokens that `row` holds.
    fn len(&self, row: usize) -> usize;

    /// One step; what was asked for is in the collector afterwards.
    ///
    /// # Errors
    ///
    /// As [`Session::step`].
    fn advance(&mut self, inputs: &[RowInput<'_>], ask: Option<(&HiddenAsk<'_>, HiddenShape)>) -> Result<()>;

    /// New row `i` continues old row `from[i]`.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    fn select(&mut self, from: &[usize]) -> Result<()>;

    /// `row` forgets its tokens after the first `len`, of which it has at least so many.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    fn cut(&mut self, row: usize, len: usize) -> Result<()>;

    /// How several tokens in one step compare with one token a step.
    fn together(&self) -> Together {
        self.runner().engine.together()
    }
}

/// A session over rows in any cache mode.
pub struct CachedSession<R>(pub R);

impl<R: Rows> Session for CachedSession<R> {
    fn rows(&self) -> usize {
        self.0.count()
    }

    fn len(&self, row: usize) -> usize {
        self.0.len(row)
    }

    fn step(&mut self, inputs: &[RowInput<'_>]) -> Result<Logits<'_>> {
        self.0.advance(inputs, None)?;
        let vocab = self.0.runner().signature.vocab_size;
        Ok(self.0.collector().finish(vocab))
    }

    fn step_hidden(&mut self, inputs: &[RowInput<'_>], ask: &HiddenAsk<'_>) -> Result<(Logits<'_>, HiddenStates<'_>)> {
        let shape = ask.check(self.0.runner().hidden())?;
        self.0.advance(inputs, Some((ask, shape)))?;
        let vocab = self.0.runner().signature.vocab_size;
        Ok(self.0.collector().finish_hidden(vocab))
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        check_reorder(from, self.0.count())?;
        self.0.select(from)
    }

    fn can_crop(&self) -> bool {
        true
    }

    fn together(&self) -> Together {
        self.0.together()
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        let have = (row < self.0.count()).then(|| self.0.len(row));
        check_crop(row, len, have, self.0.count())?;
        self.0.cut(row, len)
    }
}
