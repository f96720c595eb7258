//! Q4_K: 256 weights in eight groups of 32, 4 bits each, with 6 bit scales and minima under two f16 factors.

use super::contract::{BlockFormat, Group, f16_at};
use super::k_scales::scale_and_minimum;

/// `[d f16][dmin f16][12 bytes of scales and minima][128 bytes of codes]`; weight = d * scale * code - dmin * minimum.
pub(crate) struct Q4K;

impl BlockFormat for Q4K {
    const BYTES: usize = 144;
    const WEIGHTS: usize = 256;
    const GROUP: usize = 32;

    fn group(block: &[u8], index: usize) -> Group {
        let (scale, minimum) = scale_and_minimum(&block[4..16], index);
        let codes = low_bits(&block[16..], index);
        Group::of_32(
            f16_at(block, 0) * f32::from(scale),
            -(f16_at(block, 2) * f32::from(minimum)),
            codes.map(|code| code as i8),
        )
    }
}

/// The nibbles of group `index`: two neighbouring groups share 32 bytes, the even one in the low halves.
pub(crate) fn low_bits(codes: &[u8], index: usize) -> [u8; 32] {
    let mut out = [0; 32];
    for (code, byte) in out.iter_mut().zip(&codes[index / 2 * 32..]) {
        *code = byte >> (index % 2 * 4) & 0x0f;
    }
    out
}
