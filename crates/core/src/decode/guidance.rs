//! Classifier-free guidance: scores move away from what another prompt would give. <https://arxiv.org/abs/2306.17806>.
//!
//! The other prompts run in a session of their own, one row beside each row that is written, and take the same new tokens.

use super::clock::Clock;
use super::prefill::prefill;
use super::prompts::Prompt;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::model::{Model, RowInput, Session, SessionOptions};
use crate::processor::softmax::log_softmax;
use crate::token::{TokenId, check_ids};

/// The unconditional side of a generation; Python's `UnbatchedClassifierFreeGuidanceLogitsProcessor`.
pub(crate) struct Guidance {
    scale: f32,
    session: Box<dyn Session>,
    /// Contexts to begin with, one per prompt.
    contexts: Vec<Vec<TokenId>>,
    /// Log-probabilities of the last step's kept positions, `[kept, vocab]`.
    scores: Vec<f32>,
    vocab: usize,
}

impl Guidance {
    /// The guidance that `settings` ask for: away from `negative` prompts, or when there are none, from each prompt's last
    /// token alone.
    ///
    /// # Errors
    ///
    /// Negative prompts without `guidance_scale`, another number of them than prompts, an empty one, an id outside the
    /// vocabulary, or one too long for the model's positions.
    pub(crate) fn open(
        model: &dyn Model,
        settings: &Settings,
        prompts: &[Prompt<'_>],
        negative: Vec<Vec<TokenId>>,
    ) -> Result<Option<Self>> {
        let Some(scale) = settings.rules.guidance_scale.filter(|scale| *scale != 1.0) else {
            if negative.is_empty() {
                return Ok(None);
            }
            return Err(Error::invalid_input(
                "there are negative prompts, but guidance_scale is not set; set it to a number other than 1",
            ));
        };
        let contexts = if negative.is_empty() {
            prompts.iter().map(|prompt| prompt.ids.last().copied().into_iter().collect()).collect()
        } else {
            negative
        };
        if contexts.len() != prompts.len() {
            return Err(Error::invalid_input(format!(
                "got {} negative prompts for {} prompts; give one for each",
                contexts.len(),
                prompts.len()
            )));
        }
        let mut capacity = 0;
        for (index, (context, prompt)) in contexts.iter().zip(prompts).enumerate() {
            let at = |error: Error| error.at_one_of("negative prompt", index, contexts.len()).at("negative prompt");
            if context.is_empty() {
                return Err(at(Error::invalid_input("it has no tokens; give at least one")));
            }
            check_ids(context, model.vocab_size()).map_err(at)?;
            let length = (prompt.max_length - prompt.ids.len()).saturating_add(context.len() - 1);
            if let Some(limit) = model.max_positions().filter(|limit| length > *limit) {
                return Err(at(Error::invalid_input(format!(
                    "with the new tokens it reaches {length} tokens, the model has {limit} positions; shorten it or \
                     generate less"
                ))));
            }
            capacity = capacity.max(length);
        }
        let session = model.open(&SessionOptions { rows: contexts.len(), capacity })?;
        Ok(Some(Guidance { scale: scale as f32, session, contexts, scores: Vec::new(), vocab: model.vocab_size() }))
    }

    /// Runs the contexts; `rows` tells each row's prompt.
    pub(crate) fn start(&mut self, rows: &[usize], max_chunk: usize, clock: &mut Clock) -> Result<()> {
        let contexts: Vec<&[TokenId]> = self.contexts.iter().map(Vec::as_slice).collect();
        let mut scores = prefill(&mut *self.session, &contexts, max_chunk, self.vocab, clock, &mut None)?;
        scores.chunks_exact_mut(self.vocab).for_each(log_softmax);
        self.scores = rows.iter().flat_map(|row| scores[row * self.vocab..][..self.vocab].iter().copied()).collect();
        if rows.len() > contexts.len() {
            self.session.reorder(rows)?;
        }
        Ok(())
    }

    /// Runs each row's newest tokens.
    pub(crate) fn step(&mut self, rows: &[RowInput<'_>], clock: &mut Clock) -> Result<()> {
        let logits = clock.step(&mut *self.session, rows, self.vocab)?;
        self.scores.clear();
        for row in 0..logits.kept() {
            self.scores.extend_from_slice(logits.row(row));
        }
        self.scores.chunks_exact_mut(self.vocab).for_each(log_softmax);
        Ok(())
    }

    /// Goes on with these rows only.
    pub(crate) fn keep(&mut self, rows: &[usize]) -> Result<()> {
        self.session.reorder(rows)
    }

    /// Row `row` takes its newest `tokens` tokens back.
    pub(crate) fn take_back(&mut self, row: usize, tokens: usize) -> Result<()> {
        let len = self.session.len(row).saturating_sub(tokens);
        self.session.crop(row, len)
    }

    /// Guides the scores at kept position `place` of the last step.
    pub(crate) fn apply(&self, place: usize, scores: &mut [f32]) {
        log_softmax(scores);
        let other = self.scores.get(place * self.vocab..).unwrap_or_default();
        for (score, other) in scores.iter_mut().zip(other) {
            *score = self.scale * (*score - other) + other;
        }
    }
}
