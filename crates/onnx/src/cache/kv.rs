//! The memory of keys and values: one buffer per cache tensor, laid out `[rows, heads, stride, head_dim]`.
//!
//! `stride` columns are allocated per head, of which the first `columns` are in use. In-place modes keep spare columns;
//! dense modes keep `stride == columns`. Where the number of rows or the columns change, everything goes through ONE
//! kernel, [`KvCache::rebuild`]; rows that only change places move inside the buffers.

use unspool_core::{Error, Result};

use super::lineage::{Lineage, Move, moves};

use crate::graph::{CacheSlot, ElementType};

/// The elements of one cache tensor.
#[derive(Clone, Debug)]
pub enum KvData {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 16-bit floats, as bits.
    F16(Vec<u16>),
}

impl KvData {
    fn new(dtype: ElementType) -> Self {
        if dtype == ElementType::F16 { KvData::F16(Vec::new()) } else { KvData::F32(Vec::new()) }
    }
}

/// Calls the same code on either element type.
macro_rules! on_data {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            KvData::F32($v) => $body,
            KvData::F16($v) => $body,
        }
    };
}
#[cfg(feature = "ort")]
pub(crate) use on_data;

/// One cache tensor.
#[derive(Clone, Debug)]
pub struct KvSlot {
    /// Heads.
    pub heads: usize,
    /// Size of a head.
    pub head_dim: usize,
    /// Columns allocated per head.
    pub stride: usize,
    /// The elements; may end after the last column in use of the last head.
    pub data: KvData,
    /// A buffer that dense modes write the next present into.
    pub spare: KvData,
}

/// Which columns of which old row make up a new row.
#[derive(Clone, Debug)]
pub struct RowPlan<'a> {
    /// The old row.
    pub from: usize,
    /// Its columns to keep, in order; `None` keeps the first `columns`.
    pub pick: Option<&'a [usize]>,
    /// How many columns to keep when `pick` is `None`.
    pub columns: usize,
}

/// The caches of some rows that run together.
#[derive(Clone, Debug)]
pub struct KvCache {
    /// Rows.
    pub rows: usize,
    /// Columns in use: the past that the next run is given.
    pub columns: usize,
    /// One per cache tensor.
    pub slots: Vec<KvSlot>,
    /// Which first columns rows share.
    lineage: Lineage,
}

impl KvCache {
    /// An empty cache of `rows` rows.
    pub fn new(slots: &[CacheSlot], rows: usize) -> Self {
        let slots = slots
            .iter()
            .map(|slot| KvSlot {
                heads: slot.heads,
                head_dim: slot.head_dim,
                stride: 0,
                data: KvData::new(slot.dtype),
                spare: KvData::new(slot.dtype),
            })
            .collect();
        KvCache { rows, columns: 0, slots, lineage: Lineage::new(rows) }
    }

