//! F32, F16 and BF16: plain little-endian numbers.

/// Widens F32 bytes.
pub(crate) fn from_f32(bytes: &[u8], out: &mut [f32]) {
    for (value, &bytes) in out.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *value = f32::from_le_bytes(bytes);
    }
}

/// Widens F16 bytes.
pub(crate) fn from_f16(bytes: &[u8], out: &mut [f32]) {
    for (value, &bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = half::f16::from_le_bytes(bytes).to_f32();
    }
}

/// Widens BF16 bytes: the upper half of an f32.
pub(crate) fn from_bf16(bytes: &[u8], out: &mut [f32]) {
    for (value, &[low, high]) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *value = f32::from_le_bytes([0, 0, low, high]);
    }
}
