//! Runs the built program.

#![allow(dead_code)] // each test file uses some of these

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run of the program left.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The run succeeded; its standard output.
    #[track_caller]
    pub fn fine(self) -> String {
        assert_eq!(self.code, 0, "standard error: {}", self.err);
        self.out
    }

    /// The run failed with `code` and one line `error: ...`; that line.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "standard output: {}, standard error: {}", self.out, self.err);
        let errors: Vec<&str> = self.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{}", self.err);
        assert!(self.err.trim_end().ends_with(errors[0]), "something follows the error: {}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        errors[0].to_string()
    }
}

/// A small model of the project.
pub fn model(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models").join(name);
    assert!(path.is_dir(), "{}", path.display());
    path.to_string_lossy().into_owned()
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unspool"));
    command.env("UNSPOOL_CACHE", std::env::temp_dir().join(format!("unspool-tests-{}", std::process::id())));
    command.env("HF_HUB_OFFLINE", "1").env("HF_HOME", std::env::temp_dir().join("unspool-no-such-hub"));
    command
}

pub fn unspool(arguments: &[&str]) -> Ran {
    with_input(arguments, b"")
}

pub fn with_input(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child =
        command().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that failed before it read its input closed the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Generates with a small model on the built-in engine.
pub fn generate(name: &str, arguments: &[&str]) -> Ran {
    let model = model(name);
    let mut all = vec!["generate", &model, "--engine", "rten"];
    all.extend_from_slice(arguments);
    unspool(&all)
}

/// The lines of `--json`.
#[track_caller]
pub fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A copy of a small model with a chat template beside it.
pub fn model_that_chats(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("onnx")).unwrap();
    let files = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"];
    for file in files.iter().chain(&["onnx/model.onnx", "onnx/model.onnx.data"]) {
        let from = PathBuf::from(model(name)).join(file);
        if from.is_file() {
            std::fs::copy(from, folder.path().join(file)).unwrap();
        }
    }
    let template = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: ";
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    folder
}