    /// Makes room for `columns` columns per row, keeping what is there.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    pub fn reserve(&mut self, columns: usize) -> Result<()> {
        if self.slots.iter().all(|slot| slot.stride >= columns && slot.is_full(self.rows)) {
            return Ok(());
        }
        let (plans, lineage) = (self.keep_all(), self.lineage.clone());
        self.rebuild(&plans, columns)?;
        self.lineage = lineage;
        Ok(())
    }

    /// New row `i` is old row `from[i]`, whose first `valid(from[i])` columns are not written any more.
    ///
    /// When the number of rows stays, only rows that change places are copied, and of them only the columns that they do
    /// not share with what stands there.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    pub fn select_rows(&mut self, from: &[usize], valid: impl Fn(usize) -> usize) -> Result<()> {
        let lineage = self.lineage.reordered(from, valid);
        if from.len() == self.rows {
            self.move_rows(&moves(from));
        } else {
            let (stride, columns) = (self.stride(), self.columns);
            let plans: Vec<_> = from.iter().map(|&from| RowPlan { from, pick: None, columns }).collect();
            self.rebuild(&plans, stride)?;
        }
        self.lineage = lineage;
        Ok(())
    }

    fn move_rows(&mut self, moves: &[Move]) {
        let columns = self.columns;
        for slot in &mut self.slots {
            let (heads, stride, dim) = (slot.heads, slot.stride, slot.head_dim);
            on_data!(&mut slot.data, data => {
                let mut aside = Vec::new();
                for step in moves {
                    for head in 0..heads {
                        let base = |row: usize| (row * heads + head) * stride * dim;
                        match *step {
                            Move::Copy { from, to } => {
                                let first = self.lineage.shared(from, to).min(columns) * dim;
                                data.copy_within(base(from) + first..base(from) + columns * dim, base(to) + first);
                            }
                            Move::Save { row } => {
                                if head == 0 {
                                    aside.clear();
                                }
                                aside.extend_from_slice(&data[base(row)..][..columns * dim]);
                            }
                            Move::Restore { from, to } => {
                                let first = self.lineage.shared(from, to).min(columns) * dim;
                                let source = &aside[head * columns * dim..][..columns * dim];
                                data[base(to) + first..][..columns * dim - first].copy_from_slice(&source[first..]);
                            }
                        }
                    }
                }
            });
        }
    }

    /// What `row` holds from column `len` on will be written anew.
    pub fn crop(&mut self, row: usize, len: usize) {
        self.lineage.crop(row, len);
    }

    /// A copy of some rows, with the same stride.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    pub fn extract_rows(&self, from: &[usize]) -> Result<KvCache> {
        let columns = self.columns;
        let plans: Vec<_> = from.iter().map(|&from| RowPlan { from, pick: None, columns }).collect();
        self.built(&plans, self.stride())
    }

    /// Appends the rows of `other`, which has the same columns in use.
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    pub fn append_rows(&mut self, other: &KvCache) -> Result<()> {
        let rows = self.rows;
        let columns = self.columns.max(other.columns);
        let stride = self.stride().max(columns);
        let mut plans = self.keep_all();
        // The new rows are filled from `other` below; until then they repeat row 0 with no columns.
        plans.extend((0..other.rows).map(|_| RowPlan { from: 0, pick: None, columns: 0 }));
        self.rebuild(&plans, stride)?;
        self.columns = columns;
        for row in 0..other.rows {
            self.write_row(rows + row, other, row);
        }
        Ok(())
    }

    /// Copies row `source` of `other` over row `row`. The stride must hold `other`'s columns.
    pub fn write_row(&mut self, row: usize, other: &KvCache, source: usize) {
        for (slot, from) in self.slots.iter_mut().zip(&other.slots) {
            let (heads, dim, columns) = (slot.heads, slot.head_dim, other.columns.min(slot.stride));
            match (&mut slot.data, &from.data) {
                (KvData::F32(to), KvData::F32(data)) => {
                    copy_row(to, row, slot.stride, data, source, from.stride, heads, dim, columns);
                }
                (KvData::F16(to), KvData::F16(data)) => {
                    copy_row(to, row, slot.stride, data, source, from.stride, heads, dim, columns);
                }
                _ => unreachable!("caches of one graph have one element type per slot"),
            }
        }
    }

    /// Rebuilds every slot from `plans`, one per new row, with `stride` columns allocated (at least those kept).
    ///
    /// # Errors
    ///
    /// When the memory is refused.
    pub fn rebuild(&mut self, plans: &[RowPlan<'_>], stride: usize) -> Result<()> {
        let columns = plans.iter().map(RowPlan::kept).max().unwrap_or(0);
        let stride = stride.max(columns);
        // Slot by slot, so that only one of them is there twice.
        for slot in &mut self.slots {
            *slot = slot.built(plans, stride)?;
        }
        (self.rows, self.columns, self.lineage) = (plans.len(), columns, Lineage::new(plans.len()));
        Ok(())
    }

    fn built(&self, plans: &[RowPlan<'_>], stride: usize) -> Result<KvCache> {
        let columns = plans.iter().map(RowPlan::kept).max().unwrap_or(0);
        let stride = stride.max(columns);
        let slots = self.slots.iter().map(|slot| slot.built(plans, stride)).collect::<Result<_>>()?;
        Ok(KvCache { rows: plans.len(), columns, slots, lineage: Lineage::new(plans.len()) })
    }

    fn keep_all(&self) -> Vec<RowPlan<'static>> {
        (0..self.rows).map(|from| RowPlan { from, pick: None, columns: self.columns }).collect()
    }

    /// Columns allocated per head (the largest among the slots).
    pub fn stride(&self) -> usize {
        self.slots.iter().map(|slot| slot.stride).max().unwrap_or(0)
    }
}

