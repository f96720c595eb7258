//! The text each token adds to a text, for rules that know text (stop strings).
//!
//! Follows the rule of Python's `StopStringCriteria`: a byte-level vocabulary counts the raw bytes of a token, a
//! byte-fallback vocabulary has tokens `<0xHH>` of one byte, and any other token is read as what it adds after the
//! word `abcdef`, which keeps the leading space that decoding the token alone may lose.

use std::borrow::Cow;
use std::sync::Arc;

use unspool_core::{TextUnit, TokenId, Vocabulary};

use super::decode::{Decoding, byte_fallback, byte_level};
use super::load::Tokenizer;

/// The word whose continuation a token is read as.
const PREFIX: &str = "abcdef";

/// Bytes of every token, `None` where an id names no token.
pub(super) struct Continuations {
    texts: Vec<Option<Box<[u8]>>>,
}

impl Tokenizer {
    fn continuations(&self) -> &Continuations {
        self.inner.continuations.get_or_init(|| {
            let base = self.encode(PREFIX, false).unwrap_or_default();
            let continue_text = |token: &str| {
                let mut decoding = Decoding::new(Arc::clone(&self.inner.plan), false);
                let mut text = String::new();
                for token in base.iter().filter_map(|&id| self.token(id)).chain([token]) {
                    decoding.push(token, &mut text);
                }
                decoding.finish(&mut text);
                // A vocabulary without these letters has no such prefix; then the whole text is the best reading.
                let start = text.find(PREFIX).map_or(0, |start| start + PREFIX.len());
                text.as_bytes()[start..].into()
            };
            let plan = &self.inner.plan;
            let read = |token: &str| -> Box<[u8]> {
                let bytes = if plan.has_byte_fallback() {
                    byte_fallback(token).map(|byte| [byte].into())
                } else if plan.has_byte_level() {
                    byte_level(token).map(Vec::into_boxed_slice)
                } else {
                    None
                };
                bytes.unwrap_or_else(|| continue_text(token))
            };
            Continuations { texts: self.inner.tokens.iter().map(|token| token.as_deref().map(read)).collect() }
        })
    }
}

impl Vocabulary for Tokenizer {
    fn size(&self) -> usize {
        self.inner.tokens.len()
    }

    /// The first call reads the whole vocabulary (tens of milliseconds), later ones look it up.
    fn continuation(&self, id: TokenId) -> Option<Cow<'_, [u8]>> {
        self.continuations().texts.get(id as usize)?.as_deref().map(Cow::Borrowed)
    }

    fn unit(&self) -> TextUnit {
        if self.inner.plan.has_byte_fallback() || self.inner.plan.has_byte_level() {
            TextUnit::Bytes
        } else {
            TextUnit::Chars
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(decoder: &str, tokens: &[&str]) -> Tokenizer {
        let letters = "abcdef".chars().map(String::from);
        let vocab = letters.chain(tokens.iter().map(|token| token.to_string()));
        let vocab = vocab.enumerate().map(|(id, token)| (token, id.into())).collect::<serde_json::Map<_, _>>();
        let json = serde_json::json!({"version": "1.0", "decoder": serde_json::from_str::<serde_json::Value>(decoder).unwrap(),
            "model": {"type": "BPE", "vocab": vocab, "merges": []}});
        Tokenizer::from_json(&json.to_string(), None).unwrap()
    }

    fn texts(tokenizer: &Tokenizer) -> Vec<Vec<u8>> {
        (6..tokenizer.size() as u32).map(|id| tokenizer.continuation(id).unwrap().into_owned()).collect()
    }

    #[test]
    fn byte_level_tokens_are_raw_bytes() {
        let tokenizer = load(
            r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}"#,
            &["Ġx", "Ã", "<｜a｜>"],
        );
        assert_eq!(texts(&tokenizer), [b" x".to_vec(), b"\xc3".to_vec(), "<｜a｜>".into()]);
        assert_eq!(tokenizer.unit(), TextUnit::Bytes);
        assert_eq!(tokenizer.continuation(99), None);
    }

    #[test]
    fn byte_fallback_tokens_are_one_byte_and_a_leading_space_is_kept() {
        let tokenizer = load(
            r#"{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}"#,
            &["▁x", "<0xC3>", "<0x+1>", "é"],
        );
        assert_eq!(texts(&tokenizer), [b" x".to_vec(), b"\xc3".to_vec(), b"\x01".to_vec(), "é".into()]);
        assert_eq!(tokenizer.unit(), TextUnit::Bytes);
    }

    #[test]
    fn other_tokens_are_read_after_a_word() {
        let tokenizer = load(
            r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}"#,
            &["▁x", "y"],
        );
        assert_eq!(texts(&tokenizer), [b" x".to_vec(), b"y".to_vec()]);
        assert_eq!(tokenizer.unit(), TextUnit::Chars);
        let pieces = load(r###"{"type": "WordPiece", "prefix": "##", "cleanup": false}"###, &["##x", "y"]);
        // The word is six tokens here, which the decoder writes with spaces, so the whole text is read.
        assert_eq!(texts(&pieces)[0], b"a b c d e fx");
    }
}
