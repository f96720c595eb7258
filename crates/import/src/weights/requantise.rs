//! A checkpoint seen through symmetric integers of our own: what `--weights int4` and `int8` write.

use std::ops::Range;

use unspool_core::{Error, Result};

use super::contract::{BlockRows, Matrix, MatrixKind, Source};

/// Elements of a block.
const BLOCK: usize = 32;
/// The greatest integer of the 8-bit form. 119 and not 127, so that two 4-bit halves say every integer without an offset.
const GREATEST: f32 = 119.0;

/// A [`Source`] whose matrices are requantised to 4 or 8 bits in blocks of 32.
#[derive(Clone, Copy)]
pub struct Requantised<'a> {
    source: &'a dyn Source,
    bits: u8,
}

impl<'a> Requantised<'a> {
    /// Sees `source` through 4-bit integers: the element of the largest magnitude becomes -8, as in llama.cpp's `Q4_0`.
    pub fn int4(source: &'a dyn Source) -> Self {
        Requantised { source, bits: 4 }
    }

    /// Sees `source` through 8-bit integers from -119 to 119.
    pub fn int8(source: &'a dyn Source) -> Self {
        Requantised { source, bits: 8 }
    }
}

impl Source for Requantised<'_> {
    /// A vector, or a matrix whose rows do not fall into blocks, stays as it is.
    fn matrix(&self, name: &str) -> Option<Matrix> {
        let matrix = self.source.matrix(name)?;
        if matrix.rows < 2 || !matrix.cols.is_multiple_of(BLOCK) {
            return Some(Matrix { kind: MatrixKind::Float, ..matrix });
        }
        let (min, max) = if self.bits == 4 { (-8, 7) } else { (-(GREATEST as i16), GREATEST as i16) };
        Some(Matrix { kind: MatrixKind::Blocks { block: BLOCK, min, max, affine: false }, ..matrix })
    }

    fn floats(&self, name: &str, rows: Range<usize>, out: &mut Vec<f32>) -> Result<()> {
        self.source.floats(name, rows, out)
    }

    fn blocks(&self, name: &str, rows: Range<usize>, out: &mut BlockRows) -> Result<()> {
        let mut values = Vec::new();
        self.source.floats(name, rows, &mut values)?;
        if !values.len().is_multiple_of(BLOCK) {
            return Err(Error::invalid_model("rows do not fall into blocks of 32").at(name));
        }
        for block in values.chunks_exact(BLOCK) {
            let peak = block.iter().fold(0.0_f32, |peak, &value| if value.abs() > peak.abs() { value } else { peak });
            let scale = if self.bits == 4 { peak / -8.0 } else { peak.abs() / GREATEST };
            let inverse = if scale == 0.0 { 0.0 } else { scale.recip() };
            out.scale.push(scale);
            out.q.extend(block.iter().map(|&value| {
                if self.bits == 4 {
                    ((value * inverse + 8.5).clamp(0.0, 15.0) as i8) - 8
                } else {
                    (value * inverse).round().clamp(-GREATEST, GREATEST) as i8
                }
            }));
        }
        Ok(())
    }
}
