//! Q4_0: 32 weights of 4 bits around zero, one f16 scale.

use super::contract::{BlockFormat, Group, f16_at, nibbles};

/// `[scale f16][16 bytes of codes]`; weight = scale * (code - 8).
pub(crate) struct Q4_0;

impl BlockFormat for Q4_0 {
    const BYTES: usize = 18;
    const WEIGHTS: usize = 32;
    const GROUP: usize = 32;

    fn group(block: &[u8], _index: usize) -> Group {
        Group::of_32(f16_at(block, 0), -0.0, nibbles(&block[2..]).map(|code| code as i8 - 8))
    }
}
