//! Greedy choice: the token with the largest score, as `torch.argmax` gives it.

use super::peak::peak;
use crate::token::TokenId;

/// The first largest of `scores`, `[vocab]`.
///
/// NaN counts as the largest, and a row of nothing but minus infinity gives 0, both as in Python.
///
/// ```
/// use unspool_core::select::argmax;
///
/// assert_eq!(argmax(&[0.1, 0.7, 0.7, -1.0]), 1);
/// ```
pub fn argmax(scores: &[f32]) -> TokenId {
    let peak = peak(scores);
    let place = if peak.nan {
        scores.iter().position(|score| score.is_nan())
    } else {
        scores.iter().position(|&score| score == peak.max)
    };
    place.unwrap_or(0) as TokenId
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn takes_the_first_of_equals() {
        assert_eq!(argmax(&[0.0, 2.0, 1.0, 2.0]), 1);
    }

    #[test]
    fn nan_is_the_largest() {
        assert_eq!(argmax(&[0.0, f32::INFINITY, f32::NAN, f32::NAN]), 2);
    }

    #[test]
    fn gives_zero_when_everything_is_forbidden() {
        assert_eq!(argmax(&[f32::NEG_INFINITY; 5]), 0);
    }

    #[test]
    fn minus_zero_equals_zero() {
        assert_eq!(argmax(&[-1.0, -0.0, 0.0]), 1);
    }

    proptest! {
        #[test]
        fn equals_the_plain_search(scores in prop::collection::vec(-4i8..4, 1..200)) {
            let scores: Vec<f32> = scores.into_iter().map(f32::from).collect();
            let mut best = 0;
            for (id, &score) in scores.iter().enumerate() {
                if score > scores[best] {
                    best = id;
                }
            }
            prop_assert_eq!(argmax(&scores), best as TokenId);
        }
    }
}
