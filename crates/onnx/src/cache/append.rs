//! Positions are an input: all rows share one run, and columns that are not a row's own are hidden by the mask.
//!
//! A row's past may have holes, so nothing moves when rows bring different numbers of tokens or take some back. The caches
//! are compacted when the holes cost more than the copy.

use unspool_core::{HiddenAsk, HiddenShape, Result, RowInput};

use super::kv::{KvCache, RowPlan};
use super::runner::{Batch, Collector, Runner, first_kept};
use super::session::Rows;
use crate::engine::contract::CacheCall;

/// Rows of different lengths over caches with holes.
pub struct AppendRows {
    runner: Runner,
    kv: KvCache,
    /// Per row and column: whether the row owns the column.
    owned: Vec<Vec<bool>>,
    lens: Vec<usize>,
    capacity: usize,
    collector: Collector,
}

/// Holes that are not worth a copy.
const SLACK: usize = 32;

impl AppendRows {
    /// `rows` empty rows, expected to reach `capacity` tokens.
    pub fn new(runner: Runner, rows: usize, capacity: usize) -> Self {
        let kv = KvCache::new(&runner.signature.cache, rows);
        AppendRows {
            runner,
            kv,
            owned: vec![Vec::new(); rows],
            lens: vec![0; rows],
            capacity,
            collector: Collector::default(),
        }
    }

    /// Moves every row's columns together when at least a third of the columns are holes in all rows, or when columns
    /// would pass the model's positions (some graphs size their causal mask by them).
    fn compact(&mut self, seq: usize) -> Result<()> {
        let used = self.lens.iter().copied().max().unwrap_or(0);
        let columns = self.kv.columns;
        let beyond = self.runner.max_positions.is_some_and(|limit| columns + seq > limit);
        if columns == used || !(beyond || columns > used + used / 2 + SLACK) {
            return Ok(());
        }
        let picks: Vec<Vec<usize>> = self
            .owned
            .iter()
            .map(|owned| owned.iter().enumerate().filter(|(_, own)| **own).map(|(column, _)| column).collect())
            .collect();
        let plans: Vec<RowPlan<'_>> =
            picks.iter().enumerate().map(|(from, pick)| RowPlan { from, pick: Some(pick), columns: 0 }).collect();
        let stride = if self.runner.engine.shares_buffers() { used } else { self.kv.stride() };
        self.kv.rebuild(&plans, stride)?;
        for (owned, &len) in self.owned.iter_mut().zip(&self.lens) {
            *owned = (0..used).map(|column| column < len).collect();
        }
        Ok(())
    }
}

impl Rows for AppendRows {
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
        let vocab = self.runner.signature.vocab_size;
        let seq = inputs.iter().map(|input| input.tokens.len()).max().unwrap_or(0);
        if seq == 0 {
            return Ok(());
        }
        self.compact(seq)?;
        let past = self.kv.columns;
        let mut batch = Batch::new(inputs.len(), seq, past + seq);
        for (row, input) in inputs.iter().enumerate() {
            let count = input.tokens.len();
            batch.put(row, input.tokens, self.lens[row]);
            let mask = batch.mask_row(row);
            for (to, &own) in mask.iter_mut().zip(&self.owned[row]) {
                *to = i64::from(own);
            }
            mask[past..past + count].fill(1);
            if count + self.lens[row] == 0 {
                // A query with nothing to attend to would write NaN into columns that others multiply by zero.
                mask[past] = 1;
            }
        }
        batch.has_past = past > 0;
        if !self.runner.engine.shares_buffers() {
            self.kv.reserve(self.runner.capacity_for(past + seq, self.capacity, &self.kv))?;
        }
        let first = inputs.iter().map(|input| first_kept(input, seq)).min().unwrap_or(seq);
        let cache = CacheCall { kv: &mut self.kv, rows: 0..inputs.len(), new_columns: seq, in_place: false };
        let start = self.runner.run(&batch, first, Some(cache), self.collector.scratch())?;
        let all: Vec<usize> = (0..inputs.len()).collect();
        if first < seq {
            self.collector.take(inputs, &all, start, seq, vocab);
        }
        self.collector.take_hidden(&all, |row| inputs[row].tokens.len(), seq);
        for (row, input) in inputs.iter().enumerate() {
            let count = input.tokens.len();
            self.owned[row].extend((0..seq).map(|i| i < count));
            self.lens[row] += count;
        }
        Ok(())
    }

    fn select(&mut self, from: &[usize]) -> Result<()> {
        let columns = self.kv.columns;
        self.kv.select_rows(from, |_| columns)?;
        self.lens = from.iter().map(|&row| self.lens[row]).collect();
        self.owned = from.iter().map(|&row| self.owned[row].clone()).collect();
        Ok(())
    }

    fn cut(&mut self, row: usize, len: usize) -> Result<()> {
        let mut left = len;
        for own in self.owned[row].iter_mut().filter(|own| **own) {
            *own = left > 0;
            left = left.saturating_sub(1);
        }
        self.lens[row] = len;
        Ok(())
    }
}
