//! A server of the test's own, and a folder where what climbs out of the cache is seen.

#![allow(dead_code)] // each test file uses some of these

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use unspool_hub::{Hub, HubId, Kind};

pub const SHA: &str = "0123456789abcdef0123456789abcdef01234567";
pub const DATA: &[u8] = b"the bytes of a graph, which nothing here reads";

/// A question: its path, and the headers in lower case.
pub struct Asked {
    pub path: String,
    pub headers: Vec<String>,
}

pub type Answer = dyn Fn(&Asked, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

pub struct Server {
    pub address: String,
    pub asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub fn new(answer: impl Fn(&Asked, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer): (_, Arc<Answer>) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Server { address, asked }
    }

    pub fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.path.clone()).collect()
    }
}

/// One question a connection.
pub fn serve(mut stream: TcpStream, log: &Mutex<Vec<Asked>>, answer: &Answer) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
            break;
        }
        headers.push(header.trim().to_lowercase());
    }
    let asked = Asked { path: line.split(' ').nth(1).unwrap_or_default().to_owned(), headers };
    let _ = answer(&asked, &mut stream);
    log.lock().unwrap().push(asked);
}

pub fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len())?;
    stream.write_all(body)
}

pub fn listing(siblings: &str) -> String {
    format!(r#"{{"id": "org/tiny", "sha": "{SHA}", "siblings": [{siblings}]}}"#)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `model.onnx` as the Hub lists a large file.
pub fn large(bytes: &[u8]) -> String {
    let (sha256, size) = (sha256(bytes), bytes.len());
    format!(r#"{{"rfilename": "model.onnx", "size": {size}, "lfs": {{"sha256": "{sha256}", "size": {size}}}}}"#)
}

/// A Hub whose list is `list`, and whose file is answered by `file`.
pub fn hub_with(
    list: String,
    file: impl Fn(&Asked, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Server {
    Server::new(move |asked, stream| match asked.path.starts_with("/api/models/") {
        true => reply(stream, "200 OK", "content-type: application/json\r\n", list.as_bytes()),
        false => file(asked, stream),
    })
}

/// A folder with room above the cache, so that what climbs is seen.
pub struct Home {
    _all: tempfile::TempDir,
    pub root: PathBuf,
    pub cache: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        let root = all.path().to_path_buf();
        let cache = root.join("a/b/c/d/e/f/g/h/i/hub");
        Home { _all: all, root, cache }
    }

    pub fn hub(&self, server: &Server) -> Hub {
        Hub::new(&server.address, &self.cache).unwrap().patience(Duration::from_millis(500))
    }

    pub fn fetch(&self, server: &Server) -> unspool_core::Result<PathBuf> {
        let fetched = self.hub(server).fetch(&id(), None, Kind::Any);
        for path in files(&self.root) {
            assert!(path.starts_with(&self.cache), "outside the cache: {}", path.display());
        }
        fetched
    }

    /// The fetch fails, says `words`, and leaves no file that could be taken for a model.
    #[track_caller]
    pub fn fails(&self, server: &Server, words: &str) {
        let error = self.fetch(server).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        let whole = |path: &&PathBuf| {
            !path.to_string_lossy().ends_with(".incomplete") && !path.to_string_lossy().ends_with(".lock")
        };
        assert_eq!(files(&self.root).iter().filter(whole).count(), 0, "{:?}", files(&self.root));
    }
}

pub fn id() -> HubId {
    HubId::parse("org/tiny", None).unwrap()
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut all = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() && !path.is_symlink() {
            true => all.extend(files(&path)),
            false => all.push(path),
        }
    }
    all
}
