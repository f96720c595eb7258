//! The contract of an engine: run a decoder graph over some rows, past in, present out.

use std::ops::Range;

use unspool_core::{Result, Together};

use crate::cache::kv::KvCache;

/// A small input of a step.
#[derive(Clone, Debug)]
pub enum Feed<'a> {
    /// Integers (`input_ids`, `attention_mask`, `position_ids`, `logits_to_keep`).
    Ints {
        /// The input's name.
        name: &'a str,
        /// Its shape.
        shape: Vec<usize>,
        /// Its values, row-major.
        data: &'a [i64],
    },
    /// Floats (`hidden_states` of a graph that applies the output matrix).
    Floats {
        /// The input's name.
        name: &'a str,
        /// Its shape.
        shape: Vec<usize>,
        /// Its values, row-major.
        data: &'a [f32],
    },
    /// One boolean (`use_cache_branch`).
    Flag {
        /// The input's name.
        name: &'a str,
        /// Its value, of shape `[1]`.
        value: bool,
    },
}

/// How a run gets its past and leaves its present.
#[derive(Debug)]
pub struct CacheCall<'a> {
    /// The caches.
    pub kv: &'a mut KvCache,
    /// The rows that run, contiguous; all rows unless `in_place`.
    pub rows: Range<usize>,
    /// Columns that the run adds.
    pub new_columns: usize,
    /// Past and present are one buffer, and each row's length comes from the mask.
    pub in_place: bool,
}

/// One run of the graph.
#[derive(Debug)]
pub struct Call<'a> {
    /// Small inputs.
    pub feeds: &'a [Feed<'a>],
    /// The caches, when the graph has any.
    pub cache: Option<CacheCall<'a>>,
    /// Where the logits go, `[rows, positions, vocab] f32`; `None` when nobody reads them.
    pub logits: Option<LogitsCall<'a>>,
    /// Where hidden states go; `None` when nobody reads any.
    pub hidden: Option<HiddenCall<'a>>,
}

/// Where logits go.
#[derive(Debug)]
pub struct LogitsCall<'a> {
    /// The rows and positions that the run computes logits for.
    pub shape: [usize; 2],
    /// Receives `rows * positions * vocab` scores.
    pub out: &'a mut Vec<f32>,
}

/// Where hidden states go.
#[derive(Debug)]
pub struct HiddenCall<'a> {
    /// Which of the graph's hidden states, in the order wanted.
    pub states: &'a [usize],
    /// The rows and positions of the run.
    pub shape: [usize; 2],
    /// Receives `states * rows * positions * width` numbers.
    pub out: &'a mut Vec<f32>,
}

/// Something that runs one loaded decoder graph.
pub trait Engine: Send + Sync {
    /// `rten` or `ort`.
    fn name(&self) -> &'static str;

    /// Its version.
    fn version(&self) -> String;

    /// Whether in-place caches are buffers of the caller (and must have room for the new columns), rather than values that
    /// the engine extends itself.
    fn shares_buffers(&self) -> bool;

    /// How several tokens in one run compare with one token a run; see [`Together`].
    fn together(&self) -> Together;

    /// Runs the graph once. Afterwards `kv.columns` includes the new columns; in place, the caller sets it to what its
    /// rows use.
    ///
    /// # Errors
    ///
    /// When the engine fails; the caches are then not usable any more.
    fn run(&self, call: Call<'_>) -> Result<()>;
}
