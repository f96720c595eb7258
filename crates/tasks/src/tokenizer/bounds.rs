//! How long a text may be, and may become: what a tokenizer file says is not believed before its cost is known.

use serde_json::Value;
use tokenizers::models::ModelWrapper;
use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper, PreTokenizerWrapper};
use unspool_core::{Error, Result};

/// The most that the parts of a file may multiply a text by; known tokenizers stay below 40.
const MAX_GROWTH: f64 = 1024.0;
/// A normalizer that multiplies a text by more than this is watched step by step.
const WATCHED_GROWTH: f64 = 64.0;
/// Normalizers that add more bytes than this to any text are watched too.
const WATCHED_BYTES: f64 = 4096.0;
/// A watched text may become this long in any case.
const SMALL_TEXT: usize = 4 << 20;
/// A watched text may become this many times longer.
const WATCHED_FACTOR: usize = 16;

/// A prompt of a model whose positions are not known, or one of a tokenizer that drops text, may have this many bytes.
const LONG_TEXT: usize = 16 << 20;
/// No prompt is longer.
const MAX_TEXT: usize = 64 << 20;
/// How much longer a text may be when the tokenizer drops parts of it.
const DROPPED_FACTOR: usize = 16;

/// What is known about the texts of a tokenizer.
#[derive(Debug)]
pub(super) struct Bounds {
    /// The normalizers one by one, where they are watched.
    watched: Vec<NormalizerWrapper>,
    /// The most bytes of text that one token stands for.
    longest_token: usize,
    /// Whether text can be longer than its tokens: dropped by a normalizer, or a run of anything in one unknown token.
    drops: bool,
}

impl Bounds {
    /// Looks at the parts of a tokenizer.
    ///
    /// # Errors
    /// When its parts multiply a text without end.
    pub(super) fn of(backend: &tokenizers::Tokenizer, longest_token: usize) -> Result<Bounds> {
        let json = |part: serde_json::Result<Value>| part.unwrap_or(Value::Null);
        let normalizer = backend.get_normalizer();
        let pre_tokenizer = json(serde_json::to_value(backend.get_pre_tokenizer()));
        let parts =
            [("pre_tokenizer", &pre_tokenizer), ("decoder", &json(serde_json::to_value(backend.get_decoder())))];
        for (name, part) in parts {
            let growth = growth(part);
            if growth > MAX_GROWTH {
                return Err(Error::invalid_model(format!(
                    "the {name} of tokenizer.json can make a text {growth:.0} times longer; at most {MAX_GROWTH} is accepted"
                )));
            }
        }
        let watched = normalizer.map_or(Vec::new(), flat);
        let steps: Vec<Value> = watched.iter().map(|step| json(serde_json::to_value(step))).collect();
        let grows = steps.iter().map(growth).product::<f64>() > WATCHED_GROWTH;
        let adds = steps.iter().map(constant).sum::<f64>() > WATCHED_BYTES;
        let watched = if grows || adds { watched } else { Vec::new() };
        let added = backend.get_added_tokens_decoder();
        let drops = normalizer.is_some_and(shrinks)
            || backend.get_pre_tokenizer().is_some_and(cuts)
            || added.values().any(|token| token.lstrip || token.rstrip)
            || !matches!(backend.get_model(), ModelWrapper::BPE(bpe) if !bpe.fuse_unk || bpe.byte_fallback);
        Ok(Bounds { watched, longest_token, drops })
    }

