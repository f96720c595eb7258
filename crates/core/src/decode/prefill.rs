//! Prompts run in chunks, all rows together, each prompt once.

use super::clock::Clock;
use super::feed::feed;
use crate::error::Result;
use crate::model::{Keep, RowInput, Session};
use crate::stream::TokenSink;
use crate::token::TokenId;

/// Runs each row's tokens and returns the scores after its last one, `[rows, vocab] f32`.
///
/// Rows take their next chunk in the same step; a row that has none left waits with no tokens. Scores are asked for only
/// with a row's last chunk; those of a row without tokens are zeros. `sink` hears how far it is.
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
    sink: &mut Option<&mut dyn TokenSink>,
) -> Result<Vec<f32>> {
    let mut progress = PromptProgress::begin(rows, sink);
    let mut scores = vec![0.0; rows.len() * vocab];
    for inputs in feed(rows, max_chunk, Keep::Last) {
        let logits = clock.step(session, &inputs, vocab)?;
        progress.ran(&inputs);
        let ended = inputs.iter().enumerate().filter(|(_, input)| input.keep == Keep::Last);
        for (kept, (row, _)) in ended.enumerate() {
            scores[row * vocab..][..vocab].copy_from_slice(logits.row(kept));
        }
    }
    Ok(scores)
}

/// Tells a sink how many tokens of the prompts have run.
pub(crate) struct PromptProgress<'a, 's> {
    sink: &'a mut Option<&'s mut dyn TokenSink>,
    done: usize,
    total: usize,
}

impl<'a, 's> PromptProgress<'a, 's> {
    /// Begins with `rows`, whose tokens will run.
    pub(crate) fn begin(rows: &[&[TokenId]], sink: &'a mut Option<&'s mut dyn TokenSink>) -> Self {
        let mut progress = PromptProgress { sink, done: 0, total: rows.iter().map(|row| row.len()).sum() };
        progress.ran(&[]);
        progress
    }

    /// A step has run `inputs`.
    pub(crate) fn ran(&mut self, inputs: &[RowInput<'_>]) {
        self.done += inputs.iter().map(|input| input.tokens.len()).sum::<usize>();
        if let Some(sink) = self.sink {
            sink.prefill(self.done, self.total);
        }
    }
}
