//! How a checkpoint's matrices are said in a graph: as floats, or as 4-bit halves of the checkpoint's own integers.

mod contract;
mod form;
mod nibbles;
mod requantise;
mod transposed;

pub use contract::{BlockRows, Matrix, MatrixKind, Source};
pub use form::{Form, Nibbles};
pub use nibbles::{NibbleWeights, pack_nibbles};
pub use requantise::Requantised;
pub use transposed::{store_rows, store_transposed};

/// Elements of a matrix that are in memory at once while it is written.
const CHUNK_ELEMENTS: usize = 1 << 23;

/// The rows of a matrix in chunks of at most [`CHUNK_ELEMENTS`] elements (but at least one row).
fn row_chunks(rows: usize, cols: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let step = (CHUNK_ELEMENTS / cols.max(1)).max(1);
    (0..rows).step_by(step).map(move |start| start..rows.min(start.saturating_add(step)))
}