    /// Refuses a text that the normalizers would make too long, before they do.
    pub(super) fn check(&self, text: &str) -> Result<()> {
        if self.watched.is_empty() {
            return Ok(());
        }
        let limit = SMALL_TEXT.max(text.len().saturating_mul(WATCHED_FACTOR));
        let mut normalized = NormalizedString::from(text);
        for normalizer in &self.watched {
            let step = serde_json::to_value(normalizer).unwrap_or_default();
            let most = match replacement(&step) {
                Some((pattern, content)) => {
                    let text = normalized.get();
                    let places = match pattern {
                        Pattern::Text(pattern) if !pattern.is_empty() => text.matches(pattern).count(),
                        _ => text.len() + 1,
                    };
                    text.len().saturating_add(places.saturating_mul(content))
                }
                None => (normalized.get().len() as f64 * growth(&step) + constant(&step)) as usize,
            };
            // A pattern is counted as if it matched everywhere; only its result tells.
            if most > limit.saturating_mul(WATCHED_FACTOR) || (!is_pattern(&step) && most > limit.saturating_mul(2)) {
                return Err(too_long(text.len(), limit));
            }
            normalizer
                .normalize(&mut normalized)
                .map_err(|error| Error::invalid_input("the tokenizer cannot normalize the text").because(error))?;
            if normalized.get().len() > limit {
                return Err(too_long(text.len(), limit));
            }
        }
        Ok(())
    }

    /// The most bytes that a text of `positions` tokens can have.
    pub(super) fn max_bytes(&self, positions: Option<usize>) -> usize {
        let Some(positions) = positions else { return MAX_TEXT };
        let bytes = positions.saturating_mul(self.longest_token.max(1));
        match self.drops {
            true => bytes.saturating_mul(DROPPED_FACTOR).max(LONG_TEXT),
            false => bytes,
        }
        .min(MAX_TEXT)
    }
}

fn too_long(bytes: usize, limit: usize) -> Error {
    Error::invalid_input(format!(
        "the normalizers of tokenizer.json make this text of {bytes} bytes longer than {limit} bytes; the tokenizer is \
         broken, or made to do so"
    ))
}

/// The normalizers one after the other.
fn flat(normalizer: &NormalizerWrapper) -> Vec<NormalizerWrapper> {
    match normalizer {
        NormalizerWrapper::Sequence(sequence) => sequence.as_ref().iter().flat_map(flat).collect(),
        one => vec![one.clone()],
    }
}

/// What a `Replace` looks for.
enum Pattern<'v> {
    Text(&'v str),
    Regex,
}

/// What a `Replace` looks for, and the bytes that it writes instead.
fn replacement(part: &Value) -> Option<(Pattern<'_>, usize)> {
    if part.get("type")?.as_str()? != "Replace" {
        return None;
    }
    let content = part.get("content").and_then(Value::as_str).map_or(0, str::len);
    Some(match part.get("pattern")?.get("String").and_then(Value::as_str) {
        Some(pattern) => (Pattern::Text(pattern), content),
        None => (Pattern::Regex, content),
    })
}

fn is_pattern(part: &Value) -> bool {
    matches!(replacement(part), Some((Pattern::Regex, _)))
}

/// How many times longer a part can make a long text.
fn growth(part: &Value) -> f64 {
    for list in ["normalizers", "pretokenizers", "decoders"] {
        if let Some(parts) = part.get(list).and_then(Value::as_array) {
            return parts.iter().map(growth).product();
        }
    }
    match replacement(part) {
        Some((Pattern::Text(pattern), content)) if !pattern.is_empty() => {
            return (content as f64 / pattern.len() as f64).max(1.0);
        }
        Some((_, content)) => return 1.0 + content as f64,
        None => {}
    }
    match part.get("type").and_then(Value::as_str).unwrap_or_default() {
        // The most that Unicode's compatibility forms make of a character.
        "NFKC" | "NFKD" | "Precompiled" => 11.0,
        "NFC" | "NFD" | "BertNormalizer" => 3.0,
        "ByteLevel" => 2.0,
        "Lowercase" => 1.5,
        "Metaspace" => 4.0,
        _ => 1.0,
    }
}

/// The bytes that a part adds to any text.
fn constant(part: &Value) -> f64 {
    part.get("prepend").and_then(Value::as_str).map_or(4.0, |text| text.len() as f64)
}

