//! Contrastive search: of the likeliest tokens, the one that says something new. <https://arxiv.org/abs/2202.06417>.
//!
//! Every candidate of every row is run in one step, as a row of its own; the hidden state it comes to is compared with
//! those of all tokens before it.

use super::clock::Clock;
use super::feed::feed;
use super::guidance::Guidance;
use super::lens::all_states;
use super::prefill::PromptProgress;
use super::prompts::Prompt;
use super::writing::Writing;
use crate::config::{Contrastive as Choice, Settings};
use crate::error::{Error, Result};
use crate::hidden::{HiddenAsk, HiddenStates, StepStates};
use crate::model::{Keep, Model, RowInput, Session};
use crate::processor::Processor;
use crate::processor::softmax::softmax;
use crate::select::argmax;
use crate::stop::Criterion;
use crate::stream::TokenSink;
use crate::token::TokenId;

/// The parts of one contrastive search; Python's `_contrastive_search`.
pub(crate) struct Contrastive<'r, 's> {
    /// What to keep.
    pub settings: &'r Settings,
    /// How candidates are chosen.
    pub choice: Choice,
    /// Changes the scores.
    pub rules: &'r mut dyn Processor,
    /// Ends rows.
    pub criteria: &'r mut dyn Criterion,
    /// Is told every token.
    pub sink: Option<&'s mut dyn TokenSink>,
    /// Guides the scores before the rules do.
    pub guidance: Option<Guidance>,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// The states that every step is asked for; the last one is the model's last.
    pub states: Vec<usize>,
}

/// A row's past as the search sees it.
struct Past {
    /// `[tokens, width]`: the last hidden state of every token, of length 1.
    memory: Vec<f32>,
    /// Scores after the newest token, `[vocab]`.
    logits: Vec<f32>,
    /// States since the last token was written, when they are returned.
    states: StepStates,
}

/// A token that may be written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    token: TokenId,
    probability: f32,
}

/// What a candidate came to.
struct Tried {
    /// Its last hidden state, of length 1.
    state: Vec<f32>,
    logits: Vec<f32>,
    states: StepStates,
}

/// The states that a contrastive search asks `model` for.
///
/// # Errors
///
/// When it does not give them.
pub(crate) fn states(model: &dyn Model, settings: &Settings) -> Result<Vec<usize>> {
    if settings.output_hidden_states {
        return all_states(model).map_err(|error| error.of("output_hidden_states"));
    }
    let shape = HiddenAsk { states: &[], keep: Keep::All }.check(model.hidden());
    Ok(vec![shape.map_err(|error| error.of("penalty_alpha"))?.last])
}

