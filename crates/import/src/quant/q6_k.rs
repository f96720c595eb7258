//! Q6_K: 256 weights in sixteen groups of 16, 6 bits each around zero, signed 8 bit scales under one f16 factor.

use super::contract::{BlockFormat, Group, f16_at};

/// `[128 bytes of low bits][64 bytes of high bits][16 signed scales][d f16]`; weight = d * scale * (code - 32).
pub(crate) struct Q6K;

impl BlockFormat for Q6K {
    const BYTES: usize = 210;
    const WEIGHTS: usize = 256;
    const GROUP: usize = 16;

    fn group(block: &[u8], index: usize) -> Group {
        // Weights come in two halves of 128; a half is four runs of 32. Runs 0 and 1 take the low nibbles of its 64
        // low bytes, runs 2 and 3 the high ones; run r takes bits 2r and 2r+1 of its 32 high bytes.
        let (half, run, part) = (index / 8, index % 8 / 2, index % 2);
        let low = &block[half * 64 + run % 2 * 32 + part * 16..];
        let high = &block[128 + half * 32 + part * 16..];
        let mut quants = [0; 16];
        for (i, quant) in quants.iter_mut().enumerate() {
            let code = low[i] >> (run / 2 * 4) & 0x0f | (high[i] >> (run * 2) & 3) << 4;
            *quant = code as i8 - 32;
        }
        Group::of_16(f16_at(block, 208) * f32::from(block[192 + index] as i8), -0.0, quants)
    }
}
