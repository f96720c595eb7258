//! `unspool score` as people run it.

mod common;

use common::{Ran, json_lines, model, unspool, with_input};
use serde_json::{Value, json};

fn score(name: &str, arguments: &[&str], input: &str) -> Ran {
    let model = model(name);
    let mut all = vec!["score", &model, "--engine", "rten"];
    all.extend_from_slice(arguments);
    with_input(&all, input.as_bytes())
}

/// What greedy decoding writes has the log-probabilities that `generate --logprobs` tells, and is greedy.
#[test]
fn what_was_generated_is_scored_the_same() {
    let gpt2 = model("gpt2");
    let generated = unspool(&[
        "generate",
        &gpt2,
        "--engine",
        "rten",
        "--ids",
        "[262,258,266]",
        "--max-new-tokens",
        "12",
        "--json",
        "--logprobs",
    ])
    .fine();
    let generated = &json_lines(&generated)[0]["sequences"][0];
    let line = json!({"prompt_ids": [262, 258, 266], "continuation_ids": generated["ids"]}).to_string();
    let scored = &json_lines(&score("gpt2", &[], &line).fine())[0];
    assert_eq!(scored["ids"], generated["ids"]);
    assert_eq!(scored["is_greedy"], true);
    let numbers =
        |value: &Value| -> Vec<f64> { value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect() };
    let (got, expected) = (numbers(&scored["logprobs"]), numbers(&generated["logprobs"]));
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4), "{got:?} {expected:?}");
    assert!((scored["sum"].as_f64().unwrap() - expected.iter().sum::<f64>()).abs() < 1e-3);
    let perplexity = (-expected.iter().sum::<f64>() / 12.0).exp();
    assert!((scored["perplexity"].as_f64().unwrap() / perplexity - 1.0).abs() < 1e-3);
}

#[test]
fn the_first_token_is_given_unless_a_first_token_is_put_before_it() {
    let plain = &json_lines(&score("gpt2", &["the river runs"], "").fine())[0];
    let begun = &json_lines(&score("gpt2", &["the river runs", "--add-bos"], "").fine())[0];
    let ids = plain["ids"].as_array().unwrap().len();
    assert_eq!(plain["prompt_ids"].as_array().unwrap().len(), 1);
    assert_eq!(begun["prompt_ids"], json!([299]), "gpt2's bos_token_id");
    assert_eq!(begun["ids"].as_array().unwrap().len(), ids + 1);
    assert_eq!(begun["ids"][0], plain["prompt_ids"][0]);
    // Llama's tokenizer begins a text by itself.
    let llama = &json_lines(&score("llama", &["the river", "--add-bos"], "").fine())[0];
    assert_eq!(llama["prompt_ids"], json!([1]));
    assert_ne!(llama["ids"][0], json!(1));
}

