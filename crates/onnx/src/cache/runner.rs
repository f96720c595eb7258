//! What all sessions share: checking a step, feeding the graph, and collecting the scores asked for.

use std::sync::Arc;

use unspool_core::{Error, HiddenAsk, HiddenShape, HiddenStates, Keep, Logits, Result, RowInput, check_ids};

use super::kv::KvCache;
use crate::engine::contract::{CacheCall, Call, Engine, Feed, HiddenCall, LogitsCall};
use crate::graph::{Hidden, Signature};

/// A loaded graph with its signature; shared by a model and its sessions.
#[derive(Clone)]
pub struct Runner {
    /// The engine that holds the graph.
    pub engine: Arc<dyn Engine>,
    /// What the graph declares.
    pub signature: Arc<Signature>,
    /// The model's limit of positions.
    pub max_positions: Option<usize>,
}

/// Padded inputs of one run over `rows` rows that bring up to `seq` tokens each.
#[derive(Debug, Default)]
pub struct Batch {
    /// Rows of the run.
    pub rows: usize,
    /// Tokens per row, with padding on the right.
    pub seq: usize,
    /// `[rows, seq]`.
    pub ids: Vec<i64>,
    /// `[rows, mask_columns]`.
    pub mask: Vec<i64>,
    /// Columns of the mask.
    pub mask_columns: usize,
    /// `[rows, seq]`.
    pub positions: Vec<i64>,
    /// Whether the rows have a past (for merged decoders).
    pub has_past: bool,
}

impl Batch {
    /// A batch of `rows` rows and `seq` tokens whose mask has `mask_columns` columns; ids and mask are zeros.
    pub fn new(rows: usize, seq: usize, mask_columns: usize) -> Self {
        Batch {
            rows,
            seq,
            ids: vec![0; rows * seq],
            mask: vec![0; rows * mask_columns],
            mask_columns,
            positions: vec![0; rows * seq],
            has_past: false,
        }
    }

    /// Fills row `row`: `tokens` at positions from `start`.
    pub fn put(&mut self, row: usize, tokens: &[u32], start: usize) {
        let at = row * self.seq;
        for (to, &token) in self.ids[at..].iter_mut().zip(tokens) {
            *to = i64::from(token);
        }
        // Padding repeats the row's last position, which is inside every table of positions; the next one may not be.
        let last = (start + tokens.len()).saturating_sub(1);
        for (i, to) in self.positions[at..][..self.seq].iter_mut().enumerate() {
            *to = (start + i).min(last) as i64;
        }
    }

    /// The mask's row `row`.
    pub fn mask_row(&mut self, row: usize) -> &mut [i64] {
        &mut self.mask[row * self.mask_columns..][..self.mask_columns]
    }
}

