//! `unspool detect`.

mod common;

use std::path::PathBuf;

use common::{Ran, generate, json_lines, model, unspool, with_input};
use serde_json::{Value, json};

fn detect(arguments: &[&str]) -> Ran {
    let model = model("llama");
    unspool(&[&["detect", &model, "--engine", "rten"], arguments].concat())
}

#[test]
fn what_was_written_with_a_green_list_is_found() {
    let watermark = r#"{"bias": 50.0, "greenlist_ratio": 0.5}"#;
    let length = ["--ids", "[[5, 6, 7]]", "--max-new-tokens", "40", "--eos-token-id", "[]", "--json"];
    let written = |more: &[&str]| {
        let lines = json_lines(&generate("llama", &[&length[..], more].concat()).fine());
        json!([lines[0]["sequences"][0]["ids"]]).to_string()
    };
    let found = |ids: &str, more: &[&str]| {
        let lines = detect(&[&["--watermarking-config", watermark, "--ids", ids], more].concat()).fine();
        json_lines(&lines)[0].clone()
    };
    let marked = written(&["--watermarking-config", watermark]);
    let got = found(&marked, &[]);
    assert_eq!((&got["index"], &got["kind"], &got["prediction"]), (&json!(0), &json!("green_list"), &json!(true)));
    assert_eq!((&got["num_tokens_scored"], &got["num_green_tokens"]), (&json!(39), &json!(39)));
    assert_eq!(got["green_fraction"], 1.0);
    // 39 of 39 where half are expected: (39 - 19.5) / sqrt(39 / 4).
    assert!((got["z_score"].as_f64().unwrap() - 39f64.sqrt()).abs() < 1e-12, "{got}");
    assert!(got["p_value"].as_f64().unwrap() < 1e-9 && got["confidence"].as_f64().unwrap() > 0.999);
    assert_eq!(found(&marked, &["--z-threshold", "7"])["prediction"], false);
    assert_eq!(found(&written(&[]), &[])["prediction"], false);
    let repeated = found("[[5, 6, 5, 6, 5, 6]]", &["--ignore-repeated-ngrams"]);
    assert_eq!(repeated["num_tokens_scored"], 2);
}

#[test]
fn synth_id_is_judged_by_its_mean_and_by_a_trained_detector() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/synth_id");
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
    // This model ends texts with 2, the recorded ones end with 7.
    let whole = |case: &&Value| !case["ids"].as_array().unwrap().iter().any(|id| *id == 2 || *id == 7);
    let cases: Vec<&Value> = recorded["cases"].as_array().unwrap().iter().filter(whole).collect();
    assert!(cases.len() >= 5, "{} cases", cases.len());
    let ids = Value::from(cases.iter().map(|case| case["ids"].clone()).collect::<Vec<_>>()).to_string();
    let folder = folder.to_string_lossy();
    let lines = json_lines(&detect(&["--detector", &folder, "--ids", &ids]).fine());
    assert_eq!(lines.len(), cases.len());
    for (line, case) in lines.iter().zip(&cases) {
        let (got, expected) = (line["bayesian_score"].as_f64().unwrap(), case["posterior"].as_f64().unwrap());
        assert!((got - expected).abs() < 1e-5, "{got}, in Python {expected}");
        assert_eq!(line["kind"], "synth_id");
    }
    let ended =
        |text: &str| json_lines(&detect(&["--detector", &folder, "--ids", text]).fine())[0]["bayesian_score"].clone();
    assert_eq!(ended("[5, 6, 8, 9, 10, 2, 11, 12]"), ended("[5, 6, 8, 9, 10]"), "nothing counts behind the end token");
    let watermark = r#"{"ngram_len": 3, "keys": [1, 2]}"#;
    let mean = detect(&["--watermarking-config", watermark, "--ids", "[[1, 2, 3, 4]]"]).fine();
    let mean = &json_lines(&mean)[0];
    assert!(mean["mean_score"].is_number() && mean["bayesian_score"].is_null(), "{mean}");
    let error = detect(&["--detector", &folder, "--watermarking-config", watermark, "--ids", "[1]"]).failed(1);
    assert!(error.contains("another watermarking_config"), "{error}");
    let error = detect(&["--detector", "/no/such/folder", "--ids", "[1]"]).failed(1);
    assert!(error.contains("could not be read"), "{error}");
}

#[test]
fn texts_come_from_arguments_files_and_standard_input() {
    let watermark = ["--watermarking-config", "{}"];
    let two = detect(&[&watermark[..], &["a text of some words", "another text of words"]].concat()).fine();
    assert_eq!(json_lines(&two).len(), 2);
    let model = model("llama");
    let arguments = ["detect", &model, "--engine", "rten", "--watermarking-config", "{}", "-"];
    assert_eq!(json_lines(&with_input(&arguments, b"a text of some words\n").fine())[0], json_lines(&two)[0]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "\"a text of some words\"\n{\"ids\": [1, 2, 3]}\n{\"text\": \"a text\"}\n").unwrap();
    let path = file.path().to_string_lossy();
    let lines = json_lines(&detect(&[&watermark[..], &["--texts", &path]].concat()).fine());
    assert_eq!((lines.len(), &lines[0]), (3, &json_lines(&two)[0]));
    // Nothing is told before all texts are known to be fine.
    let late = detect(&[&watermark[..], &["--ids", "[[1,2,3],[1,100000]]"]].concat());
    assert_eq!(late.out, "");
    late.failed(1);
}

#[test]
fn what_cannot_be_judged_is_told() {
    for (arguments, code, expected) in [
        (&["--ids", "[[1, 2, 3]]"][..], 2, "no watermark is named"),
        (&["--watermarking-config", "{}"], 1, "there are no texts"),
        (
            &["--watermarking-config", "{}", "--ids", "[[1, 100000]]"],
            1,
            "id 100000 at position 1 is outside the vocabulary",
        ),
        (&["--watermarking-config", "{}", "--ids", "[[5]]"], 1, "at least 2"),
        (&["--watermarking-config", r#"{"bias": "x"}"#, "--ids", "[[5]]"], 1, "watermarking_config.bias"),
        (&["--watermarking-config", "{}", "--detector", "x", "--ids", "[[5]]"], 2, "--detector is for SynthID"),
        (&["--watermarking-config", "{}", "--ids", "[[5]]", "--z-threshold", "nan"], 2, "finite number"),
    ] {
        let error = detect(arguments).failed(code);
        assert!(error.contains(expected), "{error}");
    }
}
