//! The contract of a search: what the loop over the session asks of the beams of one prompt.

use super::lane::{Beam, Hypothesis, Trace};
use crate::decode::guidance::Guidance;
use crate::decode::prompts::Prompt;
use crate::error::Result;
use crate::processor::Processor;
use crate::processor::softmax::log_softmax;
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};

/// What is subtracted from the score of what must not come out; Python's number. In single precision it swallows what it
/// is added to, and never reaches minus infinity.
pub(super) const BIG: f32 = 1.0e9;

/// What the searches of all prompts share in one step.
pub(super) struct Step<'r> {
    /// Changes log-probabilities.
    pub rules: &'r mut dyn Processor,
    /// Ends beams.
    pub criteria: &'r mut dyn Criterion,
    /// Guides log-probabilities before the rules do.
    pub guidance: Option<&'r Guidance>,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// The row of the session that scored lane 0.
    pub place: usize,
    /// Whether that row scored every lane: the first step, when a prompt is one row still.
    pub first: bool,
}

impl Step<'_> {
    /// The model's scores of one lane, `[vocab]`, become processed log-probabilities.
    ///
    /// # Errors
    ///
    /// Those of the rules.
    pub(super) fn process(&mut self, row: &Row<'_>, lane: usize, scores: &mut [f32]) -> Result<()> {
        log_softmax(scores);
        if let Some(guidance) = self.guidance {
            guidance.apply(if self.first { self.place } else { self.place + lane }, scores);
        }
        let step = row.ids.len() - row.prompt_len;
        let place = |error: crate::Error| error.at(format!("beam {lane}, new token {step}"));
        self.rules.apply(row, scores).map_err(place)
    }

    /// Why a row that was just extended ends, if it does; `scores` are those that its token was picked from.
    ///
    /// # Errors
    ///
    /// Those of the criteria.
    pub(super) fn reason(&mut self, row: &Row<'_>, max_length: usize, scores: &[f32]) -> Result<Option<FinishReason>> {
        let reason = self.criteria.check(row, scores)?;
        Ok(reason.or_else(|| (row.ids.len() >= max_length).then_some(FinishReason::Length)))
    }
}

/// A prompt as its search sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Index of the prompt in the request.
    pub prompt: usize,
    /// Tokens of the prompt.
    pub prompt_len: usize,
    /// The length, prompt included, at which beams end.
    pub max_length: usize,
}

impl Place {
    pub(super) fn new(index: usize, prompt: &Prompt<'_>) -> Self {
        Place { prompt: index, prompt_len: prompt.ids.len(), max_length: prompt.max_length }
    }

    /// What rules and criteria see of a beam.
    pub(super) fn row<'a>(&self, ids: &'a [crate::TokenId]) -> Row<'a> {
        Row { ids, prompt_len: self.prompt_len, prompt: self.prompt }
    }
}

/// The beams of one prompt.
pub(super) trait Search {
    /// The running beams, one per lane. There are always as many, and all have the same length.
    fn running(&self) -> &[Beam];

    /// The sequences that are finished so far.
    fn finished(&self) -> Vec<&Hypothesis>;

    /// Takes the scores after every running beam's last token, `[lanes, vocab]`, and extends the beams by one token each.
    ///
    /// # Errors
    ///
    /// Those of rules and criteria, and of draws.
    fn advance(&mut self, step: &mut Step<'_>, scores: &mut [f32], trace: &mut Trace) -> Result<()>;

    /// Whether the search is over.
    fn done(&self) -> bool;

    /// The `count` best sequences, best first; what still runs ends now, for `reason`.
    fn finish(&mut self, count: usize, reason: Option<FinishReason>) -> Vec<Hypothesis>;
}
