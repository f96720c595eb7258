//! Ids against those that Python recorded (`conformance/record_tokenizer.py`), and hostile vocabularies.

use serde_json::{Map, Value};
use tokenizers::Tokenizer;

use super::*;

const BYTE_LEVEL: &str = include_str!("../../tests/data/tokenizer/byte_level.json");
const SENTENCE_PIECE: &str = include_str!("../../tests/data/tokenizer/sentencepiece.json");

fn vocabulary(recorded: &Value) -> GgufVocabulary {
    let strings = |name: &str| serde_json::from_value::<Option<Vec<String>>>(recorded[name].clone()).unwrap();
    let id = |name: &str| recorded[name].as_u64().map(|id| id as u32);
    GgufVocabulary {
        model: recorded["model"].as_str().unwrap().to_owned(),
        tokens: strings("tokens").unwrap(),
        scores: serde_json::from_value(recorded["scores"].clone()).unwrap(),
        token_types: serde_json::from_value(recorded["token_types"].clone()).unwrap(),
        merges: strings("merges"),
        bos_token_id: id("bos_token_id"),
        eos_token_id: id("eos_token_id"),
        unk_token_id: id("unk_token_id"),
        pad_token_id: id("pad_token_id"),
        add_bos_token: recorded["add_bos_token"].as_bool(),
        ..GgufVocabulary::default()
    }
}

fn load(vocabulary: &GgufVocabulary) -> Tokenizer {
    Tokenizer::from_bytes(vocabulary.tokenizer_json().unwrap().to_string()).unwrap()
}

fn compare(name: &str, tokenizer: &Tokenizer, cases: &Value, failures: &mut Vec<String>) {
    let cases = cases.as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let expected = serde_json::from_value::<Vec<u32>>(case["ids"].clone()).unwrap();
        let ids = tokenizer.encode(text, true).unwrap().get_ids().to_vec();
        if ids != expected {
            failures.push(format!("{name} {text:?}:\n  expected {expected:?}\n  got      {ids:?}"));
        }
        for (key, skip) in [("decoded", false), ("skipped", true)] {
            let decoded = tokenizer.decode(&expected, skip).unwrap();
            if decoded != case[key].as_str().unwrap() {
                failures.push(format!("{name} {text:?} {key}: got {decoded:?}"));
            }
        }
    }
}

