//! Downloads that are cut, stopped or run at once, and servers without end.

mod fake;

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use fake::{DATA, Home, SHA, Server, files, hub_with, id, large, listing, reply, sha256};
use unspool_hub::Kind;

/// What is there of a download: the first 20 bytes.
fn begin(home: &Home) -> std::path::PathBuf {
    let blobs = home.cache.join("models--org--tiny/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let part = blobs.join(format!("{}.incomplete", sha256(DATA)));
    fs::write(&part, &DATA[..20]).unwrap();
    part
}

fn range(from: usize) -> String {
    format!("content-range: bytes {from}-{}/{}\r\n", DATA.len() - 1, DATA.len())
}

#[test]
fn a_stopped_download_keeps_what_it_has() {
    let server =
        hub_with(listing(&large(DATA)), |_, stream| reply(stream, "206 Partial Content", &range(20), &DATA[20..]));
    let home = Home::new();
    let part = begin(&home);
    let stopped = home.hub(&server).interrupted(Some(|| true)).fetch(&id(), None, Kind::Any);
    assert!(stopped.unwrap_err().to_string().contains("was stopped"));
    assert_eq!(server.paths().len(), 2, "a stopped download is not tried again");
    assert!(fs::read(&part).unwrap().starts_with(&DATA[..20]));
}

#[test]
fn a_refusal_keeps_what_is_there() {
    let server = hub_with(listing(&large(DATA)), |_, stream| reply(stream, "403 Forbidden", "", b""));
    let home = Home::new();
    let part = begin(&home);
    home.fails(&server, "private or gated");
    assert_eq!(fs::read(&part).unwrap(), &DATA[..20]);
}

#[test]
fn another_part_than_asked_for_is_fetched_anew() {
    let server = hub_with(listing(&large(DATA)), |asked, stream| {
        match asked.headers.iter().any(|header| header.starts_with("range:")) {
            true => reply(stream, "206 Partial Content", &range(0), DATA),
            false => reply(stream, "200 OK", "", DATA),
        }
    });
    let home = Home::new();
    begin(&home);
    assert_eq!(fs::read(home.fetch(&server).unwrap().join("model.onnx")).unwrap(), DATA);
}

#[test]
fn many_at_once_end_well() {
    let server = hub_with(listing(&large(DATA)), |_, stream| reply(stream, "200 OK", "", DATA));
    let home = Home::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let folder = home.hub(&server).fetch(&id(), None, Kind::Any).unwrap();
                assert_eq!(fs::read(folder.join("model.onnx")).unwrap(), DATA);
            });
        }
    });
    assert_eq!(server.paths().iter().filter(|path| path.contains("/resolve/")).count(), 1);
    assert!(files(&home.root).iter().all(|path| !path.to_string_lossy().contains(".unfinished")));
    // The link is right too when it is made again.
    let snapshot = home.cache.join("models--org--tiny/snapshots").join(SHA).join("model.onnx");
    fs::remove_file(&snapshot).unwrap();
    home.fetch(&server).unwrap();
    assert_eq!(fs::read(&snapshot).unwrap(), DATA);
}

#[test]
fn a_page_is_no_file() {
    let page = |_: &fake::Asked, stream: &mut std::net::TcpStream| {
        reply(stream, "200 OK", "content-type: text/html; charset=utf-8\r\n", b"<html>please log in</html>")
    };
    Home::new().fails(&hub_with(listing(r#"{"rfilename": "model.onnx"}"#), page), "HTML page");
}

#[test]
fn a_disk_without_room_is_told_first() {
    let list = listing(&format!(r#"{{"rfilename": "model.onnx", "size": {}}}"#, u64::MAX));
    let server = hub_with(list, |_, stream| reply(stream, "200 OK", "", DATA));
    let error = Home::new().fetch(&server).unwrap_err().to_string();
    let words = if cfg!(unix) { "make room" } else { "the list of files says" };
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_list_that_trickles_ends() {
    let server = Server::new(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
        loop {
            stream.write_all(&[b' '; 100])?;
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let begun = Instant::now();
    Home::new().fails(&server, "did not send all of its answer within 1.5 s");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_packed_is_no_list() {
    let server =
        Server::new(|_, stream| reply(stream, "200 OK", "content-encoding: gzip\r\n", b"\x1f\x8b\x08\0\0\0\0\0\0\x03"));
    Home::new().fails(&server, "");
}

#[test]
fn a_graph_is_no_folder() {
    let names = ["onnx/model.onnx", "onnx/model.onnx/x", "onnx/model.onnx_data"];
    let list = listing(&names.map(|name| format!(r#"{{"rfilename": "{name}"}}"#)).join(","));
    let server = hub_with(list, |_, stream| reply(stream, "200 OK", "", DATA));
    assert!(Home::new().fetch(&server).unwrap().join("onnx/model.onnx").is_file());
    assert_eq!(server.paths().len(), 3);
}