impl Contrastive<'_, '_> {
    /// Writes `rows`, one for each prompt, until each has ended, and returns them in that order. `positions` is the model's
    /// limit: since every candidate is run, a row ends at the last position.
    ///
    /// # Errors
    ///
    /// Those of the session, the rules and the criteria; more candidates than tokens; a prompt that fills the positions; a
    /// session that cannot take a candidate back, with `low_memory`.
    pub(crate) fn run(
        &mut self,
        session: &mut dyn Session,
        prompts: &[Prompt<'_>],
        positions: Option<usize>,
        mut rows: Vec<Writing>,
        clock: &mut Clock,
    ) -> Result<Vec<Writing>> {
        self.check(session, prompts, positions, &mut rows)?;
        let by_prompt: Vec<usize> = rows.iter().map(|row| row.prompt).collect();
        let mut pasts = self.read(session, prompts, clock)?;
        clock.prompts_done();
        if let Some(guidance) = &mut self.guidance {
            guidance.start(&by_prompt, self.settings.prefill_chunk_size, clock)?;
        }
        let mut done = Vec::with_capacity(rows.len());
        loop {
            let mut candidates = Vec::with_capacity(rows.len());
            for (place, (row, past)) in rows.iter_mut().zip(&mut pasts).enumerate() {
                candidates.push(self.candidates(row, place, past)?);
            }
            let chosen = if self.choice.low_memory {
                self.try_one_by_one(session, &candidates, &mut pasts, clock)?
            } else {
                self.try_together(session, &candidates, &mut pasts, clock)?
            };
            for ((row, (scores, candidates)), chosen) in rows.iter_mut().zip(&candidates).zip(chosen) {
                row.push(candidates[chosen].token, scores, self.criteria, &mut self.sink)?;
            }
            let open: Vec<_> =
                rows.iter().enumerate().filter(|(_, row)| row.finish.is_none()).map(|(at, _)| at).collect();
            if open.is_empty() {
                done.append(&mut rows);
                done.sort_by_key(|row| row.row);
                return Ok(done);
            }
            if open.len() < rows.len() {
                session.reorder(&open)?;
                if let Some(guidance) = &mut self.guidance {
                    guidance.keep(&open)?;
                }
                let finished = rows.iter().map(|row| row.finish.is_some()).collect::<Vec<_>>();
                let mut gone = finished.iter();
                pasts.retain(|_| !gone.next().copied().unwrap_or(false));
                done.extend(rows.extract_if(.., |row| row.finish.is_some()));
            }
            if let Some(guidance) = &mut self.guidance {
                let newest = |row: &Writing| row.ids.last().copied().into_iter().collect::<Vec<_>>();
                let newest: Vec<Vec<TokenId>> = rows.iter().map(newest).collect();
                let inputs: Vec<_> = newest.iter().map(|tokens| RowInput { tokens, keep: Keep::Last }).collect();
                guidance.step(&inputs, clock)?;
            }
        }
    }

    fn check(
        &self,
        session: &dyn Session,
        prompts: &[Prompt<'_>],
        positions: Option<usize>,
        rows: &mut [Writing],
    ) -> Result<()> {
        let Choice { top_k, low_memory, .. } = self.choice;
        if top_k > self.vocab {
            return Err(Error::invalid_config(format!(
                "top_k={top_k} candidates of a vocabulary of {} tokens; contrastive search needs top_k below that",
                self.vocab
            )));
        }
        if low_memory && !session.can_crop() {
            return Err(Error::unsupported(
                "low_memory=true needs a model whose session can forget a token, and this one cannot; leave low_memory out",
            ));
        }
        for row in rows {
            let hidden = prompts.get(row.prompt).map_or(0, Prompt::hidden);
            let last = positions.map_or(usize::MAX, |positions| positions.saturating_add(hidden));
            row.max_length = row.max_length.min(last);
            if row.ids.len() >= row.max_length {
                return Err(Error::invalid_input(format!(
                    "the prompt has {} tokens and contrastive search runs every token it writes, for which the model has \
                     {} positions; shorten the prompt",
                    row.ids.len() - hidden,
                    row.max_length - hidden
                ))
                .at_one_of("prompt", row.prompt, prompts.len()));
            }
        }
        Ok(())
    }

    /// Runs the prompts.
    fn read(&mut self, session: &mut dyn Session, prompts: &[Prompt<'_>], clock: &mut Clock) -> Result<Vec<Past>> {
        let nothing = || Past { memory: Vec::new(), logits: Vec::new(), states: StepStates::default() };
        let mut pasts: Vec<Past> = prompts.iter().map(|_| nothing()).collect();
        let ask = HiddenAsk { states: &self.states, keep: Keep::All };
        let prompts: Vec<&[TokenId]> = prompts.iter().map(|prompt| &*prompt.read).collect();
        let mut sink = self.sink.take();
        let mut progress = PromptProgress::begin(&prompts, &mut sink);
        for inputs in feed(&prompts, self.settings.prefill_chunk_size, Keep::Last) {
            let (logits, hidden) = clock.step_hidden(session, &inputs, &ask, self.vocab)?;
            progress.ran(&inputs);
            let (mut kept, mut position) = (0, 0);
            for (past, input) in pasts.iter_mut().zip(&inputs) {
                let new = position..position + input.tokens.len();
                position = new.end;
                for position in new.clone() {
                    past.memory.extend(of_length_one(self.last_state(&hidden, position)));
                }
                if self.settings.output_hidden_states {
                    past.states.extend(&hidden, new);
                }
                if input.keep == Keep::Last && !input.tokens.is_empty() {
                    past.logits = logits.row(kept).to_vec();
                    kept += 1;
                }
            }
        }
        self.sink = sink;
        Ok(pasts)
    }

    fn last_state<'h>(&self, hidden: &HiddenStates<'h>, position: usize) -> &'h [f32] {
        hidden.at(self.states.len() - 1, position)
    }

    /// The processed scores of a row's next token and the likeliest tokens under them, likeliest first. Forbidden tokens are
    /// no candidates.
    fn candidates(&mut self, row: &mut Writing, place: usize, past: &mut Past) -> Result<(Vec<f32>, Vec<Candidate>)> {
        let mut scores = std::mem::take(&mut past.logits);
        if let Some(logits) = &mut row.logits {
            logits.push(scores.clone());
        }
        if let Some(hidden) = &mut row.hidden {
            hidden.push(std::mem::take(&mut past.states));
        }
        if let Some(guidance) = &self.guidance {
            guidance.apply(place, &mut scores);
        }
        self.rules.apply(&row.view(), &mut scores).map_err(|error| error.at(row.place()))?;
        let mut probabilities = Vec::new();
        if softmax(&scores, &mut probabilities).is_none() {
            let token = argmax(&scores);
            return Ok((scores, vec![Candidate { token, probability: 0.0 }]));
        }
        let mut order: Vec<TokenId> = (0..scores.len() as TokenId).collect();
        let key = |id: &TokenId| probabilities[*id as usize];
        let better = |a: &TokenId, b: &TokenId| key(b).total_cmp(&key(a)).then(a.cmp(b));
        order.select_nth_unstable_by(self.choice.top_k - 1, better);
        order.truncate(self.choice.top_k);
        order.sort_by(better);
        let candidates = order
            .into_iter()
            .filter(|id| scores[*id as usize] > f32::NEG_INFINITY)
            .map(|token| Candidate { token, probability: key(&token) })
            .collect();
        Ok((scores, candidates))
    }

    /// Runs all candidates in one step and keeps the rows of the best ones; returns their places.
    fn try_together(
        &self,
        session: &mut dyn Session,
        candidates: &[(Vec<f32>, Vec<Candidate>)],
        pasts: &mut [Past],
        clock: &mut Clock,
    ) -> Result<Vec<usize>> {
        let from: Vec<usize> = candidates
            .iter()
            .enumerate()
            .flat_map(|(row, (_, candidates))| std::iter::repeat_n(row, candidates.len()))
            .collect();
        session.reorder(&from)?;
        let tokens: Vec<[TokenId; 1]> =
            candidates.iter().flat_map(|(_, candidates)| candidates.iter().map(|one| [one.token])).collect();
        let inputs: Vec<_> = tokens.iter().map(|tokens| RowInput { tokens, keep: Keep::Last }).collect();
        let ask = HiddenAsk { states: &self.states, keep: Keep::Last };
        let mut chosen = Vec::with_capacity(pasts.len());
        let mut rows = Vec::with_capacity(pasts.len());
        {
            let (logits, hidden) = clock.step_hidden(session, &inputs, &ask, self.vocab)?;
            let mut first = 0;
            for ((_, candidates), past) in candidates.iter().zip(pasts) {
                let tried: Vec<Vec<f32>> =
                    (first..first + candidates.len()).map(|at| of_length_one(self.last_state(&hidden, at))).collect();
                let best = self.best(candidates, tried.iter().map(Vec::as_slice), &past.memory);
                let at = first + best;
                past.logits = logits.row(at).to_vec();
                past.memory.extend_from_slice(&tried[best]);
                if self.settings.output_hidden_states {
                    past.states.extend(&hidden, at..at + 1);
                }
                chosen.push(best);
                rows.push(at);
                first += candidates.len();
            }
        }
        session.reorder(&rows)?;
        Ok(chosen)
    }

    /// The same with one candidate of each row at a time, each forgotten again, and the best one run once more.
    fn try_one_by_one(
        &self,
        session: &mut dyn Session,
        candidates: &[(Vec<f32>, Vec<Candidate>)],
        pasts: &mut [Past],
        clock: &mut Clock,
    ) -> Result<Vec<usize>> {
        let mut tried: Vec<Vec<Tried>> = candidates.iter().map(|_| Vec::new()).collect();
        let most = candidates.iter().map(|(_, candidates)| candidates.len()).max().unwrap_or(0);
        let ask = HiddenAsk { states: &self.states, keep: Keep::Last };
        for place in 0..most {
            let tokens: Vec<Vec<TokenId>> =
                candidates.iter().map(|(_, all)| all.get(place).map(|one| one.token).into_iter().collect()).collect();
            let inputs: Vec<_> = tokens.iter().map(|tokens| RowInput { tokens, keep: Keep::Last }).collect();
            let (logits, hidden) = clock.step_hidden(session, &inputs, &ask, self.vocab)?;
            let running = tried.iter_mut().zip(&inputs).filter(|(_, input)| !input.tokens.is_empty());
            for (at, (tried, _)) in running.enumerate() {
                let mut states = StepStates::default();
                if self.settings.output_hidden_states {
                    states.extend(&hidden, at..at + 1);
                }
                let state = of_length_one(self.last_state(&hidden, at));
                tried.push(Tried { state, logits: logits.row(at).to_vec(), states });
            }
            for (row, tokens) in tokens.iter().enumerate().filter(|(_, tokens)| !tokens.is_empty()) {
                let len = session.len(row);
                session.crop(row, len - tokens.len())?;
            }
        }
        let mut chosen = Vec::with_capacity(pasts.len());
        let mut tokens = Vec::with_capacity(pasts.len());
        for (((_, candidates), past), mut tried) in candidates.iter().zip(pasts).zip(tried) {
            let best = self.best(candidates, tried.iter().map(|tried| tried.state.as_slice()), &past.memory);
            let Tried { state, logits, states } = tried.swap_remove(best);
            past.memory.extend_from_slice(&state);
            (past.logits, past.states) = (logits, states);
            tokens.push([candidates[best].token]);
            chosen.push(best);
        }
        let inputs: Vec<_> = tokens.iter().map(|tokens| RowInput { tokens, keep: Keep::None }).collect();
        clock.step(session, &inputs, self.vocab)?;
        Ok(chosen)
    }

    /// The first best of `candidates`, whose hidden states are `tried`, after the tokens of `memory`.
    fn best<'t>(&self, candidates: &[Candidate], tried: impl Iterator<Item = &'t [f32]>, memory: &[f32]) -> usize {
        let alpha = self.choice.penalty_alpha;
        let score = |(candidate, state): (&Candidate, &[f32])| {
            let nearest = memory.chunks_exact(state.len().max(1)).map(|seen| dot(seen, state));
            let penalty = nearest.fold(f32::NEG_INFINITY, f32::max);
            (1.0 - alpha) as f32 * candidate.probability - alpha as f32 * penalty
        };
        let scores = candidates.iter().zip(tried).map(score).enumerate();
        scores.fold((0, f32::NEG_INFINITY), |best, one| if one.1 > best.1 { one } else { best }).0
    }
}

/// A state divided by its length.
fn of_length_one(state: &[f32]) -> Vec<f32> {
    let length = dot(state, state).sqrt();
    state.iter().map(|value| value / length).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
}
