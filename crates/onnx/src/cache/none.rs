//! Decoders without a cache: every step runs all tokens of the rows it is asked about.

use unspool_core::{Keep, Result, RowInput, Together, TokenId};

use super::runner::{Batch, Runner};
use super::session::{Ground, Rows};

/// Rows that are run from their first token in every step.
#[derive(Clone)]
pub struct NoCacheRows {
    rows: Vec<Vec<TokenId>>,
}

impl NoCacheRows {
    /// `rows` empty rows.
    pub fn new(rows: usize) -> Self {
        NoCacheRows { rows: vec![Vec::new(); rows] }
    }
}

impl Rows for NoCacheRows {
    fn advance(&mut self, ground: &mut Ground, inputs: &[RowInput<'_>], hidden: bool) -> Result<()> {
        let vocab = ground.runner.signature.vocab_size;
        let starts = ground.lens.clone();
        for (row, input) in self.rows.iter_mut().zip(inputs) {
            row.extend_from_slice(input.tokens);
        }
        for (len, input) in ground.lens.iter_mut().zip(inputs) {
            *len += input.tokens.len();
        }
        let wanted = |row: usize| hidden || inputs[row].keep != Keep::None;
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
            let start = ground.runner.run(&batch, lowest, None, ground.collector.scratch())?;
            if lowest < seq {
                ground.collector.take_from(&asked, |row| first(row) - start, seq - start, vocab);
            }
            ground.collector.take_hidden(&asked, |row| self.rows[row].len(), seq);
        }
        Ok(())
    }

    fn select(&mut self, ground: &mut Ground, from: &[usize]) -> Result<()> {
        self.rows = from.iter().map(|&row| self.rows[row].clone()).collect();
        ground.select(from);
        Ok(())
    }

    fn cut(&mut self, ground: &mut Ground, row: usize, len: usize) -> Result<()> {
        self.rows[row].truncate(len);
        ground.lens[row] = len;
        Ok(())
    }

    fn together(&self, _: &Runner) -> Together {
        // Every step runs whole rows, whatever is new in them.
        Together::Same
    }
}
