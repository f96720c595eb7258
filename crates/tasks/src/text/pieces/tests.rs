use serde_json::json;

use super::*;

fn llama() -> Tokenizer {
    let tokens = ["<s>", "</s>", "<unk>", "▁Hi", "▁there", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0xE4>", "!"];
    let vocab = tokens.iter().enumerate().map(|(id, token)| (token.to_string(), json!(id)));
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "added_tokens": [{"id": 1, "content": "</s>", "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}],
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "vocab": vocab.collect::<serde_json::Map<_, _>>(), "merges": [], "unk_token": "<unk>",
            "byte_fallback": true},
    });
    Tokenizer::from_json(&json.to_string(), None).unwrap()
}

#[test]
fn a_character_in_bytes_comes_whole() {
    let tokenizer = llama();
    let mut pieces = Pieces::new(&tokenizer, true);
    assert_eq!(pieces.push(3).as_deref(), Some("Hi"));
    for id in [5, 6, 7, 8] {
        assert_eq!(pieces.push(id), None);
    }
    assert_eq!(pieces.push(4).as_deref(), Some("😀 there"));
    assert_eq!(pieces.push(1), None, "special tokens are left out");
    assert_eq!(pieces.push(99), None, "ids without a token add nothing");
    assert_eq!(pieces.push(9), None);
    assert_eq!(pieces.finish().as_deref(), Some("\u{fffd}"));
    assert_eq!(pieces.push(4).as_deref(), Some("there"), "a new text loses its leading space again");
}

#[test]
fn special_tokens_are_shown_when_asked_for() {
    let tokenizer = llama();
    let mut pieces = Pieces::new(&tokenizer, false);
    assert_eq!(pieces.push(1).as_deref(), Some("</s>"));
    assert_eq!(pieces.finish(), None);
}
