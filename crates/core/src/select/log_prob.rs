//! The log-probability of a chosen token; Python's `compute_transition_scores(normalize_logits=True)`.

use super::exp::exp;
use super::mass::masses;
use super::peak::peak;
use crate::token::TokenId;

/// `log_softmax(scores)[id]` of processed `scores`, `[vocab]`.
///
/// The largest score is subtracted first; the terms are single precision and their sum is double, so that the result is
/// within about 3e-7 of the exact one. NaN when the softmax is undefined (everything forbidden, NaN or infinity among
/// the scores), as in Python; minus infinity when `id` is forbidden or outside the vocabulary.
///
/// ```
/// use unspool_core::select::log_prob;
///
/// assert!((log_prob(&[1.0, 1.0], 0) - 0.5f32.ln()).abs() < 1e-6);
/// ```
#[doc(alias = "compute_transition_scores")]
pub fn log_prob(scores: &[f32], id: TokenId) -> f32 {
    let peak = peak(scores);
    if peak.nan || peak.max.is_infinite() {
        return f32::NAN;
    }
    let Some(&score) = scores.get(id as usize) else { return f32::NEG_INFINITY };
    (f64::from(score) - f64::from(peak.max) - masses(scores, peak.max).sum::<f64>().ln()) as f32
}

/// `softmax(scores)[id]`, from weights of single precision as the filters have them: equal scores give exactly equal
/// shares. NaN and 0 where [`log_prob`] is NaN and minus infinity.
pub(crate) fn prob(scores: &[f32], id: TokenId) -> f32 {
    let peak = peak(scores);
    if peak.nan || peak.max.is_infinite() {
        return f32::NAN;
    }
    let Some(&score) = scores.get(id as usize) else { return 0.0 };
    exp(score - peak.max) / masses(scores, peak.max).sum::<f64>() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_have_exactly_equal_probabilities() {
        for n in [1, 2, 4, 5, 10] {
            assert_eq!(prob(&vec![-3.7; n], 0), 1.0 / n as f32);
        }
        assert_eq!(prob(&[1.0, f32::NEG_INFINITY], 1), 0.0);
        assert!(prob(&[0.0, f32::NAN], 0).is_nan());
    }

    #[test]
    fn equals_the_exact_log_softmax() {
        let scores: Vec<f32> = (0..1000).map(|id| ((id * 37) % 101) as f32 * 0.3 - 10.0).collect();
        let mass: f64 = scores.iter().map(|&score| f64::from(score).exp()).sum();
        for id in 0..1000u32 {
            let expected = f64::from(scores[id as usize]) - mass.ln();
            assert!((f64::from(log_prob(&scores, id)) - expected).abs() < 2e-6 * expected.abs().max(1.0));
        }
    }

    #[test]
    fn a_single_token_left_has_probability_one() {
        assert_eq!(log_prob(&[f32::NEG_INFINITY, 3.5, f32::NEG_INFINITY], 1), 0.0);
        assert_eq!(log_prob(&[f32::NEG_INFINITY, 3.5, f32::NEG_INFINITY], 0), f32::NEG_INFINITY);
    }

    #[test]
    fn is_nan_where_the_softmax_is_undefined() {
        assert!(log_prob(&[f32::NEG_INFINITY; 3], 0).is_nan());
        assert!(log_prob(&[0.0, f32::NAN], 0).is_nan());
    }
}
