//! The probabilities that filters compare.

/// Writes the softmax of `scores`, `[vocab] f32`, into `probabilities` (resized to fit; no allocation once it is large
/// enough) and returns the largest one, or `None` when the softmax is not a distribution (a NaN, plus infinity, or only
/// minus infinities): Python's filters then compare with NaN and change nothing.
///
/// Everything is `f32` but the sum, which is kept in `f64` and rounded once.
pub(crate) fn softmax(scores: &[f32], probabilities: &mut Vec<f32>) -> Option<f32> {
    probabilities.clear();
    let best = scores.iter().fold(f32::NEG_INFINITY, |best, &score| if score > best { score } else { best });
    let mut sum = 0.0f64;
    probabilities.extend(scores.iter().map(|&score| {
        let weight = (score - best).exp();
        sum += f64::from(weight);
        weight
    }));
    let sum = sum as f32;
    if !(sum > 0.0 && sum.is_finite()) {
        return None;
    }
    let mut largest = 0.0f32;
    for probability in probabilities.iter_mut() {
        *probability /= sum;
        largest = largest.max(*probability);
    }
    Some(largest)
}
