//! Chat templates give the text that Python gives (`conformance/record/chat_templates.py`).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use unspool_tasks::{ChatOptions, ChatTemplate, Clock, Message};

const NOON: Clock = Clock::At { unix_seconds: 1_722_081_600, utc_offset_seconds: 0 };

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> String {
    let path = data(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn options(case: &Value, prompt: bool) -> (Vec<Message>, ChatOptions) {
    let messages = serde_json::from_value(case["messages"].clone()).unwrap();
    let options = ChatOptions {
        add_generation_prompt: Some(prompt),
        continue_final_message: false.into(),
        tools: case.get("tools").and_then(Value::as_array).cloned(),
        documents: case.get("documents").and_then(Value::as_array).cloned(),
        template_args: case.get("extra").and_then(Value::as_object).cloned().unwrap_or_default(),
        clock: NOON,
        ..ChatOptions::default()
    };
    (messages, options)
}

#[test]
fn every_recorded_render_is_the_same() {
    let cases = serde_json::from_str::<Map<String, Value>>(&read("conversations.json")).unwrap();
    let file = std::fs::File::open(data("renders.json.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let renders = serde_json::from_str::<Map<String, Value>>(&text).unwrap();
    assert!(renders.len() >= 12 && cases.len() >= 7);
    let special = [("bos_token", "<s>"), ("eos_token", "</s>")].map(|(name, token)| (name.into(), token.into()));
    let mut failures = Vec::new();
    for (name, expected) in &renders {
        let source = read(&format!("templates/{name}.jinja"));
        let template = ChatTemplate::with_special_tokens(&source, BTreeMap::from(special.clone())).unwrap();
        for (case, expected) in expected.as_object().unwrap() {
            let (conversation, prompt) = match case.strip_suffix(" +") {
                Some(conversation) => (conversation, true),
                None => (case.as_str(), false),
            };
            let (messages, options) = options(&cases[conversation], prompt);
            match (expected, template.render(&messages, &options)) {
                (Value::String(expected), Ok(text)) if *expected == text => {}
                (Value::Object(error), Err(got)) => {
                    let words = error["error"].as_str().unwrap();
                    let raised = words.contains("roles must alternate") || words.contains("Roles must alternate");
                    if raised && !got.to_string().contains(words) {
                        failures.push(format!("{name} / {case}: expected the error {words:?}, got {got}"));
                    }
                }
                (expected, got) => {
                    failures.push(format!("{name} / {case}:\n  expected {expected:?}\n  got      {got:?}"))
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} renders differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_recorded_expression_is_the_same() {
    let rows = serde_json::from_str::<Vec<Vec<Value>>>(&read("expressions.json")).unwrap();
    let context = serde_json::from_str::<Value>(&read("expressions_context.json")).unwrap();
    let (messages, options) = options(&context, false);
    assert!(rows.len() >= 500);
    // What is known to differ (docs/compatibility.md, "Chat templates"), and must be taken from the list once it does not.
    let different = serde_json::from_str::<Vec<String>>(&read("expressions_different.json")).unwrap();
    let mut failures = Vec::new();
    for row in &rows {
        let source = row[0].as_str().unwrap();
        let special = [("bos_token", "<s>"), ("eos_token", "</s>")].map(|(name, token)| (name.into(), token.into()));
        let template = ChatTemplate::with_special_tokens(source, BTreeMap::from(special));
        let got = template.and_then(|template| template.render(&messages, &options));
        let same = match (&row[1], &got) {
            (Value::String(expected), Ok(text)) => expected == text,
            (Value::Null, Err(_)) => true,
            _ => false,
        };
        if same == different.iter().any(|known| known == source) {
            let expected = &row[1..];
            failures.push(format!(
                "{source}\n  expected {expected:?}\n  got      {:?}",
                got.map_err(|error| error.to_string())
            ));
        }
    }
    assert!(failures.is_empty(), "{} expressions differ:\n{}", failures.len(), failures.join("\n"));
}
