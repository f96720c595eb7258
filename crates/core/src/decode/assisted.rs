//! Assisted decoding: drafted tokens run through the model together, and count as far as it would have written them itself;
//! Python's `_assisted_decoding`, for any number of rows.
//!
//! The model's scores after each drafted token are used one position after the other, each exactly as in plain decoding (the
//! same rules, the same choice, the same criteria, the same sink), until the choice differs from the draft. So nothing is
//! ever asked about a position that plain decoding would not reach, and what is written cannot depend on the drafts.

use std::time::{Duration, Instant};

use super::clock::Clock;
use super::pace::{Pace, Round};
use super::prefill::prefill;
use super::prompts::Prompt;
use super::single::Single;
use super::writing::Writing;
use crate::draft::{Ask, Draft, Drafted, Start, StartRow};
use crate::error::{Error, Result};
use crate::model::{Keep, RowInput, Session};
use crate::output::DraftCounts;
use crate::rng::Rng;
use crate::token::TokenId;

/// The parts of one assisted generation.
pub(crate) struct Assisted<'r, 's, 'd> {
    single: Single<'r, 's>,
    draft: &'d mut dyn Draft,
    always: bool,
    pace: Pace,
    elapsed: Box<dyn Fn() -> Duration + 'd>,
}

/// What one row brings to a round.
#[derive(Default)]
struct Proposal {
    /// Whether the draft was asked.
    asked: bool,
    drafted: Drafted,
}

impl<'r, 's, 'd> Assisted<'r, 's, 'd> {
    /// Writes as `single` does, with what `draft` proposes.
    pub(crate) fn new(
        single: Single<'r, 's>,
        draft: &'d mut dyn Draft,
        always: bool,
        elapsed: Option<Box<dyn Fn() -> Duration + 'd>>,
    ) -> Self {
        let start = Instant::now();
        let elapsed = elapsed.unwrap_or_else(|| Box::new(move || start.elapsed()));
        Assisted { single, draft, always, pace: Pace::Always, elapsed }
    }

