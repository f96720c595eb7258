//! Assisted decoding with an early exit as Python 5.24 does it (`record/early_exit.py`), on imports of the small checkpoints.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use unspool::{
    Call, EngineChoice, ImportOptions, Keep, OpenOptions, Pipeline, RowInput, SessionOptions, TokenId, Weights,
};
use unspool_conformance::compare::FLOAT_NOISE;

#[derive(Deserialize)]
struct Recorded {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    model: String,
    layers: usize,
    prompt: Vec<TokenId>,
    settings: Value,
    /// Of the model that ends early, after the prompt.
    scores: Vec<f32>,
    tokens: Vec<TokenId>,
    runs: Runs,
}

#[derive(Deserialize)]
struct Runs {
    whole: usize,
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases_of(model: &str) -> Vec<Case> {
    let text = std::fs::read_to_string(home().join("data/early_exit.json")).unwrap();
    let recorded: Recorded = serde_json::from_str(&text).unwrap();
    recorded.cases.into_iter().filter(|case| case.model == model).collect()
}

/// `model` imported with `early_exits`, on every engine that is here.
fn pipelines(model: &str, weights: Weights, early_exits: &[usize]) -> (tempfile::TempDir, Vec<(String, Pipeline)>) {
    let imports = tempfile::tempdir().unwrap();
    let out = imports.path().join(model);
    let options = ImportOptions { weights, early_exits: early_exits.to_vec(), ..ImportOptions::default() };
    unspool::import(&home().join("models").join(model).join("model.safetensors"), &out, &options).unwrap();
    let mut opened = Vec::new();
    for (name, engine) in [("rten", EngineChoice::Rten), ("ort", EngineChoice::Ort)] {
        match Pipeline::open(&out, &OpenOptions { engine, threads: Some(1), ..OpenOptions::default() }) {
            Ok(pipeline) => opened.push((format!("{model} on {name}"), pipeline)),
            Err(error)
                if name == "ort"
                    && error.to_string().contains("was not found")
                    && unspool_testing::engines_may_be_missing() =>
            {
                eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
            }
            Err(error) => panic!("{model} on {name}: {error}"),
        }
    }
    (imports, opened)
}

fn call(case: &Case) -> Call {
    let drafts = [("num_assistant_tokens", Value::from(5)), ("assistant_confidence_threshold", Value::from(0.0))];
    let call = Call::from_json(&case.settings).unwrap().set("assistant_early_exit", case.layers).unwrap();
    let call = drafts.into_iter().fold(call, |call, (name, value)| call.set(name, value).unwrap());
    Call { always_draft: true, ..call }
}

#[test]
fn drafts_of_the_first_layers_are_pythons() {
    for (model, exits) in [("llama", &[1][..]), ("llama-deep", &[2, 4])] {
        let cases = cases_of(model);
        assert!(cases.len() >= 10, "{model}");
        let (_imports, opened) = pipelines(model, Weights::Keep, exits);
        for (what, pipeline) in &opened {
            assert_eq!(pipeline.description().unwrap().early_exits, exits, "{what}");
            for case in &cases {
                let what = format!("{what}, {} layers, {:?}, {}", case.layers, case.prompt, case.settings);
                let exit = pipeline.model().early_exit(case.layers).unwrap();
                let mut session = exit.open(&SessionOptions { rows: 1, capacity: 16 }).unwrap();
                let logits = session.step(&[RowInput { tokens: &case.prompt, keep: Keep::Last }]).unwrap();
                for (token, (got, expected)) in logits.row(0).iter().zip(&case.scores).enumerate() {
                    let near = (got - expected).abs() <= FLOAT_NOISE.value * expected.abs().max(1.0);
                    assert!(near, "{what}, token {token}: got {got}, Python has {expected}");
                }
                let answers = pipeline.generate_ids(vec![case.prompt.clone()], &call(case), None).unwrap();
                assert_eq!(answers.answers[0].output.sequences[0].ids, case.tokens, "{what}");
                let drafts = answers.drafts.unwrap();
                assert_eq!(drafts.target_runs, case.runs.whole, "{what}: {drafts:?}");
            }
            // Rows of a batch accept different numbers, and each is written as alone.
            for case in cases.iter().filter(|case| case.prompt == cases[0].prompt) {
                let same = cases.iter().filter(|one| one.layers == case.layers && one.settings == case.settings);
                let same: Vec<&Case> = same.collect();
                let prompts: Vec<_> = same.iter().map(|case| case.prompt.clone()).collect();
                assert!(prompts.len() >= 3);
                let answers = pipeline.generate_ids(prompts, &call(case), None).unwrap();
                for (case, answer) in same.iter().zip(&answers.answers) {
                    assert_eq!(answer.output.sequences[0].ids, case.tokens, "{what}, a batch, {}", case.settings);
                }
            }
        }
    }
}

#[test]
fn rounded_weights_have_exits_too_and_other_exits_are_refused_by_name() {
    let case = cases_of("llama-deep").remove(0);
    for weights in [Weights::Int4, Weights::Int8] {
        let (_imports, opened) = pipelines("llama-deep", weights, &[4, 2, 4]);
        for (what, pipeline) in &opened {
            let answers = pipeline.generate_ids(vec![case.prompt.clone()], &call(&case), None).unwrap();
            let drafts = answers.drafts.unwrap();
            assert!(drafts.drafted > drafts.accepted && drafts.accepted > 0, "{what}: {drafts:?}");

            let elsewhere = call(&case).set("assistant_early_exit", 3).unwrap();
            let error = pipeline.generate_ids(vec![case.prompt.clone()], &elsewhere, None).unwrap_err();
            let told = error.to_string();
            assert!(told.contains("assistant_early_exit=3") && told.contains("after 2, 4 layers"), "{told}");
            assert!(told.contains("--early-exit 3"), "{told}");
        }
    }
    let (_imports, opened) = pipelines("llama-deep", Weights::Keep, &[]);
    for (what, pipeline) in &opened {
        let error = pipeline.generate_ids(vec![case.prompt.clone()], &call(&case), None).unwrap_err();
        assert!(error.to_string().contains("of early exits it has none"), "{what}: {error}");
    }
}
