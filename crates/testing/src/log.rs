//! What a scripted model was asked, in order.

use std::sync::{Arc, Mutex, PoisonError};

use unspool_core::{Keep, TokenId};

/// One row's part of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// The tokens it brought.
    pub tokens: Vec<TokenId>,
    /// Which scores it asked for.
    pub keep: Keep,
}

/// One call of the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Model::open`](unspool_core::Model::open).
    Open {
        /// Rows.
        rows: usize,
        /// The hint of a row's final length.
        capacity: usize,
    },
    /// [`Session::step`](unspool_core::Session::step).
    Step {
        /// One entry per row of the session.
        rows: Vec<StepRow>,
    },
    /// [`Session::reorder`](unspool_core::Session::reorder).
    Reorder {
        /// The old row of each new one.
        from: Vec<usize>,
    },
    /// [`Session::crop`](unspool_core::Session::crop).
    Crop {
        /// The row.
        row: usize,
        /// Tokens it kept.
        len: usize,
    },
}

/// The calls of a model and all its sessions; clones share one list.
#[derive(Clone, Debug, Default)]
pub struct CallLog(Arc<Mutex<Vec<Call>>>);

impl CallLog {
    /// All calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The calls since the last `take`.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Per step, the tokens that each row brought.
    pub fn steps(&self) -> Vec<Vec<Vec<TokenId>>> {
        let tokens = |rows: Vec<StepRow>| rows.into_iter().map(|row| row.tokens).collect();
        let steps = |call| if let Call::Step { rows } = call { Some(tokens(rows)) } else { None };
        self.calls().into_iter().filter_map(steps).collect()
    }

    /// The arguments of all reorders.
    pub fn reorders(&self) -> Vec<Vec<usize>> {
        let reorders = |call| if let Call::Reorder { from } = call { Some(from) } else { None };
        self.calls().into_iter().filter_map(reorders).collect()
    }

    pub(crate) fn push(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}
