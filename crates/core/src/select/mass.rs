//! The sum under a softmax.

use super::exp::exp;
use super::peak::peak;

/// Scores summed together; after a filter such as top-k most such blocks hold nothing and cost one comparison a score.
pub(super) const BLOCK: usize = 256;

/// Sums that run side by side, joined in a fixed order: fast, and the same on every platform.
const LANES: usize = 8;

/// `sum(exp(scores - max))` of every [`BLOCK`] of scores: terms in single precision, their sum in double. `max` is the
/// largest score of the row.
pub(crate) fn masses(scores: &[f32], max: f32) -> impl Iterator<Item = f64> {
    scores.chunks(BLOCK).map(move |block| if peak(block).max == f32::NEG_INFINITY { 0.0 } else { mass(block, max) })
}

fn mass(scores: &[f32], max: f32) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (blocks, rest) = scores.as_chunks::<LANES>();
    for block in blocks {
        let terms = block.map(|score| exp(score - max));
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += f64::from(term);
        }
    }
    for (sum, &score) in sums.iter_mut().zip(rest) {
        *sum += f64::from(exp(score - max));
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_every_score_once() {
        for len in [1, 7, 8, 9, 255, 256, 257, 1000] {
            assert_eq!(masses(&vec![2.0; len], 2.0).sum::<f64>(), len as f64);
        }
        let mut scores = vec![f32::NEG_INFINITY; 600];
        scores[599] = 0.0;
        assert_eq!(masses(&scores, 0.0).collect::<Vec<_>>(), [0.0, 0.0, 1.0]);
    }
}
