//! `unspool chat`, `inspect`, `import` and the help.

mod common;

use common::{model, model_that_chats, unspool, with_input};

#[test]
fn help_and_version_go_to_standard_output() {
    for arguments in [&["--help"][..], &["generate", "--help"], &["--version"]] {
        assert!(!unspool(arguments).fine().is_empty());
    }
    let help = unspool(&["generate", "--help"]).fine();
    for flag in ["--max-new-tokens", "--temperature", "--stop-strings", "--ids", "--engine", "--weights", "--seed"] {
        assert!(help.contains(flag), "{flag} is missing");
    }
}

#[test]
fn no_command_is_a_usage_error() {
    unspool(&[]).failed(2);
    unspool(&["nonsense"]).failed(2);
}

#[test]
fn inspect_tells_the_graph_and_where_settings_come_from() {
    let model = model("llama");
    let text = unspool(&["inspect", &model, "--engine", "rten", "--temperature", "0.5", "--do-sample"]).fine();
    for told in ["past_key_values.0.key", "append", "temperature", "flag", "model file", "eos_token_id", "rten", "300"]
    {
        assert!(text.contains(told), "{told} is missing in:\n{text}");
    }
    let json = unspool(&["inspect", &model, "--engine", "rten", "--json", "--tokens", "100"]).fine();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["settings"]["max_new_tokens"], serde_json::json!({"value": 256, "source": "pipeline"}));
    assert_eq!(value["memory"]["tokens"], 100);
    // 2 layers, keys and values, 2 heads of 16 numbers of 4 bytes
    assert_eq!(value["memory"]["cache_bytes"], 100 * 2 * 2 * 2 * 16 * 4);
}

#[test]
fn a_conversation_from_a_pipe() {
    let model = model_that_chats("llama");
    let model = model.path().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("talk.json");
    let script = format!(
        "/system Be brief.\nthe river\n/set max_new_tokens 3\n/set nonsense 3\n/set temperature\nshe read\n/save {}\n/quit\nnever said\n",
        saved.display()
    );
    let ran = with_input(&["chat", model, "--engine", "rten", "--max-new-tokens", "4"], script.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("nonsense"), "{}", ran.err);
    let messages: serde_json::Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    let roles: Vec<&str> = messages.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant"]);
}

#[test]
fn a_model_without_a_chat_template_does_not_chat() {
    let error = unspool(&["chat", &model("gpt2"), "--engine", "rten"]).failed(1);
    assert!(error.contains("chat template"), "{error}");
}

#[test]
fn messages_are_put_into_the_template() {
    let model = model_that_chats("llama");
    let model = model.path().to_str().unwrap();
    let run = |arguments: &[&str]| {
        let mut all = vec!["generate", model, "--engine", "rten", "--max-new-tokens", "3"];
        all.extend_from_slice(arguments);
        unspool(&all).fine()
    };
    let chat = run(&["the river", "--chat"]);
    assert_eq!(chat, run(&["user: the river\nassistant: ", "--raw"]));
    assert_ne!(run(&["the river", "--system", "Be brief."]), chat);
}

#[test]
fn import_refuses_what_is_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let error = unspool(&["import", "/no/such/file.gguf", out.to_str().unwrap()]).failed(1);
    assert!(error.contains("/no/such/file.gguf"), "{error}");
    assert!(!out.exists());
    unspool(&["import", "x.gguf", "out", "--weights", "int3"]).failed(2);
}