#[test]
fn byte_level_vocabularies_give_the_recorded_ids() {
    let recorded = serde_json::from_str::<Value>(BYTE_LEVEL).unwrap();
    let mut failures = Vec::new();
    let mut vocabulary = vocabulary(&recorded["vocabulary"]);
    for (pre, cases) in recorded["kinds"].as_object().unwrap() {
        vocabulary.pre = Some(pre.clone());
        compare(pre, &load(&vocabulary), cases, &mut failures);
    }
    vocabulary.pre = Some("smollm".to_owned());
    (vocabulary.add_bos_token, vocabulary.add_eos_token) = (Some(true), Some(true));
    compare("with bos and eos", &load(&vocabulary), &recorded["with_bos_and_eos"], &mut failures);
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn sentencepiece_vocabularies_give_the_recorded_ids() {
    let recorded = serde_json::from_str::<Value>(SENTENCE_PIECE).unwrap();
    let mut failures = Vec::new();
    compare("llama", &load(&vocabulary(&recorded["vocabulary"])), &recorded["cases"], &mut failures);
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn without_a_space_prefix_sentencepiece_adds_and_strips_none() {
    let recorded = serde_json::from_str::<Value>(SENTENCE_PIECE).unwrap();
    let mut vocabulary = vocabulary(&recorded["vocabulary"]);
    vocabulary.add_space_prefix = Some(false);
    vocabulary.add_bos_token = Some(false);
    let tokenizer = load(&vocabulary);
    for text in ["the cat", " the cat", ""] {
        let ids = tokenizer.encode(text, true).unwrap();
        assert_eq!(tokenizer.decode(ids.get_ids(), false).unwrap(), text);
    }
}

#[test]
fn unsupported_kinds_are_refused_by_name() {
    let vocabulary = |model: &str, pre: &str| GgufVocabulary {
        model: model.to_owned(),
        pre: Some(pre.to_owned()),
        tokens: vec!["a".to_owned()],
        merges: Some(Vec::new()),
        ..GgufVocabulary::default()
    };
    for (model, pre, words) in
        [("bert", "default", "\"bert\""), ("gpt2", "deepseek-v3", "\"deepseek-v3\""), ("rwkv", "", "gpt2 (byte-level")]
    {
        let error = vocabulary(model, pre).tokenizer_json().unwrap_err();
        assert_eq!(error.kind(), unspool_core::ErrorKind::Unsupported);
        assert!(error.to_string().contains(words), "{error}");
    }
    for pre in SUPPORTED_PRE_TOKENIZERS {
        load(&vocabulary("gpt2", pre));
    }
}

#[test]
fn broken_vocabularies_are_errors() {
    let strings = |list: &[&str]| list.iter().map(|token| token.to_string()).collect::<Vec<_>>();
    let good = GgufVocabulary {
        model: "llama".to_owned(),
        tokens: strings(&["a", "b", "ab", ""]),
        scores: Some(vec![0.0, -1.0, -2.0, f32::NEG_INFINITY]),
        bos_token_id: Some(0),
        ..GgufVocabulary::default()
    };
    load(&good);
    let byte_level = GgufVocabulary { model: "gpt2".to_owned(), ..good.clone() };
    let merges = |list: &[&str]| GgufVocabulary { merges: Some(strings(list)), ..byte_level.clone() };
    load(&merges(&["a b"]));
    let broken = [
        ("no tokens", GgufVocabulary { tokens: Vec::new(), ..good.clone() }, "0 tokens"),
        ("scores", GgufVocabulary { scores: Some(vec![0.0]), ..good.clone() }, "1 values for 4"),
        ("no scores", GgufVocabulary { scores: None, ..good.clone() }, "one is needed"),
        ("nan", GgufVocabulary { scores: Some(vec![0.0, f32::NAN, 0.0, 0.0]), ..good.clone() }, "token 1"),
        ("types", GgufVocabulary { token_types: Some(vec![3; 9]), ..good.clone() }, "9 values for 4"),
        ("bos", GgufVocabulary { bos_token_id: Some(u32::MAX), ..good.clone() }, "4294967295"),
        ("no bos", GgufVocabulary { bos_token_id: None, add_bos_token: Some(true), ..good.clone() }, "no bos_token"),
        ("long", GgufVocabulary { tokens: vec!["é".repeat(300); 4], ..good.clone() }, "600 bytes"),
        ("no merges", byte_level.clone(), "tokenizer.ggml.merges"),
        ("one token", merges(&["ab"]), "\"ab\""),
        ("no right", merges(&["a "]), "\"a \""),
        ("unknown", merges(&["a c"]), "\"c\""),
        ("unknown result", merges(&["b a"]), "\"ba\""),
    ];
    for (name, vocabulary, words) in broken {
        let error = vocabulary.tokenizer_json().expect_err(name);
        assert_eq!(error.kind(), unspool_core::ErrorKind::InvalidModel, "{name}");
        assert!(error.to_string().contains(words), "{name}: {error}");
    }
}

#[test]
fn equal_tokens_are_one_token_with_the_last_id() {
    let vocabulary = GgufVocabulary {
        model: "gpt2".to_owned(),
        tokens: ["<s>", "a", "<s>", "a"].map(str::to_owned).to_vec(),
        token_types: Some(vec![3, 1, 4, 1]),
        merges: Some(Vec::new()),
        ..GgufVocabulary::default()
    };
    assert_eq!(load(&vocabulary).encode("a<s>", false).unwrap().get_ids(), [3, 2]);
}

#[test]
fn the_config_names_special_tokens_and_templates() {
    let mut vocabulary = GgufVocabulary {
        model: "gpt2".to_owned(),
        tokens: vec!["<s>".to_owned(), "</s>".to_owned()],
        bos_token_id: Some(0),
        eos_token_id: Some(1),
        add_bos_token: Some(true),
        chat_template: Some("x".to_owned()),
        ..GgufVocabulary::default()
    };
    let config = vocabulary.tokenizer_config_json().unwrap();
    assert_eq!(config["bos_token"], "<s>");
    assert_eq!(config["eos_token"], "</s>");
    assert_eq!(config["add_bos_token"], true);
    assert_eq!(config["chat_template"], "x");
    assert!(config.get("pad_token").is_none());
    vocabulary.chat_templates = vec![("tool_use".to_owned(), "y".to_owned())];
    let config = vocabulary.tokenizer_config_json().unwrap();
    assert_eq!(config["chat_template"][0]["name"], "default");
    assert_eq!(config["chat_template"][1]["template"], "y");
}

/// Reads what `record_tokenizer.py whole` wrote for a whole model.
#[test]
#[ignore = "needs a model: set UNSPOOL_TOKENIZER_GGUF and UNSPOOL_TOKENIZER_IDS"]
fn a_whole_vocabulary_gives_the_recorded_ids() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let file = Gguf::open(variable("UNSPOOL_TOKENIZER_GGUF")).unwrap();
    let tokenizer = Tokenizer::from_bytes(tokenizer_json(&file).unwrap().to_string()).unwrap();
    let recorded = std::fs::read_to_string(variable("UNSPOOL_TOKENIZER_IDS")).unwrap();
    let mut failures = Vec::new();
    for line in recorded.lines() {
        let case = serde_json::from_str::<Map<String, Value>>(line).unwrap();
        let text = case["text"].as_str().unwrap();
        let ids = tokenizer.encode(text, false).unwrap().get_ids().to_vec();
        for reference in ["ids", "llama_cpp"] {
            let Some(expected) = case.get(reference) else { continue };
            let expected = serde_json::from_value::<Vec<u32>>(expected.clone()).unwrap();
            if ids != expected {
                failures.push(format!("{reference} {text:?}:\n  expected {expected:?}\n  got      {ids:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
