//! From a type and its bytes to values or groups: the one place that knows all formats.

use unspool_core::{Error, Result};

use super::contract::{BlockFormat, Group};
use super::ggml_type::GgmlType;
use super::{float, q4_0::Q4_0, q4_1::Q4_1, q4_k::Q4K, q5_0::Q5_0, q5_1::Q5_1, q5_k::Q5K, q6_k::Q6K, q8_0::Q8_0};

/// Sizes of a format and, for the quantised ones, its decoder.
struct Layout {
    weights: usize,
    bytes: usize,
    group: usize,
    decode: Option<fn(&[u8], usize) -> Group>,
}

impl Layout {
    const fn float(bytes: usize) -> Self {
        Layout { weights: 1, bytes, group: 1, decode: None }
    }

    const fn of<F: BlockFormat>() -> Self {
        Layout { weights: F::WEIGHTS, bytes: F::BYTES, group: F::GROUP, decode: Some(F::group) }
    }
}

impl GgmlType {
    const fn layout(self) -> Layout {
        match self {
            GgmlType::F32 => Layout::float(4),
            GgmlType::F16 | GgmlType::BF16 => Layout::float(2),
            GgmlType::Q4_0 => Layout::of::<Q4_0>(),
            GgmlType::Q4_1 => Layout::of::<Q4_1>(),
            GgmlType::Q5_0 => Layout::of::<Q5_0>(),
            GgmlType::Q5_1 => Layout::of::<Q5_1>(),
            GgmlType::Q8_0 => Layout::of::<Q8_0>(),
            GgmlType::Q4_K => Layout::of::<Q4K>(),
            GgmlType::Q5_K => Layout::of::<Q5K>(),
            GgmlType::Q6_K => Layout::of::<Q6K>(),
        }
    }

    /// Weights of a block: 1 for floats, 32, or 256 for the K formats.
    pub const fn block_weights(self) -> usize {
        self.layout().weights
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        self.layout().bytes
    }

    /// Weights that share a scale: 32, 16 in Q6_K, 1 for floats.
    pub const fn group_weights(self) -> usize {
        self.layout().group
    }

    /// Bytes of `weights` weights, if they fill whole blocks and the size fits a machine word.
    pub fn bytes_of(self, weights: usize) -> Option<usize> {
        let layout = self.layout();
        if !weights.is_multiple_of(layout.weights) {
            return None;
        }
        (weights / layout.weights).checked_mul(layout.bytes)
    }
}

/// Writes the f32 values of `bytes` into `out`.
///
/// Quantised values equal those of `gguf.quants.dequantize` bit for bit (a NaN stays a NaN; its payload is not kept).
///
/// # Errors
///
/// When `bytes` is not the size of `out.len()` weights of this type.
///
/// ```
/// use unspool_import::quant::{GgmlType, dequantize};
/// let mut block = vec![0x00, 0x3c]; // scale 1.0
/// block.extend([0x9f; 16]); // low nibbles 15, high nibbles 9
/// let mut out = [0.0; 32];
/// dequantize(GgmlType::Q4_0, &block, &mut out)?;
/// assert_eq!((out[0], out[31]), (7.0, 1.0));
/// # Ok::<(), unspool_core::Error>(())
/// ```
pub fn dequantize(kind: GgmlType, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    check_size(kind, bytes, out.len())?;
    match kind {
        GgmlType::F32 => float::from_f32(bytes, out),
        GgmlType::F16 => float::from_f16(bytes, out),
        GgmlType::BF16 => float::from_bf16(bytes, out),
        GgmlType::Q4_0 => widen::<Q4_0>(bytes, out),
        GgmlType::Q4_1 => widen::<Q4_1>(bytes, out),
        GgmlType::Q5_0 => widen::<Q5_0>(bytes, out),
        GgmlType::Q5_1 => widen::<Q5_1>(bytes, out),
        GgmlType::Q8_0 => widen::<Q8_0>(bytes, out),
        GgmlType::Q4_K => widen::<Q4K>(bytes, out),
        GgmlType::Q5_K => widen::<Q5K>(bytes, out),
        GgmlType::Q6_K => widen::<Q6K>(bytes, out),
    }
    Ok(())
}

fn widen<F: BlockFormat>(bytes: &[u8], out: &mut [f32]) {
    for (block, values) in bytes.chunks_exact(F::BYTES).zip(out.chunks_exact_mut(F::WEIGHTS)) {
        for (index, values) in values.chunks_exact_mut(F::GROUP).enumerate() {
            let group = F::group(block, index);
            for (to, value) in values.iter_mut().zip(group.values()) {
                *to = value;
            }
        }
    }
}

fn check_size(kind: GgmlType, bytes: &[u8], weights: usize) -> Result<()> {
    match kind.bytes_of(weights) {
        Some(expected) if expected == bytes.len() => Ok(()),
        Some(expected) => Err(Error::invalid_model(format!(
            "{weights} weights of type {kind} take {expected} bytes, got {}",
            bytes.len()
        ))),
        None => Err(Error::invalid_model(format!(
            "{weights} weights do not fill whole {kind} blocks of {} weights",
            kind.block_weights()
        ))),
    }
}

/// The groups of one row (or of many rows end to end), in order.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    blocks: std::slice::ChunksExact<'a, u8>,
    block: &'a [u8],
    index: usize,
    per_block: usize,
    decode: fn(&[u8], usize) -> Group,
}

impl Iterator for Groups<'_> {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        if self.index == self.per_block {
            self.block = self.blocks.next()?;
            self.index = 0;
        }
        let group = (self.decode)(self.block, self.index);
        self.index += 1;
        Some(group)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.blocks.len() * self.per_block + self.per_block - self.index;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Groups<'_> {}

/// The scales, offsets and integers of `bytes`, group by group, for repacking without loss.
///
/// # Errors
///
/// For a float type, which has no groups, and when `bytes` does not end at a block's end.
///
/// ```
/// use unspool_import::quant::{GgmlType, groups};
/// let mut block = vec![0x00, 0x3c, 0x00, 0x40]; // scale 1.0, minimum 2.0
/// block.extend([0x9f; 16]);
/// let group = groups(GgmlType::Q4_1, &block)?.next().unwrap();
/// assert_eq!((group.scale, group.offset, group.quants()[0]), (1.0, 2.0, 15));
/// # Ok::<(), unspool_core::Error>(())
/// ```
pub fn groups(kind: GgmlType, bytes: &[u8]) -> Result<Groups<'_>> {
    let layout = kind.layout();
    let Some(decode) = layout.decode else {
        return Err(Error::invalid_input(format!("{kind} is a float type and has no groups; read its values")));
    };
    if !bytes.len().is_multiple_of(layout.bytes) {
        return Err(Error::invalid_model(format!(
            "{} bytes are not whole {kind} blocks of {} bytes",
            bytes.len(),
            layout.bytes
        )));
    }
    let per_block = layout.weights / layout.group;
    Ok(Groups { blocks: bytes.chunks_exact(layout.bytes), block: &[], index: per_block, per_block, decode })
}
