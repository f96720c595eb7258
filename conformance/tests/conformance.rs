//! The recorded cases of the models in `models/`, on both engines, held against the baseline.

use std::fs;
use std::path::{Path, PathBuf};

use unspool_conformance::baseline::Change;
use unspool_conformance::{Baseline, Engine, replay};

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(home().join("models")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// Every case that got worse, so that one run tells all of them.
fn worse_than_the_baseline(engine: Engine) -> Vec<String> {
    let baseline = Baseline::load(&home().join("baseline.json")).unwrap();
    let mut worse = Vec::new();
    for folder in folders() {
        let model = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Some(replayed) = replay::replay_folder(&folder, engine).unwrap() else { continue };
        let mut ran = Vec::new();
        for (case, verdict) in replayed.verdicts {
            match baseline.judge(engine.name(), &model, &case, &verdict) {
                Change::Worse => worse.push(format!("{model}, {case}: {verdict:?}")),
                Change::Better => println!("better: {model}, {case}; write the baseline anew"),
                Change::New => println!("not in the baseline: {model}, {case}"),
                Change::Same => {}
            }
            ran.push(case);
        }
        for case in baseline.missing(engine.name(), &model, &ran) {
            worse.push(format!("{model}, {case}: recorded, but not run"));
        }
    }
    worse
}

#[test]
fn rten_is_not_worse_than_the_baseline() {
    let worse = worse_than_the_baseline(Engine::Rten);
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}

#[test]
fn onnx_runtime_is_not_worse_than_the_baseline() {
    if let Err(error) = Engine::Ort.open(&home().join("models/gpt2")) {
        eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
        return;
    }
    let worse = worse_than_the_baseline(Engine::Ort);
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}
