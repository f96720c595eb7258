//! Questions to the Hub: bounded in time and bytes, with a token for the endpoint alone.

use std::io::Read;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use unspool_core::{Error, Result};
use ureq::http::{Response, Uri};
use ureq::{Agent, Body};

use crate::fault::Fault;
use crate::hub::Hub;

/// How often one question may be sent on to another address.
const REDIRECTS: usize = 6;

/// Bytes that are handed over together.
const PIECE: usize = 128 << 10;

/// A server that sends fewer bytes a second than this, on average and after a while, is given up.
const SLOWEST: u64 = 100;

/// All of a list of files may take so many times as long as the server may be silent.
const LISTING_PATIENCE: u32 = 3;

/// The longest body of an answer that is read for its message, and of a list of files, in bytes.
const MAX_LISTING_BYTES: u64 = 32 << 20;

/// A connection to the Hub.
pub struct Client<'a> {
    hub: &'a Hub,
    agent: Agent,
}

/// An answer whose headers are here.
pub struct Answer {
    /// 200 or 206.
    pub status: u16,
    /// Bytes of the body, when the server says.
    pub length: Option<u64>,
    /// Of `Content-Range`: where the body begins, and the bytes of the whole file.
    pub range: Option<(u64, Option<u64>)>,
    /// `X-Linked-Etag`, else `ETag`, as it was sent by the Hub itself.
    pub etag: Option<String>,
    body: Pieces,
}

