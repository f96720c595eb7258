//! Signals that end the program while it imports.
#![cfg(unix)]

mod common;

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};

use common::{command, model};

#[test]
fn an_import_that_is_asked_to_end_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let checkpoint = format!("{}/model.safetensors", model("llama"));
    let inspect = || {
        let mut command = command();
        command.env("UNSPOOL_CACHE", cache.path()).args(["inspect", &checkpoint, "--engine", "rten"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    assert!(inspect().status().unwrap().success());
    let folder = fs::read_dir(cache.path().join("imports")).unwrap().next().unwrap().unwrap().path();
    fs::write(folder.join("config.json"), "").unwrap();
    // Held as by another process that imports the same checkpoint.
    let held = File::create(format!("{}.lock", folder.display())).unwrap();
    held.lock().unwrap();
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let mut child = inspect().spawn().unwrap();
        let mut told = String::new();
        let mut stderr = child.stderr.take().unwrap();
        let mut byte = [0];
        while !told.contains("Waiting for another process") {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{told}");
            told.push(char::from(byte[0]));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
    }
    drop(held);
    let mut child = inspect().spawn().unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success(), "{told}");
    assert!(told.contains("is made again: config.json has 0 bytes"), "{told}");
    assert_eq!(fs::read_dir(cache.path().join("imports")).unwrap().count(), 1);
}
