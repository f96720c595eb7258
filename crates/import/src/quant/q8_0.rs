//! Q8_0: 32 signed bytes, one f16 scale.

use super::contract::{BlockFormat, Group, f16_at};

/// `[scale f16][32 signed bytes]`; weight = scale * byte.
pub(crate) struct Q8_0;

impl BlockFormat for Q8_0 {
    const BYTES: usize = 34;
    const WEIGHTS: usize = 32;
    const GROUP: usize = 32;

    fn group(block: &[u8], _index: usize) -> Group {
        let mut quants = [0; 32];
        for (quant, byte) in quants.iter_mut().zip(&block[2..]) {
            *quant = *byte as i8;
        }
        Group::of_32(f16_at(block, 0), -0.0, quants)
    }
}
