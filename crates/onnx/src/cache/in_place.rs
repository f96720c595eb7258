//! GroupQueryAttention with one buffer as past and present: each row's length comes from the values of the mask.

use unspool_core::{HiddenAsk, HiddenShape, Result, RowInput};

use super::kv::KvCache;
use super::runner::{Batch, Collector, Runner, first_kept};
use super::session::Rows;
use crate::engine::contract::CacheCall;

/// Rows of different lengths over in-place caches.
pub struct InPlaceRows {
    runner: Runner,
    kv: KvCache,
    lens: Vec<usize>,
    capacity: usize,
    collector: Collector,
}

impl InPlaceRows {
    /// `rows` empty rows, expected to reach `capacity` tokens.
    pub fn new(runner: Runner, rows: usize, capacity: usize) -> Self {
        let kv = KvCache::new(&runner.signature.cache, rows);
        InPlaceRows { runner, kv, lens: vec![0; rows], capacity, collector: Collector::default() }
    }

    /// Whether one run can take all rows: the operator takes several tokens of several rows only while none has a past
    /// (with different numbers of tokens only in ONNX Runtime, when no cache slides), and single tokens always.
    fn runs_together(&self, inputs: &[RowInput<'_>]) -> bool {
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
        let padding = self.runner.engine.shares_buffers() && self.runner.signature.sliding_window == 0;
        self.lens.iter().all(|&len| len == 0) && (even || padding)
    }

    fn run(&mut self, inputs: &[RowInput<'_>], rows: std::ops::Range<usize>) -> Result<()> {
        let part = &inputs[rows.clone()];
        let seq = part.iter().map(|input| input.tokens.len()).max().unwrap_or(0);
        let total = rows.clone().map(|row| self.lens[row] + inputs[row].tokens.len()).max().unwrap_or(0);
        let mut batch = Batch::new(rows.len(), seq, total);
        for (i, input) in part.iter().enumerate() {
            let len = self.lens[rows.start + i];
            batch.put(i, input.tokens, len);
            batch.mask_row(i)[..len + input.tokens.len()].fill(1);
        }
        batch.has_past = total > seq;
        // Padding is written too, beyond the row's own columns, and overwritten by its next tokens.
        let needed = rows.clone().map(|row| self.lens[row]).max().unwrap_or(0) + seq;
        if self.runner.engine.shares_buffers() || self.is_even() {
            self.kv.reserve(self.runner.capacity_for(needed, self.capacity, &self.kv))?;
        }
        let first = part.iter().map(|input| first_kept(input, seq)).min().unwrap_or(seq);
        let cache = CacheCall { kv: &mut self.kv, rows: rows.clone(), new_columns: seq, in_place: true };
        let start = self.runner.run(&batch, first, Some(cache), self.collector.scratch())?;
        let all: Vec<usize> = rows.collect();
        if first < seq {
            self.collector.take(inputs, &all, start, seq, self.runner.signature.vocab_size);
        }
        self.collector.take_hidden(&all, |row| inputs[row].tokens.len(), seq);
        for row in all {
            self.lens[row] += inputs[row].tokens.len();
        }
        self.kv.columns = self.used();
        Ok(())
    }

    fn used(&self) -> usize {
        self.lens.iter().copied().max().unwrap_or(0)
    }

    fn is_even(&self) -> bool {
        self.lens.iter().all(|&len| len == self.lens[0])
    }
}

impl Rows for InPlaceRows {
    fn runner(&self) -> &Runner {
        &self.runner
    }

    fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }

    fn count(&self) -> usize {
        self.lens.len()
    }

    fn len(&self, row: usize) -> usize {
        self.lens[row]
    }

    fn advance(&mut self, inputs: &[RowInput<'_>], ask: Option<(&HiddenAsk<'_>, HiddenShape)>) -> Result<()> {
        self.runner.check(inputs, &self.lens)?;
        self.collector.begin(inputs, ask);
        if !inputs.is_empty() && self.runs_together(inputs) {
            if !inputs[0].tokens.is_empty() {
                self.run(inputs, 0..inputs.len())?;
            }
        } else {
            for row in 0..inputs.len() {
                if !inputs[row].tokens.is_empty() {
                    self.run(inputs, row..row + 1)?;
                }
            }
        }
        Ok(())
    }

    fn select(&mut self, from: &[usize]) -> Result<()> {
        self.kv.select_rows(from, |row| self.lens[row])?;
        self.lens = from.iter().map(|&row| self.lens[row]).collect();
        self.kv.columns = self.used();
        Ok(())
    }

    fn cut(&mut self, row: usize, len: usize) -> Result<()> {
        self.lens[row] = len;
        self.kv.crop(row, len);
        self.kv.columns = self.used();
        Ok(())
    }
}
