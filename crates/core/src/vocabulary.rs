//! The port through which rules that know text (stop strings) see the vocabulary.

use std::borrow::Cow;

use crate::token::TokenId;

/// What a length of token text counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextUnit {
    /// Bytes (byte-level and byte-fallback tokenizers).
    Bytes,
    /// Unicode code points.
    Chars,
}

/// Token texts, read as continuations of earlier text (a leading space is kept).
pub trait Vocabulary: Send + Sync {
    /// Ids are below this number.
    fn size(&self) -> usize;

    /// The UTF-8 bytes that `id` adds to a text; `None` when the id names no token. In a byte vocabulary a token may
    /// hold a part of a character.
    fn continuation(&self, id: TokenId) -> Option<Cow<'_, [u8]>>;

    /// What the window of stop strings counts.
    fn unit(&self) -> TextUnit;
}
