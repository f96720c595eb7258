//! The sum under a softmax.

use super::exp::exp;

/// Sums that run side by side, joined in a fixed order: fast, and the same on every platform.
const LANES: usize = 8;

/// `sum(exp(scores - max))`: terms in single precision, their sum in double. `max` is the largest score of the row.
pub(super) fn mass(scores: &[f32], max: f32) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (blocks, rest) = scores.as_chunks::<LANES>();
    for block in blocks {
        for (sum, &score) in sums.iter_mut().zip(block) {
            *sum += f64::from(exp(score - max));
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
        for len in [1, 7, 8, 9, 100] {
            assert_eq!(mass(&vec![2.0; len], 2.0), len as f64);
        }
        assert_eq!(mass(&[f32::NEG_INFINITY, 0.0], 0.0), 1.0);
    }
}