    /// Writes `rows` (in the order of their prompts) until each has ended, and returns them in that order.
    ///
    /// `session` has one row per prompt, which holds the prompt's first `held` tokens.
    ///
    /// # Errors
    ///
    /// A session that cannot forget tokens; those of the session, the draft, the rules and the criteria; a row that has no
    /// token left to draw from.
    pub(crate) fn run(
        &mut self,
        session: &mut dyn Session,
        prompts: &[Prompt<'_>],
        held: usize,
        mut rows: Vec<Writing>,
        clock: &mut Clock,
    ) -> Result<Vec<Writing>> {
        if !session.can_crop() {
            return Err(Error::unsupported(
                "assisted decoding takes refused tokens back, and this model's cache cannot forget; leave the assistant and \
                 prompt_lookup_num_tokens out",
            ));
        }
        self.begin(prompts, &mut rows)?;
        let mut done = Vec::with_capacity(rows.len());

        // Drafts that go on from the prompts are verified with the prompts' last tokens; guided rows have no scores there.
        let before = (self.elapsed)();
        let first = if self.single.guidance.is_none() {
            self.propose(&rows)?
        } else {
            rows.iter().map(|_| Proposal::default()).collect()
        };
        let asking = (self.elapsed)().saturating_sub(before);
        let mut waits = vec![false; prompts.len()];
        for (row, proposal) in rows.iter().zip(&first) {
            waits[row.prompt] |= !proposal.drafted.tokens.is_empty();
        }
        let left: Vec<&[TokenId]> = prompts
            .iter()
            .zip(&waits)
            .map(|(prompt, waits)| prompt.read.get(held..prompt.read.len() - usize::from(*waits)).unwrap_or(&[]))
            .collect();
        let chunk = self.single.settings.prefill_chunk_size;
        let mut scores = prefill(session, &left, chunk, self.single.vocab, clock, &mut self.single.sink)?;
        clock.prompt_tokens_later(waits.iter().filter(|waits| **waits).count());
        let by_prompt: Vec<_> = rows.iter().map(|row| row.prompt).collect();
        if rows.len() > prompts.len() {
            session.reorder(&by_prompt)?;
        }
        clock.prompts_done();
        if let Some(guidance) = &mut self.single.guidance {
            guidance.start(&by_prompt, chunk, clock)?;
        }
        self.single.write_first(&mut rows, &mut scores, |prompt| !waits[prompt])?;
        drop(scores);
        for (row, proposal) in rows.iter_mut().zip(&first).filter(|(row, _)| !waits[row.prompt]) {
            self.judged(row, proposal, 1);
        }
        if waits.contains(&true) {
            self.timed_round(session, &mut rows, &first, |row| waits[row.prompt], asking, clock)?;
        }

        loop {
            for row in rows.iter().filter(|row| row.finish.is_some()) {
                self.draft.ended(row.row);
            }
            self.single.drop_finished(session, &mut rows, &mut done)?;
            if rows.is_empty() {
                break;
            }
            let before = (self.elapsed)();
            let proposals = self.propose(&rows)?;
            let asking = (self.elapsed)().saturating_sub(before);
            self.timed_round(session, &mut rows, &proposals, |_| true, asking, clock)?;
        }
        done.sort_by_key(|row| row.row);
        Ok(done)
    }

    fn begin(&mut self, prompts: &[Prompt<'_>], rows: &mut [Writing]) -> Result<()> {
        let own: Vec<Rng> = rows.iter().map(|row| row.rng.fork()).collect();
        let starts = rows.iter().zip(&own).map(|(row, rng)| {
            let read = prompts.get(row.prompt).map_or(&[][..], |prompt| &prompt.read);
            StartRow { index: row.row, prompt: row.prompt, ids: &row.ids, read, rng }
        });
        let starts: Vec<_> = starts.collect();
        self.draft.begin(&Start { settings: self.single.settings, vocab: self.single.vocab, rows: &starts })?;
        self.pace = pace(self.draft, self.always, rows.len());
        for row in rows {
            row.drafts = Some(DraftCounts::default());
        }
        Ok(())
    }

    /// What the draft proposes for each row, checked.
    fn propose(&mut self, rows: &[Writing]) -> Result<Vec<Proposal>> {
        let wanted: Vec<bool> = rows.iter().map(|row| self.pace.wants(row.row, rows.len())).collect();
        let most = self.pace.most();
        let asked = rows.iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        let asks: Vec<Ask<'_>> = asked
            .map(|(row, _)| {
                // The model's own token takes the last place.
                let room = row.max_length.saturating_sub(row.ids.len() + 1);
                Ask { index: row.row, row: row.view(), most: room.min(most) }
            })
            .collect();
        let drafted = if asks.is_empty() { Vec::new() } else { self.draft.draft_all(&asks)? };
        if drafted.len() != asks.len() {
            return Err(Error::callback(format!(
                "the draft answered {} of {} rows, expected an answer for each",
                drafted.len(),
                asks.len()
            )));
        }
        let mut checked = Vec::with_capacity(drafted.len());
        for (ask, drafted) in asks.iter().zip(drafted) {
            checked.push(self.check(ask, drafted).map_err(|error| error.at(format!("row {}", ask.index)))?);
        }
        let mut checked = checked.into_iter();
        Ok(wanted
            .into_iter()
            .map(|asked| Proposal {
                asked,
                drafted: if asked { checked.next().unwrap_or_default() } else { Drafted::default() },
            })
            .collect())
    }

    /// Holds a draft against what it may propose.
    fn check(&self, ask: &Ask<'_>, mut drafted: Drafted) -> Result<Drafted> {
        let vocab = self.single.vocab;
        if let Some(id) = drafted.tokens.iter().find(|id| **id as usize >= vocab) {
            return Err(Error::callback(format!(
                "the draft proposes token {id}, the vocabulary has {vocab} tokens; it must give the model's own ids"
            )));
        }
        let (shares, expected) = (drafted.probabilities.len(), drafted.tokens.len().saturating_mul(vocab));
        if shares != 0 && !self.draft.gives_probabilities() {
            return Err(Error::callback("the draft gives probabilities and said that it gives none"));
        }
        if shares != 0 && shares != expected {
            return Err(Error::callback(format!(
                "the draft gives {shares} probabilities for {} tokens, expected {expected}, or none",
                drafted.tokens.len()
            )));
        }
        drafted.tokens.truncate(ask.most);
        Ok(drafted)
    }

    /// A round, booked with the time that it and the asking took.
    fn timed_round(
        &mut self,
        session: &mut dyn Session,
        rows: &mut [Writing],
        proposals: &[Proposal],
        takes_part: impl Fn(&Writing) -> bool,
        asking: Duration,
        clock: &mut Clock,
    ) -> Result<()> {
        let length = |rows: &[Writing]| rows.iter().map(|row| row.ids.len()).sum::<usize>();
        let taking_part = rows.iter().filter(|row| takes_part(row)).count();
        let (before, begin) = (length(rows), (self.elapsed)());
        self.round(session, rows, proposals, takes_part, clock)?;
        self.pace.round(Round {
            rows: taking_part,
            drafted: proposals.iter().map(|proposal| proposal.drafted.tokens.len()).sum(),
            written: length(rows) - before,
            seconds: ((self.elapsed)().saturating_sub(begin) + asking).as_secs_f64(),
        });
        Ok(())
    }

    /// Runs each row's newest token and its draft, of the rows that take part, and writes as far as the draft goes right.
    fn round(
        &mut self,
        session: &mut dyn Session,
        rows: &mut [Writing],
        proposals: &[Proposal],
        takes_part: impl Fn(&Writing) -> bool,
        clock: &mut Clock,
    ) -> Result<()> {
        let texts: Vec<Vec<TokenId>> = rows
            .iter()
            .zip(proposals)
            .map(|(row, proposal)| {
                let newest = takes_part(row).then(|| row.newest());
                newest.map_or_else(Vec::new, |newest| {
                    std::iter::once(newest).chain(proposal.drafted.tokens.iter().copied()).collect()
                })
            })
            .collect();
        let inputs: Vec<_> = texts.iter().map(|tokens| RowInput { tokens, keep: Keep::All }).collect();
        if let Some(guidance) = &mut self.single.guidance {
            guidance.step(&inputs, clock)?;
        }
        let mut logits = clock.step(session, &inputs, self.single.vocab)?;
        let mut kept = 0;
        let mut taken_back = Vec::new();
        for (place, (row, proposal)) in rows.iter_mut().zip(proposals).enumerate() {
            let run = texts[place].len();
            if run == 0 {
                continue;
            }
            let before = row.ids.len();
            for at in 0..run {
                let candidate = proposal.drafted.candidate(at, self.single.vocab);
                self.single.write(row, kept + at, logits.row_mut(kept + at), candidate)?;
                let right = candidate.is_some_and(|candidate| row.ids.last() == Some(&candidate.token));
                if row.finish.is_some() || !right {
                    break;
                }
            }
            kept += run;
            let written = row.ids.len() - before;
            if written < run {
                taken_back.push((place, run - written));
            }
            self.judged(row, proposal, written);
        }
        // The newest token has not been run, as in plain decoding.
        for (place, tokens) in taken_back {
            session.crop(place, session.len(place).saturating_sub(tokens))?;
            if let Some(guidance) = &mut self.single.guidance {
                guidance.take_back(place, tokens)?;
            }
        }
        Ok(())
    }

    /// Counts a round in which `row` got its last `written` tokens, and tells the draft.
    fn judged(&mut self, row: &mut Writing, proposal: &Proposal, written: usize) {
        let tokens = &proposal.drafted.tokens;
        let newest = &row.ids[row.ids.len() - written..];
        if let Some(counts) = &mut row.drafts {
            counts.drafted += tokens.len();
            counts.accepted += newest.iter().zip(tokens).take_while(|(own, drafted)| own == drafted).count();
            counts.target_runs += 1;
        }
        self.pace.row(row.row, tokens.len(), written);
        if proposal.asked {
            self.draft.verified(row.row, tokens.len(), written);
        }
    }
}

/// A draft that takes part in the choice of tokens may not depend on a clock: a seed gives the same tokens everywhere.
fn pace(draft: &dyn Draft, always: bool, rows: usize) -> Pace {
    if always {
        Pace::Always
    } else if draft.gives_probabilities() {
        Pace::counted(rows)
    } else {
        Pace::timed()
    }
}
