//! f32 matrices: rows as they are, or turned to `[inputs, outputs]` as `MatMul` wants them.

use unspool_core::{Error, Result};

use super::contract::Source;
use super::row_chunks;
use crate::onnx::GraphBuilder;
use crate::onnx::proto::DataType;

/// Writes the tensor `part` row by row as the f32 constant `name` of shape `dims`.
///
/// # Errors
///
/// When the checkpoint has no such tensor of that size, or writing fails.
pub fn store_rows(
    graph: &mut GraphBuilder,
    source: &dyn Source,
    name: &str,
    part: &str,
    dims: &[usize],
) -> Result<String> {
    let matrix =
        source.matrix(part).ok_or_else(|| Error::invalid_model("the checkpoint has no such tensor").at(part))?;
    if matrix.rows.checked_mul(matrix.cols) != dims.iter().try_fold(1_usize, |size, &dim| size.checked_mul(dim)) {
        return Err(Error::invalid_model(format!("got {} x {}, expected {dims:?}", matrix.rows, matrix.cols)).at(part));
    }
    let region = graph.external(name, DataType::Float, dims)?;
    for range in row_chunks(matrix.rows, matrix.cols) {
        let at = range.start * matrix.cols;
        graph.write_floats(region, at as u64, &read(source, part, range, matrix.cols)?)?;
    }
    Ok(name.to_owned())
}

/// Writes the matrices `parts` (all of one width) side by side, transposed, as the f32 constant `name` of shape
/// `[inputs, outputs]`.
///
/// # Errors
///
/// When the checkpoint has no such tensor, widths differ, or writing fails.
pub fn store_transposed(graph: &mut GraphBuilder, source: &dyn Source, name: &str, parts: &[String]) -> Result<String> {
    let mut shapes = Vec::new();
    let mut outputs = 0_usize;
    for part in parts {
        let matrix =
            source.matrix(part).ok_or_else(|| Error::invalid_model("the checkpoint has no such tensor").at(part))?;
        outputs =
            outputs.checked_add(matrix.rows).ok_or_else(|| Error::invalid_model("the tensor is too large").at(part))?;
        shapes.push(matrix);
    }
    let inputs = shapes.first().map_or(0, |shape| shape.cols);
    if shapes.iter().any(|shape| shape.cols != inputs) {
        return Err(Error::invalid_model("matrices of different widths cannot be joined").at(name));
    }
    let region = graph.external(name, DataType::Float, &[inputs, outputs])?;
    let mut column = 0_usize;
    for (part, shape) in parts.iter().zip(&shapes) {
        for range in row_chunks(shape.rows, inputs) {
            let count = range.len();
            let rows = read(source, part, range, inputs)?;
            let turned = transpose(&rows, count, inputs);
            if count == outputs {
                graph.write_floats(region, 0, &turned)?;
            } else {
                for (input, strip) in turned.chunks_exact(count).enumerate() {
                    graph.write_floats(region, (input * outputs + column) as u64, strip)?;
                }
            }
            column += count;
        }
    }
    Ok(name.to_owned())
}

fn read(source: &dyn Source, part: &str, range: std::ops::Range<usize>, cols: usize) -> Result<Vec<f32>> {
    let expected = range.len() * cols;
    let mut values = Vec::with_capacity(expected);
    source.floats(part, range, &mut values)?;
    if values.len() != expected {
        return Err(Error::invalid_model(format!("got {} values, expected {expected}", values.len())).at(part));
    }
    Ok(values)
}

/// `[rows, cols]` to `[cols, rows]`, in tiles so that both sides stay in the processor's cache.
fn transpose(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    const TILE: usize = 32;
    let mut turned = vec![0.0; values.len()];
    for row0 in (0..rows).step_by(TILE) {
        for col0 in (0..cols).step_by(TILE) {
            for row in row0..rows.min(row0 + TILE) {
                for col in col0..cols.min(col0 + TILE) {
                    turned[col * rows + row] = values[row * cols + col];
                }
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::transpose;

    #[test]
    fn transposes_shapes_that_no_tile_divides() {
        let (rows, cols) = (37, 70);
        let values: Vec<f32> = (0..rows * cols).map(|value| value as f32).collect();
        let turned = transpose(&values, rows, cols);
        for row in 0..rows {
            for col in 0..cols {
                assert_eq!(turned[col * rows + row], values[row * cols + col]);
            }
        }
    }
}
