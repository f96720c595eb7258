//! Block-quantised rows become the packed bytes, scales and offsets of `MatMulNBits`.

use unspool_core::{Error, Result};

use super::contract::{BlockRows, Source};
use super::form::Nibbles;
use super::row_chunks;
use crate::onnx::GraphBuilder;
use crate::onnx::proto::DataType;

/// Names of the constants of one packed matrix (or of several stacked along the outputs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NibbleWeights {
    /// `[outputs, planes * inputs / block, block / 2] u8`, the low half of a byte first.
    pub packed: String,
    /// `[outputs, planes * inputs / block] f32`.
    pub scales: String,
    /// `[inputs / block, outputs] f32`, to be multiplied with the sums of the input's blocks.
    pub offsets: Option<String>,
    /// Elements of a block.
    pub block: usize,
    /// 4-bit integers per element.
    pub planes: usize,
    /// Length of the input.
    pub inputs: usize,
    /// Length of the output.
    pub outputs: usize,
}

/// Writes the matrices `parts` (name and form; all of one width, with forms that [join](Nibbles::joins)) below one another
/// as constants named after `name`.
///
/// # Errors
///
/// When the checkpoint is broken, an integer lies outside its form, or writing fails.
pub fn pack_nibbles(
    graph: &mut GraphBuilder,
    source: &dyn Source,
    name: &str,
    parts: &[(String, Nibbles)],
) -> Result<NibbleWeights> {
    let mut outputs = 0_usize;
    let mut inputs = 0;
    let mut shapes = Vec::new();
    for (part, _) in parts {
        let matrix = source.matrix(part).ok_or_else(|| missing(part))?;
        outputs = outputs.checked_add(matrix.rows).ok_or_else(|| too_large(part))?;
        inputs = matrix.cols;
        shapes.push(matrix);
    }
    let Some((_, form)) = parts.first() else {
        return Err(Error::invalid_model("no matrix to pack").at(name));
    };
    if !inputs.is_multiple_of(form.block) || shapes.iter().any(|shape| shape.cols != inputs) {
        return Err(
            Error::invalid_model(format!("rows of {inputs} do not fall into blocks of {}", form.block)).at(name)
        );
    }
    let blocks = inputs / form.block;
    let groups = blocks.checked_mul(form.planes).ok_or_else(|| too_large(name))?;
    let offset_len = blocks.checked_mul(outputs).ok_or_else(|| too_large(name))?;
    let with_offsets = parts.iter().any(|(_, form)| form.offsets);

    let (packed_name, scales_name) = (format!("{name}_quant"), format!("{name}_scales"));
    let packed = graph.external(&packed_name, DataType::Uint8, &[outputs, groups, form.block / 2])?;
    let scales = graph.external(&scales_name, DataType::Float, &[outputs, groups])?;
    let mut offsets = vec![0.0_f32; if with_offsets { offset_len } else { 0 }];

    let mut row = 0_usize;
    for ((part, form), shape) in parts.iter().zip(&shapes) {
        for range in row_chunks(shape.rows, inputs) {
            let count = range.len();
            let mut chunk = BlockRows::default();
            source.blocks(part, range, &mut chunk)?;
            check_lengths(part, &chunk, count, inputs, blocks, form)?;
            let bytes = pack_rows(&chunk, blocks, form).map_err(|error| error.at(part))?;
            graph.write(packed, (row * groups * (form.block / 2)) as u64, &bytes)?;
            graph.write_floats(scales, (row * groups) as u64, &plane_scales(&chunk.scale, blocks, form.planes))?;
            if form.offsets {
                for (at, &scale) in chunk.scale.iter().enumerate() {
                    let own = chunk.offset.get(at).copied().unwrap_or(0.0);
                    let (local, block) = (at / blocks, at % blocks);
                    if let Some(slot) = offsets.get_mut(block * outputs + row + local) {
                        *slot = own + f32::from(form.center) * scale;
                    }
                }
            }
            row += count;
        }
    }
    let offsets_name = if with_offsets {
        let offsets_name = format!("{name}_offsets");
        let region = graph.external(&offsets_name, DataType::Float, &[blocks, outputs])?;
        graph.write_floats(region, 0, &offsets)?;
        Some(offsets_name)
    } else {
        None
    };
    Ok(NibbleWeights {
        packed: packed_name,
        scales: scales_name,
        offsets: offsets_name,
        block: form.block,
        planes: form.planes,
        inputs,
        outputs,
    })
}

fn check_lengths(
    part: &str,
    chunk: &BlockRows,
    rows: usize,
    inputs: usize,
    blocks: usize,
    form: &Nibbles,
) -> Result<()> {
    let offsets_fit = chunk.offset.is_empty() || (form.offsets && chunk.offset.len() == rows * blocks);
    if chunk.q.len() == rows * inputs && chunk.scale.len() == rows * blocks && offsets_fit {
        return Ok(());
    }
    Err(Error::invalid_model(format!(
        "got {} integers, {} scales and {} offsets for {rows} rows of {inputs} in blocks of {}",
        chunk.q.len(),
        chunk.scale.len(),
        chunk.offset.len(),
        form.block
    ))
    .at(part))
}

/// The packed bytes of whole rows: per row the high plane (when there are two), then the low one.
fn pack_rows(rows: &BlockRows, blocks: usize, form: &Nibbles) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(rows.q.len() / 2 * form.planes);
    let mut outside = None;
    for row in rows.q.chunks_exact((blocks * form.block).max(1)) {
        for plane in (0..form.planes).rev() {
            for pair in row.chunks_exact(2) {
                let [first, second] = [pair[0], pair[1]].map(|q| {
                    let value = i16::from(q) - form.center;
                    let half = match (form.planes, plane) {
                        (1, _) => value,
                        (_, 0) => value - 16 * high(value),
                        _ => high(value),
                    };
                    if !(-8..=7).contains(&half) {
                        outside = Some(q);
                    }
                    ((half + 8) & 15) as u8
                });
                bytes.push(first | second << 4);
            }
        }
    }
    match outside {
        Some(q) => Err(Error::invalid_model(format!("the integer {q} is outside what its block format can hold"))),
        None => Ok(bytes),
    }
}

/// The high half of `value = 16 * high + low` with `low` from -8 to 7.
fn high(value: i16) -> i16 {
    (value + 8).div_euclid(16)
}

/// Scales in the order of the planes: 16 times each, then each, per row; or as they are.
fn plane_scales(scale: &[f32], blocks: usize, planes: usize) -> Vec<f32> {
    if planes == 1 {
        return scale.to_vec();
    }
    scale
        .chunks(blocks.max(1))
        .flat_map(|row| row.iter().map(|scale| scale * 16.0).chain(row.iter().copied()))
        .collect()
}

fn missing(name: &str) -> Error {
    Error::invalid_model("the checkpoint has no such tensor").at(name)
}

fn too_large(name: &str) -> Error {
    Error::invalid_model("the tensor is too large").at(name)
}
