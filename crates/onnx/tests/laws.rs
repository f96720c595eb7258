//! The three laws of a session, mounted for every cache mode and both engines.

use std::path::PathBuf;

use unspool_core::{Keep, Model, RowInput, SessionOptions, TokenId};
use unspool_onnx::{CacheMode, EngineChoice, OnnxModel, OnnxOptions};
use unspool_testing::laws::{Tolerance, check_batch_law, check_cache_law, check_step_law, random_prompts};
use unspool_testing::scaled;

const ENGINES: [EngineChoice; 2] = [EngineChoice::Rten, EngineChoice::Ort];

/// Graphs of the fixtures with the cache mode they must be read as.
const GRAPHS: [(&str, CacheMode); 14] = [
    ("gpt2", CacheMode::Append),
    ("llama", CacheMode::Append),
    ("opt", CacheMode::Append),
    ("gpt2-no-cache", CacheMode::None),
    ("llama-genai", CacheMode::InPlace),
    ("llama-genai-int4-f32", CacheMode::InPlace),
    ("gemma3-genai", CacheMode::InPlace),
    ("gemma3-genai-flat", CacheMode::InPlace),
    ("opt-no-position-ids", CacheMode::Grow),
    ("opt-pair", CacheMode::Grow),
    ("bloom", CacheMode::Grow),
    ("gemma3-mask-length", CacheMode::Grow),
    ("llama-f16", CacheMode::Append),
    ("llama-genai-f16", CacheMode::InPlace),
];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models").join(name)
}

/// The model on the engine, or a printed reason why it cannot be tested here.
fn open(name: &str, engine: EngineChoice) -> Option<OnnxModel> {
    let options = OnnxOptions { engine, threads: Some(1), ..OnnxOptions::default() };
    match OnnxModel::open(&folder(name), &options) {
        Ok(model) => Some(model),
        // rten refuses caches that slide or have 16 bits, and says so.
        Err(why)
            if engine == EngineChoice::Rten
                && ["sliding_window_cache", "is f16"].iter().any(|word| why.to_string().contains(word)) =>
        {
            None
        }
        Err(why) if why.to_string().contains("was not found") && unspool_testing::engines_may_be_missing() => {
            eprintln!("skipped {name} on {engine:?}: {why}");
            None
        }
        Err(why) => panic!("{name} on {engine:?}: {why}"),
    }
}

/// Runs `check` over every graph and engine and reports all failures together.
fn on_all(check: impl Fn(&OnnxModel, Tolerance) -> Result<(), String>) {
    let mut failures = Vec::new();
    for (name, _) in GRAPHS {
        for engine in ENGINES {
            let tolerance = if name.ends_with("f16") { HALF } else { TOLERANCE };
            if let Some(Err(why)) = open(name, engine).map(|model| check(&model, tolerance)) {
                failures.push(format!("{name} on {engine:?}: {why}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

const TOLERANCE: Tolerance = Tolerance::new(2e-4, "sums of f32 products in another order, over two layers");

const HALF: Tolerance = Tolerance::new(6e-2, "11 bits of mantissa on logits of up to 30, rounded after every operator");

#[test]
fn the_graph_alone_decides_the_cache_mode() {
    for (name, mode) in GRAPHS {
        for engine in ENGINES {
            if let Some(model) = open(name, engine) {
                assert_eq!(model.description().cache_mode, mode, "{name}");
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    on_all(|model, tolerance| {
        for seed in 0..u64::from(scaled(3)) {
            check_batch_law(model, &random_prompts(seed, 4, 12, model.vocab_size()), tolerance)?;
        }
        Ok(())
    });
}

#[test]
fn chunks_do_not_change_the_scores() {
    on_all(|model, tolerance| {
        for seed in 0..u64::from(scaled(3)) {
            check_step_law(model, &random_prompts(seed, 3, 24, model.vocab_size()), seed, tolerance)?;
        }
        Ok(())
    });
}

#[test]
fn walks_of_step_reorder_and_crop_leave_fresh_scores() {
    on_all(|model, tolerance| {
        for seed in 0..u64::from(scaled(6)) {
            check_cache_law(model, seed, 12, 20, tolerance)?;
        }
        Ok(())
    });
}

#[test]
fn ids_outside_the_vocabulary_and_rows_beyond_the_positions_are_refused() {
    for engine in ENGINES {
        let Some(model) = open("gpt2", engine) else { continue };
        let mut session = model.open_session();
        let vocab = model.vocab_size() as TokenId;
        let error = session.step(&[RowInput { tokens: &[1, vocab], keep: Keep::Last }]).unwrap_err();
        assert!(error.to_string().contains(&format!("id {vocab} at position 1 is outside the vocabulary")), "{error}");
        let long = vec![1; model.max_positions().unwrap() + 1];
        let error = session.step(&[RowInput { tokens: &long, keep: Keep::Last }]).unwrap_err();
        assert!(error.to_string().contains("positions"), "{error}");
        assert!(session.step(&[RowInput { tokens: &[1], keep: Keep::Last }]).is_ok(), "a refused step changes nothing");
    }
}

trait OpenOne {
    fn open_session(&self) -> Box<dyn unspool_core::Session>;
}

impl OpenOne for OnnxModel {
    fn open_session(&self) -> Box<dyn unspool_core::Session> {
        Model::open(self, &SessionOptions { rows: 1, capacity: 16 }).unwrap()
    }
}

#[test]
fn a_row_without_positions_left_does_not_hinder_the_others() {
    on_all(|model, tolerance| {
        let Some(limit) = model.max_positions() else { return Ok(()) };
        let vocab = model.vocab_size() as TokenId;
        let long: Vec<TokenId> = (0..limit as TokenId).map(|id| 3 + id * 7 % (vocab - 3)).collect();
        let short: Vec<TokenId> = vec![5, 9, 4, 8, 6, 7, 5];
        let kept = |session: &mut dyn unspool_core::Session, rows: &[&[TokenId]]| -> Result<Vec<f32>, String> {
            let inputs: Vec<RowInput<'_>> = rows.iter().map(|tokens| RowInput { tokens, keep: Keep::All }).collect();
            let logits = session.step(&inputs).map_err(|error| error.to_string())?;
            let last = logits.kept() - 1;
            Ok(logits.row(last).to_vec())
        };
        let open = |rows| model.open(&SessionOptions { rows, capacity: limit }).map_err(|error| error.to_string());
        let alone = kept(&mut *open(1)?, &[&short])?;
        // The long row fills its positions in one step less, at the same time, or before the others go on.
        for before in [limit - 1, limit] {
            let mut session = open(2)?;
            kept(&mut *session, &[&long[..before], &short[..2]])?;
            kept(&mut *session, &[&long[before..], &short[2..5]])?;
            let beside = kept(&mut *session, &[&[], &short[5..]])?;
            let far = alone.iter().zip(&beside).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            if far > tolerance.absolute {
                return Err(format!("{before} of {limit} positions: {far} apart"));
            }
        }
        Ok(())
    });
}
