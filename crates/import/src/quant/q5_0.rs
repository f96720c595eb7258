//! Q5_0: 32 weights of 5 bits around zero, one f16 scale.

use super::contract::{BlockFormat, Group, f16_at, nibbles};

/// `[scale f16][fifth bits, 4 bytes][16 bytes of low bits]`; weight = scale * (code - 16).
pub(crate) struct Q5_0;

impl BlockFormat for Q5_0 {
    const BYTES: usize = 22;
    const WEIGHTS: usize = 32;
    const GROUP: usize = 32;

    fn group(block: &[u8], _index: usize) -> Group {
        Group::of_32(f16_at(block, 0), -0.0, five_bits(&block[2..6], &block[6..]).map(|code| code as i8 - 16))
    }
}

/// 32 codes of five bits: bit `i` of the little-endian word `high` above nibble `i` of `low`.
pub(crate) fn five_bits(high: &[u8], low: &[u8]) -> [u8; 32] {
    let mut codes = nibbles(low);
    for (i, code) in codes.iter_mut().enumerate() {
        *code |= (high[i / 8] >> (i % 8) & 1) << 4;
    }
    codes
}
