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
use crate::error::Result;
use crate::model::{Keep, RowInput, Session};
use crate::processor::Processor;
use crate::select::{Multinomial, argmax};
use crate::stop::Criterion;
use crate::stream::TokenSink;

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
        let mut draw = Multinomial::default();
        let mut done = Vec::with_capacity(rows.len());

        let left: Vec<_> = prompts.iter().map(|prompt| prompt.ids.get(held..).unwrap_or(&[])).collect();
        let mut first = prefill(session, &left, self.settings.prefill_chunk_size, self.vocab, clock)?;
        let by_prompt: Vec<_> = rows.iter().map(|row| row.prompt).collect();
        if rows.len() > prompts.len() {
            session.reorder(&by_prompt)?;
        }
        clock.prompts_done();
        if let Some(guidance) = &mut self.guidance {
            guidance.start(&by_prompt, self.settings.prefill_chunk_size, clock)?;
        }
        self.write_first(&mut rows, &mut first, &mut draw)?;
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
                self.write(row, kept, logits.row_mut(kept), &mut draw)?;
            }
        }
        done.sort_by_key(|row| row.row);
        Ok(done)
    }

    /// The first token of every row. Rows of one prompt share its scores: all but the last work on a copy.
    fn write_first(&mut self, rows: &mut [Writing], first: &mut [f32], draw: &mut Multinomial) -> Result<()> {
        let mut copy = Vec::new();
        for (prompt, scores) in first.chunks_exact_mut(self.vocab).enumerate() {
            let mut siblings = rows.iter_mut().enumerate().filter(|(_, row)| row.prompt == prompt).peekable();
            while let Some((place, row)) = siblings.next() {
                if siblings.peek().is_some() {
                    copy.clear();
                    copy.extend_from_slice(scores);
                    self.write(row, place, &mut copy, draw)?;
                } else {
                    self.write(row, place, scores, draw)?;
                }
            }
        }
        Ok(())
    }

    /// Writes one token of one row (at `kept` of the step) from the model's scores, `[vocab]`, which the rules change in
    /// place.
    fn write(&mut self, row: &mut Writing, kept: usize, scores: &mut [f32], draw: &mut Multinomial) -> Result<()> {
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
        let token = if self.settings.do_sample {
            draw.pick(scores, row.rng.uniform()).map_err(|error| error.at(row.place()))?
        } else {
            argmax(scores)
        };
        row.push(token, scores, self.criteria, &mut self.sink)
    }

    /// Moves finished rows to `done` and out of the session. The last rows stay in it: a session has at least one row, and
    /// whoever keeps it goes on from there.
    fn drop_finished(
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
