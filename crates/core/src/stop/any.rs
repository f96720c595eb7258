//! A list of criteria: a row is done as soon as one of them says so.

use std::fmt;

use crate::error::Result;
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};

/// Criteria of which any ends a row; Python's `StoppingCriteriaList`.
///
/// All of them are asked after every token, so that a caller's criterion sees every step. When several fire on the same
/// token, the reason is that of the first in the list.
#[doc(alias = "StoppingCriteriaList")]
#[derive(Default)]
pub struct AnyOf {
    criteria: Vec<Box<dyn Criterion>>,
}

impl AnyOf {
    /// A list of these criteria; the first gives the reason when several fire.
    pub fn new(criteria: Vec<Box<dyn Criterion>>) -> Self {
        AnyOf { criteria }
    }

    /// Adds a criterion after the others.
    pub fn push(&mut self, criterion: impl Criterion + 'static) {
        self.criteria.push(Box::new(criterion));
    }

    /// Number of criteria.
    pub fn len(&self) -> usize {
        self.criteria.len()
    }

    /// Whether there is no criterion, so that no row ever ends.
    pub fn is_empty(&self) -> bool {
        self.criteria.is_empty()
    }
}

impl Criterion for AnyOf {
    fn check(&mut self, row: &Row<'_>, scores: &[f32]) -> Result<Option<FinishReason>> {
        let mut reason = None;
        for criterion in &mut self.criteria {
            let answer = criterion.check(row, scores)?;
            reason = reason.or(answer);
        }
        Ok(reason)
    }
}

impl fmt::Debug for AnyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyOf").field("len", &self.criteria.len()).finish()
    }
}
