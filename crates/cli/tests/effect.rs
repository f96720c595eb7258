//! Every flag is honoured or refused by name: combinations in which one would have no effect.

mod common;

use common::{model, model_that_chats, with_input};

#[test]
fn a_flag_without_effect_is_refused_by_name() {
    let gpt2 = model("gpt2");
    let chats = model_that_chats("llama");
    let chats = chats.path().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, "{\"ids\":[1,2]}\n").unwrap();
    let (rows, graph) = (rows.to_str().unwrap(), format!("{gpt2}/onnx/model.onnx"));
    let synth = "{\"keys\":[1,2,3],\"ngram_len\":2}";
    let cases: &[(&[&str], i32, &str)] = &[
        // How a checkpoint is imported says nothing about a graph, and which graph nothing about one.
        (&["generate", &gpt2, "a", "--weights", "int8"], 1, "--weights"),
        (&["score", &gpt2, "a b", "--weights", "f32"], 1, "--weights"),
        (&["inspect", &gpt2, "--weights", "int4"], 1, "--weights"),
        (&["chat", chats, "--weights", "int4"], 1, "--weights"),
        (&["generate", &gpt2, "a", "--hidden-states"], 1, "does not give hidden states"),
        (&["score", &gpt2, "a b", "--hidden-states"], 1, "does not give hidden states"),
        (&["generate", &graph, "a", "--dtype", "fp16"], 1, "--dtype"),
        (&["generate", &gpt2, "a", "--revision", "v1"], 1, "revision"),
        // Flags about texts without a text.
        (&["generate", &gpt2, "--prompts", rows, "--raw"], 2, "--raw is about texts"),
        (&["generate", chats, "--prompts", rows, "--chat"], 2, "--chat is about texts"),
        (&["generate", chats, "--prompts", rows, "--system", "Be brief."], 2, "--system is about texts"),
        (&["generate", chats, "a", "--raw", "--system", "Be brief."], 2, "--raw"),
        (&["generate", &gpt2, "--ids", "[1]", "--raw"], 2, "--raw"),
        (&["generate", &gpt2, "--ids", "[1]", "--chat"], 2, "--chat"),
        (&["score", &gpt2, "--texts", rows, "--raw"], 2, "--raw is about texts"),
        (&["embed", &gpt2, "--texts", rows, "--raw"], 2, "--raw is about texts"),
        (&["score", &gpt2, "--ids", "[1,2]", "--raw"], 2, "--raw"),
        (&["generate", &gpt2, "a", "--template-args", "{\"x\":1}"], 2, "--template-args"),
        // What text output cannot show.
        (&["generate", &gpt2, "a", "--logprobs"], 2, "--logprobs needs --json"),
        (&["generate", &gpt2, "a", "--output-scores"], 2, "--output-scores needs --json"),
        (&["generate", &gpt2, "a", "--output-logits"], 2, "--output-logits needs --json"),
        (&["generate", &gpt2, "a", "--json", "--stream", "word"], 2, "--stream"),
        (&["generate", &gpt2, "a", "--json", "--show-prompt"], 2, "--show-prompt"),
        (&["chat", chats, "--output-scores"], 2, "--output-scores is not shown here"),
        (&["demo", "--output-hidden-states"], 2, "--output-hidden-states is not shown here"),
        // What another flag must stand beside.
        (&["generate", &gpt2, "a", "--force"], 2, "--out"),
        (&["score", &gpt2, "a b", "--force"], 2, "--out"),
        (&["generate", &gpt2, "a", "--negative-prompt", "b"], 1, "guidance_scale"),
        // Judging green lists and SynthID.
        (
            &["detect", &gpt2, "a", "--watermarking-config", synth, "--z-threshold", "2"],
            2,
            "--z-threshold is for green",
        ),
        (
            &["detect", &gpt2, "a", "--watermarking-config", synth, "--ignore-repeated-ngrams"],
            2,
            "--ignore-repeated-ngrams is for green",
        ),
        (&["detect", &gpt2, "a", "--watermarking-config", "{}", "--detector", "x"], 2, "--detector is for SynthID"),
    ];
    for (arguments, code, told) in cases {
        let error = with_input(arguments, b"").failed(*code);
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
}

#[test]
fn a_setting_without_effect_beside_others_is_a_warning_as_in_python() {
    let gpt2 = model("gpt2");
    for (words, told) in [
        (&["--temperature", "0.5"][..], "temperature"),
        (&["--length-penalty", "0.5"], "length_penalty"),
        (&["--always-draft"], "always_draft"),
    ] {
        let arguments = [&["generate", &gpt2, "a", "--engine", "rten", "--max-new-tokens", "1"], words].concat();
        let ran = with_input(&arguments, b"");
        assert!(ran.err.contains("warning: ") && ran.err.contains(told), "{words:?}: {}", ran.err);
        ran.fine();
    }
}
