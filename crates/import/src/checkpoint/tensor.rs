//! One tensor of a checkpoint, its rows in Hugging Face's order.

use unspool_core::{Error, Result};

use crate::quant::{GgmlType, Groups, dequantize, groups};

/// A tensor `[rows, columns]`, or a vector `[n]` (whose rows have one number each), lent by its checkpoint.
///
/// Rows lie in the file one after another, each in whole blocks of [`Tensor::ggml_type`]. Queries and keys of GGUF's
/// `llama` files are written with the two halves of each head interleaved; the rows are put back in order here, which
/// works on raw blocks as on values because no block spans two rows.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    name: String,
    shape: Vec<usize>,
    kind: GgmlType,
    data: &'a [u8],
    row_bytes: usize,
    interleaved: Option<usize>,
}

impl<'a> Tensor<'a> {
    /// A tensor over `data`. `interleaved` is the head size when rows `2i` and `2i + 1` of each head are the rows `i` of
    /// its first and second half.
    pub(super) fn new(
        name: String,
        shape: Vec<usize>,
        kind: GgmlType,
        data: &'a [u8],
        interleaved: Option<usize>,
    ) -> Result<Self> {
        let rows = shape.first().copied().unwrap_or(1);
        let columns: usize = shape.iter().skip(1).product();
        let row_bytes = kind.bytes_of(columns).ok_or_else(|| {
            Error::unsupported(format!(
                "tensor {name:?} of shape {shape:?} has type {kind}, expected one that its rows fill"
            ))
        })?;
        if rows.checked_mul(row_bytes) != Some(data.len()) {
            return Err(Error::invalid_model(format!(
                "tensor {name:?} of {kind} {shape:?} has {} bytes, expected {rows} rows of {row_bytes}",
                data.len()
            )));
        }
        Ok(Tensor { name, shape, kind, data, row_bytes, interleaved })
    }

    /// The name in Hugging Face checkpoints.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `[rows, columns]` of a matrix, `[n]` of a vector.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How the numbers are stored.
    pub fn ggml_type(&self) -> GgmlType {
        self.kind
    }

    /// Outputs of a matrix, numbers of a vector.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Inputs of a matrix, 1 of a vector.
    pub fn columns(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// All bytes as stored, if no row has to be moved.
    pub fn bytes_in_order(&self) -> Option<&'a [u8]> {
        self.interleaved.is_none().then_some(self.data)
    }

    /// The stored bytes of a row, or nothing past the last.
    pub fn row(&self, row: usize) -> Option<&'a [u8]> {
        if row >= self.rows() {
            return None;
        }
        let start = self.stored_row(row).checked_mul(self.row_bytes)?;
        self.data.get(start..start.checked_add(self.row_bytes)?)
    }

    /// Where a row lies in the file.
    fn stored_row(&self, row: usize) -> usize {
        match self.interleaved {
            None => row,
            Some(head_dim) => {
                let (head, within, half) = (row / head_dim, row % head_dim, head_dim / 2);
                head * head_dim + within % half * 2 + within / half
            }
        }
    }

    /// Writes the values of a row.
    ///
    /// # Errors
    ///
    /// Past the last row, and when `out` has not [`Tensor::columns`] places.
    pub fn row_f32(&self, row: usize, out: &mut [f32]) -> Result<()> {
        dequantize(self.kind, self.row_or_error(row)?, out)
    }

    /// The scales, offsets and integers of a row, for repacking without loss.
    ///
    /// # Errors
    ///
    /// Past the last row, and for a float type.
    pub fn row_groups(&self, row: usize) -> Result<Groups<'a>> {
        groups(self.kind, self.row_or_error(row)?)
    }

    fn row_or_error(&self, row: usize) -> Result<&'a [u8]> {
        self.row(row).ok_or_else(|| {
            Error::invalid_input(format!("tensor {:?} has {} rows, row {row} was asked for", self.name, self.rows()))
        })
    }

    /// All values, row-major.
    ///
    /// # Errors
    ///
    /// None that a checked checkpoint can give.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        let columns = self.columns();
        let mut out = vec![0.0; self.rows().saturating_mul(columns)];
        if self.interleaved.is_none() {
            dequantize(self.kind, self.data, &mut out)?;
            return Ok(out);
        }
        for (row, values) in out.chunks_exact_mut(columns).enumerate() {
            self.row_f32(row, values)?;
        }
        Ok(out)
    }
}
