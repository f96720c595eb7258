//! What rules and criteria may see of the row they judge.

use crate::token::TokenId;

/// One sequence being written, as processors and criteria see it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Prompt and new tokens so far, without padding.
    pub ids: &'a [TokenId],
    /// How many of `ids` are the prompt.
    pub prompt_len: usize,
    /// Which prompt of the request this row belongs to.
    pub prompt: usize,
}

impl<'a> Row<'a> {
    /// The prompt: the source of a decoder-only model.
    pub fn prompt(&self) -> &'a [TokenId] {
        &self.ids[..self.prompt_len]
    }

    /// The tokens written so far, without the prompt.
    pub fn new_tokens(&self) -> &'a [TokenId] {
        &self.ids[self.prompt_len..]
    }
}
