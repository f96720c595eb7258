//! What fetching from an honest and from a hostile server leaves on the disk, and what is said.

mod fake;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake::{Asked, DATA, Home, SHA, Server, files, hub_with, id, large, listing, reply, sha256};
use unspool_hub::{Download, Hub, Kind, OnDownload};

#[test]
fn a_file_is_fetched_once_under_the_hash_of_its_content() {
    let server = hub_with(listing(&large(DATA)), |_, stream| reply(stream, "200 OK", "", DATA));
    let home = Home::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let progress =
        OnDownload::new(move |download: &Download<'_>| log.lock().unwrap().push((download.done, download.total)));
    let folder = home.hub(&server).on_download(Some(progress)).fetch(&id(), None, Kind::Any).unwrap();
    assert_eq!(fs::read(folder.join("model.onnx")).unwrap(), DATA);
    let repository = home.cache.join("models--org--tiny");
    assert_eq!(fs::read(repository.join("blobs").join(sha256(DATA))).unwrap(), DATA);
    assert_eq!(fs::read_to_string(repository.join("refs/main")).unwrap(), SHA);
    assert_eq!(fs::read(repository.join("snapshots").join(SHA).join("model.onnx")).unwrap(), DATA);
    let size = DATA.len() as u64;
    let told = told.lock().unwrap().clone();
    assert_eq!((told[0], told[told.len() - 1]), ((0, Some(size)), (size, Some(size))));

    let asked = server.paths().len();
    assert_eq!(home.fetch(&server).unwrap(), folder);
    assert_eq!(server.paths().len(), asked + 1, "only the list of files is asked for again");
    assert_eq!(home.hub(&server).offline(true).fetch(&id(), None, Kind::Any).unwrap(), folder);
}

#[test]
fn a_small_file_is_checked_by_the_hash_of_git() {
    let list = |hash: &str| {
        listing(&format!(r#"{}, {{"rfilename": "config.json", "size": 6, "blobId": "{hash}"}}"#, large(DATA)))
    };
    let answer = |asked: &Asked, stream: &mut TcpStream| {
        reply(stream, "200 OK", "", if asked.path.ends_with("config.json") { b"hello\n" } else { DATA })
    };
    let home = Home::new();
    let folder = home.fetch(&hub_with(list("ce013625030ba8dba906f756967f9e9ca394464a"), answer)).unwrap();
    assert_eq!(fs::read(folder.join("config.json")).unwrap(), b"hello\n");
    Home::new().fails(&hub_with(list(&"ab".repeat(20)), answer), "another content than the Hub announced");
}

#[test]
fn no_etag_becomes_a_path() {
    for etag in [
        "../../../../../../climbed-by-etag",
        "/etc/climbed",
        "a/b",
        "..",
        "",
        "\\..\\x",
        "12345",
        &"ab".repeat(20),
        &"a1".repeat(32),
    ] {
        let etag = etag.to_owned();
        let list = listing(r#"{"rfilename": "model.onnx"}"#);
        let server = hub_with(list, move |_, stream| reply(stream, "200 OK", &format!("etag: \"{etag}\"\r\n"), DATA));
        let home = Home::new();
        let folder = home.fetch(&server).unwrap();
        assert_eq!(fs::read(folder.join("model.onnx")).unwrap(), DATA);
        assert!(home.cache.join("models--org--tiny/blobs").join(sha256(DATA)).is_file());
    }
}

#[test]
fn names_that_climb_are_passed_over() {
    let up = "../../../../../../climbed.json";
    let names = [up, "onnx/../../../climbed.json", "/etc/climbed", "C:\\climbed", "a\\u0000b", "nul", "onnx//x", "."];
    let siblings: Vec<String> =
        names.iter().map(|name| format!(r#"{{"rfilename": "{}"}}"#, name.replace('\\', "\\\\"))).collect();
    let list = listing(&format!("{}, {}", large(DATA), siblings.join(", ")));
    let server = hub_with(list, |_, stream| reply(stream, "200 OK", "", DATA));
    Home::new().fetch(&server).unwrap();
    assert!(server.paths().iter().all(|path| !path.contains("climbed")));
    // A graph whose data file would climb has none.
    let list = listing(&format!(r#"{}, {{"rfilename": "model.onnx/../../../climbed"}}"#, large(DATA)));
    Home::new().fetch(&hub_with(list, |_, stream| reply(stream, "200 OK", "", DATA))).unwrap();
}

#[test]
fn a_commit_is_digits() {
    for sha in ["../../../../../../climbed-by-commit", "", "main", &"A".repeat(40), "/etc"] {
        let list = listing(&large(DATA)).replace(SHA, sha);
        Home::new().fails(&hub_with(list, |_, stream| reply(stream, "200 OK", "", DATA)), "40 hexadecimal digits");
    }
}

#[test]
fn other_content_or_another_size_than_announced_is_refused() {
    let server = hub_with(listing(&large(DATA)), |_, stream| reply(stream, "200 OK", "", &DATA.to_ascii_uppercase()));
    let home = Home::new();
    home.fails(&server, "another content than the Hub announced");
    assert!(files(&home.root).iter().all(|path| !path.to_string_lossy().ends_with(".incomplete")), "nothing to resume");
    let longer = [DATA, b"and more"].concat();
    let list = listing(&large(&longer));
    Home::new()
        .fails(&hub_with(list, |_, stream| reply(stream, "200 OK", "", DATA)), "the list of files says 54 bytes");
}

#[test]
fn a_body_is_as_long_as_announced() {
    let short = |_: &Asked, stream: &mut TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", DATA.len())?;
        stream.write_all(&DATA[..10])
    };
    let error = Home::new().fetch(&hub_with(listing(&large(DATA)), short)).unwrap_err().to_string();
    assert!(error.contains("connection broke") || error.contains("ended after"), "{error}");
    Home::new().fails(&hub_with(listing(r#"{"rfilename": "model.onnx"}"#), short), "");
    // Without a length: more than the list announced.
    let endless = |_: &Asked, stream: &mut TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
        loop {
            stream.write_all(&[7; 4096])?;
        }
    };
    Home::new().fails(&hub_with(listing(&large(DATA)), endless), "more than the 46 bytes announced");
    // A length of ten terabytes, and then what fits.
    let huge = |_: &Asked, stream: &mut TcpStream| {
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", 10u64.pow(13))?;
        stream.write_all(DATA)
    };
    Home::new().fails(&hub_with(listing(r#"{"rfilename": "model.onnx"}"#), huge), "");
    Home::new()
        .fails(&hub_with(listing(&large(DATA)), huge), "the list of files says 46 bytes, the answer 10000000000000");
}

#[test]
fn a_cut_download_goes_on_behind_what_is_there() {
    let serve = |lie: bool| {
        hub_with(listing(&large(DATA)), move |asked, stream| {
            let from = asked
                .headers
                .iter()
                .find_map(|header| header.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok());
            let Some(from) = from else { return reply(stream, "200 OK", "", DATA) };
            let total = if lie { 10usize.pow(13) } else { DATA.len() };
            let range = format!("content-range: bytes {from}-{}/{total}\r\n", DATA.len() - 1);
            reply(stream, "206 Partial Content", &range, &DATA[from..])
        })
    };
    let begun = |home: &Home, bytes: &[u8]| {
        let blobs = home.cache.join("models--org--tiny/blobs");
        fs::create_dir_all(&blobs).unwrap();
        fs::write(blobs.join(format!("{}.incomplete", sha256(DATA))), bytes).unwrap();
    };
    let home = Home::new();
    begun(&home, &DATA[..20]);
    let server = serve(false);
    let folder = home.fetch(&server).unwrap();
    assert_eq!(fs::read(folder.join("model.onnx")).unwrap(), DATA);
    assert!(
        server
            .asked
            .lock()
            .unwrap()
            .iter()
            .any(|asked| asked.headers.iter().any(|header| header == "range: bytes=20-"))
    );
    // What was there is not the beginning of this file: fetched anew.
    let home = Home::new();
    begun(&home, b"not the Hub's list of files");
    assert_eq!(fs::read(home.fetch(&serve(false)).unwrap().join("model.onnx")).unwrap(), DATA);
    // More than the whole file.
    let home = Home::new();
    begun(&home, &[0; 500]);
    assert_eq!(fs::read(home.fetch(&serve(false)).unwrap().join("model.onnx")).unwrap(), DATA);
    // A part of a file of ten terabytes is not a part of this one.
    let home = Home::new();
    begun(&home, &DATA[..20]);
    let _ = home.fetch(&serve(true));
}

#[test]
fn a_damaged_copy_is_fetched_again() {
    let server = hub_with(listing(&large(DATA)), |_, stream| reply(stream, "200 OK", "", DATA));
    let home = Home::new();
    home.fetch(&server).unwrap();
    fs::write(home.cache.join("models--org--tiny/blobs").join(sha256(DATA)), &DATA[..5]).unwrap();
    assert_eq!(fs::read(home.fetch(&server).unwrap().join("model.onnx")).unwrap(), DATA);
}

#[test]
fn refusals_and_silence_each_have_their_message() {
    for (status, words) in [
        ("401 Unauthorized", "set HF_TOKEN"),
        ("403 Forbidden", "private or gated"),
        ("404 Not Found", "no such model"),
        ("429 Too Many Requests", "too many questions"),
        ("500 Internal Server Error", "the Hub answered 500"),
        ("204 No Content", "answered 204"),
    ] {
        let server = Server::new(move |_, stream| reply(stream, status, "", br#"{"error": "no"}"#));
        Home::new().fails(&server, words);
    }
    let gated = Server::new(|_, stream| reply(stream, "403 Forbidden", "x-error-code: GatedRepo\r\n", b""));
    Home::new().fails(&gated, "accept its conditions");
    let revision = Server::new(|_, stream| reply(stream, "404 Not Found", "x-error-code: RevisionNotFound\r\n", b""));
    Home::new().fails(&revision, "no such revision");
    let html =
        Server::new(|_, stream| reply(stream, "200 OK", "content-type: text/html\r\n", b"<html>please log in</html>"));
    Home::new().fails(&html, "HTML page");
    let hang = Server::new(|_, _| {
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    });
    Home::new().fails(&hang, "did not answer within 0.5 s");
    let stops = hub_with(listing(&large(DATA)), |_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", DATA.len())?;
        stream.write_all(&DATA[..10])?;
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    });
    Home::new().fails(&stops, "did not answer within 0.5 s");
    let nobody = Hub::new("http://127.0.0.1:9", Home::new().cache.clone()).unwrap();
    assert!(nobody.fetch(&id(), None, Kind::Any).unwrap_err().to_string().contains("could not be reached"));
}

#[test]
fn answers_are_bounded() {
    let endless = Server::new(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{{\"sha\": \"")?;
        loop {
            stream.write_all(&[b'a'; 1 << 16])?;
        }
    });
    Home::new().fails(&endless, "longer than");
    let many = listing(&vec![r#"{"rfilename": "a"}"#; 100_001].join(","));
    Home::new().fails(&Server::new(move |_, stream| reply(stream, "200 OK", "", many.as_bytes())), "at most 100000");
    let deep = "[".repeat(1 << 20);
    Home::new().fails(
        &Server::new(move |_, stream| reply(stream, "200 OK", "", deep.as_bytes())),
        "not the Hub's list of files",
    );
    let trickle = hub_with(listing(&large(&[7; 4000])), |_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")?;
        loop {
            stream.write_all(&[7])?;
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    Home::new().fails(&trickle, "fewer than 100 bytes a second");
}

#[test]
fn a_token_goes_to_the_endpoint_alone() {
    let elsewhere = Server::new(|_, stream| reply(stream, "200 OK", "", DATA));
    let to = elsewhere.address.clone();
    let server = hub_with(listing(&large(DATA)), move |_, stream| {
        reply(stream, "302 Found", &format!("location: {to}/cdn/file?signed=1\r\n"), b"")
    });
    let home = Home::new();
    home.hub(&server).token("hf_secret").fetch(&id(), None, Kind::Any).unwrap();
    let bears = |server: &Server| {
        server
            .asked
            .lock()
            .unwrap()
            .iter()
            .filter(|asked| asked.headers.iter().any(|h| h.contains("hf_secret")))
            .count()
    };
    assert_eq!((bears(&server), server.paths().len()), (2, 2));
    assert_eq!((bears(&elsewhere), elsewhere.paths()), (0, vec!["/cdn/file?signed=1".to_owned()]));
}

#[test]
fn redirects_end_and_stay_on_the_web() {
    for (location, words) in [
        ("/org/tiny/resolve/again", "more than 6 times"),
        ("file:///etc/passwd", "expected an address"),
        ("", "expected an address"),
        ("../x", "expected an address"),
    ] {
        let server = hub_with(listing(&large(DATA)), move |_, stream| {
            reply(stream, "302 Found", &format!("location: {location}\r\n"), b"")
        });
        Home::new().fails(&server, words);
    }
}
