//! `unspool chat`, on a pipe and on a terminal.

mod common;

use common::{model_that_chats, with_input};

fn chat(model: &str, extra: &[&str], input: &str) -> common::Ran {
    let arguments = [&["chat", model, "--engine", "rten"], extra].concat();
    with_input(&arguments, input.as_bytes())
}

/// The messages of a saved conversation, of one role.
fn saved(file: &std::path::Path, role: &str) -> Vec<String> {
    let messages: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let of_role = messages.iter().filter(|message| message["role"] == role);
    of_role.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_system_message_is_shown_set_and_removed() {
    let model = model_that_chats("llama");
    let path = model.path().to_str().unwrap();
    let ran = chat(path, &["--system", "Be brief."], "/system\n/system -\n/system\n/system Be kind.\n/system\n");
    assert_eq!(ran.err.matches("There is no system message; /system TEXT sets one.").count(), 1, "{}", ran.err);
    assert_eq!(ran.fine(), "Be brief.\nBe kind.\n");
}

#[test]
fn save_explains_itself_and_replaces_only_when_asked_to() {
    let model = model_that_chats("llama");
    let path = model.path().to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "my notes").unwrap();
    let shown = file.display();
    let ran = chat(path, &["--max-new-tokens", "2"], &format!("one\n/save\n/save {shown}\n"));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error: /save needs a file name, for example: /save talk.json"), "{}", ran.err);
    assert!(ran.err.contains("use /save! to replace it"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "my notes");
    chat(path, &["--max-new-tokens", "2"], &format!("one\n/save! {shown}\n")).fine();
    assert_eq!(saved(&file, "user"), ["one"]);
}

#[test]
fn a_full_context_is_explained_and_a_failed_turn_is_a_failure() {
    let model = model_that_chats("llama");
    let path = model.path().to_str().unwrap();
    let long = "the river runs to the sea ".repeat(100);
    let ran = chat(path, &["--max-new-tokens", "2"], &format!("{long}\none\n"));
    assert_eq!(ran.code, 1, "{}", ran.err);
    for part in ["the model takes at most 256 positions", "(/reset, or", "--context keep-first"] {
        assert!(ran.err.contains(part), "{part} is missing in {}", ran.err);
    }
    assert_eq!(ran.out.lines().count(), 1, "the second message is answered: {}", ran.out);
    let lines = "the river runs to the sea and the old house stands there\n".repeat(8);
    let ran = chat(path, &["--max-new-tokens", "20"], &lines);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let ran = chat(path, &["--max-new-tokens", "20", "--context", "keep-first"], &lines);
    assert!(ran.err.contains("the model no longer reads 2 of the oldest messages"), "{}", ran.err);
    ran.fine();
}

#[test]
fn a_stop_string_is_shown_as_generate_shows_it() {
    let model = model_that_chats("llama");
    let path = model.path().to_str().unwrap();
    let flags = ["--max-new-tokens", "12"];
    let whole = chat(path, &flags, "the river\n").fine();
    let stop: String = whole.chars().skip(2).take(2).collect();
    let flags = ["--max-new-tokens", "12", "--stop-strings", &stop];
    let said = chat(path, &flags, "the river\n").fine();
    let generate = [&["generate", path, "--engine", "rten", "--chat", "the river"], &flags[..]].concat();
    assert_eq!(said, common::unspool(&generate).fine());
    assert!(said.trim_end_matches('\n').ends_with(&stop) && said.len() < whole.len(), "{said:?} {whole:?}");
}

#[cfg(unix)]
mod on_a_terminal {
    use std::fs::{File, OpenOptions};
    use std::io::{Read, Write};
    use std::process::Stdio;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// A program on a terminal of its own.
    struct Terminal {
        keys: File,
        screen: Receiver<u8>,
        shown: String,
    }

    impl Terminal {
        /// Types `text` at once, when the prompt is there.
        fn types(&mut self, text: &str) {
            self.waits_for("> ");
            self.keys.write_all(text.as_bytes()).unwrap();
        }

        /// Waits until `text` is on the screen, and forgets what was there.
        fn waits_for(&mut self, text: &str) {
            let begin = Instant::now();
            while !self.shown.contains(text) {
                assert!(begin.elapsed() < Duration::from_secs(60), "no {text:?} in {:?}", self.shown);
                if let Ok(byte) = self.screen.recv_timeout(Duration::from_millis(100)) {
                    self.shown.push(byte.into());
                }
            }
            self.shown.clear();
        }
    }

    /// What a person said in a conversation, who typed each of `typed` at once.
    fn said(typed: &[&str]) -> Vec<String> {
        let model = model_that_chats("llama");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("talk.json");
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = common::command();
        command.arg("chat").arg(model.path()).args(["--engine", "rten", "--max-new-tokens", "2"]).env("TERM", "xterm");
        command.stdin(Stdio::from(slave.try_clone().unwrap())).stdout(Stdio::from(slave.try_clone().unwrap()));
        command.stderr(Stdio::from(slave));
        let mut child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(master);
        let (put, screen) = channel();
        let mut reader = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                // Whoever looks at the screen may have seen enough.
                let _ = buffer[..count].iter().try_for_each(|byte| put.send(*byte));
            }
        });
        let mut terminal = Terminal { keys, screen, shown: String::new() };
        typed.iter().for_each(|text| terminal.types(text));
        terminal.types(&format!("/save {}\r", file.display()));
        terminal.waits_for("saved to");
        terminal.types("\u{4}");
        assert!(child.wait().unwrap().success());
        saved(&file, "user")
    }

    #[test]
    fn pasted_lines_are_one_message() {
        assert_eq!(said(&["the river\rthe sea\r\rthe end\r", "one\r"]), ["the river\nthe sea\n\nthe end", "one"]);
    }

    #[test]
    fn the_last_line_of_a_paste_can_be_finished() {
        assert_eq!(said(&["the river\rthe", " sea\r"]), ["the river\nthe sea"]);
    }
}
