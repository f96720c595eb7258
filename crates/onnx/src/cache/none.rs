//! Decoders without a cache: every step runs all tokens of the rows it is asked about.

use unspool_core::{Keep, Logits, Result, RowInput, Session, TokenId};

use super::runner::{Batch, Collector, Runner, check_crop, check_reorder};

/// Rows that are run from their first token in every step.
pub struct NoCacheSession {
    runner: Runner,
    rows: Vec<Vec<TokenId>>,
    collector: Collector,
}

impl NoCacheSession {
    /// `rows` empty rows.
    pub fn new(runner: Runner, rows: usize) -> Self {
        NoCacheSession { runner, rows: vec![Vec::new(); rows], collector: Collector::default() }
    }

    fn lens(&self) -> Vec<usize> {
        self.rows.iter().map(Vec::len).collect()
    }
}

impl Session for NoCacheSession {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn len(&self, row: usize) -> usize {
        self.rows[row].len()
    }

    fn step(&mut self, inputs: &[RowInput<'_>]) -> Result<Logits<'_>> {
        self.runner.check(inputs, &self.lens())?;
        self.collector.begin(inputs);
        let vocab = self.runner.signature.vocab_size;
        let starts = self.lens();
        for (row, input) in self.rows.iter_mut().zip(inputs) {
            row.extend_from_slice(input.tokens);
        }
        let asked: Vec<usize> =
            (0..inputs.len()).filter(|&row| inputs[row].keep != Keep::None && !inputs[row].tokens.is_empty()).collect();
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
                _ => self.rows[row].len() - 1,
            };
            let lowest = asked.iter().map(|&row| first(row)).min().unwrap_or(0);
            let start = self.runner.run(&batch, lowest, None, self.collector.scratch())?;
            self.collector.take_from(&asked, |row| first(row) - start, seq - start, vocab);
        }
        Ok(self.collector.finish(vocab))
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        check_reorder(from, self.rows.len())?;
        self.rows = from.iter().map(|&row| self.rows[row].clone()).collect();
        Ok(())
    }

    fn can_crop(&self) -> bool {
        true
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        check_crop(row, len, &self.lens())?;
        self.rows[row].truncate(len);
        Ok(())
    }
}
