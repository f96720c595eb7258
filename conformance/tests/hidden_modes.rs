//! Contrastive search, DoLa and returned hidden states as Python 4.50 has them (`record/hidden_modes.py`), on imports of the
//! small checkpoints.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use unspool::{Answers, Call, EngineChoice, ImportOptions, OpenOptions, Pipeline, TokenId};
use unspool_conformance::compare::FLOAT_NOISE;

#[derive(Deserialize)]
struct Recorded {
    contrastive: Vec<Case>,
    dola: Vec<Case>,
    returned: Vec<Returned>,
}

#[derive(Deserialize)]
struct Case {
    model: String,
    prompt: Vec<TokenId>,
    settings: Value,
    tokens: Vec<TokenId>,
    /// Of the first steps; `None` is minus infinity.
    scores: Vec<Vec<Option<f32>>>,
    logits: Vec<Vec<Option<f32>>>,
}

#[derive(Deserialize)]
struct Returned {
    model: String,
    prompt: Vec<TokenId>,
    settings: Value,
    /// `[step][state][position][width]`
    states: Vec<Vec<Vec<Vec<f32>>>>,
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn recorded() -> Recorded {
    serde_json::from_str(&std::fs::read_to_string(home().join("data/hidden_modes.json")).unwrap()).unwrap()
}

/// Both checkpoints on every engine that is here, and the folder that they were imported to.
fn pipelines() -> (tempfile::TempDir, Vec<(String, &'static str, Pipeline)>) {
    let imports = tempfile::tempdir().unwrap();
    let mut opened = Vec::new();
    for model in ["llama", "llama-deep"] {
        let out = imports.path().join(model);
        let options = ImportOptions { hidden_states: true, ..ImportOptions::default() };
        unspool::import(&home().join("models").join(model).join("model.safetensors"), &out, &options).unwrap();
        for (name, engine) in [("rten", EngineChoice::Rten), ("ort", EngineChoice::Ort)] {
            match Pipeline::open(&out, &OpenOptions { engine, threads: Some(1), ..OpenOptions::default() }) {
                Ok(pipeline) => opened.push((format!("{model} on {name}"), model, pipeline)),
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
    }
    (imports, opened)
}

fn write(pipeline: &Pipeline, prompts: Vec<Vec<TokenId>>, settings: &Value, more: &[&str]) -> Answers {
    let mut call = Call::from_json(settings).unwrap();
    for name in more {
        call = call.set(name, true).unwrap();
    }
    pipeline.generate_ids(prompts, &call, None).unwrap()
}

#[track_caller]
fn assert_near(what: &str, got: &[f32], expected: &[Option<f32>]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (token, (&got, expected)) in got.iter().zip(expected).enumerate() {
        let expected = expected.unwrap_or(f32::NEG_INFINITY);
        let near = got == expected || (got - expected).abs() <= FLOAT_NOISE.value * expected.abs().max(1.0);
        assert!(near, "{what}, token {token}: got {got}, Python has {expected}");
    }
}

fn replay(pipelines: &[(String, &'static str, Pipeline)], cases: &[Case]) {
    for (what, model, pipeline) in pipelines {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.model == *model).collect();
        assert!(cases.len() >= 6, "{model}");
        for case in &cases {
            let what = format!("{what}, {:?}, {}", case.prompt, case.settings);
            let answers =
                write(pipeline, vec![case.prompt.clone()], &case.settings, &["output_scores", "output_logits"]);
            let sequence = &answers.answers[0].output.sequences[0];
            assert_eq!(sequence.ids, case.tokens, "{what}");
            for (step, (scores, logits)) in case.scores.iter().zip(&case.logits).enumerate() {
                assert_near(&format!("{what}, scores {step}"), &sequence.scores.as_ref().unwrap()[step], scores);
                assert_near(&format!("{what}, logits {step}"), &sequence.logits.as_ref().unwrap()[step], logits);
            }
        }
        // Prompts of one setting together: each is written as alone.
        for case in &cases {
            let same: Vec<&&Case> = cases.iter().filter(|other| other.settings == case.settings).collect();
            let prompts = same.iter().map(|case| case.prompt.clone()).collect();
            let answers = write(pipeline, prompts, &case.settings, &[]);
            for (case, answer) in same.iter().zip(&answers.answers) {
                assert_eq!(answer.output.sequences[0].ids, case.tokens, "{what}, a batch, {}", case.settings);
            }
        }
    }
}

#[test]
fn the_modes_write_pythons_tokens() {
    let recorded = recorded();
    let (_imports, pipelines) = pipelines();
    assert_eq!((recorded.contrastive.len(), recorded.dola.len(), recorded.returned.len()), (24, 16, 3));
    replay(&pipelines, &recorded.contrastive);
    replay(&pipelines, &recorded.dola);
    for (what, _, pipeline) in pipelines.iter().filter(|(_, model, _)| *model == "llama-deep") {
        for case in &recorded.returned {
            assert_eq!(case.model, "llama-deep");
            let answers = write(pipeline, vec![case.prompt.clone()], &case.settings, &["output_hidden_states"]);
            let steps = answers.answers[0].output.sequences[0].hidden_states.as_ref().unwrap();
            assert_eq!(steps.len(), case.states.len());
            for (number, (step, expected)) in steps.iter().zip(&case.states).enumerate() {
                assert_eq!(step.states.len(), expected.len());
                for (state, (got, expected)) in step.states.iter().zip(expected).enumerate() {
                    let expected: Vec<Option<f32>> = expected.iter().flatten().map(|&value| Some(value)).collect();
                    assert_near(&format!("{what}, {}, step {number}, state {state}", case.settings), got, &expected);
                }
            }
        }
    }
}
