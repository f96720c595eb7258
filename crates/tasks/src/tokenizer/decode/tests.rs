use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::text::Pieces;
use crate::tokenizer::Tokenizer;

/// A tokenizer whose vocabulary is `tokens` in order; `<s>` and `</s>` are special.
fn tokenizer(decoder: Value, tokens: &[&str], clean_up: bool) -> Tokenizer {
    let vocab = tokens.iter().enumerate().map(|(id, token)| (token.to_string(), json!(id)));
    let special = ["<s>", "</s>"].map(|token| {
        json!({"id": tokens.iter().position(|t| *t == token).unwrap(), "content": token, "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": false, "special": true})
    });
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": special, "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": decoder,
        "model": {"type": "WordLevel", "vocab": vocab.collect::<serde_json::Map<_, _>>(), "unk_token": "<s>"},
    });
    let config = json!({"clean_up_tokenization_spaces": clean_up}).to_string();
    Tokenizer::from_json(&json.to_string(), Some(&config)).unwrap()
}

const SENTENCE_PIECE: [&str; 22] = [
    "<s>", "</s>", "▁", "▁▁", "▁Hello", "lo", "<0xE4>", "<0xBD>", "<0xA0>", "<0x41>", "<0x0A>", "é", "你", "▁'", "n't",
    ".", "▁.", " ", "  ", "<0xF0>", "a▁b", "",
];
const BYTE_LEVEL: [&str; 16] =
    ["<s>", "</s>", "Ġ", "ĠHello", "lo", "Ã", "©", "ä", "½", "ł", "ðŁĺ", "Ģ", "Ċ", "ÿ", "你", "Ġ."];
const WORD_PIECE: [&str; 14] =
    ["<s>", "</s>", "hello", "##lo", "##", ".", "'", "n't", "do", "not", "re", "##.", " ", "</w>x</w>"];

fn decoders() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let replace = json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
    let strip = json!({"type": "Strip", "content": " ", "start": 1, "stop": 0});
    let (fuse, fallback) = (json!({"type": "Fuse"}), json!({"type": "ByteFallback"}));
    let metaspace =
        |scheme: &str| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true});
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let chain = |list: &[&Value]| json!({"type": "Sequence", "decoders": list});
    vec![
        ("llama", chain(&[&replace, &fallback, &fuse, &strip]), &SENTENCE_PIECE),
        ("gemma", chain(&[&replace, &fallback, &fuse]), &SENTENCE_PIECE),
        ("metaspace first", metaspace("first"), &SENTENCE_PIECE),
        ("metaspace never", chain(&[&fallback, &metaspace("never")]), &SENTENCE_PIECE),
        ("strip each", chain(&[&strip, &replace]), &SENTENCE_PIECE),
        ("whole", chain(&[&fuse, &replace, &strip]), &SENTENCE_PIECE),
        ("byte level", level.clone(), &BYTE_LEVEL),
        ("byte level and strip", chain(&[&level, &strip]), &BYTE_LEVEL),
        ("word piece", json!({"type": "WordPiece", "prefix": "##", "cleanup": true}), &WORD_PIECE),
        ("bpe", json!({"type": "BPEDecoder", "suffix": "</w>"}), &WORD_PIECE),
        ("ctc", json!({"type": "CTC", "pad_token": "re", "word_delimiter_token": "do", "cleanup": true}), &WORD_PIECE),
        ("none", Value::Null, &WORD_PIECE),
    ]
}

/// What Python does: the library's decode, then the replacements over the whole text.
fn reference(tokenizer: &Tokenizer, ids: &[u32], skip: bool, cleaned: bool) -> String {
    let shown = ids.iter().any(|&id| tokenizer.shown_token(id, skip).is_some());
    let text = if shown { tokenizer.inner.backend.decode(ids, skip).unwrap() } else { String::new() };
    if cleaned { clean_up(&text) } else { text }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unspool_testing::scaled(400)))]

    #[test]
    fn text_and_pieces_equal_the_library(ids in prop::collection::vec(0u32..26, 0..24), skip: bool, cleaned: bool) {
        for (name, decoder, tokens) in decoders() {
            let tokenizer = tokenizer(decoder, tokens, cleaned);
            let expected = reference(&tokenizer, &ids, skip, cleaned);
            prop_assert_eq!(tokenizer.decode(&ids, skip), expected.clone(), "{} {:?}", name, ids);
            let mut pieces = Pieces::new(&tokenizer, skip);
            let mut text = String::new();
            for &id in &ids {
                text.extend(pieces.push(id));
            }
            text.extend(pieces.finish());
            prop_assert_eq!(text, expected, "pieces of {} {:?}", name, ids);
        }
    }
}

#[test]
fn strip_at_the_end_is_held_until_the_end() {
    let strip = json!({"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 2}]});
    let tokenizer = tokenizer(strip, &SENTENCE_PIECE, false);
    let mut pieces = Pieces::new(&tokenizer, false);
    assert_eq!(pieces.push(18), None);
    assert_eq!(pieces.push(11).as_deref(), Some(" é"));
    assert_eq!(pieces.push(18), None);
    assert_eq!(pieces.push(17).as_deref(), Some(" "));
    assert_eq!(pieces.finish(), None);
    assert_eq!(tokenizer.decode(&[17], false), "");
    assert_eq!(tokenizer.decode(&[], false), "");
}

#[test]
fn every_byte_has_a_character() {
    let mut seen = std::collections::BTreeSet::new();
    for code in 0..0x300u32 {
        seen.extend(char::from_u32(code).and_then(byte_of));
    }
    assert_eq!(seen.len(), 256);
    assert_eq!(byte_level("ĠĊ"), Some(b" \n".to_vec()));
    assert_eq!(byte_level("<｜a｜>"), None);
}

#[test]
fn unfinished_characters_stay_and_invalid_bytes_become_one_sign() {
    let mut bytes = b"a\xff\xe4\xbd".to_vec();
    assert_eq!(take_text(&mut bytes, false), "a\u{fffd}");
    assert_eq!(bytes, b"\xe4\xbd");
    assert_eq!(take_text(&mut bytes, true), "\u{fffd}");
    assert!(bytes.is_empty());
}
