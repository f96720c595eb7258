//! Prompts run in chunks, all rows together, each prompt once.

use super::clock::Clock;
use super::feed::feed;
use crate::error::Result;
use crate::model::{Keep, Session};
use crate::token::TokenId;

/// Runs each row's tokens and returns the scores after its last one, `[rows, vocab] f32`.
///
/// Rows take their next chunk in the same step; a row that has none left waits with no tokens. Scores are asked for only
/// with a row's last chunk; those of a row without tokens are zeros.
///
/// # Errors
///
/// Those of the session.
pub(crate) fn prefill(
    session: &mut dyn Session,
    rows: &[&[TokenId]],
    max_chunk: usize,
    vocab: usize,
    clock: &mut Clock,
) -> Result<Vec<f32>> {
    let mut scores = vec![0.0; rows.len() * vocab];
    for inputs in feed(rows, max_chunk, Keep::Last) {
        let logits = clock.step(session, &inputs, vocab)?;
        let ended = inputs.iter().enumerate().filter(|(_, input)| input.keep == Keep::Last);
        for (kept, (row, _)) in ended.enumerate() {
            scores[row * vocab..][..vocab].copy_from_slice(logits.row(kept));
        }
    }
    Ok(scores)
}
