//! When an assistant is not sure enough to go on: a threshold that follows what was accepted.

/// How much worse it is to hold back a token that would be accepted than to draft one that is not.
const MISSED: f64 = 3.0;

/// Probabilities seen before the threshold moves.
const SAMPLES: usize = 5;

/// The threshold of Python's `assistant_confidence_threshold`, adapted as Python does where scikit-learn is installed.
#[derive(Clone, Debug, Default)]
pub(super) struct Confidence {
    threshold: f64,
    adapts: bool,
    /// Probability of every drafted token that was judged, and whether it was accepted.
    seen: Vec<(f64, bool)>,
    /// Probabilities of tokens that are not judged yet.
    open: Vec<f64>,
}

impl Confidence {
    /// Starts from `threshold`; 0 never stops a draft and stays.
    pub(super) fn new(threshold: f64, adapts: bool) -> Self {
        Confidence { threshold, adapts: adapts && threshold > 0.0, ..Confidence::default() }
    }

    /// The threshold in force.
    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Tokens of these probabilities were drafted.
    pub(super) fn drafted(&mut self, probabilities: &[f64]) {
        if self.adapts {
            self.open = probabilities.to_vec();
        }
    }

    /// The first `accepted` of them were accepted. One that was not is judged too; those after it were never looked at.
    pub(super) fn verified(&mut self, accepted: usize) {
        if !self.adapts {
            return;
        }
        let judged = self.open.drain(..).take(accepted + 1).enumerate();
        self.seen.extend(judged.map(|(place, probability)| (probability, place < accepted)));
        if let Some(best) = best(&self.seen) {
            self.threshold = best;
        }
    }
}

/// The probability at and above which to draft, so that wrongly drafted and wrongly held back tokens cost least; `None` while
/// there are too few, or all alike.
fn best(seen: &[(f64, bool)]) -> Option<f64> {
    let right = seen.iter().filter(|(_, accepted)| *accepted).count();
    let wrong = seen.len() - right;
    if seen.len() <= SAMPLES || right == 0 || wrong == 0 {
        return None;
    }
    let mut sorted = seen.to_vec();
    sorted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    // Above every probability nothing is drafted: no wrong token, and all right ones missed.
    let mut least = (MISSED, f64::INFINITY);
    let (mut hits, mut fails) = (0, 0);
    for (place, (probability, accepted)) in sorted.iter().enumerate() {
        hits += usize::from(*accepted);
        fails += usize::from(!*accepted);
        let last_of_equals = sorted.get(place + 1).is_none_or(|(next, _)| next != probability);
        let cost = fails as f64 / wrong as f64 + MISSED * (1.0 - hits as f64 / right as f64);
        if last_of_equals && cost < least.0 {
            least = (cost, *probability);
        }
    }
    Some(least.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_threshold_that_python_takes() {
        let probabilities = [0.9, 0.8, 0.7, 0.6, 0.3, 0.5];
        let matches = [true, true, false, true, false, true];
        let seen: Vec<_> = probabilities.into_iter().zip(matches).collect();
        assert_eq!(best(&seen), Some(0.5));
        assert_eq!(best(&seen[..5]), None);
        assert_eq!(best(&[(0.5, true); 9]), None);
    }

    #[test]
    fn equal_probabilities_stand_on_one_side() {
        let seen = [(0.9, true), (0.5, false), (0.5, true), (0.5, false), (0.2, false), (0.1, false)];
        // At 0.9: no wrong one, half missed: 1.5. At 0.5: half of the wrong ones, none missed: 0.5.
        assert_eq!(best(&seen), Some(0.5));
    }

    #[test]
    fn moves_once_enough_was_judged_and_never_from_zero() {
        let mut confidence = Confidence::new(0.4, true);
        confidence.drafted(&[0.9, 0.8, 0.6, 0.5]);
        confidence.verified(2);
        assert_eq!(confidence.threshold(), 0.4);
        confidence.drafted(&[0.9, 0.7, 0.65]);
        confidence.verified(3);
        assert_eq!(confidence.threshold(), 0.65);
        let mut off = Confidence::new(0.0, true);
        let mut fixed = Confidence::new(0.4, false);
        for confidence in [&mut off, &mut fixed] {
            confidence.drafted(&[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]);
            confidence.verified(3);
        }
        assert_eq!((off.threshold(), fixed.threshold()), (0.0, 0.4));
    }
}
