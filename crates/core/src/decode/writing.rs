//! A row while it is written, and what is kept of it.

use crate::config::Settings;
use crate::output::{DraftCounts, Sequence};
use crate::rng::Rng;
use crate::row::Row;
use crate::stop::FinishReason;
use crate::token::TokenId;

use super::prompts::Prompt;

/// One row being written.
#[derive(Debug)]
pub(crate) struct Writing {
    /// Index of the returned sequence: `prompt * num_return_sequences + sequence`.
    pub row: usize,
    /// Index of the row's prompt in the request.
    pub prompt: usize,
    /// Prompt and new tokens.
    pub ids: Vec<TokenId>,
    /// How many of `ids` are the prompt.
    pub prompt_len: usize,
    /// The length at which the row ends.
    pub max_length: usize,
    /// The row's own random numbers.
    pub rng: Rng,
    /// Why the row ended, once it has.
    pub finish: Option<FinishReason>,
    /// What is kept for the output; `None` is not asked for.
    pub logprobs: Option<Vec<f32>>,
    pub scores: Option<Vec<Vec<f32>>>,
    pub logits: Option<Vec<Vec<f32>>>,
    /// What drafts did, where tokens are drafted.
    pub drafts: Option<DraftCounts>,
}

impl Writing {
    /// Sequence `sequence` of `prompt`, which is number `index` of the request.
    pub(crate) fn new(
        prompt: &Prompt<'_>,
        index: usize,
        sequence: usize,
        rng: Rng,
        settings: &Settings,
        logprobs: bool,
    ) -> Self {
        Writing {
            row: index * settings.num_return_sequences + sequence,
            prompt: index,
            ids: prompt.ids.to_vec(),
            prompt_len: prompt.ids.len(),
            max_length: prompt.max_length,
            rng,
            finish: None,
            logprobs: logprobs.then(Vec::new),
            scores: settings.output_scores.then(Vec::new),
            logits: settings.output_logits.then(Vec::new),
            drafts: None,
        }
    }

    /// What rules and criteria see.
    pub(crate) fn view(&self) -> Row<'_> {
        Row { ids: &self.ids, prompt_len: self.prompt_len, prompt: self.prompt }
    }

    /// How many tokens were written.
    pub(crate) fn new_tokens(&self) -> usize {
        self.ids.len() - self.prompt_len
    }

    /// The finished sequence.
    pub(crate) fn into_sequence(mut self) -> Sequence {
        Sequence {
            ids: self.ids.split_off(self.prompt_len),
            finish: self.finish.unwrap_or(FinishReason::Length),
            score: None,
            logprobs: self.logprobs,
            scores: self.scores,
            logits: self.logits,
            drafts: self.drafts,
        }
    }
}
