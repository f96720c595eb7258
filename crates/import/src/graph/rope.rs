//! Tables of rotary positions, computed as transformers does: frequencies and angles in f32.

use std::f64::consts::PI;
use std::ops::Range;

use super::contract::{Rope, RopeScaling};

/// Cosines and sines of some positions, each `[positions, head_dim / 2]` f32.
///
/// Follows `ROPE_INIT_FUNCTIONS` of transformers (`default`, `linear`, `llama3`).
pub fn rope_tables(rope: &Rope, head_dim: usize, positions: Range<usize>) -> (Vec<f32>, Vec<f32>) {
    let frequencies = frequencies(rope, head_dim);
    let (mut cos, mut sin) = (Vec::new(), Vec::new());
    for position in positions {
        for frequency in &frequencies {
            let angle = f64::from(position as f32 * frequency);
            cos.push(angle.cos() as f32);
            sin.push(angle.sin() as f32);
        }
    }
    (cos, sin)
}

/// `rows` of `width` numbers, each filled up with `value` to `filled` numbers.
pub(super) fn fill_up(rows: Vec<f32>, width: usize, filled: usize, value: f32) -> Vec<f32> {
    if width == filled {
        return rows;
    }
    let rest = vec![value; filled - width];
    rows.chunks(width.max(1)).flat_map(|row| row.iter().chain(&rest)).copied().collect()
}

fn frequencies(rope: &Rope, head_dim: usize) -> Vec<f32> {
    let base = f64::from(rope.theta as f32);
    let plain = (0..head_dim / 2).map(|pair| {
        let exponent = (2 * pair) as f32 / head_dim as f32;
        1.0 / (base.powf(f64::from(exponent)) as f32)
    });
    match &rope.scaling {
        RopeScaling::None => plain.collect(),
        RopeScaling::Linear { factor } => plain.map(|frequency| frequency / *factor as f32).collect(),
        RopeScaling::Factors(factors) => {
            plain.enumerate().map(|(pair, frequency)| frequency / factors.get(pair).copied().unwrap_or(1.0)).collect()
        }
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_positions } => {
            let original = *original_positions as f64;
            let (low, high) = (*low_freq_factor as f32, *high_freq_factor as f32);
            let low_wavelength = (original / low_freq_factor) as f32;
            let high_wavelength = (original / high_freq_factor) as f32;
            let factor = *factor as f32;
            plain
                .map(|frequency| {
                    let wavelength = (2.0 * PI) as f32 / frequency;
                    if wavelength > low_wavelength {
                        frequency / factor
                    } else if wavelength < high_wavelength {
                        frequency
                    } else {
                        let smooth = (original as f32 / wavelength - low) / (high - low);
                        (1.0 - smooth) * frequency / factor + smooth * frequency
                    }
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: RopeScaling) -> Rope {
        Rope { theta: 10_000.0, scaling }
    }

    #[test]
    fn tables_follow_the_formula() {
        let (cos, sin) = rope_tables(&rope(RopeScaling::None), 8, 0..5);
        assert_eq!((cos.len(), sin.len()), (20, 20));
        for position in 0..5 {
            for pair in 0..4 {
                let angle = position as f64 * 10_000f64.powf(-2.0 * pair as f64 / 8.0);
                assert!((f64::from(cos[position * 4 + pair]) - angle.cos()).abs() < 1e-6);
                assert!((f64::from(sin[position * 4 + pair]) - angle.sin()).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn linear_divides_every_position() {
        let plain = frequencies(&rope(RopeScaling::None), 8);
        let linear = frequencies(&rope(RopeScaling::Linear { factor: 4.0 }), 8);
        let factors = frequencies(&rope(RopeScaling::Factors(vec![4.0; 4])), 8);
        assert_eq!(linear, plain.iter().map(|frequency| frequency / 4.0).collect::<Vec<_>>());
        assert_eq!(linear, factors);
    }

    #[test]
    fn llama3_keeps_high_frequencies_and_divides_low_ones() {
        let scaling =
            RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_positions: 8192 };
        let rope = Rope { theta: 500_000.0, scaling };
        let plain = frequencies(&Rope { scaling: RopeScaling::None, ..rope.clone() }, 128);
        let scaled = frequencies(&rope, 128);
        assert_eq!(scaled[0], plain[0]);
        assert_eq!(scaled[63], plain[63] / 8.0);
        let between = scaled.iter().zip(&plain).filter(|(s, p)| *s < *p && **s > *p / 8.0).count();
        assert!(between > 3, "{between} frequencies on the ramp");
    }
}
