//! Beam search and beam sampling; Python's `_beam_search`.

use super::contract::{BIG, Place, Search, Step};
use super::lane::{Beam, Hypothesis, Trace};
use crate::config::{EarlyStopping, Settings};
use crate::error::Result;
use crate::rng::Rng;
use crate::select::{Top, WithoutReplacement};
use crate::stop::FinishReason;
use crate::token::TokenId;

/// What a place among the finished sequences holds when the search ends before anything finished there.
const UNFINISHED: &str = "unfinished";

/// The beams of one prompt that follow the best of all their continuations, or draw among them.
#[derive(Debug)]
pub(super) struct BeamSearch {
    at: Place,
    /// Candidates of a step: enough that `num_beams` go on even if every end token is among the best.
    keep: usize,
    length_penalty: f64,
    early_stopping: EarlyStopping,
    draw: Option<Draw>,
    running: Vec<Beam>,
    /// Memory of the beams of the step before.
    spare: Vec<Beam>,
    slots: Vec<Slot>,
    improvable: bool,
    all_ended: bool,
    top: Top,
    candidates: Vec<Candidate>,
}

/// What drawing needs.
#[derive(Debug)]
struct Draw {
    rng: Rng,
    without_replacement: WithoutReplacement,
    /// Accumulated scores, `[lanes, vocab]`.
    sums: Vec<f32>,
}

/// A place for a finished sequence.
#[derive(Debug)]
struct Slot {
    score: f32,
    hypothesis: Option<Hypothesis>,
}

/// A beam's continuation by one token.
#[derive(Debug)]
struct Candidate {
    score: f32,
    lane: usize,
    token: TokenId,
    reason: Option<FinishReason>,
}

impl BeamSearch {
    /// The beams of a prompt with the tokens `ids`. Draws, when they are asked for, come from `rng`.
    pub(super) fn new(at: Place, ids: &[TokenId], settings: &Settings, rng: Rng) -> Self {
        let beams = settings.beams.num_beams;
        let beam = |lane| Beam { ids: ids.to_vec(), score: if lane == 0 { 0.0 } else { -BIG }, ..Beam::default() };
        BeamSearch {
            at,
            keep: beams * (settings.eos_token_id.len() + 1).max(2),
            length_penalty: settings.beams.length_penalty,
            early_stopping: settings.beams.early_stopping,
            draw: settings.do_sample.then(|| Draw {
                rng,
                without_replacement: WithoutReplacement::default(),
                sums: Vec::new(),
            }),
            running: (0..beams).map(beam).collect(),
            spare: vec![Beam::default(); beams],
            slots: (0..beams).map(|_| Slot { score: -BIG, hypothesis: None }).collect(),
            improvable: true,
            all_ended: false,
            top: Top::default(),
            candidates: Vec::new(),
        }
    }

    /// What a summed log-probability of `length` new tokens is divided by.
    fn divisor(&self, length: usize) -> f32 {
        (length as f64).powf(self.length_penalty) as f32
    }

    /// New tokens of the running beams.
    fn length(&self) -> usize {
        self.running.first().map_or(0, |beam| beam.path.len())
    }

    /// The best continuations of all beams, best first, or those drawn from all.
    fn find_candidates(&mut self, scores: &[f32], vocab: usize) -> Result<()> {
        self.candidates.clear();
        let base: Vec<f32> = self.running.iter().map(|beam| beam.score).collect();
        let candidate = |(score, place): (f32, usize)| Candidate {
            score,
            lane: place / vocab,
            token: (place % vocab) as TokenId,
            reason: None,
        };
        match &mut self.draw {
            None => {
                let best = self.top.best_of_lanes(scores, vocab, &base, self.keep);
                self.candidates.extend(best.iter().copied().map(candidate));
            }
            Some(Draw { rng, without_replacement, sums }) => {
                sums.clear();
                for (scores, base) in scores.chunks(vocab).zip(&base) {
                    sums.extend(scores.iter().map(|score| score + base));
                }
                let drawn = without_replacement.pick(sums, self.keep, rng)?;
                self.candidates.extend(drawn.iter().map(|&place| candidate((sums[place], place))));
                self.candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
            }
        }
        Ok(())
    }

    /// Asks the criteria about every candidate.
    fn judge_candidates(&mut self, step: &mut Step<'_>, scores: &[f32]) -> Result<()> {
        for candidate in &mut self.candidates {
            let ids = &mut self.running[candidate.lane].ids;
            ids.push(candidate.token);
            let reason = step.reason(
                &self.at.row(ids),
                self.at.max_length,
                &scores[candidate.lane * step.vocab..][..step.vocab],
            );
            ids.pop();
            candidate.reason = reason?;
        }
        self.all_ended = self.candidates.iter().all(|candidate| candidate.reason.is_some());
        Ok(())
    }