impl Runner {
    /// Checks what the rows bring against the vocabulary and the positions.
    ///
    /// # Errors
    ///
    /// A wrong number of rows, an id outside the vocabulary, or a row that would exceed the positions.
    pub fn check(&self, inputs: &[RowInput<'_>], lens: &[usize]) -> Result<()> {
        if inputs.len() != lens.len() {
            return Err(Error::invalid_input(format!(
                "a step for {} rows; the session has {}",
                inputs.len(),
                lens.len()
            )));
        }
        for (row, (input, &len)) in inputs.iter().zip(lens).enumerate() {
            check_ids(input.tokens, self.signature.vocab_size).map_err(|error| error.at(format!("row {row}")))?;
            let total = len + input.tokens.len();
            if let Some(limit) = self.max_positions.filter(|&limit| total > limit) {
                return Err(Error::invalid_input(format!(
                    "{total} tokens do not fit the model's {limit} positions; shorten the prompt or generate less"
                ))
                .at(format!("row {row}")));
            }
        }
        Ok(())
    }

    /// What hidden states the graph gives.
    pub fn hidden(&self) -> Option<HiddenShape> {
        self.signature.hidden.as_ref().map(Hidden::shape)
    }

    /// Runs `batch`; scores of the positions from `first` on go to `scratch` (`first == seq` reads none), and so do the hidden
    /// states it asks for, of all positions.
    ///
    /// Returns the first position that the scores in `scratch` begin with.
    pub fn run(
        &self,
        batch: &Batch,
        first: usize,
        cache: Option<CacheCall<'_>>,
        scratch: Scratch<'_>,
    ) -> Result<usize> {
        let signature = &*self.signature;
        let mut feeds = vec![Feed::Ints { name: "input_ids", shape: vec![batch.rows, batch.seq], data: &batch.ids }];
        if signature.attention_mask {
            let shape = vec![batch.rows, batch.mask_columns];
            feeds.push(Feed::Ints { name: "attention_mask", shape, data: &batch.mask });
        }
        if signature.position_ids {
            let shape = vec![batch.rows, batch.seq];
            feeds.push(Feed::Ints { name: "position_ids", shape, data: &batch.positions });
        }
        if signature.use_cache_branch {
            feeds.push(Feed::Flag { name: "use_cache_branch", value: batch.has_past });
        }
        let read = first < batch.seq;
        // A run that nobody reads computes one position, the least the graph can be asked for.
        let keep = [if read { (batch.seq - first) as i64 } else { 1 }];
        let mut start = 0;
        if let Some(name) = &signature.logits_to_keep {
            feeds.push(Feed::Ints { name, shape: vec![1], data: &keep });
            start = first;
        }
        let Scratch { scores, hidden, states } = scratch;
        let logits = read.then_some(LogitsCall { shape: [batch.rows, batch.seq - start], out: scores });
        let hidden = (!states.is_empty()).then_some(HiddenCall { states, shape: [batch.rows, batch.seq], out: hidden });
        self.engine.run(Call { feeds: &feeds, cache, logits, hidden })?;
        Ok(start)
    }

    /// The columns to allocate so that `needed` fit and steps rarely grow the caches.
    pub fn capacity_for(&self, needed: usize, hint: usize, kv: &KvCache) -> usize {
        let stride = kv.stride();
        if needed <= stride {
            return stride;
        }
        let limit = self.max_positions.unwrap_or(usize::MAX).max(needed);
        // A far limit is no promise that a row gets there: memory follows what is written.
        let hint = hint.min(needed.saturating_add(AHEAD));
        needed.max(hint).max(stride.saturating_mul(2)).min(limit).max(self.signature.sliding_window)
    }
}

/// Columns allocated beyond what is needed at most, before caches double.
const AHEAD: usize = 1024;

/// The first position of a row's tokens that is kept; `seq` when none is.
pub fn first_kept(input: &RowInput<'_>, seq: usize) -> usize {
    match input.keep {
        _ if input.tokens.is_empty() => seq,
        Keep::None => seq,
        Keep::Last => input.tokens.len() - 1,
        Keep::All => 0,
    }
}

fn kept(input: &RowInput<'_>) -> usize {
    match input.keep {
        _ if input.tokens.is_empty() => 0,
        Keep::None => 0,
        Keep::Last => 1,
        Keep::All => input.tokens.len(),
    }
}

/// Where a run's results go before they are gathered.
#[derive(Debug)]
pub struct Scratch<'a> {
    scores: &'a mut Vec<f32>,
    hidden: &'a mut Vec<f32>,
    states: &'a [usize],
}

/// Gathers the scores and hidden states that a step was asked for, in row order, from one or several runs.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    out: Vec<f32>,
    scratch: Vec<f32>,
    starts: Vec<usize>,
    hidden: Vec<f32>,
    hidden_scratch: Vec<f32>,
    hidden_starts: Vec<usize>,
    states: Vec<usize>,
    width: usize,
}

impl Collector {
    /// Prepares for a step; the scores of row `r` will start at kept position `starts[r]`.
    pub fn begin(&mut self, inputs: &[RowInput<'_>], ask: Option<(&HiddenAsk<'_>, HiddenShape)>) {
        self.begin_hidden(inputs, ask);
        self.starts.clear();
        let mut at = 0;
        for input in inputs {
            self.starts.push(at);
            at += kept(input);
        }
        self.starts.push(at);
        self.out.clear();
    }

    /// The same for hidden states. A session that is not asked for any keeps no memory for them.
    fn begin_hidden(&mut self, inputs: &[RowInput<'_>], ask: Option<(&HiddenAsk<'_>, HiddenShape)>) {
        self.states.clear();
        self.hidden_starts.clear();
        let Some((ask, shape)) = ask else {
            (self.hidden, self.hidden_scratch) = (Vec::new(), Vec::new());
            return;
        };
        self.states.extend_from_slice(ask.states);
        self.width = shape.width;
        let mut at = 0;
        for input in inputs {
            self.hidden_starts.push(at);
            at += ask.positions_of(input);
        }
        self.hidden_starts.push(at);
        self.hidden.clear();
        self.hidden.resize(self.states.len() * at * self.width, 0.0);
    }

