//! The leaf word of everything: a token id.

/// One entry of a model's vocabulary.
pub type TokenId = u32;
