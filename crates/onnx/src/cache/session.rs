//! What sessions do alike in every cache mode: checking what is asked, and handing out what a step collected.

use unspool_core::{HiddenAsk, HiddenShape, HiddenStates, Logits, Result, RowInput, Session, Together};

use super::runner::{Collector, Runner, check_crop, check_reorder};

/// What every cache mode stands on.
#[derive(Clone)]
pub struct Ground {
    /// The graph.
    pub runner: Runner,
    /// Where a step's results are collected.
    pub collector: Collector,
    /// Tokens that each row holds.
    pub lens: Vec<usize>,
}

impl Ground {
    /// New row `i` is as long as old row `from[i]`.
    pub fn select(&mut self, from: &[usize]) {
        self.lens = from.iter().map(|&row| self.lens[row]).collect();
    }

    /// Tokens of the longest row.
    pub fn used(&self) -> usize {
        self.lens.iter().copied().max().unwrap_or(0)
    }

    /// Whether all rows are equally long.
    pub fn is_even(&self) -> bool {
        self.lens.iter().all(|&len| len == self.lens[0])
    }
}

/// Rows in one cache mode. Inputs, indices and lengths that arrive here are checked; the mode keeps `ground.lens` up to date.
pub trait Rows: Send {
    /// One step, with hidden states or without; what was asked for is in the collector afterwards.
    ///
    /// # Errors
    ///
    /// As [`Session::step`].
    fn advance(&mut self, ground: &mut Ground, inputs: &[RowInput<'_>], hidden: bool) -> Result<()>;

    /// New row `i` continues old row `from[i]`.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    fn select(&mut self, ground: &mut Ground, from: &[usize]) -> Result<()>;

    /// `row` forgets its tokens after the first `len`, of which it has at least so many.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    fn cut(&mut self, ground: &mut Ground, row: usize, len: usize) -> Result<()>;

    /// How several tokens in one step compare with one token a step.
    fn together(&self, runner: &Runner) -> Together {
        runner.engine.together()
    }
}

/// A session over rows in any cache mode.
#[derive(Clone)]
pub struct CachedSession<R> {
    ground: Ground,
    rows: R,
}

impl<R: Rows> CachedSession<R> {
    /// `count` empty rows of `runner`'s graph, kept as `rows`.
    pub fn new(runner: Runner, count: usize, rows: R) -> Self {
        CachedSession { ground: Ground { runner, collector: Collector::default(), lens: vec![0; count] }, rows }
    }

    /// Refuses inputs that no row can take; those of a part of the rows count as rows 0 and so on.
    ///
    /// # Errors
    ///
    /// As [`Session::step`].
    pub fn check(&self, inputs: &[RowInput<'_>]) -> Result<()> {
        self.ground.runner.check(inputs, &self.ground.lens[..inputs.len()])
    }

    fn advance(&mut self, inputs: &[RowInput<'_>], ask: Option<(&HiddenAsk<'_>, HiddenShape)>) -> Result<usize> {
        let ground = &mut self.ground;
        ground.runner.check(inputs, &ground.lens)?;
        ground.collector.begin(inputs, ask);
        self.rows.advance(ground, inputs, ask.is_some())?;
        Ok(self.ground.runner.signature.vocab_size)
    }
}

impl<R: Rows> Session for CachedSession<R> {
    fn rows(&self) -> usize {
        self.ground.lens.len()
    }

    fn len(&self, row: usize) -> usize {
        self.ground.lens[row]
    }

    fn step(&mut self, inputs: &[RowInput<'_>]) -> Result<Logits<'_>> {
        let vocab = self.advance(inputs, None)?;
        Ok(self.ground.collector.finish(vocab))
    }

    fn step_hidden(&mut self, inputs: &[RowInput<'_>], ask: &HiddenAsk<'_>) -> Result<(Logits<'_>, HiddenStates<'_>)> {
        let shape = ask.check(self.ground.runner.hidden())?;
        let vocab = self.advance(inputs, Some((ask, shape)))?;
        Ok(self.ground.collector.finish_hidden(vocab))
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        check_reorder(from, self.rows())?;
        self.rows.select(&mut self.ground, from)
    }

    fn can_crop(&self) -> bool {
        true
    }

    fn together(&self) -> Together {
        self.rows.together(&self.ground.runner)
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        check_crop(row, len, self.ground.lens.get(row).copied(), self.rows())?;
        self.rows.cut(&mut self.ground, row, len)
    }
}
