//! `TextStreamer` gives the pieces that Python's gave (`record/text_streamer.py`).

use std::collections::BTreeMap;
use std::path::Path;

use unspool_core::TokenId;
use unspool_tasks::{TextStreamer, Tokenizer};

/// Tokenizer, skip_prompt, skip_special_tokens, prompt, tokens, pieces.
type Case = (String, bool, bool, Vec<TokenId>, Vec<TokenId>, Vec<String>);

fn tokenizer(name: &str) -> Tokenizer {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = match name {
        "gpt2" | "llama" | "t5" => home.join("../crates/tasks/tests/data/tokenizers"),
        _ => home.join("models"),
    };
    Tokenizer::from_folder(&folder.join(name)).unwrap()
}

#[test]
fn everything_recorded_is_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/text_streamer.json");
    let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() > 100);
    let mut tokenizers = BTreeMap::new();
    let mut failures = Vec::new();
    for (index, (name, skip_prompt, skip_special, prompt, ids, expected)) in cases.into_iter().enumerate() {
        let tokenizer = tokenizers.entry(name.clone()).or_insert_with(|| tokenizer(&name));
        let mut streamer = TextStreamer::new(tokenizer).skip_prompt(skip_prompt).skip_special_tokens(skip_special);
        let mut got = Vec::from_iter(streamer.put(&prompt));
        got.extend(ids.iter().filter_map(|&id| streamer.put(&[id])));
        got.push(streamer.end());
        if got != expected {
            failures.push(format!("case {index}, {name}:\n  expected {expected:?}\n  got      {got:?}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
