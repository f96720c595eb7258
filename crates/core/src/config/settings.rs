//! Checked settings of one generation: what the loops read after defaults, model file and call were merged.

use std::time::Duration;

use crate::token::TokenId;

/// How long rows may become; resolved per row, since rows have their own prompt lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxLength {
    /// At most this many new tokens (`max_new_tokens`, or the default of 20 new tokens).
    New(usize),
    /// At most this many tokens with the prompt (`max_length`).
    Total(usize),
}

/// The settings a generation runs with. A rule that is off is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Draw from the distribution instead of taking the best token.
    pub do_sample: bool,
    /// Sequences returned per prompt.
    pub num_return_sequences: usize,
    /// Maximum length of a row.
    pub max_length: MaxLength,
    /// The model's limit of positions, when it has one.
    pub max_positions: Option<usize>,
    /// Tokens that end a row.
    pub eos_token_id: Vec<TokenId>,
    /// The token that stands for "no prompt".
    pub bos_token_id: Option<TokenId>,
    /// The token that fills finished rows in padded outputs.
    pub pad_token_id: Option<TokenId>,
    /// Wall-clock limit.
    pub max_time: Option<Duration>,
    /// Texts that end a row.
    pub stop_strings: Vec<String>,
    /// Penalty of tokens that occurred.
    pub repetition_penalty: Option<f32>,
    /// Divides the scores; sampling only.
    pub temperature: Option<f32>,
    /// Keeps the best k; sampling only.
    pub top_k: Option<usize>,
    /// Keeps the smallest set with this mass; sampling only.
    pub top_p: Option<f32>,
    /// Keeps what has at least this share of the best probability; sampling only.
    pub min_p: Option<f32>,
    /// Keep the processed scores of every step.
    pub output_scores: bool,
    /// Keep the raw logits of every step.
    pub output_logits: bool,
    /// Largest number of prompt tokens in one step.
    pub prefill_chunk_size: usize,
}
