//! Texts that are there already, read by the small models as Python read them (`record/reading.py`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use unspool_conformance::Engine;
use unspool_conformance::compare::Tolerance;
use unspool_core::embed::{Pooling, embed};
use unspool_core::score::{ScoredText, score};
use unspool_core::{HiddenAsk, Keep, Model, RowInput, SessionOptions, TokenId};

/// Log-probabilities and hidden states of up to about 10.
const NEAR: Tolerance = Tolerance { value: 1e-4, why: "f32 sums in another order than PyTorch's, over two layers" };

#[derive(Deserialize)]
struct Recorded {
    scores: Vec<Score>,
    pairs: Vec<Pair>,
    hidden: Vec<Hidden>,
}

#[derive(Deserialize)]
struct Score {
    models: Vec<String>,
    ids: Vec<TokenId>,
    given: usize,
    logprobs: Vec<f32>,
    greedy: Vec<bool>,
}

#[derive(Deserialize)]
struct Pair {
    model: String,
    prompt: String,
    continuation: String,
    prompt_ids: Vec<TokenId>,
    ids: Vec<TokenId>,
}

#[derive(Deserialize)]
struct Hidden {
    models: Vec<String>,
    ids: Vec<TokenId>,
    /// `[state][position][width]`
    states: Vec<Vec<Vec<f32>>>,
    embeddings: BTreeMap<String, Vec<f32>>,
}

fn recorded() -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/reading.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn folder(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(model)
}

/// The model on the engine; `None` where ONNX Runtime is not there.
fn open(engine: Engine, model: &str) -> Option<Box<dyn Model>> {
    open_folder(engine, &folder(model))
}

fn open_folder(engine: Engine, model: &Path) -> Option<Box<dyn Model>> {
    match engine.open(model) {
        Ok(model) => Some(model),
        Err(error)
            if engine == Engine::Ort
                && error.to_string().contains("was not found")
                && unspool_testing::engines_may_be_missing() =>
        {
            eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
            None
        }
        Err(error) => panic!("{} on {engine}: {error}", model.display()),
    }
}

#[track_caller]
fn assert_near(what: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (place, (got, expected)) in got.iter().zip(expected).enumerate() {
        let near = (got - expected).abs() <= NEAR.value * expected.abs().max(1.0);
        assert!(
            near,
            "{what}, number {place}: got {got}, Python has {expected} (allowed {}: {})",
            NEAR.value, NEAR.why
        );
    }
}

#[test]
fn tokens_have_pythons_scores() {
    let recorded = recorded();
    for engine in Engine::ALL {
        for model in ["llama", "llama-genai", "gpt2", "gpt2-no-cache", "opt", "opt-no-position-ids"] {
            let Some(opened) = open(engine, model) else { continue };
            let cases: Vec<&Score> =
                recorded.scores.iter().filter(|case| case.models.iter().any(|name| name == model)).collect();
            assert_eq!(cases.len(), 5, "{model}");
            let texts: Vec<ScoredText> = cases
                .iter()
                .map(|case| ScoredText {
                    context: case.ids[..case.given].to_vec(),
                    continuation: case.ids[case.given..].to_vec(),
                })
                .collect();
            for (batch, chunk) in [(1, None), (5, None), (3, Some(4))] {
                let scores = score(&*opened, &texts, batch, chunk).unwrap();
                for (case, score) in cases.iter().zip(&scores) {
                    let what = format!("{model} on {engine}, batches of {batch}, {} ids", case.ids.len());
                    assert_near(&what, &score.logprobs, &case.logprobs);
                    assert_eq!(score.greedy, case.greedy, "{what}");
                    let sum: f64 = case.logprobs.iter().map(|&logprob| f64::from(logprob)).sum();
                    assert!((score.sum() - sum).abs() <= 1e-3, "{what}: sum {} is not {sum}", score.sum());
                }
            }
        }
    }
}

