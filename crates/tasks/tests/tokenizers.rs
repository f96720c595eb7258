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
