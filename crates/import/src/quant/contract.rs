//! What every block format answers: the size of its block, and the groups of weights that share a scale.

/// The most weights that share one scale in any supported format.
pub const MAX_GROUP: usize = 32;

/// Neighbouring weights of one row that share a scale: 32 of them, or 16 in Q6_K.
///
/// Weight `i` is `scale * quants[i] + offset`, computed in f32 with one rounding after the product and one after the
/// sum. That is bit for bit the value of `gguf.quants.dequantize` (and of [`crate::quant::dequantize`]) in every
/// format. Formats without an offset carry `-0.0`, the one number that leaves every f32 unchanged when added.
///
/// In Q4_K, Q5_K and Q6_K `scale` and `offset` are themselves products (an f16 factor times a 6 or 8 bit integer).
/// The product of Q4_K and Q5_K has at most 17 significant bits, that of Q6_K at most 18: exact in f32, not in f16.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// The step between two neighbouring values.
    pub scale: f32,
    /// What is added to every weight of the group; `-0.0` in formats without one.
    pub offset: f32,
    quants: [i8; MAX_GROUP],
    len: u8,
}

impl Group {
    /// A group of 32 weights.
    pub(crate) fn of_32(scale: f32, offset: f32, quants: [i8; MAX_GROUP]) -> Self {
        Group { scale, offset, quants, len: 32 }
    }

    /// A group of 16 weights.
    pub(crate) fn of_16(scale: f32, offset: f32, first: [i8; 16]) -> Self {
        let mut quants = [0; MAX_GROUP];
        quants[..16].copy_from_slice(&first);
        Group { scale, offset, quants, len: 16 }
    }

    /// The integers, already less the format's zero point: `-8..=7` in Q4_0, `0..=15` in Q4_1 and Q4_K, `-16..=15` in
    /// Q5_0, `0..=31` in Q5_1 and Q5_K, `-32..=31` in Q6_K, `-128..=127` in Q8_0.
    ///
    /// The unsigned code that a packed graph weight wants is `quant + zero_point`, see
    /// [`GgmlType::zero_point`](crate::quant::GgmlType::zero_point).
    pub fn quants(&self) -> &[i8] {
        &self.quants[..usize::from(self.len)]
    }

    /// The f32 values of the group, in order.
    pub fn values(&self) -> impl Iterator<Item = f32> + '_ {
        self.quants().iter().map(|&quant| self.scale * f32::from(quant) + self.offset)
    }
}

/// One block format. Every method gets a slice of exactly `BYTES` bytes and an index below `WEIGHTS / GROUP`.
pub(crate) trait BlockFormat {
    /// Bytes of a block.
    const BYTES: usize;
    /// Weights of a block.
    const WEIGHTS: usize;
    /// Weights that share a scale.
    const GROUP: usize;

    /// Group `index` of a block.
    fn group(block: &[u8], index: usize) -> Group;
}

/// The f16 at byte `at` of a block, as f32.
pub(crate) fn f16_at(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// The low (half 0: weights 0 to 15) and high (weights 16 to 31) four bits of 16 bytes.
pub(crate) fn nibbles(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (i, byte) in bytes.iter().take(16).enumerate() {
        out[i] = byte & 0x0f;
        out[i + 16] = byte >> 4;
    }
    out
}
