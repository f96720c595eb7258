//! A checkpoint as the writers of weights see it.

use std::ops::Range;

use unspool_core::{Error, Result};

use super::open::Checkpoint;
use super::role::Role;
use super::tensor::Tensor;
use crate::quant::dequantize;
use crate::weights::{BlockRows, Matrix, MatrixKind, Source};

impl Checkpoint {
    fn named(&self, name: &str) -> Result<Option<Tensor<'_>>> {
        Role::from_hf_name(name).map_or(Ok(None), |role| self.tensor(role))
    }

    fn expected(&self, name: &str) -> Result<Tensor<'_>> {
        self.named(name)?
            .ok_or_else(|| Error::invalid_model(format!("tensor {name:?} is missing")).at(self.path().display()))
    }
}

/// Rows and columns as the writers count them: a vector is one row.
fn counts(tensor: &Tensor<'_>) -> (usize, usize) {
    match *tensor.shape() {
        [n] => (1, n),
        _ => (tensor.rows(), tensor.columns()),
    }
}

impl Source for Checkpoint {
    fn matrix(&self, name: &str) -> Option<Matrix> {
        let tensor = self.named(name).ok().flatten()?;
        let (rows, cols) = counts(&tensor);
        let kind = tensor.ggml_type();
        let kind = if kind.is_float() {
            MatrixKind::Float
        } else {
            let min = -i16::from(kind.zero_point());
            let max = min + (1 << kind.bits()) - 1;
            MatrixKind::Blocks { block: kind.group_weights(), min, max, affine: kind.has_offset() }
        };
        Some(Matrix { rows, cols, kind })
    }

    fn floats(&self, name: &str, rows: Range<usize>, out: &mut Vec<f32>) -> Result<()> {
        let tensor = self.expected(name)?;
        let (count, cols) = counts(&tensor);
        if rows.start > rows.end || rows.end > count {
            return Err(Error::invalid_input(format!("tensor {name:?} has {count} rows, {rows:?} were asked for")));
        }
        if tensor.shape().len() == 1 {
            if !rows.is_empty() {
                out.extend(tensor.to_f32()?);
            }
            return Ok(());
        }
        let from = out.len();
        out.resize(from + rows.len() * cols, 0.0);
        let place = out.get_mut(from..).unwrap_or_default();
        if let Some(bytes) = tensor.bytes_in_order() {
            let row_bytes = bytes.len() / count.max(1);
            let stored = bytes.get(rows.start * row_bytes..rows.end * row_bytes).unwrap_or_default();
            return dequantize(tensor.ggml_type(), stored, place);
        }
        for (row, values) in rows.zip(place.chunks_exact_mut(cols.max(1))) {
            tensor.row_f32(row, values)?;
        }
        Ok(())
    }

    fn blocks(&self, name: &str, rows: Range<usize>, out: &mut BlockRows) -> Result<()> {
        let tensor = self.expected(name)?;
        let affine = tensor.ggml_type().has_offset();
        for row in rows {
            for group in tensor.row_groups(row)? {
                out.q.extend_from_slice(group.quants());
                out.scale.push(group.scale);
                if affine {
                    out.offset.push(group.offset);
                }
            }
        }
        Ok(())
    }
}
