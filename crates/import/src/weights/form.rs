//! The choice of how a matrix is said in the graph.

use super::contract::{Matrix, MatrixKind};

/// Block sizes that both engines multiply.
const BLOCKS: [usize; 5] = [16, 32, 64, 128, 256];
/// The largest block of two halves per element: a block of twice that size is the largest that is multiplied.
const MAX_WIDE_BLOCK: usize = 128;

/// How a matrix is said in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `MatMul` with f32.
    Float,
    /// `MatMulNBits` with 4-bit integers.
    Nibbles(Nibbles),
}

/// 4-bit halves of the checkpoint's integers. An element is `scale * (q - center)` plus its block's offset, where
/// `q - center` is one 4-bit integer (`halves == 1`) or `low + 16 * high` (`halves == 2`), all from -8 to 7.
///
/// Two halves lie in one byte, which is a 4-bit matrix of twice the width (an element's low half is multiplied with the
/// input, the high one with 16 times the input) and an 8-bit matrix at once: `MatMulNBits` of rten has no zero points and
/// no 8-bit integers, ONNX Runtime's has both and takes half the time with them. The offsets are multiplied with the sums
/// of the input's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nibbles {
    /// Elements of a block.
    pub block: usize,
    /// 4-bit integers per element: 1 or 2.
    pub halves: usize,
    /// What is taken from each integer of the checkpoint, and given back through the offset.
    pub center: i16,
    /// Whether the checkpoint's own blocks have offsets.
    pub affine: bool,
}

/// What a byte of two halves says more than `q - center`.
pub const BYTE_ZERO: i16 = 136;

impl Nibbles {
    /// The 4-bit form of integers from `min` to `max`, when there is one.
    pub fn of_integers(block: usize, min: i16, max: i16, affine: bool) -> Option<Self> {
        if !BLOCKS.contains(&block) || min > max || (block > MAX_WIDE_BLOCK && i32::from(max) - i32::from(min) > 15) {
            return None;
        }
        let width = i32::from(max) - i32::from(min);
        let (halves, least, greatest) = match width {
            0..=15 => (1, -8, 7),
            16..=255 => (2, -136, 119),
            _ => return None,
        };
        let center = if !affine && min >= least && max <= greatest {
            0
        } else {
            let middle = (i32::from(min) + i32::from(max) + 1) / 2;
            let clamped = middle.max(i32::from(max) - i32::from(greatest)).min(i32::from(min) - i32::from(least));
            i16::try_from(clamped).ok()?
        };
        Some(Nibbles { block, halves, center, affine })
    }

    /// The form that keeps `matrix` without loss, when there is one.
    pub fn keeping(matrix: &Matrix) -> Option<Self> {
        match matrix.kind {
            MatrixKind::Blocks { block, min, max, affine } if block != 0 && matrix.cols.is_multiple_of(block) => {
                Nibbles::of_integers(block, min, max, affine)
            }
            _ => None,
        }
    }

    /// Whether the blocks have offsets once `center` was taken from the integers.
    pub fn offsets(&self) -> bool {
        self.affine || self.center != 0
    }

    /// Whether matrices of both forms can lie in one packed tensor.
    pub fn joins(&self, other: &Nibbles) -> bool {
        self.block == other.block && self.halves == other.halves
    }
}

impl Form {
    /// Whether matrices of both forms can lie in one tensor and be multiplied at once.
    pub fn joins(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Float, Form::Float) => true,
            (Form::Nibbles(one), Form::Nibbles(other)) => one.joins(other),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(min: i16, max: i16, affine: bool) -> (usize, i16, bool) {
        let form = Nibbles::of_integers(32, min, max, affine).unwrap();
        (form.halves, form.center, form.offsets())
    }

    #[test]
    fn every_kind_of_integer_gets_the_cheapest_form() {
        assert_eq!(form(-8, 7, false), (1, 0, false), "Q4_0");
        assert_eq!(form(0, 15, true), (1, 8, true), "Q4_1 and Q4_K");
        assert_eq!(form(-16, 15, false), (2, 0, false), "Q5_0");
        assert_eq!(form(0, 31, true), (2, 16, true), "Q5_1 and Q5_K");
        assert_eq!(form(-32, 31, false), (2, 0, false), "Q6_K");
        assert_eq!(form(-128, 127, false), (2, 8, true), "Q8_0");
        assert_eq!(form(-119, 119, false), (2, 0, false), "int8 of our own");
        assert_eq!(Nibbles::of_integers(24, 0, 15, true), None);
        assert_eq!(Nibbles::of_integers(32, -300, 300, false), None);
        assert_eq!(Nibbles::of_integers(32, i16::MIN, i16::MAX, true), None);
    }
}
