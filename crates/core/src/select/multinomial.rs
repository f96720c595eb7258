//! Sampling: one token drawn from the softmax of the processed scores, as `torch.multinomial` does.

use super::drawable::drawable;
use super::exp::exp;
use super::mass::{BLOCK, masses};
use crate::error::Result;
use crate::token::TokenId;

/// Draws tokens; keeps its small scratch memory from draw to draw.
///
/// ```
/// use unspool_core::select::Multinomial;
///
/// let scores = [0.25f32.ln(), f32::NEG_INFINITY, 0.75f32.ln()];
/// let mut draw = Multinomial::default();
/// assert_eq!(draw.pick(&scores, 0.2).unwrap(), 0);
/// assert_eq!(draw.pick(&scores, 0.3).unwrap(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Multinomial {
    sums: Vec<f64>,
}

impl Multinomial {
    /// The first token at which the running sum of `softmax(scores)` passes `uniform`, which lies in `[0, 1)`.
    ///
    /// `scores` is `[vocab] f32`. A forbidden token (minus infinity) is never drawn. The result depends on nothing but
    /// the arguments: the exponential is our own and sums are taken in a fixed order.
    ///
    /// # Errors
    ///
    /// When every score is minus infinity, or one is NaN or plus infinity.
    pub fn pick(&mut self, scores: &[f32], uniform: f64) -> Result<TokenId> {
        let max = drawable(scores)?;
        self.sums.clear();
        self.sums.extend(masses(scores, max));
        let mut left = uniform * self.sums.iter().sum::<f64>();
        let mut chosen = (0, left);
        for (block, &sum) in self.sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
            chosen = (block, left);
            if left < sum {
                break;
            }
            left -= sum;
        }
        let (block, left) = chosen;
        let start = block * BLOCK;
        Ok((start + walk(&scores[start..], max, left)) as TokenId)
    }
}

/// The place in the first block of `scores` where its running sum passes `left`; when rounding lets none pass, the last
/// that has any weight.
fn walk(scores: &[f32], max: f32, left: f64) -> usize {
    let (mut sum, mut last) = (0.0, 0);
    for (place, &score) in scores.iter().take(BLOCK).enumerate() {
        let weight = f64::from(exp(score - max));
        if weight > 0.0 {
            sum += weight;
            last = place;
            if sum > left {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::rng::Rng;

    fn ln(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn draws_as_often_as_the_softmax_says() {
        let scores = ln(&[0.1, 0.2, 0.0, 0.3, 0.4]);
        let (mut rng, mut draw, mut counts) = (Rng::for_row(5, 0, 0), Multinomial::default(), [0u32; 5]);
        for _ in 0..20_000 {
            counts[draw.pick(&scores, rng.uniform()).unwrap() as usize] += 1;
        }
        assert_eq!(counts[2], 0);
        for (count, expected) in counts.into_iter().zip([2000u32, 4000, 0, 6000, 8000]) {
            assert!(count.abs_diff(expected) < 250, "{counts:?}");
        }
    }

    #[test]
    fn never_draws_a_forbidden_token_even_at_the_edges() {
        let mut scores = vec![f32::NEG_INFINITY; 1000];
        scores[300] = 1.0;
        scores[999] = 1.0;
        let mut draw = Multinomial::default();
        assert_eq!(draw.pick(&scores, 0.0).unwrap(), 300);
        assert_eq!(draw.pick(&scores, 0.5).unwrap(), 999);
        assert_eq!(draw.pick(&scores, 1.0 - f64::EPSILON / 2.0).unwrap(), 999);
        scores[999] = f32::NEG_INFINITY;
        assert_eq!(draw.pick(&scores, 1.0 - f64::EPSILON / 2.0).unwrap(), 300);
    }

    #[test]
    fn finds_the_place_in_a_long_row() {
        let scores = vec![0.5; 5000];
        let mut draw = Multinomial::default();
        for place in [0, 1, 255, 256, 257, 2600, 4999] {
            assert_eq!(draw.pick(&scores, (f64::from(place) + 0.5) / 5000.0).unwrap(), place as TokenId);
        }
    }

    #[test]
    fn says_why_nothing_can_be_drawn() {
        let mut draw = Multinomial::default();
        let error = draw.pick(&[f32::NEG_INFINITY; 4], 0.5).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert_eq!(draw.pick(&[0.0, f32::NAN], 0.5).unwrap_err().kind(), ErrorKind::Engine);
        assert_eq!(draw.pick(&[0.0, f32::INFINITY], 0.5).unwrap_err().kind(), ErrorKind::Engine);
        assert!(draw.pick(&[], 0.5).is_err());
    }
}
