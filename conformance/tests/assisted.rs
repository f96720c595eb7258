//! Assisted greedy decoding writes what plain greedy decoding writes, in every cache mode, on both engines, for all recorded
//! prompts, whatever is drafted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use unspool_conformance::Engine;
use unspool_conformance::golden::Golden;
use unspool_core::config::MaxLength;
use unspool_core::rng::Rng;
use unspool_core::{Assist, Draft, Model, Output, Request, SessionOptions, Settings, Together, TokenId, generate};
use unspool_testing::KnownDraft;

const NEW_TOKENS: usize = 12;

/// Most tokens that are drafted at a time.
const MOST: usize = 5;

/// Rows of one batch, of different lengths.
const BATCH: usize = 6;

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

/// What differs between assisted and plain decoding of `prompts`.
fn differences(model: &dyn Model, prompts: &[Vec<TokenId>]) -> Vec<String> {
    let mut told = Vec::new();
    let settings = Settings { max_length: MaxLength::New(NEW_TOKENS), ..Settings::default() };
    let plain = ids(&generate(model, Request::new(prompts.to_vec(), settings.clone())).unwrap());
    let session = model.open(&SessionOptions { rows: 1, capacity: 1 }).unwrap();
    // Where single tokens are rounded in another way than several, nothing is drafted unless it must be.
    let always = session.together() == Together::Same;
    let mut held_against = |what: &str, settings: &Settings, draft: Option<&mut dyn Draft>| {
        let assist = Assist { draft, always, elapsed: None };
        let output = generate(model, Request::new(prompts.to_vec(), settings.clone()).assist(assist)).unwrap();
        if ids(&output) != plain {
            told.push(format!("{what}: {:?}, plain {plain:?}", ids(&output)));
        }
        output.drafts().unwrap_or_default()
    };
    let mut right = Vec::new();
    for wrong in [0.0, 0.3, 1.0] {
        let (answers, vocab, rng) = (plain.clone(), model.vocab_size(), Rng::for_row(1, prompts.len(), 0));
        let mut known = KnownDraft::new(answers, wrong, MOST, vocab, rng);
        let counts = held_against(&format!("wrong {wrong}"), &settings, Some(&mut known));
        right.push((wrong, counts));
    }
    let mut nothing = KnownDraft::new(vec![Vec::new(); prompts.len()], 0.0, MOST, 1, Rng::for_row(0, 0, 0));
    held_against("no drafts", &settings, Some(&mut nothing));
    let mut lookup = settings.clone();
    lookup.assisted.prompt_lookup_num_tokens = Some(3);
    held_against("prompt lookup", &lookup, None);
    for (wrong, counts) in right {
        if always != (counts.drafted > 0) || (wrong == 0.0 && counts.accepted < counts.drafted) {
            told.push(format!("wrong {wrong}: {counts:?}"));
        }
    }
    told
}

fn assisted_equals_plain(engine: Engine) {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut folders: Vec<_> = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut told, mut models) = (Vec::new(), 0);
    for folder in folders {
        let (Some(golden), Ok(model)) = (Golden::load(&folder).unwrap(), engine.open(&folder)) else { continue };
        models += 1;
        let prompts: BTreeSet<Vec<TokenId>> = golden.cases.into_iter().flat_map(|case| case.prompts).collect();
        let prompts: Vec<_> = prompts.into_iter().filter(|prompt| !prompt.is_empty()).collect();
        for batch in prompts.chunks(BATCH) {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            told.extend(differences(model.as_ref(), batch).into_iter().map(|line| format!("{name}: {line}")));
        }
    }
    assert!(models >= 8, "{models} models were opened");
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn on_rten() {
    assisted_equals_plain(Engine::Rten);
}

#[test]
fn on_onnx_runtime() {
    if let Err(error) = Engine::Ort.open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models/gpt2")) {
        eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
        return;
    }
    assisted_equals_plain(Engine::Ort);
}
