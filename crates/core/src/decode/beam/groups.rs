//! The searches that Python 5 moved out of its library: diverse groups of beams (`_group_beam_search` of 4.57,
//! <https://arxiv.org/abs/1610.02424>) and beams with required words (`_constrained_beam_search`,
//! <https://arxiv.org/abs/1804.06609>), on Python's `BeamSearchScorer`.

use super::constrained::reselect;
use super::constraint_state::ConstraintState;
use super::contract::{BIG, Place, Search, Step};
use super::hypotheses::Hypotheses;
use super::lane::{Beam, Hypothesis, Trace};
use crate::config::{Constraint, Settings};
use crate::error::Result;
use crate::processor::HammingDiversity;
use crate::select::Top;
use crate::stop::FinishReason;
use crate::token::TokenId;

/// The beams of one prompt in groups that take their steps one after another; with constraints in one group.
#[derive(Debug)]
pub(super) struct GroupSearch {
    at: Place,
    /// Beams of a group.
    size: usize,
    keep: usize,
    eos: Vec<TokenId>,
    /// What a group that is done writes.
    pad: TokenId,
    diversity: Option<HammingDiversity>,
    constraints: Vec<Constraint>,
    running: Vec<Beam>,
    spare: Vec<Beam>,
    groups: Vec<Group>,
    ended: Option<FinishReason>,
    top: Top,
}

#[derive(Debug)]
struct Group {
    finished: Hypotheses,
    done: bool,
}

/// A beam's continuation by one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Continuation {
    pub score: f32,
    pub lane: usize,
    pub token: TokenId,
}

impl GroupSearch {
    /// The beams of a prompt with the tokens `ids`.
    pub(super) fn new(at: Place, ids: &[TokenId], settings: &Settings) -> Self {
        let (beams, groups) = (settings.beams.num_beams, settings.beams.num_beam_groups);
        let size = beams / groups;
        let beam = |lane: usize| {
            let score = if lane.is_multiple_of(size) { 0.0 } else { -BIG };
            Beam { ids: ids.to_vec(), score, ..Beam::default() }
        };
        GroupSearch {
            at,
            size,
            keep: size * (settings.eos_token_id.len() + 1).max(2),
            eos: settings.eos_token_id.clone(),
            pad: settings.pad_token_id.unwrap_or(0),
            diversity: (groups > 1).then(|| HammingDiversity::new(settings.beams.diversity_penalty)),
            constraints: settings.beams.constraints.clone(),
            running: (0..beams).map(beam).collect(),
            spare: vec![Beam::default(); beams],
            groups: (0..groups).map(|_| Group { finished: Hypotheses::new(size, settings), done: false }).collect(),
            ended: None,
            top: Top::default(),
        }
    }

    /// One group's step; `scores` are the processed log-probabilities of all lanes, `[lanes, vocab]`.
    fn advance_group(&mut self, group: usize, scores: &[f32], vocab: usize) {
        let first = group * self.size;
        let length = self.running[first].path.len() + 1;
        if self.groups[group].done {
            for lane in first..first + self.size {
                self.spare[lane].extend(&self.running[lane], first, self.pad, 0.0, 0.0);
            }
            return;
        }
        let base: Vec<f32> = self.running[first..][..self.size].iter().map(|beam| beam.score).collect();
        let own = &scores[first * vocab..][..self.size * vocab];
        let best = self.top.best_of_lanes(own, vocab, &base, self.keep);
        let mut next: Vec<Continuation> = Vec::with_capacity(self.size);
        let best_score = best.first().map_or(-BIG, |best| best.0);
        for (rank, &(score, place)) in best.iter().enumerate() {
            let (lane, token) = (first + place / vocab, (place % vocab) as TokenId);
            if !self.eos.contains(&token) {
                next.push(Continuation { score, lane, token });
                if next.len() == self.size {
                    break;
                }
            } else if rank < self.size && ConstraintState::of(&self.constraints, &self.running[lane].ids).is_complete()
            {
                let mut hypothesis = self.running[lane].hypothesis(self.at.prompt_len, 0.0, FinishReason::Eos);
                // Whichever end token came, Python writes the first.
                hypothesis.ids.push(self.eos[0]);
                hypothesis.path.push(lane);
                hypothesis.logprobs.push(scores[lane * vocab + token as usize]);
                self.groups[group].finished.add(score, length, hypothesis);
            }
        }
        // A vocabulary of end tokens alone leaves no way on.
        next.resize(self.size, Continuation { score: f32::NEG_INFINITY, lane: first, token: self.pad });
        if !self.constraints.is_empty() {
            reselect(&self.constraints, &self.running, scores, vocab, &mut next);
        }
        let most = self.at.max_length - self.at.prompt_len;
        let group = &mut self.groups[group];
        group.done = group.finished.settled(best_score, length, most);
        for (place, Continuation { score, lane, token }) in next.into_iter().enumerate() {
            let logprob = scores[lane * vocab + token as usize];
            self.spare[first + place].extend(&self.running[lane], lane, token, logprob, score);
        }
    }

