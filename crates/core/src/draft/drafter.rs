//! A model that writes drafts: its session, and the tokens each row of it holds.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::contract::{Start, StartRow};
use crate::decode::{Clock, OPEN_END, prefill::prefill};
use crate::error::{Error, Result};
use crate::model::{Keep, Model, RowInput, Session, SessionOptions};
use crate::processor::softmax::softmax;
use crate::rng::Rng;
use crate::select::{Multinomial, argmax};
use crate::token::TokenId;

/// Tokens of a prompt that the drafting model runs in one step.
const CHUNK: usize = 512;

/// Writes drafts with a model of its own.
pub(super) struct Drafter {
    model: Arc<dyn Model>,
    session: Option<Box<dyn Session>>,
    rows: Vec<Held>,
    capacity: usize,
    draw: Multinomial,
    scores: Vec<f32>,
    probabilities: Vec<f32>,
}

/// A row of the session.
#[derive(Clone, Debug)]
struct Held {
    index: usize,
    prompt: usize,
    tokens: Vec<TokenId>,
    /// What is read in the place of so many first tokens of the row: its prompt without padding.
    padded: Option<(usize, Vec<TokenId>)>,
    rng: Rng,
    ended: bool,
}

/// One row's draft: what it goes on from, how far, and what came out.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// The row.
    pub index: usize,
    /// All its tokens, in the drafting model's ids; drafted ones are added.
    pub ids: Vec<TokenId>,
    /// Most tokens to draft.
    pub most: usize,
    /// Probability below which the token is the draft's last; 0 never stops.
    pub threshold: f64,
    /// `[drafted, scores] f32`: the distributions, when they are wanted.
    pub distributions: Vec<f32>,
    /// The probability of each drafted token, when there is a threshold.
    pub confidences: Vec<f64>,
    /// How many tokens were drafted.
    pub drafted: usize,
    /// Whether nothing more is drafted.
    pub stopped: bool,
}

impl Held {
    /// The tokens of `ids`, which begin with the row's prompt, that the model reads.
    fn read<'a>(&self, ids: &'a [TokenId]) -> Cow<'a, [TokenId]> {
        match &self.padded {
            Some((prompt_len, read)) => {
                Cow::Owned(read.iter().chain(ids.get(*prompt_len..).unwrap_or_default()).copied().collect())
            }
            None => Cow::Borrowed(ids),
        }
    }
}

impl Job {
    /// The drafted tokens.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.ids[self.ids.len() - self.drafted..]
    }
}

/// How tokens are drafted.
pub(super) struct Manner<'a> {
    /// Draw instead of taking the best.
    pub sample: bool,
    /// Whether the distributions are wanted.
    pub distributions: bool,
    /// Tokens that end a draft.
    pub eos: &'a [TokenId],
    /// Makes the scores to choose from.
    pub shape: &'a mut Shape<'a>,
}

/// From a row's number, its ids and the model's scores to the scores to choose from.
pub(super) type Shape<'a> = dyn FnMut(usize, &[TokenId], &[f32], &mut Vec<f32>) -> Result<()> + 'a;

