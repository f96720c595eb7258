//! Positions are an input: all rows share one run, and columns that are not a row's own are hidden by the mask.
//!
//! A row's past may have holes, so nothing moves when rows bring different numbers of tokens or take some back. The caches
//! are compacted when the holes cost more than the copy.

use unspool_core::{Result, RowInput};

use super::kv::{KvCache, RowPlan};
use super::runner::{Batch, Runner, first_kept};
use super::session::{Ground, Rows};
use crate::engine::contract::CacheCall;

/// Rows of different lengths over caches with holes.
#[derive(Clone)]
pub struct AppendRows {
    kv: KvCache,
    /// Per row and column: whether the row owns the column.
    owned: Vec<Vec<bool>>,
    capacity: usize,
}

/// Holes that are not worth a copy.
const SLACK: usize = 32;

impl AppendRows {
    /// `rows` empty rows, expected to reach `capacity` tokens.
    pub fn new(runner: &Runner, rows: usize, capacity: usize) -> Self {
        let kv = KvCache::new(&runner.signature.cache, rows);
        AppendRows { kv, owned: vec![Vec::new(); rows], capacity }
    }

    /// Moves every row's columns together when at least a third of the columns are holes in all rows, or when columns
    /// would pass the model's positions (some graphs size their causal mask by them).
    fn compact(&mut self, ground: &Ground, seq: usize) -> Result<()> {
        let used = ground.lens.iter().copied().max().unwrap_or(0);
        let columns = self.kv.columns;
        let beyond = ground.runner.max_positions.is_some_and(|limit| columns + seq > limit);
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
        let stride = if ground.runner.engine.shares_buffers() { used } else { self.kv.stride() };
        self.kv.rebuild(&plans, stride)?;
        for (owned, &len) in self.owned.iter_mut().zip(&ground.lens) {
            *owned = (0..used).map(|column| column < len).collect();
        }
        Ok(())
    }
}

impl Rows for AppendRows {
    fn advance(&mut self, ground: &mut Ground, inputs: &[RowInput<'_>], _: bool) -> Result<()> {
        let vocab = ground.runner.signature.vocab_size;
        let seq = inputs.iter().map(|input| input.tokens.len()).max().unwrap_or(0);
        if seq == 0 {
            return Ok(());
        }
        self.compact(ground, seq)?;
        let past = self.kv.columns;
        let mut batch = Batch::new(inputs.len(), seq, past + seq);
        for (row, input) in inputs.iter().enumerate() {
            let count = input.tokens.len();
            batch.put(row, input.tokens, ground.lens[row]);
            let mask = batch.mask_row(row);
            for (to, &own) in mask.iter_mut().zip(&self.owned[row]) {
                *to = i64::from(own);
            }
            mask[past..past + count].fill(1);
            if count + ground.lens[row] == 0 {
                // A query with nothing to attend to would write NaN into columns that others multiply by zero.
                mask[past] = 1;
            }
        }
        batch.has_past = past > 0;
        if !ground.runner.engine.shares_buffers() {
            self.kv.reserve(ground.runner.capacity_for(past + seq, self.capacity, &self.kv))?;
        }
        let first = inputs.iter().map(|input| first_kept(input, seq)).min().unwrap_or(seq);
        let cache = CacheCall { kv: &mut self.kv, rows: 0..inputs.len(), new_columns: seq, in_place: false };
        let start = ground.runner.run(&batch, first, Some(cache), ground.collector.scratch())?;
        let all: Vec<usize> = (0..inputs.len()).collect();
        if first < seq {
            ground.collector.take(inputs, &all, start, seq, vocab);
        }
        ground.collector.take_hidden(&all, |row| inputs[row].tokens.len(), seq);
        for (row, input) in inputs.iter().enumerate() {
            let count = input.tokens.len();
            self.owned[row].extend((0..seq).map(|i| i < count));
            ground.lens[row] += count;
        }
        Ok(())
    }

    fn select(&mut self, ground: &mut Ground, from: &[usize]) -> Result<()> {
        let columns = self.kv.columns;
        self.kv.select_rows(from, |_| columns)?;
        ground.select(from);
        self.owned = from.iter().map(|&row| self.owned[row].clone()).collect();
        Ok(())
    }

    fn cut(&mut self, ground: &mut Ground, row: usize, len: usize) -> Result<()> {
        let mut left = len;
        for own in self.owned[row].iter_mut().filter(|own| **own) {
            *own = left > 0;
            left = left.saturating_sub(1);
        }
        ground.lens[row] = len;
        Ok(())
    }
}
