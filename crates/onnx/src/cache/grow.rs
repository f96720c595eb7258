//! Positions follow from the cache's length: rows of one length share a run, and the session groups rows by itself.

use std::collections::BTreeMap;

use unspool_core::{Result, RowInput};

use super::kv::{KvCache, RowPlan};
use super::runner::{Batch, Runner, first_kept};
use super::session::{Ground, Rows};
use crate::engine::contract::CacheCall;

/// Rows in groups of one length.
#[derive(Clone)]
pub struct GrowRows {
    groups: Vec<Group>,
    capacity: usize,
}

/// Rows of one length with their caches; `rows` are ascending session rows, in the order of the caches.
#[derive(Clone)]
struct Group {
    rows: Vec<usize>,
    kv: KvCache,
}

impl GrowRows {
    /// `rows` empty rows, expected to reach `capacity` tokens.
    pub fn new(runner: &Runner, rows: usize, capacity: usize) -> Self {
        let kv = KvCache::new(&runner.signature.cache, rows);
        let groups = vec![Group { rows: (0..rows).collect(), kv }];
        GrowRows { groups, capacity }
    }

    /// Makes the groups those of rows with equal length and equal numbers of new tokens.
    fn regroup(&mut self, ground: &Ground, inputs: &[RowInput<'_>]) -> Result<()> {
        let mut wanted: BTreeMap<(usize, usize, usize), Vec<usize>> = BTreeMap::new();
        for (row, input) in inputs.iter().enumerate() {
            let (len, count) = (ground.lens[row], input.tokens.len());
            // GroupQueryAttention takes several tokens of several rows only while none has a past.
            let alone = ground.runner.signature.grouped_query && len > 0 && count > 1;
            wanted.entry((len, count, if alone { row } else { 0 })).or_default().push(row);
        }
        if wanted.len() == self.groups.len()
            && self.groups.iter().all(|group| wanted.values().any(|rows| *rows == group.rows))
        {
            return Ok(());
        }
        let old = std::mem::take(&mut self.groups);
        let mut old: Vec<Option<Group>> = old.into_iter().map(Some).collect();
        for rows in wanted.into_values() {
            if let Some(same) = old.iter_mut().find(|g| g.as_ref().is_some_and(|g| g.rows == rows)) {
                self.groups.extend(same.take());
                continue;
            }
            let mut built: Option<KvCache> = None;
            let mut order = Vec::with_capacity(rows.len());
            for group in old.iter_mut().flatten() {
                let places: Vec<usize> =
                    group.rows.iter().enumerate().filter(|(_, row)| rows.contains(row)).map(|(i, _)| i).collect();
                if places.is_empty() {
                    continue;
                }
                order.extend(places.iter().map(|&i| group.rows[i]));
                let part = Self::dense(&ground.runner, group.kv.extract_rows(&places)?)?;
                match built.as_mut() {
                    Some(kv) => kv.append_rows(&part)?,
                    None => built = Some(part),
                }
            }
            if let Some(mut kv) = built {
                if !order.is_sorted() {
                    let from: Vec<usize> =
                        rows.iter().filter_map(|row| order.iter().position(|placed| placed == row)).collect();
                    let columns = kv.columns;
                    kv.select_rows(&from, |_| columns)?;
                }
                self.groups.push(Group { rows, kv });
            }
        }
        Ok(())
    }

    /// Engines that take shared buffers want dense caches here.
    fn dense(runner: &Runner, mut kv: KvCache) -> Result<KvCache> {
        if runner.engine.shares_buffers() && kv.stride() != kv.columns {
            let columns = kv.columns;
            let plans: Vec<RowPlan<'_>> = (0..kv.rows).map(|from| RowPlan { from, pick: None, columns }).collect();
            kv.rebuild(&plans, columns)?;
        }
        Ok(kv)
    }
}

impl Rows for GrowRows {
    fn advance(&mut self, ground: &mut Ground, inputs: &[RowInput<'_>], _: bool) -> Result<()> {
        self.regroup(ground, inputs)?;
        let vocab = ground.runner.signature.vocab_size;
        for group in &mut self.groups {
            let Some(&lead) = group.rows.first() else { continue };
            let (len, seq) = (ground.lens[lead], inputs[lead].tokens.len());
            if seq == 0 {
                continue;
            }
            let mut batch = Batch::new(group.rows.len(), seq, len + seq);
            batch.mask.fill(1);
            batch.has_past = len > 0;
            for (i, &row) in group.rows.iter().enumerate() {
                batch.put(i, inputs[row].tokens, len);
            }
            if !ground.runner.engine.shares_buffers() {
                let room = ground.runner.capacity_for(len + seq, self.capacity, &group.kv);
                group.kv.reserve(room)?;
            }
            let first = group.rows.iter().map(|&row| first_kept(&inputs[row], seq)).min().unwrap_or(seq);
            let cache = CacheCall { rows: 0..group.rows.len(), kv: &mut group.kv, new_columns: seq, in_place: false };
            let start = ground.runner.run(&batch, first, Some(cache), ground.collector.scratch())?;
            if first < seq {
                ground.collector.take(inputs, &group.rows, start, seq, vocab);
            }
            ground.collector.take_hidden(&group.rows, |_| seq, seq);
            for &row in &group.rows {
                ground.lens[row] += seq;
            }
        }
        Ok(())
    }

    fn select(&mut self, ground: &mut Ground, from: &[usize]) -> Result<()> {
        let mut groups = Vec::with_capacity(self.groups.len());
        for mut group in std::mem::take(&mut self.groups) {
            let (mut rows, mut places) = (Vec::new(), Vec::new());
            for (new, old) in from.iter().enumerate() {
                if let Ok(place) = group.rows.binary_search(old) {
                    rows.push(new);
                    places.push(place);
                }
            }
            if rows.is_empty() {
                continue;
            }
            if !(places.len() == group.rows.len() && places.iter().enumerate().all(|(i, &p)| i == p)) {
                let columns = group.kv.columns;
                group.kv.select_rows(&places, |_| columns)?;
            }
            groups.push(Group { rows, kv: group.kv });
        }
        self.groups = groups;
        ground.select(from);
        Ok(())
    }

    fn cut(&mut self, ground: &mut Ground, row: usize, len: usize) -> Result<()> {
        if len == ground.lens[row] {
            return Ok(());
        }
        for group in &mut self.groups {
            let Ok(place) = group.rows.binary_search(&row) else { continue };
            let stride = if ground.runner.engine.shares_buffers() { len } else { group.kv.stride() };
            let plan = [RowPlan { from: place, pick: None, columns: len }];
            if group.rows.len() == 1 {
                group.kv.rebuild(&plan, stride)?;
            } else {
                let mut kv = group.kv.clone();
                kv.rebuild(&plan, stride)?;
                let others: Vec<usize> = (0..group.rows.len()).filter(|&i| i != place).collect();
                let columns = group.kv.columns;
                group.kv.select_rows(&others, |_| columns)?;
                group.rows.remove(place);
                self.groups.push(Group { rows: vec![row], kv });
            }
            break;
        }
        ground.lens[row] = len;
        Ok(())
    }
}
