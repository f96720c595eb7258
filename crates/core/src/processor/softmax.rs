//! The probabilities that filters compare.

use crate::select::exp::exp;
use crate::select::mass::masses;
use crate::select::peak::peak;

/// Sums that run side by side, joined in a fixed order: fast, and the same on every platform.
const LANES: usize = 8;

/// Writes the softmax of `scores`, `[vocab] f32`, into `probabilities` (resized to fit; no allocation once it is large
/// enough) and returns the largest one, or `None` when the softmax is not a distribution (a NaN, plus infinity, or only
/// minus infinities): Python's filters then compare with NaN and change nothing.
///
/// Everything is `f32` but the sum, which is kept in `f64` and rounded once. A filter at its bound decides the same way
/// on every platform, since the exponential is our own.
pub(crate) fn softmax(scores: &[f32], probabilities: &mut Vec<f32>) -> Option<f32> {
    let best = peak(scores);
    probabilities.clear();
    if best.nan || !best.max.is_finite() {
        return None;
    }
    probabilities.extend(scores.iter().map(|&score| exp(score - best.max)));
    let mut sums = [0.0f64; LANES];
    let (blocks, rest) = probabilities.as_chunks::<LANES>();
    for block in blocks.iter().map(<[f32; LANES]>::as_slice).chain([rest]) {
        for (sum, &weight) in sums.iter_mut().zip(block) {
            *sum += f64::from(weight);
        }
    }
    let sum = sums.iter().sum::<f64>() as f32;
    for probability in probabilities.iter_mut() {
        *probability /= sum;
    }
    // The best score has the weight 1.
    Some(1.0 / sum)
}

/// What [`softmax`] gives for the scores of `ids`, in their order, when every other score is minus infinity: the same
/// numbers, bit for bit. `ids` ascend; all their scores are finite.
pub(crate) fn softmax_of_few(scores: &[f32], ids: &[u32], probabilities: &mut Vec<f32>) {
    let score = |id: &u32| scores.get(*id as usize).copied().unwrap_or(f32::NEG_INFINITY);
    let max = ids.iter().map(score).fold(f32::NEG_INFINITY, f32::max);
    probabilities.clear();
    let mut sums = [0.0f64; LANES];
    for id in ids {
        let weight = exp(score(id) - max);
        sums[*id as usize % LANES] += f64::from(weight);
        probabilities.push(weight);
    }
    let sum = sums.iter().sum::<f64>() as f32;
    for probability in probabilities.iter_mut() {
        *probability /= sum;
    }
}

/// Collects the ids of the scores that are not minus infinity; false when there are none, more than `most`, or one that is
/// no finite number.
pub(crate) fn find_few(scores: &[f32], most: usize, ids: &mut Vec<u32>) -> bool {
    ids.clear();
    for (score, id) in scores.iter().zip(0..) {
        if *score != f32::NEG_INFINITY {
            if ids.len() == most || !score.is_finite() {
                return false;
            }
            ids.push(id);
        }
    }
    !ids.is_empty()
}

/// The logarithm of the sum of the exponentials of `scores`; NaN where the softmax is not a distribution.
pub(crate) fn log_mass(scores: &[f32]) -> f64 {
    let best = peak(scores);
    if best.nan || !best.max.is_finite() {
        return f64::NAN;
    }
    f64::from(best.max) + masses(scores, best.max).sum::<f64>().ln()
}

/// The entropy of the softmax of `scores` in nats, given their [`log_mass`]; a forbidden token adds nothing.
pub(crate) fn entropy(scores: &[f32], log_mass: f64) -> f64 {
    let terms = scores.iter().filter(|score| **score > f32::NEG_INFINITY).map(|&score| {
        let log = f64::from(score) - log_mass;
        f64::from(exp(log.min(0.0) as f32)) * log
    });
    -terms.sum::<f64>()
}

/// Makes `scores` log-probabilities; NaN everywhere where the softmax is not a distribution, as in Python.
pub(crate) fn log_softmax(scores: &mut [f32]) {
    let log_mass = log_mass(scores);
    for score in scores {
        *score = (f64::from(*score) - log_mass) as f32;
    }
}