#[test]
fn batches_and_files_give_the_same_lines() {
    let input = "{\"text\":\"the river runs\"}\n\"she read the old letter\"\n{\"ids\":[1,2,3]}\n\
                 {\"prompt\":\"the river\",\"continuation\":\" runs\"}\n{\"prompt\":\"the river\",\"continuation\":\" to the sea\"}\n";
    let printed = score("llama", &["--batch-size", "1"], input).fine();
    assert_eq!(json_lines(&printed).len(), 5);
    let folder = tempfile::tempdir().unwrap();
    let (texts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    std::fs::write(&texts, input).unwrap();
    let (texts, out) = (texts.to_str().unwrap(), out.to_str().unwrap());
    score("llama", &["--texts", texts, "--out", out, "--batch-size", "1"], "").fine();
    assert_eq!(std::fs::read_to_string(out).unwrap(), printed);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing partial is left");
    let together = json_lines(&score("llama", &["--texts", texts], "").fine());
    for (a, b) in json_lines(&printed).iter().zip(&together) {
        assert_eq!(a["ids"], b["ids"]);
        assert!((a["sum"].as_f64().unwrap() - b["sum"].as_f64().unwrap()).abs() < 1e-3, "{a} {b}");
    }
}

#[test]
fn plain_text_and_other_keys_come_through_standard_input() {
    let expected = score("gpt2", &["the river runs\nto the sea"], "").fine();
    for arguments in [&["-"][..], &[]] {
        assert_eq!(
            score("gpt2", arguments, "\u{feff}the river runs\nto the sea\r\n").fine(),
            expected,
            "{arguments:?}"
        );
    }
    let told = score("gpt2", &[], "{\"id\":7,\"ids\":[1,2]}\n").fine();
    assert!(told.starts_with("{\"index\":0,\"id\":7,\"prompt_ids\":[1],\"ids\":[2],"), "{told}");
    assert!(score("gpt2", &["-"], " \n").failed(1).contains("there is no text"));
    for key in ["settings", "sum"] {
        let error = score("gpt2", &[], &json!({"text": "the river", key: 1}).to_string()).failed(1);
        assert!(error.contains("line 1") && error.contains(key), "{error}");
    }
}

#[test]
fn a_finished_result_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.jsonl");
    let out = out.to_str().unwrap();
    score("gpt2", &["the river runs", "--out", out], "").fine();
    let again = score("gpt2", &["the river runs", "--out", out], "");
    assert!(again.err.contains("holds the result of this request already"), "{}", again.err);
    again.fine();
    assert!(score("gpt2", &["the sea", "--out", out], "").failed(1).contains("--force"));
    score("gpt2", &["the sea", "--out", out, "--force"], "").fine();
}

#[test]
fn a_partial_result_of_an_unknown_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, out) = (folder.path().join("in.jsonl"), folder.path().join("out.jsonl"));
    std::fs::write(&texts, "{\"ids\":[1,2]}\n{\"ids\":[3,4]}\n").unwrap();
    let arguments = ["--texts", texts.to_str().unwrap(), "--out", out.to_str().unwrap()];
    score("gpt2", &arguments, "").fine();
    let whole = std::fs::read_to_string(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let first = whole.lines().next().unwrap();
    std::fs::write(folder.path().join("out.jsonl.part"), format!("{first}\n")).unwrap();
    let error = score("gpt2", &arguments, "").failed(1);
    assert!(error.contains("the file that describes its run is gone"), "{error}");
}

#[test]
fn bad_input_is_one_clear_line() {
    let long = json!({"ids": vec![1; 5000]}).to_string();
    let cases: [(&[&str], &str, i32, &str); 10] = [
        (&[], "", 1, "standard input: there are no texts"),
        (&[], "{\"text\":\"\"}\n", 1, "line 1"),
        (&[], "\"the river\"\n{\"prompt\":\"a\"}\n", 1, "line 2"),
        (&[], "\"the river\"\n\n{\"ids\":[1,99999]}\n", 1, "line 3"),
        (&[], &long, 1, "5000 tokens"),
        (&[], "{\"prompt\":\"the river\",\"continuation\":\"\"}", 1, "no token is left to be scored"),
        (&["--ids", "[[1]]"], "", 1, "no token is left to be scored"),
        (&["--ids", "[[1,2]]", "a"], "", 2, "cannot be used"),
        (&["--texts", "/no/such/file"], "", 1, "/no/such/file"),
        (&["--batch-size", "0", "a"], "", 2, "--batch-size"),
    ];
    for (arguments, input, code, expected) in cases {
        let error = score("gpt2", arguments, input).failed(code);
        assert!(error.contains(expected), "{arguments:?} {input:.40}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let texts = folder.path().join("in.jsonl");
    std::fs::write(&texts, "\"a\"\n").unwrap();
    let texts = texts.to_str().unwrap();
    let error = score("gpt2", &["--texts", texts, "--out", texts], "").failed(2);
    assert!(error.contains("--out is the file of --texts"), "{error}");
    let out = folder.path().join("out.jsonl");
    score("gpt2", &["--ids", "[[1,99999]]", "--out", out.to_str().unwrap()], "").failed(1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file is left");
}
