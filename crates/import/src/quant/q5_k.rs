//! Q5_K: Q4_K with a fifth bit per weight.

use super::contract::{BlockFormat, Group, f16_at};
use super::k_scales::scale_and_minimum;
use super::q4_k::low_bits;

/// `[d f16][dmin f16][12 bytes of scales and minima][32 bytes of fifth bits][128 bytes of low bits]`.
pub(crate) struct Q5K;

impl BlockFormat for Q5K {
    const BYTES: usize = 176;
    const WEIGHTS: usize = 256;
    const GROUP: usize = 32;

    fn group(block: &[u8], index: usize) -> Group {
        let (scale, minimum) = scale_and_minimum(&block[4..16], index);
        let mut codes = low_bits(&block[48..], index);
        for (code, high) in codes.iter_mut().zip(&block[16..48]) {
            *code |= (high >> index & 1) << 4;
        }
        Group::of_32(
            f16_at(block, 0) * f32::from(scale),
            -(f16_at(block, 2) * f32::from(minimum)),
            codes.map(|code| code as i8),
        )
    }
}
