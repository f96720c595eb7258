//! Greedy decoding and sampling: one token per row and step; Python's `_sample`.
//!
//! Rows do not wait for each other: a finished row leaves the session, and each row draws from its own random numbers, so
//! a row of a batch is written exactly as if its prompt were alone.

use super::clock::Clock;
use super::guidance::Guidance;
use super::lens::Lens;
use super::prefill::prefill;
use super::prompts::Prompt;
use super::writing::Writing;
use crate::config::Settings;
use crate::draft::Candidate;
use crate::error::Result;
use crate::model::{Keep, RowInput, Session};
use crate::processor::Processor;
use crate::rng::Rng;
use crate::select::{Multinomial, Speculative, argmax};
use crate::stop::Criterion;
use crate::stream::TokenSink;
use crate::token::TokenId;

/// The parts of one generation with one token per row and step.
pub(crate) struct Single<'r, 's> {
    /// Which way to choose, and what to keep.
    pub settings: &'r Settings,
    /// Changes the scores.
    pub rules: &'r mut dyn Processor,
    /// Ends rows.
    pub criteria: &'r mut dyn Criterion,
    /// Is told every token.
    pub sink: Option<&'s mut dyn TokenSink>,
    /// Guides the scores before the rules do.
    pub guidance: Option<Guidance>,
    /// Looks at hidden states; the session is then behind it.
    pub lens: Option<&'r Lens<'r>>,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// Chooses tokens.
    pub chooser: Chooser,
}

/// What choosing keeps from token to token.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    draw: Multinomial,
    speculative: Speculative,
}

impl Single<'_, '_> {
    /// Writes `rows` (in the order of their prompts) until each has ended, and returns them in that order.
    ///
    /// `session` has one row per prompt, which holds the prompt's first `held` tokens.
    ///
    /// # Errors
    ///
    /// Those of the session, the rules and the criteria; a row that has no token left to draw from.
    pub(crate) fn run(
        &mut self,
        session: &mut dyn Session,
        prompts: &[Prompt<'_>],
        held: usize,
        mut rows: Vec<Writing>,
        clock: &mut Clock,
    ) -> Result<Vec<Writing>> {
        let mut done = Vec::with_capacity(rows.len());

        let left: Vec<_> = prompts.iter().map(|prompt| prompt.read.get(held..).unwrap_or(&[])).collect();
        let mut first = prefill(session, &left, self.settings.prefill_chunk_size, self.vocab, clock, &mut self.sink)?;
        let by_prompt: Vec<_> = rows.iter().map(|row| row.prompt).collect();
        if rows.len() > prompts.len() {
            session.reorder(&by_prompt)?;
        }
        clock.prompts_done();
        if let Some(guidance) = &mut self.guidance {
            guidance.start(&by_prompt, self.settings.prefill_chunk_size, clock)?;
        }
        self.write_first(&mut rows, &mut first, |_| true)?;
        drop(first);

        loop {
            self.drop_finished(session, &mut rows, &mut done)?;
            if rows.is_empty() {
                break;
            }
            let inputs: Vec<_> = rows
                .iter()
                .map(|row| RowInput { tokens: row.ids.last().map_or(&[], std::slice::from_ref), keep: Keep::Last })
                .collect();
            if let Some(guidance) = &mut self.guidance {
                guidance.step(&inputs, clock)?;
            }
            let mut logits = clock.step(session, &inputs, self.vocab)?;
            for (kept, row) in rows.iter_mut().enumerate() {
                self.write(row, kept, logits.row_mut(kept), None)?;
            }
        }
        done.sort_by_key(|row| row.row);
        Ok(done)
    }

    /// The first token of every row whose prompt is `wanted`. Rows of one prompt share its scores: all but the last work on
    /// a copy.
    pub(super) fn write_first(
        &mut self,
        rows: &mut [Writing],
        first: &mut [f32],
        wanted: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let mut copy = Vec::new();
        let prompts = first.chunks_exact_mut(self.vocab).enumerate().filter(|(prompt, _)| wanted(*prompt));
        for (prompt, scores) in prompts {
            let mut siblings = rows.iter_mut().enumerate().filter(|(_, row)| row.prompt == prompt).peekable();
            while let Some((place, row)) = siblings.next() {
                if siblings.peek().is_some() {
                    copy.clear();
                    copy.extend_from_slice(scores);
                    self.write(row, place, &mut copy, None)?;
                } else {
                    self.write(row, place, scores, None)?;
                }
            }
        }
        Ok(())
    }

    /// Writes one token of one row (at `kept` of the step) from the model's scores, `[vocab]`, which the rules change in
    /// place. Where a draft proposed a `candidate` that it drew by chance, that takes part in the choice.
    pub(super) fn write(
        &mut self,
        row: &mut Writing,
        kept: usize,
        scores: &mut [f32],
        candidate: Option<Candidate<'_>>,
    ) -> Result<()> {
        if let Some(logits) = &mut row.logits {
            logits.push(scores.to_vec());
        }
        if let Some(lens) = self.lens {
            lens.look(kept, scores, &mut row.hidden);
        }
        if let Some(guidance) = &self.guidance {
            guidance.apply(kept, scores);
        }
        self.rules.apply(&row.view(), scores).map_err(|error| error.at(row.place()))?;
        let token = self.choose(scores, candidate, &mut row.rng).map_err(|error| error.at(row.place()))?;
        row.push(token, scores, self.criteria, &mut self.sink)
    }

    /// One token of processed scores.
    fn choose(&mut self, scores: &[f32], candidate: Option<Candidate<'_>>, rng: &mut Rng) -> Result<TokenId> {
        let drafted = candidate.and_then(|candidate| Some((candidate.token, candidate.probabilities?)));
        let weight = self.settings.assisted.assistant_ensemble_weight;
        let Chooser { draw, speculative } = &mut self.chooser;
        match (drafted, self.settings.do_sample, weight) {
            (Some((token, own)), true, weight) => {
                speculative.draw(scores, token, own, weight.unwrap_or(1.0), rng, draw)
            }
            (Some((_, own)), false, Some(weight)) => Ok(speculative.best_of_both(scores, own, weight)),
            (_, true, _) => draw.pick(scores, rng.uniform()),
            (_, false, _) => Ok(argmax(scores)),
        }
    }

    /// Moves finished rows to `done` and out of the session. The last rows stay in it: a session has at least one row, and
    /// whoever keeps it goes on from there.
    pub(super) fn drop_finished(
        &mut self,
        session: &mut dyn Session,
        rows: &mut Vec<Writing>,
        done: &mut Vec<Writing>,
    ) -> Result<()> {
        let open: Vec<_> = rows.iter().enumerate().filter(|(_, row)| row.finish.is_none()).map(|(at, _)| at).collect();
        if open.len() < rows.len() {
            if !open.is_empty() {
                session.reorder(&open)?;
                if let Some(guidance) = &mut self.guidance {
                    guidance.keep(&open)?;
                }
            }
            done.extend(rows.extract_if(.., |row| row.finish.is_some()));
        }
        Ok(())
    }
}
