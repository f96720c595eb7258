//! Tokenizers give what Python gives (`data/record_tokenizers.py`).

use std::path::Path;

use serde_json::Value;
use unspool_core::{TextUnit, TokenId, Vocabulary};
use unspool_tasks::{Pieces, Tokenizer};

fn ids(value: &Value) -> Vec<TokenId> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn everything_recorded_is_the_same() {
    let mut failures = Vec::new();
    for name in ["gpt2", "llama", "t5"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tokenizers").join(name);
        let recorded = std::fs::read_to_string(folder.join("recorded.json")).unwrap();
        let recorded = serde_json::from_str::<Value>(&recorded).unwrap();
        let tokenizer = Tokenizer::from_folder(&folder).unwrap();
        let mut same = |what: &str, expected: String, got: String| {
            if expected != got {
                failures.push(format!("{name} {what}:\n  expected {expected}\n  got      {got}"));
            }
        };

        for case in recorded["encode"].as_array().unwrap() {
            let text = case[0].as_str().unwrap();
            for (index, special) in [(1, true), (2, false)] {
                let got = tokenizer.encode(text, special).unwrap();
                same(&format!("encode {text:?}"), format!("{:?}", ids(&case[index])), format!("{got:?}"));
            }
        }
        for case in recorded["decode"].as_array().unwrap() {
            let tokens = ids(&case[0]);
            for (index, skip) in [(1, false), (2, true)] {
                let expected = case[index].as_str().unwrap();
                same(&format!("decode {tokens:?}"), expected.to_owned(), tokenizer.decode(&tokens, skip));
                let mut pieces = Pieces::new(&tokenizer, skip);
                let mut text = tokens.iter().filter_map(|&id| pieces.push(id)).collect::<String>();
                text.extend(pieces.finish());
                same(&format!("pieces {tokens:?}"), expected.to_owned(), text);
            }
        }
        let continuation = recorded["continuation"].as_object().unwrap();
        for (id, expected) in continuation {
            let bytes = tokenizer.continuation(id.parse().unwrap());
            let got = bytes.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            same(&format!("continuation {id}"), expected.as_str().unwrap().to_owned(), got.unwrap_or_default());
        }
        assert!(continuation.len() > 50 && tokenizer.size() >= continuation.len());
        let unit = if recorded["unit"] == "bytes" { TextUnit::Bytes } else { TextUnit::Chars };
        assert_eq!(tokenizer.unit(), unit);
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn settings_have_the_effect_they_have_in_python() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tokenizer_variants.json");
    let variants: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(variants.len() >= 20);
    let mut failures = Vec::new();
    for variant in &variants {
        let name = variant["name"].as_str().unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (file, value) in variant["files"].as_object().unwrap() {
            std::fs::write(folder.path().join(file), value.to_string()).unwrap();
        }
        let tokenizer = Tokenizer::from_folder(folder.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (key, expected) in variant["special"].as_object().unwrap() {
            if tokenizer.special_token(key) != expected.as_str() {
                failures.push(format!("{name}: {key} is {:?}, expected {expected}", tokenizer.special_token(key)));
            }
        }
        for row in variant["texts"].as_array().unwrap() {
            let text = row[0].as_str().unwrap();
            let got = tokenizer.encode(text, true).unwrap();
            if got != ids(&row[1]) || tokenizer.encode(text, false).unwrap() != ids(&row[2]) {
                failures.push(format!("{name}: {text:?} is {got:?}, expected {}", row[1]));
                continue;
            }
            for (skip, expected) in [(false, &row[3]), (true, &row[4])] {
                let got = tokenizer.decode(&got, skip);
                if got != expected.as_str().unwrap() {
                    failures.push(format!("{name}: {text:?} reads {got:?} (skip {skip}), expected {expected}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
