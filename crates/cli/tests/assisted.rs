//! Drafts on the command line: the same answers, and how often they were right.

mod common;

use common::{generate, json_lines, model, unspool};
use serde_json::Value;

const IDS: &str = "[[160,121,254,161,98,121],[237,130,7,88,283,23],[34,193,73,159,100,275,66,27]]";

fn run(extra: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["--ids", IDS, "--max-new-tokens", "18", "--json"];
    arguments.extend_from_slice(extra);
    json_lines(&generate("gpt2", &arguments).fine())
}

fn tokens(lines: &[Value]) -> Vec<Value> {
    lines.iter().map(|line| line["sequences"][0]["ids"].clone()).collect()
}

#[test]
fn prompt_lookup_gives_the_same_tokens_and_counts_them() {
    let plain = run(&[]);
    assert!(plain[0]["sequences"][0].get("drafts").is_none());
    for extra in [&["--prompt-lookup-num-tokens", "3"][..], &["--prompt-lookup-num-tokens", "3", "--always-draft"]] {
        let assisted = run(extra);
        assert_eq!(tokens(&assisted), tokens(&plain));
    }
    // Python needs 9 runs for the 18 tokens of the first prompt.
    let drafts = &run(&["--prompt-lookup-num-tokens", "3", "--always-draft"])[0]["sequences"][0]["drafts"];
    assert_eq!(drafts["target_runs"], 9);
    assert!(drafts["accepted"].as_u64() >= Some(9) && drafts["drafted"].as_u64() >= drafts["accepted"].as_u64());
}

#[test]
fn an_assistant_gives_the_same_tokens() {
    let small = model("gpt2-assistant");
    let assisted = run(&["--assistant", &small, "--always-draft", "--num-assistant-tokens", "4"]);
    assert_eq!(tokens(&assisted), tokens(&run(&[])));
    let drafts = &assisted[1]["sequences"][0]["drafts"];
    assert!(drafts["drafted"].as_u64() > Some(0) && drafts["target_runs"].as_u64() <= Some(18), "{drafts}");
}

#[test]
fn the_first_layers_draft_for_the_whole_model() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = format!("{}/model.safetensors", model("llama-deep"));
    let out = folder.path().join("out").display().to_string();
    unspool(&["import", &checkpoint, &out, "--early-exit", "2,4"]).fine();
    let told = unspool(&["inspect", &out]).fine();
    assert!(told.contains("after 2, 4 layers"), "{told}");
    let run = |model: &str, extra: &[&str]| {
        let fixed = ["--ids", "[[1,5,9,14,22],[1,7]]", "--max-new-tokens", "16", "--json", "--always-draft"];
        unspool(&[&["generate", model, "--engine", "rten"], &fixed[..], extra].concat())
    };
    let plain = tokens(&json_lines(&run(&out, &[]).fine()));
    // A checkpoint is imported with the exit that is asked for.
    for model in [&out, &checkpoint] {
        let assisted = json_lines(&run(model, &["--assistant-early-exit", "4"]).fine());
        assert_eq!(tokens(&assisted), plain);
        assert!(assisted[0]["sequences"][0]["drafts"]["accepted"].as_u64() > Some(0), "{}", assisted[0]);
    }
    let missing = run(&out, &["--assistant-early-exit", "3"]).failed(1);
    assert!(missing.contains("after 2, 4 layers") && missing.contains("--early-exit 3"), "{missing}");
    assert!(run(&out, &["--assistant-early-exit", "6"]).failed(1).contains("the model has 6 layers"));
    assert!(run(&checkpoint, &["--assistant-early-exit", "6"]).failed(1).contains("the model has 6"));
    assert!(run(&out, &["--assistant-early-exit", "0"]).failed(1).contains("assistant_early_exit"));
    for wrong in ["-1", "x", "2,,4"] {
        assert!(
            unspool(&["import", &checkpoint, "none", "--early-exit", wrong]).failed(2).contains("layers"),
            "{wrong}"
        );
    }
    let beside =
        [["--prompt-lookup-num-tokens", "3"], ["--num-beams", "2"], ["--assistant", &out], ["--dola-layers", "low"]];
    for extra in beside {
        let both = [&["--assistant-early-exit", "4"][..], &extra].concat();
        assert!(run(&out, &both).failed(1).contains("assistant_early_exit"), "{extra:?}");
    }
    // The answers of a model without a tokenizer are ids.
    let text = unspool(&["generate", &out, "--ids", "[1,5]"]);
    assert!(text.failed(2).contains("give --json or --out"));
    // A broken exit is named.
    std::fs::write(folder.path().join("out/onnx/exit_2.onnx"), "no graph").unwrap();
    assert!(run(&out, &["--assistant-early-exit", "2"]).failed(1).contains("exit_2.onnx"));
}

#[test]
fn an_assistant_with_another_tokenizer_gives_the_same_tokens() {
    let other = model("llama");
    let assisted = run(&["--assistant", &other, "--always-draft", "--num-assistant-tokens", "3"]);
    assert_eq!(tokens(&assisted), tokens(&run(&[])));
}

#[test]
fn a_seed_draws_the_same_with_prompt_lookup() {
    let draw = ["--do-sample", "--seed", "4", "--temperature", "0.5"];
    let lookup = [&draw[..], &["--prompt-lookup-num-tokens", "4"]].concat();
    assert_eq!(tokens(&run(&draw)), tokens(&run(&lookup)));
}

#[test]
fn what_does_not_fit_together_is_told() {
    let small = model("gpt2-assistant");
    let both = generate("gpt2", &["--ids", "[1,2]", "--assistant", &small, "--prompt-lookup-num-tokens", "3"]);
    assert!(both.failed(1).contains("prompt_lookup_num_tokens"));
    let alone = generate("gpt2", &["--ids", "[1,2]", "--max-new-tokens", "2", "--num-assistant-tokens", "3", "--json"]);
    assert!(alone.err.contains("num_assistant_tokens has no effect without an assistant"), "{}", alone.err);
    let nothing = ["--ids", "[1,2]", "--max-new-tokens", "2", "--max-matching-ngram-size", "3", "--always-draft"];
    let told = generate("gpt2", &[&nothing[..], &["--is-assistant", "--json"]].concat()).err;
    assert!(told.contains("max_matching_ngram_size has no effect without prompt_lookup_num_tokens"), "{told}");
    assert!(told.contains("always_draft has no effect") && !told.contains("is_assistant"), "{told}");
    // Its kernel for single tokens rounds their activations, and the one for several does not.
    let rounds = generate(
        "llama-genai-int4",
        &["--ids", "[1,2,1,2]", "--max-new-tokens", "2", "--prompt-lookup-num-tokens", "3", "--json"],
    );
    assert!(rounds.err.contains("nothing is drafted"), "{}", rounds.err);
    assert!(json_lines(&rounds.fine())[0]["sequences"][0].get("drafts").is_none());
}
