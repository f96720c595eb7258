//! A row while it is written, and what is kept of it.

use crate::config::Settings;
use crate::error::Result;
use crate::hidden::StepStates;
use crate::output::{DraftCounts, Sequence};
use crate::rng::Rng;
use crate::row::Row;
use crate::select::log_prob;
use crate::stop::{Criterion, FinishReason};
use crate::stream::{Flow, TokenEvent, TokenSink};
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
    /// The prompt's last token that the model reads.
    pub last_read: TokenId,
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
    pub hidden: Option<Vec<StepStates>>,
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
            last_read: prompt.read[prompt.read.len() - 1],
            max_length: prompt.max_length,
            rng,
            finish: None,
            logprobs: logprobs.then(Vec::new),
            scores: settings.output_scores.then(Vec::new),
            logits: settings.output_logits.then(Vec::new),
            hidden: settings.output_hidden_states.then(Vec::new),
            drafts: None,
        }
    }

    /// What rules and criteria see.
    pub(crate) fn view(&self) -> Row<'_> {
        Row { ids: &self.ids, prompt_len: self.prompt_len, prompt: self.prompt }
    }

    /// The newest token that the model reads.
    pub(crate) fn newest(&self) -> TokenId {
        self.ids[self.prompt_len..].last().copied().unwrap_or(self.last_read)
    }

    /// How many tokens were written.
    pub(crate) fn new_tokens(&self) -> usize {
        self.ids.len() - self.prompt_len
    }

    /// Where in the request something happens to this row.
    pub(crate) fn place(&self) -> String {
        format!("row {}, new token {}", self.row, self.new_tokens())
    }

    /// Takes `token`, chosen by the processed `scores`, `[vocab]`; `criteria` may then end the row, and `sink` is told.
    ///
    /// # Errors
    ///
    /// Those of the criteria.
    pub(crate) fn push(
        &mut self,
        token: TokenId,
        scores: &[f32],
        criteria: &mut dyn Criterion,
        sink: &mut Option<&mut dyn TokenSink>,
    ) -> Result<()> {
        let place = self.place();
        let logprob = self.logprobs.as_mut().map(|logprobs| {
            let logprob = log_prob(scores, token);
            logprobs.push(logprob);
            logprob
        });
        if let Some(kept) = &mut self.scores {
            kept.push(scores.to_vec());
        }
        self.ids.push(token);

        let reason = criteria.check(&self.view(), scores).map_err(|error| error.at(place))?;
        self.finish = reason.or_else(|| (self.ids.len() >= self.max_length).then_some(FinishReason::Length));
        if let Some(sink) = sink {
            if sink.put(&TokenEvent { row: self.row, token, logprob }) == Flow::Stop {
                self.finish.get_or_insert(FinishReason::Cancelled);
            }
            if let Some(reason) = &self.finish {
                sink.end(self.row, reason);
            }
        }
        Ok(())
    }

    /// The finished sequence.
    pub(crate) fn into_sequence(mut self) -> Sequence {
        Sequence {
            ids: self.ids.split_off(self.prompt_len),
            finish: self.finish.unwrap_or(FinishReason::Length),
            score: None,
            beam_indices: None,
            logprobs: self.logprobs,
            scores: self.scores,
            logits: self.logits,
            hidden_states: self.hidden,
            drafts: self.drafts,
        }
    }
}