impl<'a> Client<'a> {
    /// A client for `hub`.
    pub fn new(hub: &'a Hub) -> Self {
        let agent = Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_resolve(Some(hub.patience))
            .timeout_connect(Some(hub.patience))
            .timeout_send_request(Some(hub.patience))
            .timeout_recv_response(Some(hub.patience))
            .user_agent(concat!("unspool/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .build()
            .new_agent();
        Client { hub, agent }
    }

    /// The text at `path` of the endpoint, of at most 32 MiB.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, refuses, or sends more.
    pub fn text(&self, path: &str) -> Result<String> {
        let started = Instant::now();
        let mut answer = self.get(path, None)?;
        let mut bytes = Vec::new();
        while let Some(piece) = answer.next()? {
            if started.elapsed() > self.hub.patience * LISTING_PATIENCE {
                return Err(Error::network(format!(
                    "the server did not send all of its answer within {} s",
                    (self.hub.patience * LISTING_PATIENCE).as_secs_f32()
                )));
            }
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > MAX_LISTING_BYTES {
                return Err(Error::network(format!("the answer is longer than {MAX_LISTING_BYTES} bytes")));
            }
        }
        String::from_utf8(bytes).map_err(|error| Error::network("the answer is not UTF-8 text").because(error))
    }

    /// The file at `path` of the endpoint, from byte `from` when the server can.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or refuses.
    pub fn get(&self, path: &str, from: Option<u64>) -> Result<Answer, Fault> {
        let mut address = format!("{}{path}", self.hub.endpoint);
        let mut etag = None;
        for _ in 0..=REDIRECTS {
            let response = self.ask(&address, from)?;
            etag = etag.or_else(|| header(&response, "x-linked-etag")).or_else(|| header(&response, "etag"));
            match response.status().as_u16() {
                200 | 206 if is_page(&response) => {
                    let message =
                        "the server answers with an HTML page; perhaps this network wants you to log in first";
                    return Err(Error::network(message).into());
                }
                200 | 206 => return Ok(Answer::new(response, etag, self.hub.patience)),
                301 | 302 | 303 | 307 | 308 => address = onward(&address, header(&response, "location"))?,
                status => {
                    let code = header(&response, "x-error-code");
                    let error = refusal(status, code.as_deref(), self.hub.token.is_some());
                    return Err(Fault::new(error, status >= 500));
                }
            }
        }
        let message = format!("the server sends the question on to other addresses more than {REDIRECTS} times");
        Err(Error::network(message).into())
    }

    fn ask(&self, address: &str, from: Option<u64>) -> Result<Response<Body>, Fault> {
        let mut request = self.agent.get(address);
        if let Some(token) = self.hub.token.as_ref().filter(|_| origin(address) == origin(&self.hub.endpoint)) {
            request = request.header("authorization", format!("Bearer {}", token.0));
        }
        if let Some(from) = from {
            request = request.header("range", format!("bytes={from}-"));
        }
        request.call().map_err(|error| match error {
            ureq::Error::Timeout(_) => no_answer(self.hub.patience),
            error => Fault::passing(Error::network("the server could not be reached").because(error)),
        })
    }
}

impl Answer {
    fn new(response: Response<Body>, etag: Option<String>, patience: Duration) -> Self {
        let status = response.status().as_u16();
        let length = header(&response, "content-length").and_then(|length| length.parse().ok());
        let range = header(&response, "content-range").as_deref().and_then(content_range);
        let body = Pieces::read(response.into_body(), patience);
        Answer { status, length, range, etag, body }
    }

    /// The next bytes of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// When the connection breaks, or nothing comes for too long.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        self.body.next()
    }
}

/// A body that another thread reads, so that a server that says nothing more is noticed.
struct Pieces {
    from: Receiver<std::io::Result<Vec<u8>>>,
    patience: Duration,
    started: Instant,
    bytes: u64,
}

impl Pieces {
    fn read(body: Body, patience: Duration) -> Self {
        let (send, from) = mpsc::sync_channel(4);
        // Ends with the body, with the connection, or when nobody takes its pieces any more.
        std::thread::spawn(move || {
            let mut reader = body.into_reader();
            loop {
                let mut piece = vec![0; PIECE];
                let read = reader.read(&mut piece).map(|count| {
                    piece.truncate(count);
                    piece
                });
                let last = read.as_ref().map_or(true, Vec::is_empty);
                if send.send(read).is_err() || last {
                    return;
                }
            }
        });
        Pieces { from, patience, started: Instant::now(), bytes: 0 }
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let broken = |error: std::io::Error| Fault::passing(Error::network("the connection broke").because(error));
        let piece = match self.from.recv_timeout(self.patience) {
            Ok(piece) => piece.map_err(broken)?,
            Err(RecvTimeoutError::Timeout) => return Err(no_answer(self.patience)),
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
        };
        self.bytes += piece.len() as u64;
        let waited = self.started.elapsed();
        if waited > self.patience * 6 && self.bytes < SLOWEST * waited.as_secs() {
            return Err(Error::network(format!("the server sends fewer than {SLOWEST} bytes a second")).into());
        }
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

fn no_answer(patience: Duration) -> Fault {
    Fault::passing(Error::network(format!("the server did not answer within {} s", patience.as_secs_f32())))
}

/// Whether an answer is a page for people.
fn is_page(response: &Response<Body>) -> bool {
    header(response, "content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"))
}

fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// `bytes FIRST-LAST/TOTAL`.
fn content_range(header: &str) -> Option<(u64, Option<u64>)> {
    let (span, total) = header.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = span.split_once('-')?;
    Some((first.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Scheme, host and port.
fn origin(address: &str) -> Option<(String, String)> {
    let address: Uri = address.parse().ok()?;
    Some((address.scheme_str()?.to_lowercase(), address.authority()?.as_str().to_lowercase()))
}

/// Where a redirect leads to.
fn onward(from: &str, location: Option<String>) -> Result<String> {
    let location = location.unwrap_or_default();
    let shown: String = location.chars().take(120).collect();
    let refused = |why: &str| Error::network(format!("the server sends the question on to {shown:?}, {why}"));
    let (scheme, authority) = origin(from).ok_or_else(|| refused("from an address that is none"))?;
    let to = match &location {
        absolute if absolute.starts_with("https://") || absolute.starts_with("http://") => absolute.clone(),
        other_host if other_host.starts_with("//") => format!("{scheme}:{other_host}"),
        path if path.starts_with('/') => format!("{scheme}://{authority}{path}"),
        _ => return Err(refused("expected an address or a path")),
    };
    let (next, host) = origin(&to).ok_or_else(|| refused("which is no address"))?;
    if scheme == "https" && next != "https" {
        return Err(refused("which is not encrypted, as the address before it was"));
    }
    if host.contains('@') {
        return Err(refused("which holds a name or a password"));
    }
    Ok(to)
}

/// The error of an answer that is not the file.
fn refusal(status: u16, code: Option<&str>, token: bool) -> Error {
    Error::network(match (status, code) {
        (_, Some("RevisionNotFound")) => "the model has no such revision".to_owned(),
        (_, Some("GatedRepo")) => {
            "the model is gated: accept its conditions on its page on the Hub, and set HF_TOKEN to a token of that account".to_owned()
        }
        (_, Some("EntryNotFound")) => "the model has no such file".to_owned(),
        (404, _) | (_, Some("RepoNotFound")) => {
            "the Hub has no such model, or it is private (check the name, or set HF_TOKEN)".to_owned()
        }
        (401 | 403, _) if token => format!(
            "the Hub refuses ({status}): the model is private or gated and the token may not read it, or the name is wrong"
        ),
        (401 | 403, _) => format!(
            "the Hub refuses ({status}): there is no such model, or it is private or gated (check the name, or set HF_TOKEN)"
        ),
        (429, _) => "the Hub answered 429, too many questions: try again in a few minutes, or set HF_TOKEN".to_owned(),
        (500.., _) => format!("the Hub answered {status}, a fault of its own: try again later"),
        _ => format!("the Hub answered {status}, expected 200"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_to_encrypted_addresses() {
        let from = "https://huggingface.co/a";
        let to = |location: &str| onward(from, Some(location.to_owned()));
        assert_eq!(to("/api/b").unwrap(), "https://huggingface.co/api/b");
        assert_eq!(to("https://cdn.example/x").unwrap(), "https://cdn.example/x");
        assert_eq!(to("//cdn.example/x").unwrap(), "https://cdn.example/x");
        for wrong in ["http://cdn.example/x", "file:///etc/passwd", "ftp://x", "x", "", "https://", "https://a@b/x"] {
            assert!(to(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_stays_with_its_host_and_port() {
        assert_eq!(origin("https://Huggingface.co/x"), origin("https://huggingface.co/y?z"));
        for other in ["http://huggingface.co", "https://huggingface.co:444", "https://huggingface.co.example"] {
            assert_ne!(origin("https://huggingface.co"), origin(other), "{other}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (status, code, token, words) in [
            (404, None, false, "no such model"),
            (401, None, false, "set HF_TOKEN"),
            (403, Some("GatedRepo"), true, "gated"),
            (401, Some("RepoNotFound"), false, "no such model"),
            (404, Some("RevisionNotFound"), false, "no such revision"),
            (500, None, false, "answered 500"),
            (429, None, false, "try again"),
            (418, None, false, "418"),
        ] {
            let error = refusal(status, code, token).to_string();
            assert!(error.contains(words), "{status}: {error}");
        }
    }

    #[test]
    fn reads_where_a_part_begins() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(content_range("x"), None);
    }
}
