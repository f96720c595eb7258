//! Where the Hub and its cache are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use unspool_core::{Error, Result, file};

/// The Hub's own address.
const ENDPOINT: &str = "https://huggingface.co";

/// How long a server may take to answer, or say nothing in the middle of a file.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest token file, in bytes.
const MAX_TOKEN_BYTES: u64 = 4096;

/// How far the download of one file is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Download<'a> {
    /// The file's name in its repository.
    pub file: &'a str,
    /// Bytes that are here.
    pub done: u64,
    /// Bytes of the whole file, when the server says.
    pub total: Option<u64>,
}

/// A progress callback of downloads: called when a file begins, after each piece of it, and when it is whole (`done` is then
/// `total`).
#[derive(Clone)]
pub struct OnDownload(Arc<dyn Fn(&Download<'_>) + Send + Sync>);

impl OnDownload {
    /// Calls `callback`.
    pub fn new(callback: impl Fn(&Download<'_>) + Send + Sync + 'static) -> Self {
        OnDownload(Arc::new(callback))
    }

    pub(crate) fn call(&self, file: &str, done: u64, total: Option<u64>) {
        (self.0)(&Download { file, done, total });
    }
}

impl std::fmt::Debug for OnDownload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnDownload")
    }
}

/// A Hub, and the folder on this machine where its models are kept.
///
/// ```no_run
/// use unspool_hub::{Hub, HubId, Kind};
///
/// # fn main() -> unspool_core::Result<()> {
/// let id = HubId::parse("onnx-community/SmolLM2-135M-Instruct", None).expect("a Hub id");
/// let folder = Hub::from_env()?.fetch(&id, Some("q4"), Kind::Any)?;
/// println!("{}", folder.display());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Hub {
    pub(crate) endpoint: String,
    pub(crate) token: Option<Token>,
    pub(crate) cache: PathBuf,
    pub(crate) links: PathBuf,
    pub(crate) offline: bool,
    pub(crate) patience: Duration,
    pub(crate) progress: Option<OnDownload>,
    pub(crate) interrupted: Option<fn() -> bool>,
}

/// A secret that is not printed.
#[derive(Clone)]
pub(crate) struct Token(pub(crate) String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("...")
    }
}

impl Hub {
    /// The Hub at `endpoint`, for instance `https://huggingface.co`, whose models are kept in the folder `cache`.
    ///
    /// # Errors
    ///
    /// When `endpoint` is no http or https address.
    pub fn new(endpoint: &str, cache: impl Into<PathBuf>) -> Result<Self> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        if !(endpoint.starts_with("https://") || endpoint.starts_with("http://")) {
            let message =
                format!("HF_ENDPOINT is {endpoint:?}, expected an address that begins with https:// or http://");
            return Err(Error::invalid_input(message));
        }
        let cache = cache.into();
        let links = cache.join("unspool");
        let (token, progress, interrupted) = (None, None, None);
        Ok(Hub { endpoint, token, cache, links, offline: false, patience: PATIENCE, progress, interrupted })
    }

    /// What Python's library reads from the environment: `HF_ENDPOINT`, `HF_HUB_CACHE`, `HF_HOME`, `HF_TOKEN` (or the file
    /// that its login writes), `HF_HUB_OFFLINE`, `HF_HUB_ETAG_TIMEOUT`.
    ///
    /// # Errors
    ///
    /// When no home folder is known, or a variable has no usable value.
    pub fn from_env() -> Result<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).and_then(|value| value.into_string().ok());
        let home = match set("HF_HOME") {
            Some(home) => PathBuf::from(home),
            None => set("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(|| dirs::home_dir().map(|home| home.join(".cache")))
                .map(|cache| cache.join("huggingface"))
                .ok_or_else(|| Error::io("no home folder is known; set HF_HOME to a folder for models of the Hub"))?,
        };
        let cache = set("HF_HUB_CACHE").or_else(|| set("HUGGINGFACE_HUB_CACHE")).map(PathBuf::from);
        let mut hub = Hub::new(text("HF_ENDPOINT").as_deref().unwrap_or(ENDPOINT), cache.unwrap_or(home.join("hub")))?;
        hub.offline = text("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value));
        let stored = set("HF_TOKEN_PATH").map_or(home.join("token"), PathBuf::from);
        hub.token = match text("HF_TOKEN").or_else(|| text("HUGGING_FACE_HUB_TOKEN")) {
            Some(token) => Some(usable(token).ok_or_else(|| {
                Error::invalid_input("HF_TOKEN holds spaces or characters that no token of the Hub has; set it anew")
            })?),
            None => stored_token(&stored).and_then(usable),
        };
        if let Some(seconds) = text("HF_HUB_ETAG_TIMEOUT") {
            let wrong =
                || Error::invalid_input(format!("HF_HUB_ETAG_TIMEOUT is {seconds:?}, expected 1 to 3600 seconds"));
            let seconds =
                seconds.parse::<u64>().ok().filter(|seconds| (1..=3600).contains(seconds)).ok_or_else(wrong)?;
            hub.patience = Duration::from_secs(seconds);
        }
        Ok(hub)
    }

    /// The folder where graphs are laid out as plain files, in place of the links of the Hub's cache; `unspool` below the
    /// cache by default.
    #[must_use]
    pub fn links(mut self, folder: impl Into<PathBuf>) -> Self {
        self.links = folder.into();
        self
    }

    /// A token that opens private models; it is sent to the endpoint alone.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = usable(token.to_owned());
        self
    }

    /// How long the server may take to answer, or say nothing in the middle of a file; ten seconds by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Use only what was fetched before.
    #[must_use]
    pub fn offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Sets the progress callback.
    #[must_use]
    pub fn on_download(mut self, progress: Option<OnDownload>) -> Self {
        self.progress = progress;
        self
    }

    /// Asked after each piece of a file whether to stop; a later fetch goes on there.
    #[must_use]
    pub fn interrupted(mut self, interrupted: Option<fn() -> bool>) -> Self {
        self.interrupted = interrupted;
        self
    }

    /// Whether only what was fetched before is used.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// The folder where models are kept.
    pub fn cache(&self) -> &Path {
        &self.cache
    }
}

fn is_true(value: &str) -> bool {
    !matches!(value.to_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// The token that Python's login stored; what cannot be read is no token.
fn stored_token(path: &Path) -> Option<String> {
    file::read_text(path, MAX_TOKEN_BYTES).ok().flatten()
}

/// A token that can stand in a header.
fn usable(token: String) -> Option<Token> {
    let token = token.trim();
    (!token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Token(token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address() {
        assert!(Hub::new("file:///etc", "x").is_err());
        assert_eq!(Hub::new("https://mirror.example/", "x").unwrap().endpoint, "https://mirror.example");
    }

    #[test]
    fn a_token_is_one_word_and_never_printed() {
        let hub = Hub::new("https://h", "x").unwrap().token(" hf_secret\n");
        assert_eq!(hub.token.as_ref().unwrap().0, "hf_secret");
        assert!(!format!("{hub:?}").contains("hf_secret"));
        assert!(Hub::new("https://h", "x").unwrap().token("a\r\nHost: b").token.is_none());
    }
}
