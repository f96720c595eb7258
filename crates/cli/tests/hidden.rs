//! Ways to generate that look at hidden states, as people run them.

mod common;

use common::{generate, json_lines, model, unspool};

#[test]
fn contrastive_search_runs_on_a_graph_with_hidden_states() {
    let write = |more: &[&str]| {
        let mut arguments = vec!["--ids", "[[1,50,99],[1,7]]", "--json", "--max-new-tokens", "5"];
        arguments.extend_from_slice(more);
        json_lines(&generate("llama-hidden", &arguments).fine())
            .iter()
            .map(|line| line["sequences"][0]["ids"].clone())
            .collect::<Vec<_>>()
    };
    let searched = write(&["--penalty-alpha", "0.6", "--top-k", "4"]);
    assert_eq!(write(&["--penalty-alpha", "0.6", "--top-k", "4", "--low-memory"]), searched);
    assert_ne!(write(&[]), searched);
}

#[test]
fn hidden_states_are_told_by_step() {
    let arguments = ["--ids", "[1,50,99]", "--max-new-tokens", "2", "--output-hidden-states"];
    let out = generate("llama-hidden", &[&arguments[..], &["--json"]].concat()).fine();
    let steps = json_lines(&out)[0]["sequences"][0]["hidden_states"].clone();
    let lengths = |step: &serde_json::Value| {
        let states = step.as_array().unwrap();
        (states.len(), states[0].as_array().unwrap().len(), states[0][0].as_array().unwrap().len())
    };
    assert_eq!(steps.as_array().unwrap().iter().map(lengths).collect::<Vec<_>>(), [(3, 3, 64), (3, 1, 64)]);
    let error = generate("llama-hidden", &arguments).failed(2);
    assert!(error.contains("--output-hidden-states needs --json"), "{error}");
}

#[test]
fn a_checkpoint_is_imported_for_dola() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep");
    let (checkpoint, out) = (model("llama-deep"), out.to_str().unwrap());
    unspool(&["import", &format!("{checkpoint}/model.safetensors"), out, "--hidden-states"]).fine();
    let write = |more: &[&str]| {
        let ids = ["generate", out, "--engine", "rten", "--ids", "[1,50,9]", "--json", "--max-new-tokens", "6"];
        let lines = unspool(&[&ids[..], more].concat()).fine();
        json_lines(&lines)[0]["sequences"][0]["ids"].clone()
    };
    let high = write(&["--dola-layers", "high", "--repetition-penalty", "1.2"]);
    assert_ne!(high, write(&["--repetition-penalty", "1.2"]));
    assert_eq!(high, write(&["--dola-layers", "[3, 5]", "--repetition-penalty", "1.2"]), "6 layers: 3 and 5");
}

#[test]
fn other_graphs_are_refused_by_name() {
    let cases: [(&str, &[&str], &str); 5] = [
        (
            "llama",
            &["--penalty-alpha", "0.6", "--top-k", "4"],
            "penalty_alpha is set, and this model's graph does not give hidden states",
        ),
        ("llama", &["--output-hidden-states", "--json"], "output_hidden_states is set"),
        ("llama", &["--dola-layers", "low"], "dola_layers is set, and this model's graph"),
        ("llama-hidden", &["--dola-layers", "low"], "onnx/head.onnx"),
        ("llama-hidden", &["--output-attentions", "--json"], "output_attentions=true"),
    ];
    for (model, arguments, expected) in cases {
        let all = [&["--ids", "[1,2]", "--max-new-tokens", "2"], arguments].concat();
        let error = generate(model, &all).failed(1);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
