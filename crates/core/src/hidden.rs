//! Hidden states: what a model knows of each position, layer by layer.

use crate::error::{Error, Result};
use crate::model::{Keep, RowInput};

/// Which hidden states a model gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenShape {
    /// Number of the last state. State 0 is the embeddings, state `i` comes after layer `i`, and the last one after the final
    /// norm too, as in Python's `hidden_states`. 0 when only the last state is given.
    pub last: usize,
    /// Size of one state.
    pub width: usize,
    /// Whether the output matrix is the embedding table (`tie_word_embeddings`).
    pub tied: bool,
}

/// What a step is asked for beside scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenAsk<'a> {
    /// Numbers of states, in the order in which they come back.
    pub states: &'a [usize],
    /// Of which of each row's new tokens.
    pub keep: Keep,
}

impl HiddenAsk<'_> {
    /// How many positions a step over `rows` gives.
    pub fn positions(&self, rows: &[RowInput<'_>]) -> usize {
        rows.iter().map(|row| self.positions_of(row)).sum()
    }

    /// How many positions of one row's new tokens are given.
    pub fn positions_of(&self, row: &RowInput<'_>) -> usize {
        match self.keep {
            Keep::None => 0,
            Keep::Last => row.tokens.len().min(1),
            Keep::All => row.tokens.len(),
        }
    }

    /// Checks that a model that gives `shape` can be asked this.
    ///
    /// # Errors
    ///
    /// When it cannot; the message says how to get a model that can.
    pub fn check(&self, shape: Option<HiddenShape>) -> Result<HiddenShape> {
        match shape {
            Some(given) if self.states.iter().all(|&state| state <= given.last) => Ok(given),
            other => Err(self.refused(other)),
        }
    }

    /// The error of a model that gives only `shape`.
    pub fn refused(&self, shape: Option<HiddenShape>) -> Error {
        match (shape, self.states.iter().max()) {
            (Some(HiddenShape { last: 0, .. }), _) => Error::unsupported(format!(
                "this model's graph gives the last hidden state only, not those of all layers; {ADVICE}"
            )),
            (Some(given), Some(state)) => Error::invalid_input(format!(
                "there is no hidden state {state}; this model has states 0 to {}",
                given.last
            )),
            _ => Error::unsupported(format!("this model's graph does not give hidden states; {ADVICE}")),
        }
    }
}

/// How to get hidden states.
const ADVICE: &str = "import a checkpoint with `unspool import --hidden-states`, or export a graph with outputs \
                      hidden_states.0, hidden_states.1, ...";

/// `[states, kept, width] f32`, row-major: the hidden states of one step, in the order of the ask's states, then of the
/// step's rows and of the positions within a row. Lent by the session until its next step.
#[derive(Clone, Copy, Debug)]
pub struct HiddenStates<'a> {
    data: &'a [f32],
    kept: usize,
    width: usize,
}

impl<'a> HiddenStates<'a> {
    /// Wraps `data` of `states * kept * width` numbers.
    ///
    /// # Panics
    ///
    /// If `width` is 0 or `data.len()` is no multiple of `kept * width`: a mistake in the session, not in its input.
    pub fn new(data: &'a [f32], kept: usize, width: usize) -> Self {
        let fits = width > 0 && if kept == 0 { data.is_empty() } else { data.len().is_multiple_of(kept * width) };
        assert!(fits, "{} numbers, {kept} positions of {width}", data.len());
        HiddenStates { data, kept, width }
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        self.data.len() / (self.kept * self.width).max(1)
    }

    /// How many positions were kept.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Size of one state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The state at place `state` of the ask of kept position `position`, `[width]`.
    pub fn at(&self, state: usize, position: usize) -> &'a [f32] {
        &self.data[(state * self.kept + position) * self.width..][..self.width]
    }

    /// All kept positions of the state at place `state` of the ask, `[kept, width]`.
    pub fn state(&self, state: usize) -> &'a [f32] {
        &self.data[state * self.kept * self.width..][..self.kept * self.width]
    }
}

/// Hidden states of one step of a generation, as Python's `hidden_states` has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepStates {
    /// Size of one state.
    pub width: usize,
    /// Per state `[positions, width] f32`: embeddings first; of the first step the whole prompt's positions, later one.
    pub states: Vec<Vec<f32>>,
}

impl StepStates {
    /// Adds some of the positions of a step.
    pub(crate) fn extend(&mut self, hidden: &HiddenStates<'_>, positions: std::ops::Range<usize>) {
        self.width = hidden.width;
        self.states.resize(hidden.states(), Vec::new());
        for (number, state) in self.states.iter_mut().enumerate() {
            state
                .extend_from_slice(&hidden.state(number)[positions.start * hidden.width..positions.end * hidden.width]);
        }
    }
}
