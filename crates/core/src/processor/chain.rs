//! An ordered list of rules.

use std::fmt;

use crate::error::Result;
use crate::processor::Processor;
use crate::row::Row;

/// Rules in the order they run, each on the result of the one before; Python's `LogitsProcessorList`.
///
/// The order is decided in [`build::processors`](crate::build::processors()) and nowhere else.
#[doc(alias = "LogitsProcessorList")]
#[derive(Default)]
pub struct Chain {
    rules: Vec<Box<dyn Processor>>,
}

impl Chain {
    /// A chain of these rules, first to last.
    pub fn new(rules: Vec<Box<dyn Processor>>) -> Self {
        Chain { rules }
    }

    /// Adds a rule after the others.
    pub fn push(&mut self, rule: impl Processor + 'static) {
        self.rules.push(Box::new(rule));
    }

    /// Adds rules after the others.
    pub fn extend(&mut self, rules: Vec<Box<dyn Processor>>) {
        self.rules.extend(rules);
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no rule, so that scores pass unchanged.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl Processor for Chain {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        self.rules.iter_mut().try_for_each(|rule| rule.apply(row, scores))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("len", &self.rules.len()).finish()
    }
}
