//! Q4_1: 32 weights of 4 bits above a minimum, f16 scale and minimum.

use super::contract::{BlockFormat, Group, f16_at, nibbles};

/// `[scale f16][minimum f16][16 bytes of codes]`; weight = scale * code + minimum.
pub(crate) struct Q4_1;

impl BlockFormat for Q4_1 {
    const BYTES: usize = 20;
    const WEIGHTS: usize = 32;
    const GROUP: usize = 32;

    fn group(block: &[u8], _index: usize) -> Group {
        Group::of_32(f16_at(block, 0), f16_at(block, 2), nibbles(&block[4..]).map(|code| code as i8))
    }
}
