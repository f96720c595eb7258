//! Several places drawn from one softmax, each at most once; `torch.multinomial(softmax(scores), k)`.

use super::drawable::drawable;
use super::exp::exp;
use super::mass::{BLOCK, masses};
use crate::error::Result;
use crate::rng::Rng;

/// Draws without replacement; keeps its scratch memory from call to call.
///
/// ```
/// use unspool_core::{rng::Rng, select::WithoutReplacement};
///
/// let mut draw = WithoutReplacement::default();
/// let mut drawn = draw.pick(&[0.0, f32::NEG_INFINITY, 1.0], 2, &mut Rng::for_row(1, 0, 0)).unwrap().to_vec();
/// drawn.sort();
/// assert_eq!(drawn, [0, 2]);
/// ```
#[derive(Debug, Default)]
#[doc(alias = "multinomial")]
pub struct WithoutReplacement {
    sums: Vec<f64>,
    drawn: Vec<usize>,
}

impl WithoutReplacement {
    /// `k` different places in the order in which they were drawn: each from the softmax of those that are left.
    ///
    /// When fewer than `k` have any probability, the rest are the first places that have none, those with a score before
    /// those without. All places when there are fewer than `k`.
    ///
    /// # Errors
    ///
    /// When every score is minus infinity, or one is NaN or plus infinity.
    pub fn pick(&mut self, scores: &[f32], k: usize, rng: &mut Rng) -> Result<&[usize]> {
        let max = drawable(scores)?;
        let k = k.min(scores.len());
        self.sums.clear();
        self.sums.extend(masses(scores, max));
        self.drawn.clear();
        while self.drawn.len() < k {
            let Some(place) = self.draw(scores, max, rng) else { break };
            self.drawn.push(place);
            let block = place / BLOCK;
            let left = self.weights(scores, max, block).map(|(_, weight)| weight).sum();
            self.sums[block] = left;
        }
        self.fill(scores, k);
        Ok(&self.drawn)
    }

    /// One place that was not drawn before; none when no probability is left.
    fn draw(&self, scores: &[f32], max: f32, rng: &mut Rng) -> Option<usize> {
        let mut left = rng.uniform() * self.sums.iter().sum::<f64>();
        let mut chosen = None;
        for (block, &sum) in self.sums.iter().enumerate().filter(|(_, sum)| **sum > 0.0) {
            chosen = Some((block, left));
            if left < sum {
                break;
            }
            left -= sum;
        }
        let (block, mut left) = chosen?;
        let mut place = None;
        for (at, weight) in self.weights(scores, max, block).filter(|(_, weight)| *weight > 0.0) {
            place = Some(at);
            if left < weight {
                break;
            }
            left -= weight;
        }
        place
    }

    /// The places of a block that were not drawn, with their weights.
    fn weights(&self, scores: &[f32], max: f32, block: usize) -> impl Iterator<Item = (usize, f64)> {
        let first = block * BLOCK;
        let places = scores.iter().enumerate().skip(first).take(BLOCK);
        places.filter(|(at, _)| !self.drawn.contains(at)).map(move |(at, score)| (at, f64::from(exp(score - max))))
    }

    /// Adds places without probability until there are `k`.
    fn fill(&mut self, scores: &[f32], k: usize) {
        for with_score in [true, false] {
            for (place, score) in scores.iter().enumerate() {
                if self.drawn.len() >= k {
                    return;
                }
                if (*score > f32::NEG_INFINITY) == with_score && !self.drawn.contains(&place) {
                    self.drawn.push(place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn draws_as_often_as_the_plackett_luce_distribution_says() {
        let probabilities = [0.5f64, 0.3, 0.2];
        let scores = probabilities.map(|p| p.ln() as f32);
        let (mut rng, mut draw, mut counts) = (Rng::for_row(3, 0, 0), WithoutReplacement::default(), [[0u32; 3]; 3]);
        for _ in 0..20_000 {
            let pair = draw.pick(&scores, 2, &mut rng).unwrap();
            counts[pair[0]][pair[1]] += 1;
        }
        for first in 0..3 {
            for second in (0..3).filter(|second| *second != first) {
                let p = probabilities[first] * probabilities[second] / (1.0 - probabilities[first]);
                let expected = 20_000.0 * p;
                assert!((f64::from(counts[first][second]) - expected).abs() < 5.0 * expected.sqrt(), "{counts:?}");
            }
            assert_eq!(counts[first][first], 0);
        }
    }

    #[test]
    fn finds_every_place_of_a_long_row_once() {
        let scores: Vec<f32> = (0..1000).map(|place| (place % 7) as f32).collect();
        let mut draw = WithoutReplacement::default();
        let mut drawn = draw.pick(&scores, 2000, &mut Rng::for_row(0, 0, 0)).unwrap().to_vec();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn what_has_no_probability_comes_last() {
        let scores = [f32::NEG_INFINITY, -1.0e9, 0.0, f32::NEG_INFINITY];
        let mut draw = WithoutReplacement::default();
        assert_eq!(draw.pick(&scores, 4, &mut Rng::for_row(0, 0, 0)).unwrap(), [2, 1, 0, 3]);
    }

    #[test]
    fn says_why_nothing_can_be_drawn() {
        let mut draw = WithoutReplacement::default();
        let mut rng = Rng::for_row(0, 0, 0);
        assert_eq!(draw.pick(&[f32::NEG_INFINITY; 3], 1, &mut rng).unwrap_err().kind(), ErrorKind::InvalidConfig);
        assert_eq!(draw.pick(&[f32::NAN, 1.0], 1, &mut rng).unwrap_err().kind(), ErrorKind::Engine);
    }
}
