//! Models of the Hub, from a server of our own that speaks as the Hub does.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use common::{Ran, command, model};

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// A server of the files of a folder, as the repository `org/tiny`.
struct Hub {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn serve(folder: PathBuf) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (folder, log) = (folder.clone(), Arc::clone(&log));
                std::thread::spawn(move || answer(stream.unwrap(), &folder, &log));
            }
        });
        Hub { address, asked }
    }

    fn run(&self, home: &Path, arguments: &[&str]) -> Ran {
        let mut command = command();
        command.env_remove("HF_HUB_OFFLINE").env("HF_ENDPOINT", &self.address).env("HF_HOME", home);
        command.env("UNSPOOL_CACHE", home.join("unspool"));
        ran(command.args(arguments))
    }
}

fn ran(command: &mut std::process::Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn answer(stream: TcpStream, folder: &Path, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
        let mut range = None;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_lowercase().strip_prefix("range: bytes=") {
                let (from, to) = value.trim().split_once('-').unwrap();
                range = Some((from.parse::<usize>().unwrap(), to.parse::<usize>().ok()));
            }
        }
        let path = request.split(' ').nth(1).unwrap().to_string();
        log.lock().unwrap().push(path.clone());
        let response = respond(&path, range, folder);
        if stream.write_all(&response).is_err() {
            return;
        }
    }
}

fn respond(path: &str, range: Option<(usize, Option<usize>)>, folder: &Path) -> Vec<u8> {
    let reply = |status: &str, headers: &str, body: &[u8]| {
        let mut all = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
        all.extend_from_slice(body);
        all
    };
    if path == "/api/models/org/tiny/revision/main?blobs=true" {
        let mut files = Vec::new();
        list(folder, folder, &mut files);
        files.push("../outside.json".to_string());
        let siblings: Vec<_> = files.iter().map(|file| serde_json::json!({"rfilename": file})).collect();
        let body = serde_json::json!({"siblings": siblings, "sha": SHA}).to_string();
        return reply("200 OK", "content-type: application/json\r\n", body.as_bytes());
    }
    let file = path.strip_prefix(&format!("/org/tiny/resolve/{SHA}/"));
    let Some(bytes) = file.and_then(|file| std::fs::read(folder.join(file)).ok()) else {
        return reply("404 Not Found", "", b"");
    };
    let (from, to) = range.unwrap_or((0, None));
    let to = to.map_or(bytes.len(), |to| (to + 1).min(bytes.len()));
    let etag = file.unwrap_or_default().replace('/', "-");
    let headers = format!(
        "etag: \"{etag}\"\r\nx-repo-commit: {SHA}\r\ncontent-range: bytes {from}-{}/{}\r\n",
        to.saturating_sub(1),
        bytes.len()
    );
    reply("206 Partial Content", &headers, &bytes[from.min(to)..to])
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            list(root, &entry.path(), files);
        } else {
            files.push(entry.path().strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
}

#[test]
fn a_graph_with_external_data_is_fetched_once_and_runs() {
    let hub = Hub::serve(PathBuf::from(model("llama-genai")));
    let home = tempfile::tempdir().unwrap();
    let run = ["generate", "org/tiny", "--engine", "rten", "--ids", "[1,2,3]", "--max-new-tokens", "4"];
    let first = hub.run(home.path(), &run).fine();
    let fetched = hub.asked.lock().unwrap().len();
    assert!(hub.asked.lock().unwrap().iter().all(|path| !path.contains("golden") && !path.contains("outside")));
    let again = hub.run(home.path(), &run).fine();
    assert_eq!(first, again);
    assert_eq!(hub.asked.lock().unwrap().len(), fetched + 1, "only the list of files is asked for again");

    // Without the network the fetched copy is used.
    let mut offline = command();
    offline.env("HF_HOME", home.path()).env("UNSPOOL_CACHE", home.path().join("unspool")).args(run);
    assert_eq!(ran(&mut offline).fine(), first);
    let mut unreachable = command();
    unreachable.env_remove("HF_HUB_OFFLINE").env("HF_ENDPOINT", "http://127.0.0.1:9").env("HF_HOME", home.path());
    // Another cache folder is laid out anew from the Hub's own cache.
    unreachable.env("UNSPOOL_CACHE", home.path().join("other"));
    assert_eq!(ran(unreachable.args(run)).fine(), first);
}

#[test]
fn what_the_hub_does_not_have_is_a_clear_error() {
    let hub = Hub::serve(PathBuf::from(model("llama-genai")));
    let home = tempfile::tempdir().unwrap();
    let error = hub.run(home.path(), &["generate", "org/other", "x"]).failed(1);
    assert!(error.contains("org/other") && error.contains("no such model"), "{error}");
    let error = hub.run(home.path(), &["generate", "org/tiny", "x", "--dtype", "q4"]).failed(1);
    assert!(error.contains("dtype q4") && error.contains("onnx/model.onnx"), "{error}");
}

#[test]
fn what_looks_like_a_path_is_not_asked_of_the_hub() {
    let hub = Hub::serve(PathBuf::from(model("llama-genai")));
    let home = tempfile::tempdir().unwrap();
    let error = hub.run(home.path(), &["generate", "dl/nosuch.gguf", "x"]).failed(1);
    assert!(error.contains("dl/nosuch.gguf: there is no such file"), "{error}");
    let beside = home.path().join("nosuch").to_str().unwrap().to_string();
    let error = hub.run(home.path(), &["inspect", &beside]).failed(1);
    assert!(error.contains("there is no such file or folder"), "{error}");
    assert!(hub.asked.lock().unwrap().is_empty());
}

#[test]
fn the_demo_tells_both_reasons_when_nothing_can_be_reached() {
    let empty = tempfile::tempdir().unwrap();
    let demo = || {
        let mut command = command();
        command.env("PATH", empty.path()).env("UNSPOOL_CACHE", empty.path().join("cache")).arg("demo");
        command
    };
    let error = ran(demo().env_remove("HF_HUB_OFFLINE").env("HF_ENDPOINT", "http://127.0.0.1:9")).failed(1);
    assert!(error.contains("could not be reached") && error.contains("no Python with pip"), "{error}");
    // Without the network neither is asked.
    let error = ran(&mut demo()).failed(1);
    assert!(error.contains("HF_HUB_OFFLINE is set") && !error.contains("pip"), "{error}");
}
