//! Decoders without a cache: every step runs all tokens of the rows it is asked about.

use unspool_core::{HiddenAsk, HiddenShape, Keep, Result, RowInput, Together, TokenId};

use super::runner::{Batch, Collector, Runner};
use super::session::Rows;

/// Rows that are run from their first token in every step.
pub struct NoCacheRows {
    runner: Runner,
    rows: Vec<Vec<TokenId>>,
    collector: Collector,
}

impl NoCacheRows {
    /// `rows` empty rows.
    pub fn new(runner: Runner, rows: usize) -> Self {
        NoCacheRows { runner, rows: vec![Vec::new(); rows], collector: Collector::default() }
    }

    fn lens(&self) -> Vec<usize> {
        self.rows.iter().map(Vec::len).collect()
    }
}

impl Rows for NoCacheRows {
    fn runner(&self) -> &Runner {
        &self.runner
    }

    fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }

    fn count(&self) -> usize {
        self.rows.len()
    }

    fn len(&self, row: usize) -> usize {
        self.rows[row].len()
    }

    fn advance(&mut self, inputs: &[RowInput<'_>], ask: Option<(&HiddenAsk<'_>, HiddenShape)>) -> Result<()> {
        self.runner.check(inputs, &self.lens())?;
        self.collector.begin(inputs, ask);
        let vocab = self.runner.signature.vocab_size;
        let starts = self.lens();
        for (row, input) in self.rows.iter_mut().zip(inputs) {
            row.extend_from_slice(input.tokens);
        }
        let wanted = |row: usize| ask.is_some() || inputs[row].keep != Keep::None;
        let asked: Vec<usize> =
            (0..inputs.len()).filter(|&row| wanted(row) && !inputs[row].tokens.is_empty()).collect();
        let seq = asked.iter().map(|&row| self.rows[row].len()).max().unwrap_or(0);
        if seq > 0 {
            // Attention is causal, so padding on the right changes nothing for the tokens before it.
            let mut batch = Batch::new(asked.len(), seq, seq);
            for (i, &row) in asked.iter().enumerate() {
                batch.put(i, &self.rows[row], 0);
                batch.mask_row(i)[..self.rows[row].len()].fill(1);
            }
            let first = |row: usize| match inputs[row].keep {
                Keep::All => starts[row],
                Keep::Last => self.rows[row].len() - 1,
                Keep::None => seq,
            };
            let lowest = asked.iter().map(|&row| first(row)).min().unwrap_or(seq);
            let start = self.runner.run(&batch, lowest, None, self.collector.scratch())?;
            if lowest < seq {
                self.collector.take_from(&asked, |row| first(row) - start, seq - start, vocab);
            }
            self.collector.take_hidden(&asked, |row| self.rows[row].len(), seq);
        }
        Ok(())
    }

    fn select(&mut self, from: &[usize]) -> Result<()> {
        self.rows = from.iter().map(|&row| self.rows[row].clone()).collect();
        Ok(())
    }

    fn cut(&mut self, row: usize, len: usize) -> Result<()> {
        self.rows[row].truncate(len);
        Ok(())
    }

    fn together(&self) -> Together {
        // Every step runs whole rows, whatever is new in them.
        Together::Same
    }
}