    /// Adds running beams to the finished sequences of the groups that are not done: those that fulfil the constraints,
    /// and when these are fewer than `count`, all others too.
    fn finish_running(&mut self, count: usize, reason: &FinishReason) {
        for (group, beams) in self.groups.iter_mut().zip(self.running.chunks(self.size)) {
            if group.done {
                continue;
            }
            let (fulfilling, others): (Vec<_>, Vec<_>) =
                beams.iter().partition(|beam| ConstraintState::of(&self.constraints, &beam.ids).is_complete());
            let others = if fulfilling.len() < count { others } else { Vec::new() };
            for beam in fulfilling.into_iter().chain(others) {
                let hypothesis = beam.hypothesis(self.at.prompt_len, 0.0, reason.clone());
                group.finished.add(beam.score, beam.path.len(), hypothesis);
            }
        }
    }
}

impl Search for GroupSearch {
    fn running(&self) -> &[Beam] {
        &self.running
    }

    fn finished(&self) -> Vec<&Hypothesis> {
        self.groups.iter().flat_map(|group| group.finished.iter()).collect()
    }

    fn advance(&mut self, step: &mut Step<'_>, scores: &mut [f32], trace: &mut Trace) -> Result<()> {
        let vocab = step.vocab;
        trace.raw(scores);
        for group in 0..self.groups.len() {
            let first = group * self.size;
            let earlier: Vec<TokenId> =
                self.spare[..first].iter().filter_map(|beam| beam.ids.last().copied()).collect();
            for lane in first..first + self.size {
                let scores = &mut scores[lane * vocab..][..vocab];
                step.process(&self.at.row(&self.running[lane].ids), lane, scores)?;
                if let Some(diversity) = self.diversity {
                    diversity.apply(&earlier, scores);
                }
            }
            self.advance_group(group, scores, vocab);
        }
        trace.processed(scores);
        std::mem::swap(&mut self.running, &mut self.spare);
        // Beams end together: when the criteria end all of them.
        let mut reasons = Vec::with_capacity(self.running.len());
        for beam in &self.running {
            let scores = &scores[beam.from() * vocab..][..vocab];
            reasons.push(step.reason(&self.at.row(&beam.ids), self.at.max_length, scores)?);
        }
        if reasons.iter().all(Option::is_some) {
            self.ended = reasons.pop().flatten();
        }
        Ok(())
    }

    fn done(&self) -> bool {
        self.ended.is_some() || self.groups.iter().all(|group| group.done)
    }

    fn finish(&mut self, count: usize, reason: Option<FinishReason>) -> Vec<Hypothesis> {
        let reason = reason.or_else(|| self.ended.clone()).unwrap_or(FinishReason::Length);
        self.finish_running(count, &reason);
        let mut pooled: Vec<_> = self.groups.iter_mut().flat_map(|group| group.finished.take()).collect();
        // Among equals the later one is better.
        pooled.reverse();
        pooled.sort_by(|a, b| b.0.total_cmp(&a.0));
        pooled.truncate(count);
        pooled.into_iter().map(|(_, hypothesis)| hypothesis).collect()
    }
}
