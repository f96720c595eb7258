//! Block-quantised rows become the packed bytes, scales and offsets of `MatMulNBits`.

use unspool_core::{Error, Result};

use super::contract::{BlockRows, Matrix, Source};
use super::form::{BYTE_ZERO, Nibbles};
use super::row_chunks;
use crate::onnx::GraphBuilder;
use crate::onnx::proto::DataType;

/// Names of the constants of one packed matrix (or of several stacked along the outputs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NibbleWeights {
    /// `[outputs, inputs / block, halves * block / 2] u8`, the low half of a byte first.
    pub packed: String,
    /// `[outputs, inputs / block] f32`.
    pub scales: String,
    /// `[inputs / block, outputs] f32`, to be multiplied with the sums of the input's blocks.
    pub offsets: Option<String>,
    /// How the bytes are read as 8-bit integers (two halves only).
    pub bytes: Option<ByteView>,
    /// Elements of a block.
    pub block: usize,
    /// Length of the input.
    pub inputs: usize,
    /// Length of the output.
    pub outputs: usize,
}

/// The packed bytes seen as 8-bit integers: an element is `scale * (byte - zero)`, plus the offset when `offsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteView {
    /// What is taken from every byte when it is one number.
    pub zero: Option<i16>,
    /// `[outputs * inputs / block] u8`: what is taken from each block's bytes; none where it is 128.
    pub zero_points: Option<String>,
    /// Whether the offsets still have to be added.
    pub offsets: bool,
}

/// What `MatMulNBits` takes from 8-bit integers by itself.
const DEFAULT_ZERO: i16 = 128;

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
    let width = form.block / 2 * form.halves;
    let offset_len = blocks.checked_mul(outputs).ok_or_else(|| too_large(name))?;
    let with_offsets = parts.iter().any(|(_, form)| form.offsets());

    let (packed_name, scales_name) = (format!("{name}_quant"), format!("{name}_scales"));
    let packed = graph.external(&packed_name, DataType::Uint8, &[outputs, blocks, width])?;
    let scales = graph.external(&scales_name, DataType::Float, &[outputs, blocks])?;
    let mut offsets = vec![0.0_f32; if with_offsets { offset_len } else { 0 }];

    let mut row = 0_usize;
    for ((part, form), shape) in parts.iter().zip(&shapes) {
        for range in row_chunks(shape.rows, inputs) {
            let count = range.len();
            let mut chunk = BlockRows::default();
            source.blocks(part, range, &mut chunk)?;
            check_lengths(part, &chunk, count, inputs, blocks, form)?;
            let bytes = pack_rows(&chunk, form).map_err(|error| error.at(part))?;
            graph.write(packed, (row * blocks * width) as u64, &bytes)?;
            graph.write_floats(scales, (row * blocks) as u64, &chunk.scale)?;
            if form.offsets() {
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
    let bytes = if form.halves == 2 { Some(byte_view(graph, name, parts, &shapes, blocks)?) } else { None };
    Ok(NibbleWeights {
        packed: packed_name,
        scales: scales_name,
        offsets: offsets_name,
        bytes,
        block: form.block,
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
    let offsets_fit = chunk.offset.is_empty() || (form.affine && chunk.offset.len() == rows * blocks);
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

/// How the bytes of `parts` are read as 8-bit integers. Where no part has offsets of its own, the centers become zero
/// points and nothing has to be added.
fn byte_view(
    graph: &mut GraphBuilder,
    name: &str,
    parts: &[(String, Nibbles)],
    shapes: &[Matrix],
    blocks: usize,
) -> Result<ByteView> {
    let affine = parts.iter().any(|(_, form)| form.affine);
    let zeros: Vec<i16> =
        parts.iter().map(|(_, form)| if affine { BYTE_ZERO } else { BYTE_ZERO - form.center }).collect();
    let zero = zeros.first().copied().filter(|zero| zeros.iter().all(|other| other == zero));
    if zero == Some(DEFAULT_ZERO) {
        return Ok(ByteView { zero, zero_points: None, offsets: affine });
    }
    let mut points = Vec::new();
    for (zero, shape) in zeros.iter().zip(shapes) {
        let zero =
            u8::try_from(*zero).map_err(|_| Error::invalid_model("the integers do not fit into bytes").at(name))?;
        points.resize(points.len() + shape.rows * blocks, zero);
    }
    let zero_points = format!("{name}_zero_points");
    let region = graph.external(&zero_points, DataType::Uint8, &[points.len()])?;
    graph.write(region, 0, &points)?;
    Ok(ByteView { zero, zero_points: Some(zero_points), offsets: affine })
}

/// The packed bytes of rows: two elements to a byte, or one element's two halves.
fn pack_rows(rows: &BlockRows, form: &Nibbles) -> Result<Vec<u8>> {
    let (least, greatest, zero) = if form.halves == 1 { (-8, 7, 8) } else { (-BYTE_ZERO, 119, BYTE_ZERO) };
    let mut outside = None;
    let mut byte = |q: i8| {
        let value = i16::from(q) - form.center;
        if !(least..=greatest).contains(&value) {
            outside = Some(q);
        }
        (value + zero) as u8
    };
    let bytes = if form.halves == 1 {
        rows.q.as_chunks::<2>().0.iter().map(|[first, second]| byte(*first) & 15 | byte(*second) << 4).collect()
    } else {
        rows.q.iter().map(|q| byte(*q)).collect()
    };
    match outside {
        Some(q) => Err(Error::invalid_model(format!("the integer {q} is outside what its block format can hold"))),
        None => Ok(bytes),
    }
}

fn missing(name: &str) -> Error {
    Error::invalid_model("the checkpoint has no such tensor").at(name)
}

fn too_large(name: &str) -> Error {
    Error::invalid_model("the tensor is too large").at(name)
}