impl KvSlot {
    fn built(&self, plans: &[RowPlan<'_>], stride: usize) -> Result<KvSlot> {
        let (data, spare) = match &self.data {
            KvData::F32(data) => (KvData::F32(rebuild(data, self, plans, stride)?), KvData::F32(Vec::new())),
            KvData::F16(data) => (KvData::F16(rebuild(data, self, plans, stride)?), KvData::F16(Vec::new())),
        };
        Ok(KvSlot { heads: self.heads, head_dim: self.head_dim, stride, data, spare })
    }

    /// Elements of the buffer when every allocated column exists.
    pub fn full_len(&self, rows: usize) -> usize {
        rows * self.heads * self.stride * self.head_dim
    }

    fn is_full(&self, rows: usize) -> bool {
        let len = on_data!(&self.data, v => v.capacity());
        len >= self.full_len(rows)
    }

    /// Extends the elements to every allocated column.
    pub fn fill(&mut self, rows: usize) {
        let len = self.full_len(rows);
        on_data!(&mut self.data, v => v.resize(len, Default::default()));
    }
}

impl RowPlan<'_> {
    fn kept(&self) -> usize {
        self.pick.map_or(self.columns, <[usize]>::len)
    }
}

/// The one row-picking kernel.
fn rebuild<T: Copy + Default>(data: &[T], slot: &KvSlot, plans: &[RowPlan<'_>], stride: usize) -> Result<Vec<T>> {
    let (heads, dim) = (slot.heads, slot.head_dim);
    let len = plans
        .len()
        .checked_mul(heads)
        .and_then(|n| n.checked_mul(stride))
        .and_then(|n| n.checked_mul(dim))
        .ok_or_else(|| out_of_memory(plans.len(), stride))?;
    let mut out: Vec<T> = Vec::new();
    out.try_reserve_exact(len).map_err(|e| out_of_memory(plans.len(), stride).because(e))?;
    for plan in plans {
        for head in 0..heads {
            let base = (plan.from * heads + head) * slot.stride * dim;
            let start = out.len();
            match plan.pick {
                None => out.extend_from_slice(&data[base.min(data.len())..][..plan.columns * dim]),
                Some(columns) => {
                    for &column in columns {
                        out.extend_from_slice(&data[base + column * dim..][..dim]);
                    }
                }
            }
            out.resize(start + stride * dim, T::default());
        }
    }
    Ok(out)
}

#[allow(clippy::too_many_arguments)] // two buffers with their geometry; a struct would only rename them
fn copy_row<T: Copy>(
    to: &mut [T],
    to_row: usize,
    to_stride: usize,
    from: &[T],
    from_row: usize,
    from_stride: usize,
    heads: usize,
    dim: usize,
    columns: usize,
) {
    for head in 0..heads {
        let target = (to_row * heads + head) * to_stride * dim;
        let source = (from_row * heads + head) * from_stride * dim;
        to[target..][..columns * dim].copy_from_slice(&from[source..][..columns * dim]);
    }
}

fn out_of_memory(rows: usize, columns: usize) -> Error {
    Error::engine(format!(
        "no memory for a cache of {rows} rows with {columns} tokens each; use fewer rows or a smaller max_length"
    ))
}