    /// The best candidates that did not end run on.
    fn run_on(&mut self, scores: &[f32], vocab: usize) {
        let going: Vec<f32> = self
            .candidates
            .iter()
            .map(|candidate| if candidate.reason.is_some() { candidate.score - BIG } else { candidate.score })
            .collect();
        let best = self.top.best(&going, self.running.len());
        for (beam, &(score, place)) in self.spare.iter_mut().zip(best) {
            let Candidate { lane, token, .. } = self.candidates[place];
            beam.extend(&self.running[lane], lane, token, scores[lane * vocab + token as usize], score);
        }
        std::mem::swap(&mut self.running, &mut self.spare);
    }

    /// Candidates that ended take the places of worse finished sequences. Called before the beams run on.
    fn settle(&mut self, scores: &[f32], vocab: usize) {
        let beams = self.running.len();
        let divisor = self.divisor(self.length() + 1);
        let full = self.slots.iter().all(|slot| slot.hypothesis.is_some());
        let mut values: Vec<f32> = self.slots.iter().map(|slot| slot.score).collect();
        for (rank, candidate) in self.candidates.iter().enumerate() {
            let mut value = candidate.score / divisor;
            let ends = candidate.reason.is_some() && rank < beams;
            for out in [full && self.early_stopping == EarlyStopping::First, !self.improvable, !ends] {
                if out {
                    value -= BIG;
                }
            }
            values.push(value);
        }
        let mut before: Vec<_> = std::mem::take(&mut self.slots).into_iter().map(Some).collect();
        for &(score, place) in self.top.best(&values, beams) {
            let slot = match before.get_mut(place) {
                Some(slot) => slot.take().unwrap_or(Slot { score, hypothesis: None }),
                None => {
                    let rank = place - beams;
                    let Candidate { lane, token, reason, .. } = &self.candidates[rank];
                    let hypothesis = reason.clone().filter(|_| rank < beams).map(|reason| {
                        let beam = &self.running[*lane];
                        let mut hypothesis = beam.hypothesis(self.at.prompt_len, score, reason);
                        hypothesis.ids.push(*token);
                        hypothesis.path.push(*lane);
                        hypothesis.logprobs.push(scores[lane * vocab + *token as usize]);
                        hypothesis
                    });
                    Slot { score, hypothesis }
                }
            };
            self.slots.push(slot);
        }
    }

    /// Whether the best running beam may still beat the worst finished sequence.
    fn can_improve(&self) -> bool {
        let length = match self.early_stopping {
            EarlyStopping::Never if self.length_penalty > 0.0 => self.at.max_length - self.at.prompt_len,
            _ => self.length(),
        };
        let best = self.running.first().map_or(-BIG, |beam| beam.score) / self.divisor(length);
        let worst = self.slots.iter().map(|slot| slot.score).fold(f32::INFINITY, f32::min);
        self.slots.iter().any(|slot| best > if slot.hypothesis.is_some() { worst } else { -BIG })
    }
}

impl Search for BeamSearch {
    fn running(&self) -> &[Beam] {
        &self.running
    }

    fn finished(&self) -> Vec<&Hypothesis> {
        self.slots.iter().filter_map(|slot| slot.hypothesis.as_ref()).collect()
    }

    fn advance(&mut self, step: &mut Step<'_>, scores: &mut [f32], trace: &mut Trace) -> Result<()> {
        let vocab = step.vocab;
        trace.raw(scores);
        for (lane, (beam, scores)) in self.running.iter().zip(scores.chunks_mut(vocab)).enumerate() {
            step.process(&self.at.row(&beam.ids), lane, scores)?;
        }
        trace.processed(scores);
        let length = self.length();
        self.find_candidates(scores, vocab).map_err(|error| error.at(format!("new token {length}")))?;
        self.judge_candidates(step, scores)?;
        self.settle(scores, vocab);
        self.run_on(scores, vocab);
        self.improvable &= self.can_improve();
        Ok(())
    }

    fn done(&self) -> bool {
        let full = self.slots.iter().all(|slot| slot.hypothesis.is_some());
        !self.improvable || self.all_ended || (full && self.early_stopping == EarlyStopping::First)
    }

    fn finish(&mut self, count: usize, reason: Option<FinishReason>) -> Vec<Hypothesis> {
        if let Some(reason) = reason {
            let divisor = self.divisor(self.length());
            for beam in self.running.iter().filter(|beam| beam.score > -BIG) {
                let score = beam.score / divisor;
                let hypothesis = Some(beam.hypothesis(self.at.prompt_len, score, reason.clone()));
                self.slots.push(Slot { score, hypothesis });
            }
            self.slots.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        let empty = |score| Hypothesis {
            ids: Vec::new(),
            path: Vec::new(),
            logprobs: Vec::new(),
            score,
            reason: FinishReason::Custom(UNFINISHED.to_owned()),
        };
        let slots = self.slots.drain(..).take(count);
        slots.map(|slot| slot.hypothesis.unwrap_or_else(|| empty(slot.score))).collect()
    }
}
