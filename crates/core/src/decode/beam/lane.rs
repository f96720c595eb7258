//! A beam while it runs, a sequence that is finished, and what is kept of every step.

use crate::config::Settings;
use crate::output::Sequence;
use crate::stop::FinishReason;
use crate::token::TokenId;

/// One running beam.
#[derive(Clone, Debug, Default)]
pub(super) struct Beam {
    /// Prompt and new tokens.
    pub ids: Vec<TokenId>,
    /// Per new token: the lane that it extended.
    pub path: Vec<usize>,
    /// Per new token: its processed log-probability.
    pub logprobs: Vec<f32>,
    /// The sum of the log-probabilities.
    pub score: f32,
}

impl Beam {
    /// The lane whose row of the session this beam continues.
    pub(super) fn from(&self) -> usize {
        self.path.last().copied().unwrap_or(0)
    }

    /// Becomes `other` with one more token, in its own memory.
    pub(super) fn extend(&mut self, other: &Beam, lane: usize, token: TokenId, logprob: f32, score: f32) {
        self.ids.clone_from(&other.ids);
        self.path.clone_from(&other.path);
        self.logprobs.clone_from(&other.logprobs);
        self.ids.push(token);
        self.path.push(lane);
        self.logprobs.push(logprob);
        self.score = score;
    }

    /// This beam as a sequence that ends here.
    pub(super) fn hypothesis(&self, prompt_len: usize, score: f32, reason: FinishReason) -> Hypothesis {
        Hypothesis {
            ids: self.ids.get(prompt_len..).unwrap_or_default().to_vec(),
            path: self.path.clone(),
            logprobs: self.logprobs.clone(),
            score,
            reason,
        }
    }
}

/// A sequence that is finished.
#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    /// The new tokens.
    pub ids: Vec<TokenId>,
    /// Per new token: the lane that it extended.
    pub path: Vec<usize>,
    /// Per new token: its processed log-probability.
    pub logprobs: Vec<f32>,
    /// The sum of the log-probabilities over the length to the power of `length_penalty`.
    pub score: f32,
    /// Why it ended.
    pub reason: FinishReason,
}

/// Scores of every step and lane, when they are asked for: `[step][lanes * vocab]`.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub scores: Option<Vec<Vec<f32>>>,
    pub logits: Option<Vec<Vec<f32>>>,
}

impl Trace {
    pub(super) fn new(settings: &Settings) -> Self {
        Trace { scores: settings.output_scores.then(Vec::new), logits: settings.output_logits.then(Vec::new) }
    }

    /// Keeps the model's own scores of a step, `[lanes, vocab]`.
    pub(super) fn raw(&mut self, scores: &[f32]) {
        if let Some(logits) = &mut self.logits {
            logits.push(scores.to_vec());
        }
    }

    /// Keeps the processed log-probabilities of a step, `[lanes, vocab]`.
    pub(super) fn processed(&mut self, scores: &[f32]) {
        if let Some(kept) = &mut self.scores {
            kept.push(scores.to_vec());
        }
    }

    /// The finished `hypothesis` as it is returned; `first` is the number of its prompt's lane 0 among all lanes.
    pub(super) fn sequence(&self, hypothesis: Hypothesis, first: usize, logprobs: bool, vocab: usize) -> Sequence {
        let along = |kept: &Option<Vec<Vec<f32>>>| {
            kept.as_ref().map(|steps| {
                let row = |(step, lane): (&Vec<f32>, &usize)| step[lane * vocab..][..vocab].to_vec();
                steps.iter().zip(&hypothesis.path).map(row).collect()
            })
        };
        Sequence {
            drafts: None,
            scores: along(&self.scores),
            logits: along(&self.logits),
            beam_indices: Some(hypothesis.path.iter().map(|lane| first.wrapping_add(*lane)).collect()),
            score: Some(hypothesis.score),
            logprobs: logprobs.then_some(hypothesis.logprobs),
            ids: hypothesis.ids,
            finish: hypothesis.reason,
            hidden_states: None,
        }
    }
}