impl Drafter {
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        Drafter {
            model,
            session: None,
            rows: Vec::new(),
            capacity: 0,
            draw: Multinomial::default(),
            scores: Vec::new(),
            probabilities: Vec::new(),
        }
    }

    /// A generation of these rows begins: their numbers, prompts and random numbers. A single row goes on with what the
    /// last single row left, as far as the tokens are the same.
    pub(super) fn begin(&mut self, start: &Start<'_>) {
        let length = |row: &StartRow<'_>| start.settings.total_length(row.ids.len()).min(row.ids.len() + OPEN_END);
        let before = if let [held] = &mut self.rows[..] { std::mem::take(&mut held.tokens) } else { Vec::new() };
        let fresh = |row: &StartRow<'_>| Held {
            index: row.index,
            prompt: row.prompt,
            tokens: Vec::new(),
            padded: (row.read.len() < row.ids.len()).then(|| (row.ids.len(), row.read.to_vec())),
            rng: row.rng.clone(),
            ended: false,
        };
        self.rows = start.rows.iter().map(fresh).collect();
        self.capacity = start.rows.iter().map(length).max().unwrap_or(0);
        match (&mut self.rows[..], &self.session) {
            ([one], Some(session)) if session.rows() == 1 => one.tokens = before,
            _ => self.session = None,
        }
    }

    /// The row has ended; its place goes to the others.
    pub(super) fn ended(&mut self, index: usize) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.index == index) {
            row.ended = true;
        }
    }

    /// Most tokens that can be drafted after `len`: the model's positions end somewhere, and the last token is never run.
    pub(super) fn room(&self, len: usize) -> usize {
        self.model.max_positions().map_or(usize::MAX, |positions| (positions + 1).saturating_sub(len))
    }

    /// Writes every job's draft. A job without room, or with an id that the model does not know, stays empty.
    ///
    /// # Errors
    ///
    /// Those of the model.
    pub(super) fn write(&mut self, jobs: &mut [Job], manner: &mut Manner<'_>) -> Result<()> {
        let vocab = self.model.vocab_size();
        for job in jobs.iter_mut() {
            let known = !job.ids.is_empty() && job.ids.iter().all(|id| (*id as usize) < vocab);
            let room = self.room(job.ids.len());
            job.most = if known { job.most.min(room) } else { 0 };
            job.stopped = job.most == 0;
            if room == 0 {
                // The row only grows: its place goes to the others.
                self.ended(job.index);
            }
        }
        if jobs.iter().all(|job| job.stopped) {
            return Ok(());
        }
        self.settle(jobs)?;
        let Some(mut session) = self.session.take() else { return Ok(()) };
        let written = self.write_in(&mut *session, jobs, manner);
        self.session = Some(session);
        written
    }

    /// Opens the session, or lets ended rows leave it.
    fn settle(&mut self, jobs: &[Job]) -> Result<()> {
        if self.session.is_none() {
            self.rows.retain(|row| !row.ended);
            return self.open(jobs);
        }
        let open: Vec<usize> = (0..self.rows.len()).filter(|row| !self.rows[*row].ended).collect();
        if let Some(session) = &mut self.session
            && open.len() < self.rows.len()
            && !open.is_empty()
        {
            session.reorder(&open)?;
            self.rows.retain(|row| !row.ended);
        }
        Ok(())
    }

    /// Opens a session in which rows of one prompt share the run of what they have in common.
    fn open(&mut self, jobs: &[Job]) -> Result<()> {
        let mut prompts: Vec<usize> = self.rows.iter().map(|row| row.prompt).collect();
        prompts.dedup();
        let options = SessionOptions { rows: prompts.len().max(1), capacity: self.capacity };
        let mut session = self.model.open(&options)?;
        if !session.can_crop() {
            return Err(Error::unsupported(
                "the assistant's cache cannot forget tokens, so it cannot draft; use another assistant",
            ));
        }
        if prompts.len() < self.rows.len() {
            let shared: Vec<Vec<TokenId>> = prompts.iter().map(|prompt| self.shared(*prompt, jobs)).collect();
            let texts: Vec<&[TokenId]> = shared.iter().map(Vec::as_slice).collect();
            prefill(&mut *session, &texts, CHUNK, self.model.vocab_size(), &mut Clock::start(None), &mut None)?;
            let from: Vec<usize> = self
                .rows
                .iter()
                .map(|row| prompts.iter().position(|prompt| *prompt == row.prompt).unwrap_or(0))
                .collect();
            session.reorder(&from)?;
            for (row, from) in self.rows.iter_mut().zip(from) {
                row.tokens.clone_from(&shared[from]);
            }
        }
        self.session = Some(session);
        Ok(())
    }

    /// The tokens that all jobs of a prompt begin with, but for the last of the shortest.
    fn shared(&self, prompt: usize, jobs: &[Job]) -> Vec<TokenId> {
        let of_prompt = |index: usize| self.rows.iter().any(|row| row.index == index && row.prompt == prompt);
        let jobs = jobs.iter().filter(|job| !job.stopped && of_prompt(job.index));
        let texts: Vec<Cow<'_, [TokenId]>> = jobs
            .map(|job| {
                self.rows.iter().find(|row| row.index == job.index).map_or(job.ids[..].into(), |row| row.read(&job.ids))
            })
            .collect();
        let Some((first, others)) = texts.split_first() else { return Vec::new() };
        let shared = others.iter().fold(&first[..], |shared, ids| &shared[..common(shared, ids)]);
        shared[..shared.len().min(first.len() - 1)].to_vec()
    }

    fn write_in(&mut self, session: &mut dyn Session, jobs: &mut [Job], manner: &mut Manner<'_>) -> Result<()> {
        let vocab = self.model.vocab_size();
        let mut clock = Clock::start(None);
        // The job of each row of the session.
        let mut of_row: Vec<Option<usize>> = vec![None; self.rows.len()];
        for (place, job) in jobs.iter_mut().enumerate() {
            match self.rows.iter().position(|row| row.index == job.index) {
                Some(row) if !job.stopped => of_row[row] = Some(place),
                _ => job.stopped = true,
            }
        }
        let mut fed: Vec<Vec<TokenId>> = Vec::with_capacity(of_row.len());
        for (row, place) in of_row.iter().enumerate() {
            let Some(job) = place.map(|place| &jobs[place]) else {
                fed.push(Vec::new());
                continue;
            };
            let read = self.rows[row].read(&job.ids).into_owned();
            let held = &mut self.rows[row].tokens;
            // The last token is run again: its scores are needed.
            let same = common(held, &read).min(read.len() - 1);
            if same < held.len() {
                session.crop(row, same)?;
                held.truncate(same);
            }
            fed.push(read[same..].to_vec());
            *held = read;
        }
        let texts: Vec<&[TokenId]> = fed.iter().map(Vec::as_slice).collect();
        let first = prefill(session, &texts, CHUNK, vocab, &mut clock, &mut None)?;
        for (row, place) in of_row.iter().enumerate() {
            if let Some(place) = place {
                let job = &mut jobs[*place];
                self.choose(row, &first[row * vocab..][..vocab], job, manner)?;
            }
        }
        loop {
            let live = |place: &Option<usize>| place.filter(|place| !jobs[*place].stopped);
            let inputs: Vec<RowInput<'_>> = of_row
                .iter()
                .map(|place| {
                    let tokens =
                        live(place).and_then(|place| jobs[place].ids.last()).map_or(&[][..], std::slice::from_ref);
                    RowInput { tokens, keep: Keep::Last }
                })
                .collect();
            if inputs.iter().all(|input| input.tokens.is_empty()) {
                return Ok(());
            }
            let logits = clock.step(session, &inputs, vocab)?;
            let mut kept = 0;
            for (row, place) in of_row.iter().enumerate() {
                let Some(place) = place.filter(|place| !jobs[*place].stopped) else { continue };
                let job = &mut jobs[place];
                self.rows[row].tokens.extend(job.ids.last());
                self.choose(row, logits.row(kept), job, manner)?;
                kept += 1;
            }
        }
    }

    /// Adds one token to a draft, or ends it.
    fn choose(&mut self, row: usize, logits: &[f32], job: &mut Job, manner: &mut Manner<'_>) -> Result<()> {
        let shaped = (manner.shape)(job.index, &job.ids, logits, &mut self.scores);
        let token = match shaped {
            Ok(()) if manner.sample => self.draw.pick(&self.scores, self.rows[row].rng.uniform()).ok(),
            Ok(()) => Some(argmax(&self.scores)),
            Err(_) => None,
        };
        let wanted = manner.distributions || job.threshold > 0.0;
        let known = !wanted || softmax(&self.scores, &mut self.probabilities).is_some();
        // A row that cannot go on here may never get here: the draft ends, and the model's own step judges.
        let Some(token) = token.filter(|token| known && (*token as usize) < self.model.vocab_size()) else {
            job.stopped = true;
            return Ok(());
        };
        job.ids.push(token);
        job.drafted += 1;
        if manner.distributions {
            job.distributions.extend_from_slice(&self.probabilities);
        }
        let mut unsure = false;
        if job.threshold > 0.0 {
            let probability = self.probabilities.get(token as usize).map_or(0.0, |share| f64::from(*share));
            job.confidences.push(probability);
            unsure = probability < job.threshold;
        }
        job.stopped = unsure || job.drafted >= job.most || manner.eos.contains(&token);
        Ok(())
    }
}

/// How many tokens two texts begin with alike.
fn common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl fmt::Debug for Drafter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drafter").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}
