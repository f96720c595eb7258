//! The contract of a consumer of tokens.

use crate::stop::FinishReason;
use crate::token::TokenId;

/// A sink's answer to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// End this row after this token, with [`FinishReason::Cancelled`].
    Stop,
}

/// One final token of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenEvent {
    /// Index of the returned sequence: `prompt * num_return_sequences + sequence`.
    pub row: usize,
    /// The token.
    pub token: TokenId,
    /// Its log-probability under the processed scores, when log-probabilities were asked for.
    pub logprob: Option<f32>,
}

/// Takes tokens as they become final; Python's streamers, for any number of rows.
pub trait TokenSink: Send {
    /// The tokens that `row` goes on from; called once per row, before the first token of any, when everything was checked.
    fn begin(&mut self, row: usize, prompt: &[TokenId]) {
        let _ = (row, prompt);
    }

    /// `done` of the `total` tokens of all prompts have run; called before the first chunk and after each.
    fn prefill(&mut self, done: usize, total: usize) {
        let _ = (done, total);
    }

    /// One token of one row.
    fn put(&mut self, event: &TokenEvent) -> Flow;

    /// Asked before every step of a search with beams, which may run long before a token is final: whether to go on.
    fn poll(&mut self) -> Flow {
        Flow::Continue
    }

    /// A row has ended; called once per row, after its last token.
    fn end(&mut self, row: usize, reason: &FinishReason);
}