#[test]
fn a_prompt_and_its_continuation_are_split_as_the_harness_does() {
    use unspool::{OpenOptions, Pipeline, Scorable, ScoreOptions};
    let recorded = recorded();
    assert_eq!(recorded.pairs.len(), 12);
    for pair in &recorded.pairs {
        let options = OpenOptions { engine: unspool::EngineChoice::Rten, ..OpenOptions::default() };
        let pipeline = Pipeline::open(folder(&pair.model), &options).unwrap();
        let text = Scorable::Pair { prompt: pair.prompt.clone(), continuation: pair.continuation.clone() };
        let parts = pipeline.scorable(&text, &ScoreOptions::default()).unwrap();
        assert_eq!(
            (&parts.context, &parts.continuation),
            (&pair.prompt_ids, &pair.ids),
            "{}: {:?} {:?}",
            pair.model,
            pair.prompt,
            pair.continuation
        );
    }
}

/// Every model with hidden states, one for each cache mode, on every engine that is here; with the recorded cases.
fn each_with_hidden_states(check: impl Fn(&str, &dyn Model, &[&Hidden])) {
    let recorded = recorded();
    let imports = tempfile::tempdir().unwrap();
    let imported = imports.path().join("llama");
    let options = unspool::ImportOptions { hidden_states: true, ..unspool::ImportOptions::default() };
    unspool::import(&folder("llama/model.safetensors"), &imported, &options).unwrap();
    let models = [
        ("llama", folder("llama-hidden")),
        ("llama", imported),
        ("opt-no-position-ids", folder("opt-no-position-ids-hidden")),
        ("gpt2-no-cache", folder("gpt2-no-cache-hidden")),
    ];
    for engine in Engine::ALL {
        for (name, folder) in &models {
            let Some(model) = open_folder(engine, folder) else { continue };
            let cases: Vec<&Hidden> =
                recorded.hidden.iter().filter(|case| case.models.iter().any(|model| model == name)).collect();
            assert_eq!(cases.len(), 2, "{name}");
            check(&format!("{} on {engine}", folder.display()), &*model, &cases);
        }
    }
}

#[test]
fn hidden_states_are_pythons_in_one_step_in_chunks_and_in_batches() {
    each_with_hidden_states(|what, model, cases| {
        let shape = model.hidden().unwrap();
        for case in cases {
            assert_eq!((shape.last + 1, shape.width), (case.states.len(), case.states[0][0].len()), "{what}");
        }
        let all: Vec<usize> = (0..=shape.last).rev().collect();
        for chunk in [usize::MAX, 4, 1] {
            // Rows of different lengths; the longer one twice, in another order after a reorder.
            let mut session = model.open(&SessionOptions { rows: 2, capacity: 16 }).unwrap();
            session.reorder(&[1, 0, 1]).unwrap();
            let rows: Vec<&Hidden> = vec![cases[1], cases[0], cases[1]];
            let mut done = [0; 3];
            while rows.iter().zip(done).any(|(row, done)| done < row.ids.len()) {
                let ends: Vec<usize> =
                    rows.iter().zip(done).map(|(row, done)| row.ids.len().min(done.saturating_add(chunk))).collect();
                let inputs: Vec<RowInput<'_>> = (0..3)
                    .map(|row| RowInput { tokens: &rows[row].ids[done[row]..ends[row]], keep: Keep::None })
                    .collect();
                let ask = HiddenAsk { states: &all, keep: Keep::All };
                let (logits, hidden) = session.step_hidden(&inputs, &ask).unwrap();
                assert_eq!((logits.kept(), hidden.kept()), (0, ask.positions(&inputs)), "{what}");
                let mut position = 0;
                for row in 0..3 {
                    for at in done[row]..ends[row] {
                        for (place, &state) in all.iter().enumerate() {
                            let what = format!("{what}, chunks of {chunk}, row {row}, state {state}, position {at}");
                            assert_near(&what, hidden.at(place, position), &rows[row].states[state][at]);
                        }
                        position += 1;
                    }
                    done[row] = ends[row];
                }
            }
            // Only the last token's, beside its scores, equals what scores alone are.
            let one = [1, 1, 1].map(|token| [token]);
            let inputs: Vec<RowInput<'_>> =
                one.iter().map(|token| RowInput { tokens: token, keep: Keep::Last }).collect();
            let ask = HiddenAsk { states: &[shape.last], keep: Keep::Last };
            let with: Vec<f32> = {
                let (logits, hidden) = session.step_hidden(&inputs, &ask).unwrap();
                assert_eq!((logits.kept(), hidden.kept()), (3, 3), "{what}");
                logits.row(2).to_vec()
            };
            (0..3).for_each(|row| session.crop(row, done[row]).unwrap());
            assert_near(what, session.step(&inputs).unwrap().row(2), &with);
        }
    });
}

