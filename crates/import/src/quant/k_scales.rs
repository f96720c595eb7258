//! The eight 6 bit scales and eight 6 bit minima that Q4_K and Q5_K pack into twelve bytes.

/// Scale and minimum of group `index` (0 to 7).
///
/// Bytes 0 to 3 hold scales 0 to 3 in their low six bits, bytes 4 to 7 the minima 0 to 3. Scale and minimum `4 + i`
/// have their low four bits in byte `8 + i` (scale low, minimum high) and their upper two in the spare bits of bytes
/// `i` and `4 + i`.
pub(crate) fn scale_and_minimum(packed: &[u8], index: usize) -> (u8, u8) {
    if index < 4 {
        return (packed[index] & 0x3f, packed[index + 4] & 0x3f);
    }
    let low = packed[index + 4];
    (low & 0x0f | packed[index - 4] >> 2 & 0x30, low >> 4 | packed[index] >> 2 & 0x30)
}
