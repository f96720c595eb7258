//! GroupQueryAttention with one buffer as past and present: each row's length comes from the values of the mask.

use unspool_core::{Result, RowInput};

use super::kv::KvCache;
use super::runner::{Batch, Runner, first_kept};
use super::session::{Ground, Rows};
use crate::engine::contract::CacheCall;

/// Rows of different lengths over in-place caches.
#[derive(Clone)]
pub struct InPlaceRows {
    kv: KvCache,
    capacity: usize,
}

impl InPlaceRows {
    /// `rows` empty rows, expected to reach `capacity` tokens.
    pub fn new(runner: &Runner, rows: usize, capacity: usize) -> Self {
        let kv = KvCache::new(&runner.signature.cache, rows);
        InPlaceRows { kv, capacity }
    }

    /// Whether one run can take all rows: the operator takes several tokens of several rows only while none has a past
    /// (with different numbers of tokens only in ONNX Runtime, when no cache slides), and single tokens always.
    fn runs_together(ground: &Ground, inputs: &[RowInput<'_>]) -> bool {
        if inputs.len() == 1 {
            return true;
        }
        let count = inputs[0].tokens.len();
        let even = inputs.iter().all(|input| input.tokens.len() == count);
        if inputs.iter().any(|input| input.tokens.is_empty()) {
            return false;
        }
        if even && count == 1 {
            return true;
        }
        let padding = ground.runner.engine.shares_buffers() && ground.runner.signature.sliding_window == 0;
        ground.lens.iter().all(|&len| len == 0) && (even || padding)
    }

    fn run(&mut self, ground: &mut Ground, inputs: &[RowInput<'_>], rows: std::ops::Range<usize>) -> Result<()> {
        let part = &inputs[rows.clone()];
        let seq = part.iter().map(|input| input.tokens.len()).max().unwrap_or(0);
        let total = rows.clone().map(|row| ground.lens[row] + inputs[row].tokens.len()).max().unwrap_or(0);
        let mut batch = Batch::new(rows.len(), seq, total);
        for (i, input) in part.iter().enumerate() {
            let len = ground.lens[rows.start + i];
            batch.put(i, input.tokens, len);
            batch.mask_row(i)[..len + input.tokens.len()].fill(1);
        }
        batch.has_past = total > seq;
        // Padding is written too, beyond the row's own columns, and overwritten by its next tokens.
        let needed = rows.clone().map(|row| ground.lens[row]).max().unwrap_or(0) + seq;
        if ground.runner.engine.shares_buffers() || ground.is_even() {
            self.kv.reserve(ground.runner.capacity_for(needed, self.capacity, &self.kv))?;
        }
        let first = part.iter().map(|input| first_kept(input, seq)).min().unwrap_or(seq);
        let cache = CacheCall { kv: &mut self.kv, rows: rows.clone(), new_columns: seq, in_place: true };
        let start = ground.runner.run(&batch, first, Some(cache), ground.collector.scratch())?;
        let all: Vec<usize> = rows.collect();
        if first < seq {
            ground.collector.take(inputs, &all, start, seq, ground.runner.signature.vocab_size);
        }
        ground.collector.take_hidden(&all, |row| inputs[row].tokens.len(), seq);
        for row in all {
            ground.lens[row] += inputs[row].tokens.len();
        }
        self.kv.columns = ground.used();
        Ok(())
    }
}

impl Rows for InPlaceRows {
    fn advance(&mut self, ground: &mut Ground, inputs: &[RowInput<'_>], _: bool) -> Result<()> {
        if !inputs.is_empty() && Self::runs_together(ground, inputs) {
            if !inputs[0].tokens.is_empty() {
                self.run(ground, inputs, 0..inputs.len())?;
            }
        } else {
            for row in 0..inputs.len() {
                if !inputs[row].tokens.is_empty() {
                    self.run(ground, inputs, row..row + 1)?;
                }
            }
        }
        Ok(())
    }

    fn select(&mut self, ground: &mut Ground, from: &[usize]) -> Result<()> {
        self.kv.select_rows(from, |row| ground.lens[row])?;
        ground.select(from);
        self.kv.columns = ground.used();
        Ok(())
    }

    fn cut(&mut self, ground: &mut Ground, row: usize, len: usize) -> Result<()> {
        ground.lens[row] = len;
        self.kv.crop(row, len);
        self.kv.columns = ground.used();
        Ok(())
    }
}
