//! Every example runs on a small model and prints what it is there to show.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models").join(name)
}

/// What an example prints. Cargo builds examples with the tests of their package.
fn printed(example: &str, arguments: &[&Path]) -> String {
    let deps = std::env::current_exe().unwrap();
    let folder = deps.parent().and_then(Path::parent).unwrap().join("examples");
    let program = folder.join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is not built; `cargo test -p unspool` builds the examples", program.display());
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn on_llama(example: &str) -> String {
    printed(example, &[&model("llama")])
}

/// The number behind `name` in a text.
fn number(text: &str, name: &str) -> f64 {
    let (_, rest) = text.split_once(name).unwrap_or_else(|| panic!("no {name:?} in {text:?}"));
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

#[test]
fn every_example_is_run_here() {
    let test = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples.rs")).unwrap();
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    let names: BTreeSet<String> =
        files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert!(names.len() >= 12);
    for name in names {
        assert!(test.contains(&format!("(\"{name}\"")), "no test runs the example {name}");
    }
}

#[test]
fn text_is_continued() {
    let text = on_llama("text");
    assert!(text.starts_with("Once upon a time") && text.trim_end().len() > "Once upon a time".len(), "{text:?}");
    assert_eq!(on_llama("text"), text, "the seed is set");
}

#[test]
fn stream_prints_stops_and_gives_events() {
    let text = on_llama("stream");
    assert!(text.contains("characters: Cancelled"), "{text:?}");
    assert!((20.0..30.0).contains(&number(&text, "stopped after ")), "{text:?}");
    assert!(text.contains("prompt 0 ended: ") && text.contains("prompt 1 ended: "), "{text:?}");
}

#[test]
fn chat_gives_tools_to_the_template_and_keeps_its_cache() {
    let folder = tempfile::tempdir().unwrap();
    let from = model("llama");
    fs::create_dir(folder.path().join("onnx")).unwrap();
    let names = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"];
    for name in names {
        fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    let template = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}\
                    {% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}\
                    {% if add_generation_prompt %}assistant: {% endif %}";
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let text = printed("chat", &[folder.path(), Path::new("Rain?")]);
    assert!(text.contains(r#"prompt: "[weather]user: Rain?\nassistant: ""#), "{text:?}");
    assert!(text.contains("answer: ") && text.matches(" prompt tokens run, ").count() == 2, "{text:?}");
}

#[test]
fn batch_answers_every_line_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prompts.txt");
    let prompts: Vec<String> = (0..10).map(|index| format!("line {index}")).collect();
    fs::write(&file, prompts.join("\n")).unwrap();
    let text = printed("batch", &[&model("llama"), &file]);
    let read: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read.iter().map(|line| line["prompt"].as_str().unwrap()).collect::<Vec<_>>(), prompts);
    assert!(read.iter().all(|line| line["tokens"].as_u64().is_some_and(|tokens| (1..=20).contains(&tokens))));
}

#[test]
fn beams_come_best_first() {
    let text = on_llama("beams");
    let scores: Vec<f64> = text.lines().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect();
    assert!(scores.len() == 4 && scores.is_sorted_by(|a, b| a >= b) && scores[0] < 0.0, "{text}");
}

#[test]
fn logprobs_add_up() {
    let text = on_llama("logprobs");
    let numbers: Vec<f64> = text.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
    let (sum, each) = numbers.split_last().unwrap();
    assert!((1..=8).contains(&each.len()) && each.iter().all(|logprob| *logprob <= 0.0), "{text}");
    assert!((each.iter().sum::<f64>() - sum).abs() < 0.01, "{text}");
}

#[test]
fn processor_forbids_a_letter() {
    // No escape of an unprintable character holds an s.
    let text = printed("processor", &[&model("llama"), Path::new("s")]);
    assert!(number(&text, "") > 0.0);
    let answer = text.lines().nth(1).unwrap();
    assert!(answer.len() > 10 && !answer.to_lowercase().contains('s'), "{text:?}");
}

#[test]
fn criterion_ends_the_answer() {
    let text = printed("criterion", &[&model("llama"), Path::new("12")]);
    assert!(text.ends_with("ended: 12 characters\n"), "{text:?}");
}

#[test]
fn draft_changes_no_token_and_saves_runs() {
    let text = on_llama("draft");
    assert!(text.contains("the same tokens: true"), "{text:?}");
    let runs = number(&text, "tokens kept, ");
    assert!(runs < 30.0, "40 tokens in {runs} runs");
}

#[test]
fn own_model_continues_by_its_counts() {
    let text = on_llama("own_model");
    assert_eq!(text.lines().count(), 3);
    assert!(text.starts_with("greedy: \"") && text.contains("beams:  \"") && text.contains("drawn:  \""), "{text:?}");
    assert!(text.lines().all(|line| line.len() > "greedy: \"\"".len()), "{text:?}");
}

#[test]
fn watermark_is_found_where_it_is() {
    let text = on_llama("watermark");
    assert!(text.contains("marked: true") && text.contains("marked: false"), "{text:?}");
    assert!(number(&text, "with watermark: z = ") > number(&text, "without watermark: z = ") + 3.0, "{text:?}");
}

#[test]
fn score_embed_compares_texts() {
    let text = printed("score_embed", &[&model("llama-hidden")]);
    for city in ["Paris", "Lyon", "Rome"] {
        assert!(number(&text, &format!("{city}: log-likelihood ")) < 0.0, "{text:?}");
    }
    assert!((-1.0..=1.0).contains(&number(&text, "a river and a stream: ")), "{text:?}");
    assert!(text.contains("2 steps have hidden states"), "{text:?}");
    assert!(on_llama("score_embed").contains("this graph has no hidden states"));
}

#[test]
fn custom_generate_decodes_by_itself() {
    let text = printed("custom_generate", &[&model("llama"), Path::new("Once upon a time")]);
    assert!(text.trim_end().len() > 3, "{text:?}");
}
