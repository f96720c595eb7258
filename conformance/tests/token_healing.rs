//! Healed prompts, and what is written after them, are those of Python (`record/token_healing.py`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use unspool::{Call, EngineChoice, OpenOptions, Pipeline, TokenId};

#[derive(Deserialize)]
struct Recorded {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<TokenId>,
    #[serde(default)]
    healed: Vec<TokenId>,
    #[serde(default)]
    after: Vec<TokenId>,
    error: Option<String>,
}

/// The cases that differ, over all models.
fn failures(engine: EngineChoice) -> Vec<String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(home.join("data/token_healing.json")).unwrap();
    let recorded: BTreeMap<String, Recorded> = serde_json::from_str(&recorded).unwrap();
    let call = Call::new().set("token_healing", true).unwrap().set("max_new_tokens", 6).unwrap();
    let (mut failures, mut changed) = (Vec::new(), 0);
    for (model, recorded) in recorded {
        let options = OpenOptions { engine, ..OpenOptions::default() };
        let pipeline = Pipeline::open(home.join("models").join(&model), &options).unwrap();
        for case in recorded.cases {
            let got = pipeline.generate_ids(vec![case.ids.clone()], &call, None);
            let right = match (&got, case.error.as_deref()) {
                (Ok(answers), None) => {
                    changed += usize::from(case.healed.last() != case.ids.last());
                    let answer = &answers.answers[0];
                    answer.prompt_ids == case.healed && answer.output.sequences[0].ids == case.after
                }
                // Python knows no such token by its text: here it stays, and a warning says so.
                (Ok(answers), Some("KeyError")) => {
                    let stays = answers.answers[0].prompt_ids.last() == case.ids.last();
                    stays && answers.warnings.iter().any(|warning| warning.contains("token_healing"))
                }
                (Err(error), Some("ValueError")) => error.to_string().contains("pad_token"),
                _ => false,
            };
            if !right {
                let got = got.map(|answers| (answers.answers[0].prompt_ids.clone(), answers.text().to_owned()));
                failures
                    .push(format!("{model} {:?}: expected {:?} {:?}, got {got:?}", case.text, case.healed, case.after));
            }
        }
    }
    assert!(changed > 30, "healing changes few of the recorded prompts: {changed}");
    failures
}

#[test]
fn rten_heals_as_python_does() {
    let failures = failures(EngineChoice::Rten);
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn onnx_runtime_heals_as_python_does() {
    let gpt2 = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/gpt2");
    if let Err(error) = Pipeline::open(gpt2, &OpenOptions { engine: EngineChoice::Ort, ..OpenOptions::default() }) {
        eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
        return;
    }
    let failures = failures(EngineChoice::Ort);
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
