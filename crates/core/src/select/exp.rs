//! An exponential of our own, since the one of the platform's C library may differ in its last bit from system to
//! system and a seed must give the same tokens everywhere.

use std::f32::consts::LOG2_E;

/// `x` is not taken below this, where `2^k` is already 0: such a share of the best token's probability (about 1e-38) is
/// never drawn.
const LOWEST: f32 = -88.0;

/// Adding it moves the integer part of a small number into the lowest bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// `e^x` for `x <= 0`, within 2e-7 of the true value (relative) down to -87.6 and 0 below -87.7.
///
/// `x = k ln 2 + r` with `|r| <= ln 2 / 2`; `e^r` is its Taylor series up to the seventh power (the rest is below 6e-9),
/// and `2^k` is written into the exponent's bits. Below `k = -126` those bits are those of 0. Additions and
/// multiplications only, each rounded as IEEE 754 says, and no branch, so that compilers make vector code of a loop.
#[inline]
pub(crate) fn exp(x: f32) -> f32 {
    /// `ln 2` in two parts; the first has few enough bits that `k` times it is exact.
    const LN_2: (f32, f32) = (355.0 / 512.0, -2.121_944_4e-4);
    let x = if x > LOWEST { x } else { LOWEST };
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2.0) - k * LN_2.1;
    let sum = 1.0 / 720.0 + r * (1.0 / 5040.0);
    let sum = 1.0 / 120.0 + r * sum;
    let sum = 1.0 / 24.0 + r * sum;
    let sum = 1.0 / 6.0 + r * sum;
    let sum = 0.5 + r * sum;
    let sum = 1.0 + r * (1.0 + r * sum);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    sum * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_near_the_true_exponential() {
        for step in 0..876_000 {
            let x = -(step as f32) * 1e-4;
            let (got, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got - expected).abs() <= 2e-7 * expected, "{x}: {got} {expected}");
        }
    }

    #[test]
    fn zero_gives_one_and_minus_infinity_gives_zero() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1000.0), 0.0);
        assert_eq!(exp(-87.7), 0.0);
    }

    #[test]
    fn gives_the_recorded_bits() {
        let bits = [-0.5f32, -1.0, -3.25, -20.0, -80.0].map(|x| exp(x).to_bits());
        assert_eq!(bits, [1_058_751_896, 1_052_531_378, 1_025_429_940, 822_977_587, 96_464_058]);
    }
}