#[test]
fn texts_become_pythons_vectors() {
    each_with_hidden_states(|what, model, cases| {
        let texts: Vec<Vec<TokenId>> = cases.iter().map(|case| case.ids.clone()).collect();
        for (name, pooling, normalize) in [
            ("last", Pooling::Last, false),
            ("last_normalized", Pooling::Last, true),
            ("mean", Pooling::Mean, false),
            ("mean_normalized", Pooling::Mean, true),
        ] {
            for batch in [1, 2] {
                let vectors = embed(model, &texts, pooling, normalize, batch).unwrap();
                for (case, vector) in cases.iter().zip(&vectors) {
                    assert_near(&format!("{what}, {name}"), vector, &case.embeddings[name]);
                }
            }
        }
    });
}

/// The output matrix by itself makes of the last hidden state what the decoder makes of it, in every form of weights.
#[test]
fn the_output_matrix_alone_gives_the_decoders_scores() {
    use unspool::{ImportOptions, Weights};
    let imports = tempfile::tempdir().unwrap();
    for weights in [Weights::Keep, Weights::Int8, Weights::Int4] {
        let out = imports.path().join(weights.name());
        let options = ImportOptions { weights, hidden_states: true, ..ImportOptions::default() };
        unspool::import(&folder("llama/model.safetensors"), &out, &options).unwrap();
        for engine in Engine::ALL {
            let Some(model) = open_folder(engine, &out) else { continue };
            let shape = model.hidden().unwrap();
            let mut session = model.open(&SessionOptions { rows: 1, capacity: 8 }).unwrap();
            let ask = HiddenAsk { states: &[shape.last], keep: Keep::All };
            let rows = [RowInput { tokens: &[1, 50, 99, 7], keep: Keep::All }];
            let (logits, hidden) = session.step_hidden(&rows, &ask).unwrap();
            let mut alone = Vec::new();
            model.head(hidden.state(0), &mut alone).unwrap();
            // ONNX Runtime rounds activations to 8 bits where it multiplies with requantised weights, and the matrix alone
            // does not.
            let rounds = engine == Engine::Ort && weights != Weights::Keep;
            let allowed = if rounds { 0.3 } else { NEAR.value * 10.0 };
            assert_eq!(alone.len(), 4 * logits.vocab());
            for position in 0..4 {
                let own = &alone[position * logits.vocab()..][..logits.vocab()];
                let apart = own.iter().zip(logits.row(position)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(apart <= allowed, "{} on {engine}, position {position}: {apart} apart", weights.name());
            }
            let error = model.head(&[0.0; 3], &mut alone).unwrap_err().to_string();
            assert!(error.contains("3 numbers"), "{error}");
        }
    }
    for engine in Engine::ALL {
        let Some(exported) = open(engine, "llama-hidden") else { continue };
        let error = exported.head(&[0.0; 64], &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("onnx/head.onnx") && error.contains("import --hidden-states"), "{error}");
    }
}
