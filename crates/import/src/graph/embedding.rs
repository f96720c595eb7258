//! Looking up embeddings: rows of an f32 table, or rows of packed integers that are dequantised on the way.
//!
//! The packed table is the very matrix that a tied output multiplies with, so it lies in the file once.

use crate::onnx::proto::DataType;
use crate::onnx::{Attribute, GraphBuilder};
use crate::weights::NibbleWeights;

/// Rows `ids [batch, sequence] int64` of an f32 table, `[batch * sequence, hidden]`.
pub(super) fn look_up_floats(graph: &mut GraphBuilder, table: &str, ids: &str, hidden: usize) -> String {
    let rows = graph.op("/model/embed_tokens/Gather", "Gather", &[table, ids], &[]);
    let flat = graph.ints(&[-1, hidden as i64]);
    graph.op("/model/embed_tokens/values", "Reshape", &[&rows, &flat], &[])
}

/// Rows `ids [batch, sequence] int64` of a packed table as f32, `[batch * sequence, hidden]`.
///
/// Every value is exact: an integer of 8 bits times its scale fits into an f32 when the scale has 11 bits.
pub(super) fn look_up_nibbles(graph: &mut GraphBuilder, table: &NibbleWeights, ids: &str) -> String {
    let name = |part: &str| format!("/model/embed_tokens/{part}");
    let (blocks, block) = ((table.inputs / table.block) as i64, table.block as i64);
    let last_axis = graph.ints(&[-1]);

    let bytes = graph.op(&name("Gather"), "Gather", &[&table.packed, ids], &[]);
    let bytes = graph.op(&name("Cast"), "Cast", &[&bytes], &[("to", Attribute::Int(DataType::Float as i64))]);
    let whole = table.bytes.as_ref().and_then(|view| Some((view.zero?, view.offsets)));
    let (integers, zero, with_offsets) = match whole {
        Some((zero, offsets)) => (bytes, zero, offsets),
        None => {
            let (sixteenth, sixteen) = (graph.float_scalar(0.0625), graph.float_scalar(16.0));
            let second = graph.op(&name("shifted"), "Mul", &[&bytes, &sixteenth], &[]);
            let second = graph.op(&name("second"), "Floor", &[&second], &[]);
            let above = graph.op(&name("above"), "Mul", &[&second, &sixteen], &[]);
            let first = graph.op(&name("first"), "Sub", &[&bytes, &above], &[]);
            let first = graph.op(&name("first/Unsqueeze"), "Unsqueeze", &[&first, &last_axis], &[]);
            let second = graph.op(&name("second/Unsqueeze"), "Unsqueeze", &[&second, &last_axis], &[]);
            let pairs = graph.op(&name("pairs"), "Concat", &[&first, &second], &[("axis", Attribute::Int(-1))]);
            let by_block = graph.ints(&[0, 0, blocks, block]);
            (graph.op(&name("halves"), "Reshape", &[&pairs, &by_block], &[]), 8, true)
        }
    };
    let zero = graph.float_scalar(f32::from(zero));
    let centred = graph.op(&name("centred"), "Sub", &[&integers, &zero], &[]);

    let scales = graph.op(&name("scales"), "Gather", &[&table.scales, ids], &[]);
    let scales = graph.op(&name("scales/Unsqueeze"), "Unsqueeze", &[&scales, &last_axis], &[]);
    let mut values = graph.op(&name("scaled"), "Mul", &[&centred, &scales], &[]);
    if let Some(offsets) = table.offsets.as_ref().filter(|_| with_offsets) {
        let offsets = graph.op(&name("offsets"), "Gather", &[offsets, ids], &[("axis", Attribute::Int(1))]);
        let order = [("perm", Attribute::Ints(vec![1, 2, 0]))];
        let offsets = graph.op(&name("offsets/Transpose"), "Transpose", &[&offsets], &order);
        let offsets = graph.op(&name("offsets/Unsqueeze"), "Unsqueeze", &[&offsets, &last_axis], &[]);
        values = graph.op(&name("offset"), "Add", &[&values, &offsets], &[]);
    }
    let flat = graph.ints(&[-1, table.inputs as i64]);
    graph.op(&name("values"), "Reshape", &[&values, &flat], &[])
}