    /// Where a run's results go.
    pub fn scratch(&mut self) -> Scratch<'_> {
        Scratch { scores: &mut self.scratch, hidden: &mut self.hidden_scratch, states: &self.states }
    }

    /// Takes the hidden states of a run over session rows `rows`, whose scratch is `[states, rows, positions, width]`; row
    /// `r`'s new tokens end before position `end(r)`.
    pub fn take_hidden(&mut self, rows: &[usize], end: impl Fn(usize) -> usize, positions: usize) {
        let Some(&total) = self.hidden_starts.last() else { return };
        for state in 0..self.states.len() {
            for (i, &row) in rows.iter().enumerate() {
                let count = self.hidden_starts[row + 1] - self.hidden_starts[row];
                let from = ((state * rows.len() + i) * positions + end(row) - count) * self.width;
                let to = (state * total + self.hidden_starts[row]) * self.width;
                let size = count * self.width;
                self.hidden[to..][..size].copy_from_slice(&self.hidden_scratch[from..][..size]);
            }
        }
    }

    /// Takes the scores of a run over session rows `rows`, whose scratch is `[rows, seq - start, vocab]`.
    pub fn take(&mut self, inputs: &[RowInput<'_>], rows: &[usize], start: usize, seq: usize, vocab: usize) {
        self.take_from(rows, |row| first_kept(&inputs[row], seq).saturating_sub(start), seq - start, vocab);
    }

    /// The same where row `r`'s scores begin at position `from(r)` of its `positions` in the scratch.
    pub fn take_from(&mut self, rows: &[usize], from: impl Fn(usize) -> usize, positions: usize, vocab: usize) {
        let total = self.starts.last().copied().unwrap_or(0);
        if total == rows.len() * positions && rows.len() + 1 == self.starts.len() && rows.is_sorted() {
            // The common case of decoding: what was computed is what was asked for.
            std::mem::swap(&mut self.out, &mut self.scratch);
            return;
        }
        self.out.resize(total * vocab, 0.0);
        for (i, &row) in rows.iter().enumerate() {
            let count = self.starts[row + 1] - self.starts[row];
            if count > 0 {
                let from = (i * positions + from(row)) * vocab;
                let to = self.starts[row] * vocab;
                self.out[to..][..count * vocab].copy_from_slice(&self.scratch[from..][..count * vocab]);
            }
        }
    }

    /// All scores of the step.
    pub fn finish(&mut self, vocab: usize) -> Logits<'_> {
        let total = self.starts.last().copied().unwrap_or(0) * vocab;
        self.out.resize(total, 0.0);
        Logits::new(&mut self.out, vocab)
    }

    /// All scores and hidden states of a step that was asked for both.
    pub fn finish_hidden(&mut self, vocab: usize) -> (Logits<'_>, HiddenStates<'_>) {
        let total = self.starts.last().copied().unwrap_or(0) * vocab;
        self.out.resize(total, 0.0);
        let kept = self.hidden_starts.last().copied().unwrap_or(0);
        (Logits::new(&mut self.out, vocab), HiddenStates::new(&self.hidden, kept, self.width))
    }
}

/// Checks the rows of a reorder.
///
/// # Errors
///
/// An index outside `rows`.
pub fn check_reorder(from: &[usize], rows: usize) -> Result<()> {
    match from.iter().find(|&&row| row >= rows) {
        Some(row) => Err(Error::invalid_input(format!("reorder: row {row} of a session of {rows} rows"))),
        None => Ok(()),
    }
}

/// Checks a crop of a row that has `have` tokens, if it is there.
///
/// # Errors
///
/// A row outside the session or a length above the row's.
pub fn check_crop(row: usize, len: usize, have: Option<usize>, rows: usize) -> Result<()> {
    match have {
        None => Err(Error::invalid_input(format!("crop: row {row} of a session of {rows} rows"))),
        Some(have) if len > have => {
            Err(Error::invalid_input(format!("crop: row {row} has {have} tokens, cannot keep {len}")))
        }
        Some(_) => Ok(()),
    }
}
