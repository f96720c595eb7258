//! Help, completions, and what a run prints on standard error.

mod common;

use common::{generate, json_lines, model, model_that_chats, unspool};

#[test]
fn every_command_has_a_short_and_a_long_page() {
    for command in ["demo", "generate", "chat", "score", "embed", "detect", "inspect", "import", "completions"] {
        let (short, long) = (unspool(&[command, "-h"]).fine(), unspool(&[command, "--help"]).fine());
        assert!(short.lines().count() <= 60 && short.len() <= long.len(), "{short}");
        assert_eq!(unspool(&["help", command]).fine(), long);
        for page in [&short, &long] {
            assert!(page.contains(&format!("Usage: unspool {command}")) && page.contains("--quiet"), "{page}");
        }
    }
}

#[test]
fn a_wrong_use_points_to_the_commands_own_help() {
    let model = model("gpt2");
    for (arguments, expected) in [
        (&["generate", &model][..], "there is no prompt"),
        (&["generate", &model, "a", "--logprobs"], "--logprobs needs --json or --out"),
        (&["generate", &model, "a", "--temperature", "warm"], "--temperature warm: expected"),
    ] {
        let error = unspool(arguments).failed(2);
        assert!(error.contains(expected) && error.ends_with("; see `unspool generate --help`"), "{error}");
    }
}

#[test]
#[cfg(unix)]
fn completions_load_and_complete_a_flag() {
    for (shell, expected) in [("zsh", "#compdef unspool"), ("fish", "complete -c unspool")] {
        let script = unspool(&["completions", shell]).fine();
        assert!(script.contains(expected) && script.contains("max-new-tokens"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unspool.bash");
    std::fs::write(&file, unspool(&["completions", "bash"]).fine()).unwrap();
    let asking = format!(
        "source {}; COMP_WORDS=(unspool generate --max-n); COMP_CWORD=2; _unspool unspool --max-n generate; \
         echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    // A machine without bash has nothing to complete.
    if let Ok(output) = std::process::Command::new("bash").args(["-c", &asking]).output() {
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--max-new-tokens", "{output:?}");
    }
}

#[test]
fn verbose_prints_tokens_speeds_seed_and_engine() {
    let flags = ["the river", "--max-new-tokens", "5", "--eos-token-id", "None", "--do-sample", "--seed", "7"];
    let run = generate("gpt2", &[&flags[..], &["--verbose"]].concat());
    let parts = ["prompt: 5 tokens in", "answer: 5 tokens in", "first token: after", "seed: 7", "engine: rten"];
    for part in parts {
        assert_eq!(run.err.matches(part).count(), 1, "{part}: {}", run.err);
    }
    let plain = generate("gpt2", &flags);
    assert_eq!(plain.err, "");
    assert_eq!(plain.fine(), run.fine());
    let json = generate("gpt2", &["the river", "--max-new-tokens", "3", "--json", "--verbose"]);
    assert!(json.err.contains("answer: 3 tokens") && !json.err.contains("seed"), "{}", json.err);
    assert_eq!(json_lines(&json.fine()).len(), 1);
}

#[test]
fn out_ends_with_a_summary_that_quiet_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, extra: &[&str]| {
        let out = folder.path().join(name);
        let out = out.to_str().unwrap();
        let arguments = [&["--ids", "[[1,2],[3]]", "--max-new-tokens", "3", "--out", out], extra].concat();
        generate("llama", &arguments)
    };
    let told = run("told.jsonl", &[]);
    assert!(told.err.starts_with("2 prompts, 6 new tokens in ") && told.err.ends_with("told.jsonl\n"), "{}", told.err);
    assert_eq!(run("quiet.jsonl", &["--quiet"]).err, "");
    let out = folder.path().join("scores.jsonl");
    let ran = unspool(&["score", &model("llama"), "the river", "--engine", "rten", "--out", out.to_str().unwrap()]);
    assert!(ran.err.starts_with("1 text, 6 tokens in "), "{}", ran.err);
}

#[test]
fn a_plain_prompt_to_a_model_that_chats_has_a_hint() {
    let folder = model_that_chats("llama");
    let hinted = |extra: &[&str]| {
        let arguments = ["generate", folder.path().to_str().unwrap(), "--engine", "rten", "--max-new-tokens", "2"];
        let ran = unspool(&[&arguments[..], extra].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.err.contains("chat template")
    };
    assert!(hinted(&["the river", "--verbose"]));
    // Standard error is no terminal here.
    assert!(!hinted(&["the river"]));
    for other in [&["the river", "--chat"][..], &["the river", "--raw"], &["--ids", "[[1]]"]] {
        assert!(!hinted(&[other, &["--verbose"]].concat()), "{other:?}");
    }
}
