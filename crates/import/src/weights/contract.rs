//! What the writers of weights ask of a checkpoint.

use std::ops::Range;

use unspool_core::Result;

/// Shape and storage of a tensor of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Outputs (`1` for a vector).
    pub rows: usize,
    /// Inputs; the elements of a row lie side by side.
    pub cols: usize,
    /// How the elements are stored.
    pub kind: MatrixKind,
}

/// How a checkpoint stores a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixKind {
    /// As floats of some width.
    Float,
    /// In blocks of `block` elements of a row, each element `scale * q + offset` with one scale and offset per block.
    Blocks {
        /// Elements of a block.
        block: usize,
        /// The least `q`.
        min: i16,
        /// The greatest `q`.
        max: i16,
        /// Whether offsets other than zero occur.
        affine: bool,
    },
}

/// Some rows of a block-quantised matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockRows {
    /// Integers, `[rows, cols]`.
    pub q: Vec<i8>,
    /// Scales, `[rows, cols / block]`.
    pub scale: Vec<f32>,
    /// Offsets, `[rows, cols / block]`; empty when the kind is not affine.
    pub offset: Vec<f32>,
}

/// A checkpoint's tensors by their Hugging Face names (`model.layers.0.self_attn.q_proj.weight`, ...), with the row order
/// of Hugging Face (rotary halves, not interleaved pairs).
pub trait Source {
    /// Shape and storage of a tensor, or nothing when the checkpoint has none of that name.
    fn matrix(&self, name: &str) -> Option<Matrix>;

    /// Appends the rows `rows` of a tensor to `out` as f32, dequantised when need be.
    ///
    /// # Errors
    ///
    /// When there is no such tensor, no such row, or the file is broken.
    fn floats(&self, name: &str, rows: Range<usize>, out: &mut Vec<f32>) -> Result<()>;

    /// Appends the rows `rows` of a tensor of [`MatrixKind::Blocks`] to `out`.
    ///
    /// # Errors
    ///
    /// When there is no such tensor, it is not in blocks, no such row, or the file is broken.
    fn blocks(&self, name: &str, rows: Range<usize>, out: &mut BlockRows) -> Result<()>;
}
