//! The largest length of a row.

use crate::config::Settings;
use crate::error::Result;
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};

/// Ends a row at its largest length, the prompt included; Python's `MaxLengthCriteria`.
///
/// Rows have prompts of their own lengths, so the limit of `max_new_tokens` (and the default of 20 new tokens) is
/// another number of tokens for each.
#[doc(alias = "MaxLengthCriteria")]
#[derive(Clone, Debug)]
pub struct Length {
    settings: Settings,
}

impl Length {
    /// The limit of [`Settings::max_length_for`].
    pub fn new(settings: &Settings) -> Self {
        Length { settings: settings.clone() }
    }
}

impl Criterion for Length {
    fn check(&mut self, row: &Row<'_>, _scores: &[f32]) -> Result<Option<FinishReason>> {
        let limit = self.settings.total_length(row.prompt_len);
        Ok((row.ids.len() >= limit).then_some(FinishReason::Length))
    }
}
