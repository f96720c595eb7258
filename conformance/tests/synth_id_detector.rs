//! SynthID's trained detector on texts, held against what Python's found in them (`data/synth_id`).

use std::path::Path;

use serde::Deserialize;
use unspool::TokenId;

#[derive(Deserialize)]
struct Recorded {
    eos: TokenId,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    ids: Vec<TokenId>,
    posterior: f64,
}

#[test]
fn a_trained_detector_gives_python_s_posteriors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/synth_id");
    let text = std::fs::read_to_string(folder.join("cases.json")).unwrap();
    let recorded: Recorded = serde_json::from_str(&text).unwrap();
    let detector = unspool::open_synth_id_detector(&folder, None).unwrap().eos(vec![recorded.eos]);
    assert_eq!(recorded.cases.len(), 20);
    let mut wrong = Vec::new();
    for (index, case) in recorded.cases.iter().enumerate() {
        let got = detector.detect(&case.ids).unwrap();
        // Python sums in f32: the log-odds differ by that, not by more.
        let tolerance = (1e-4 * case.posterior * (1.0 - case.posterior)).max(1e-6 * case.posterior) + 1e-12;
        if (got - case.posterior).abs() > tolerance {
            wrong.push(format!("case {index}: {got}, in Python {}", case.posterior));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
