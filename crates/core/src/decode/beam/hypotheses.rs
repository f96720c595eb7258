//! The finished sequences of one group of beams; Python's `BeamHypotheses`.

use super::lane::Hypothesis;
use crate::config::{EarlyStopping, Settings};

/// The best finished sequences, in the order in which they came.
#[derive(Debug)]
pub(super) struct Hypotheses {
    list: Vec<(f64, Hypothesis)>,
    most: usize,
    length_penalty: f64,
    early_stopping: EarlyStopping,
}

impl Hypotheses {
    /// Room for `most` sequences.
    pub(super) fn new(most: usize, settings: &Settings) -> Self {
        let (length_penalty, early_stopping) = (settings.beams.length_penalty, settings.beams.early_stopping);
        Hypotheses { list: Vec::new(), most, length_penalty, early_stopping }
    }

    /// Adds a sequence whose log-probabilities sum up to `sum` over `length` tokens, when there is room or it beats the
    /// worst, which it then replaces.
    pub(super) fn add(&mut self, sum: f32, length: usize, mut hypothesis: Hypothesis) {
        let score = self.score(sum, length);
        if self.list.len() >= self.most && self.worst().is_some_and(|(_, worst)| score <= worst) {
            return;
        }
        hypothesis.score = score as f32;
        self.list.push((score, hypothesis));
        if self.list.len() > self.most
            && let Some((place, _)) = self.worst()
        {
            self.list.remove(place);
        }
    }

    /// Whether no beam can beat the worst sequence: `best` is the best summed log-probability of this step, after `length`
    /// new tokens of at most `max_length`.
    pub(super) fn settled(&self, best: f32, length: usize, max_length: usize) -> bool {
        if self.list.len() < self.most {
            return false;
        }
        let length = match self.early_stopping {
            EarlyStopping::First => return true,
            EarlyStopping::Never if self.length_penalty > 0.0 => max_length,
            _ => length,
        };
        self.worst().is_some_and(|(_, worst)| worst >= self.score(best, length))
    }

    /// The sequences so far.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Hypothesis> {
        self.list.iter().map(|(_, hypothesis)| hypothesis)
    }

    /// Takes the sequences out, with their scores.
    pub(super) fn take(&mut self) -> Vec<(f64, Hypothesis)> {
        std::mem::take(&mut self.list)
    }

    fn score(&self, sum: f32, length: usize) -> f64 {
        f64::from(sum) / (length as f64).powf(self.length_penalty)
    }

    /// The first of the worst.
    fn worst(&self) -> Option<(usize, f64)> {
        let scores = self.list.iter().map(|(score, _)| *score).enumerate();
        scores.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}
