//! Text while it is written: ids go in one at a time, safe text comes out.

use unspool_core::TokenId;

use crate::tokenizer::Tokenizer;
use crate::tokenizer::decode::Decoding;

/// Decodes one row as it grows: text as soon as it is certain. ([`TextStreamer`](super::TextStreamer) cuts as Python does.)
///
/// All pieces put together are the text that [`Tokenizer::decode`] gives for all ids, whatever the ids. A piece never
/// ends inside a character. Each token costs constant time, however long the text.
///
/// ```no_run
/// # fn show(tokenizer: &unspool_tasks::Tokenizer, ids: &[u32]) {
/// let mut pieces = unspool_tasks::Pieces::new(tokenizer, true);
/// for &id in ids {
///     if let Some(text) = pieces.push(id) {
///         print!("{text}");
///     }
/// }
/// print!("{}", pieces.finish().unwrap_or_default());
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "DecodeStream")]
pub struct Pieces {
    tokenizer: Tokenizer,
    decoding: Decoding,
    skip_special_tokens: bool,
}

impl Pieces {
    /// An empty text.
    pub fn new(tokenizer: &Tokenizer, skip_special_tokens: bool) -> Pieces {
        Pieces { tokenizer: tokenizer.clone(), decoding: tokenizer.decoding(), skip_special_tokens }
    }

    /// Adds a token; the text that became certain, if any.
    pub fn push(&mut self, token: TokenId) -> Option<String> {
        let token = self.tokenizer.shown_token(token, self.skip_special_tokens)?;
        let mut text = String::new();
        self.decoding.push(token, &mut text);
        Some(text).filter(|text| !text.is_empty())
    }

    /// Ends the text: what was held back, if anything. The next token starts a new text.
    pub fn finish(&mut self) -> Option<String> {
        let mut text = String::new();
        self.decoding.finish(&mut text);
        self.decoding = self.tokenizer.decoding();
        Some(text).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests;
