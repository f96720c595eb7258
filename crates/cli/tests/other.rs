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
    let arguments = ["inspect", &model, "--engine", "rten", "--temperature", "0.5", "--do-sample"];
    let text = unspool(&arguments).fine();
    let shown = [
        "parameters     112,448",
        "size on disk   531.6 KiB",
        "weights        112,448 as f32 (439.2 KiB)",
        "context        256 tokens",
        "chat template  none",
        "eos token      2 \"</s>\"",
        "append",
        "0.5  (flag)",
        "(model file)",
        "rten",
        "8 tensors of the cache",
    ];
    for shown in shown {
        assert!(text.contains(shown), "{shown} is missing in:\n{text}");
    }
    assert!(!text.contains("past_key_values") && !text.contains("top_k"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let all = unspool(&[&arguments[..], &["--tensors", "--settings"]].concat()).fine();
    assert!(all.contains("past_key_values.0.key") && all.contains("present.1.value"), "{all}");
    assert!(all.contains("top_k") && all.contains("(default)"), "{all}");
    let json = unspool(&["inspect", &model, "--engine", "rten", "--json", "--tokens", "100"]).fine();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["settings"]["max_new_tokens"], serde_json::json!({"value": 256, "source": "pipeline"}));
    assert_eq!(value["memory"]["tokens"], 100);
    let f32s = serde_json::json!([{"kind": "f32", "parameters": 112_448, "bytes": 449_792}]);
    assert_eq!(value["weights"]["kinds"], f32s);
    assert_eq!(value["special_tokens"][0], serde_json::json!({"name": "bos_token", "id": 1, "token": "<s>"}));
    assert_eq!(value["chat_templates"], serde_json::json!([]));
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
    assert_eq!(ran.code, 1, "a line failed: {}", ran.err);
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

#[test]
fn a_conversation_tells_what_its_settings_do_not_do() {
    let folder = model_that_chats("llama-genai-int4");
    let model = folder.path().to_str().unwrap();
    let chat = |extra: &[&str]| {
        let arguments = [&["chat", model, "--engine", "rten", "--max-new-tokens", "2"], extra].concat();
        with_input(&arguments, b"one\ntwo\n")
    };
    let ran = chat(&["--prompt-lookup-num-tokens", "3"]);
    assert_eq!(ran.err.matches("nothing is drafted").count(), 1, "{}", ran.err);
    assert!(chat(&["--assistant-early-exit", "1"]).failed(1).contains("has no exit there"));
}

#[test]
fn what_a_models_file_says_beside_its_settings_is_listed() {
    let folder = model_that_chats("llama");
    let file = folder.path().join("generation_config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    config["lang_to_id"] = serde_json::json!({"<|en|>": 5});
    std::fs::write(&file, config.to_string()).unwrap();
    let path = folder.path().to_str().unwrap();
    let told = unspool(&["inspect", path, "--engine", "rten"]).fine();
    assert!(told.contains("no generation settings here") && told.contains("lang_to_id"), "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&unspool(&["inspect", path, "--engine", "rten", "--json"]).fine()).unwrap();
    assert_eq!(json["unread_settings"]["lang_to_id"], serde_json::json!({"<|en|>": 5}));
}

#[test]
#[cfg(unix)]
fn a_conversation_is_saved_where_a_file_may_be() {
    let model = model_that_chats("llama");
    let folder = tempfile::tempdir().unwrap();
    let (real, link, lost) = (folder.path().join("real"), folder.path().join("link"), folder.path().join("lost"));
    std::fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    std::os::unix::fs::symlink("nowhere", &lost).unwrap();
    let script = format!("one\n/save {}\n/save {}\n", link.display(), lost.display());
    let model = model.path().to_str().unwrap();
    let ran = with_input(&["chat", model, "--engine", "rten", "--max-new-tokens", "2"], script.as_bytes());
    assert!(ran.err.contains("there already"), "{}", ran.err);
    assert!(ran.err.contains("leads to no regular file"), "{}", ran.err);
    assert!(link.is_symlink() && lost.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "", "what was there stays");
}

#[test]
fn a_conversation_refuses_at_once_what_no_turn_can_do() {
    let model = model_that_chats("llama");
    let model = model.path().to_str().unwrap();
    for (wrong, named) in [
        (&["--token-healing"][..], "token_healing"),
        (&["--num-return-sequences", "2", "--do-sample"], "num_return_sequences"),
    ] {
        let arguments = [&["chat", model, "--engine", "rten"], wrong].concat();
        assert!(with_input(&arguments, b"one\n").failed(1).contains(named), "{named}");
    }
}
