//! Q5_1: 32 weights of 5 bits above a minimum, f16 scale and minimum.

use super::contract::{BlockFormat, Group, f16_at};
use super::q5_0::five_bits;

/// `[scale f16][minimum f16][fifth bits, 4 bytes][16 bytes of low bits]`; weight = scale * code + minimum.
pub(crate) struct Q5_1;

impl BlockFormat for Q5_1 {
    const BYTES: usize = 24;
    const WEIGHTS: usize = 32;
    const GROUP: usize = 32;

    fn group(block: &[u8], _index: usize) -> Group {
        let codes = five_bits(&block[4..8], &block[8..]);
        Group::of_32(f16_at(block, 0), f16_at(block, 2), codes.map(|code| code as i8))
    }
}