/// Whether a normalizer can make a text shorter than its tokens.
fn shrinks(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::Sequence(sequence) => sequence.as_ref().iter().any(shrinks),
        NormalizerWrapper::Prepend(_) | NormalizerWrapper::ByteLevel(_) => false,
        // A space that becomes a longer mark, as in Llama's tokenizers.
        NormalizerWrapper::Replace(_) => {
            let part = serde_json::to_value(normalizer).unwrap_or_default();
            !matches!(replacement(&part), Some((Pattern::Text(pattern), content)) if content >= pattern.len())
        }
        _ => true,
    }
}

/// Whether a pre-tokenizer can drop text.
fn cuts(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    match pre_tokenizer {
        PreTokenizerWrapper::Sequence(sequence) => sequence.as_ref().iter().any(cuts),
        PreTokenizerWrapper::ByteLevel(_) | PreTokenizerWrapper::Digits(_) | PreTokenizerWrapper::Metaspace(_) => false,
        PreTokenizerWrapper::Split(split) => split.behavior == tokenizers::SplitDelimiterBehavior::Removed,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Tokenizer;

    use super::*;

    fn tokenizer(part: &str, value: Value) -> Result<Tokenizer> {
        let mut json =
            json!({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ["a a"]}});
        json[part] = value;
        Tokenizer::from_json(&json.to_string(), None)
    }

    #[test]
    fn normalizers_that_multiply_a_text_are_stopped() {
        let bomb = |pattern: Value| {
            let step = json!({"type": "Replace", "pattern": pattern, "content": "aaaaaaaaaa"});
            json!({"type": "Sequence", "normalizers": vec![step; 30]})
        };
        for pattern in [json!({"String": "a"}), json!({"Regex": "a"}), json!({"Regex": ""})] {
            let tokenizer = tokenizer("normalizer", bomb(pattern)).unwrap();
            let error = tokenizer.encode("a", false).unwrap_err().to_string();
            assert!(error.contains("this text of 1 bytes longer than 4194304 bytes"), "{error}");
        }
        let nested = json!({"type": "Sequence", "normalizers": [bomb(json!({"String": "a"}))]});
        assert!(tokenizer("normalizer", nested).unwrap().encode("a", false).is_err());
        // A long chain that does not multiply is fine.
        let step = json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u{2581}"});
        let chain = json!({"type": "Sequence", "normalizers": vec![step; 30]});
        assert_eq!(tokenizer("normalizer", chain).unwrap().encode("aaa", false).unwrap(), [1, 0]);
    }

    #[test]
    fn other_parts_that_multiply_a_text_are_refused() {
        let byte_level =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let chain = json!({"type": "Sequence", "pretokenizers": vec![byte_level; 30]});
        assert!(tokenizer("pre_tokenizer", chain).unwrap_err().to_string().contains("pre_tokenizer"));
        let step = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"});
        let chain = json!({"type": "Sequence", "decoders": vec![step; 30]});
        assert!(tokenizer("decoder", chain).unwrap_err().to_string().contains("decoder"));
    }

    #[test]
    fn a_text_has_at_most_the_bytes_of_its_tokens() {
        let plain = tokenizer("normalizer", Value::Null).unwrap();
        assert_eq!(plain.max_bytes(Some(100)), 200);
        assert_eq!(plain.max_bytes(Some(usize::MAX)), MAX_TEXT);
        assert_eq!(plain.max_bytes(None), MAX_TEXT);
        let dropping = tokenizer("pre_tokenizer", json!({"type": "Whitespace"})).unwrap();
        assert_eq!(dropping.max_bytes(Some(100)), LONG_TEXT);
        let dropping =
            tokenizer("normalizer", json!({"type": "Strip", "strip_left": true, "strip_right": true})).unwrap();
        assert_eq!(dropping.max_bytes(Some(100)), LONG_TEXT);
        let marked = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
        assert_eq!(tokenizer("normalizer", marked).unwrap().max_bytes(Some(100)), 200);
    }
}
