//! Models of the Hugging Face Hub, kept in the cache that Python's library uses too.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use hf_hub::api::RepoInfo;
use hf_hub::api::sync::{ApiBuilder, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use unspool::{Error, Result, cache_folder};

use super::choice::{Choice, Kind, choose};

/// How long the Hub may take to say which files a repository has.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A model by its name on the Hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubId {
    id: String,
    revision: String,
}

impl HubId {
    /// `org/name` at `revision` (a branch, tag or commit; `main` by default); `None` when `id` has another form.
    pub fn parse(id: &str, revision: Option<&str>) -> Option<Self> {
        let word = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-', '~'])
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let (org, name) = id.split_once('/')?;
        let revision = revision.unwrap_or("main");
        let plain = revision.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        (word(org) && word(name) && plain).then(|| HubId { id: id.to_string(), revision: revision.to_string() })
    }

    fn repo(&self) -> Repo {
        Repo::with_revision(self.id.clone(), RepoType::Model, self.revision.clone())
    }

    fn place(&self) -> String {
        format!("{} at {}", self.id, self.revision)
    }
}

/// Fetches what a generation with `dtype` needs and returns the folder, or the `.gguf` file, on this machine.
///
/// With `HF_HUB_OFFLINE` set, or when the Hub does not answer, a copy that was fetched before is used.
///
/// # Errors
///
/// When the Hub cannot be reached and nothing was fetched before, or the repository has no usable model.
pub fn fetch(id: &HubId, dtype: Option<&str>, kind: Kind) -> Result<PathBuf> {
    if offline() {
        return fetched_before(id, dtype, kind).ok_or_else(|| {
            Error::network(
                "HF_HUB_OFFLINE is set and this model was not fetched before; unset it, or give a local folder",
            )
            .at(id.place())
        });
    }
    let info = match info(id) {
        Ok(info) => info,
        Err(error) => return fetched_before(id, dtype, kind).ok_or(error),
    };
    let files: Vec<String> =
        info.siblings.into_iter().map(|sibling| sibling.rfilename).filter(|name| is_plain(name)).collect();
    let choice = choose(&files, dtype, kind).map_err(|error| error.at(id.place()))?;
    // The answer names the commit; asking for it keeps all files of one version.
    let commit = if is_plain(&info.sha) && !info.sha.is_empty() { info.sha } else { id.revision.clone() };
    let pinned = api(Repo::with_revision(id.id.clone(), RepoType::Model, commit.clone()))?;
    let mut first = None;
    for file in choice.files() {
        let path = pinned.get(file).map_err(|error| {
            Error::network(format!("{file} could not be fetched; run the same command again to resume"))
                .at(id.place())
                .because(error)
        })?;
        first.get_or_insert(folder_above(&path, file));
    }
    // So that the next start finds the branch without the network.
    let _ = Cache::from_env().repo(id.repo()).create_ref(&commit);
    let folder = first.ok_or_else(|| Error::invalid_model("the repository is empty").at(id.place()))?;
    ready(id, &folder, &choice)
}

/// The model below `folder`, a folder of the Hub's cache.
///
/// The cache holds symbolic links to files with other names. An engine that follows the link of a graph no longer finds
/// the data file beside it, so a graph gets a folder of hard links of its own.
fn ready(id: &HubId, folder: &Path, choice: &Choice) -> Result<PathBuf> {
    if !choice.files().iter().any(|file| file.ends_with(".onnx")) {
        return Ok(choice.model_in(folder));
    }
    let commit = folder.file_name().unwrap_or_default().to_string_lossy();
    let target = cache_folder()?.join("hub").join(format!("{}--{commit}", id.id.replace('/', "--")));
    for file in choice.files() {
        let to = target.join(file);
        link(&folder.join(file), &to)
            .map_err(|error| Error::io("the fetched file could not be put in place").at(to.display()).because(error))?;
    }
    Ok(choice.model_in(&target))
}

/// Makes `to` the same file as `from`, or a copy of it where the file system has no hard links.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    let from = fs::canonicalize(from)?;
    // The files of a commit do not change.
    if fs::metadata(to).is_ok_and(|there| fs::metadata(&from).is_ok_and(|here| here.len() == there.len())) {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let new = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(folder)?;
    let part = new.path().join("file");
    if fs::hard_link(&from, &part).is_err() {
        fs::copy(&from, &part)?;
    }
    fs::rename(&part, to)
}

fn offline() -> bool {
    std::env::var("HF_HUB_OFFLINE")
        .is_ok_and(|value| !matches!(value.to_lowercase().as_str(), "" | "0" | "false" | "no"))
}

/// A relative path that stays below the folder it is joined to.
fn is_plain(name: &str) -> bool {
    !name.contains('\\') && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

fn folder_above(path: &Path, file: &str) -> PathBuf {
    let depth = Path::new(file).components().count();
    path.ancestors().nth(depth).unwrap_or(path).to_path_buf()
}

fn api(repo: Repo) -> Result<ApiRepo> {
    let progress = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let mut builder = ApiBuilder::from_env().with_progress(progress).with_retries(3);
    if let Ok(token) = std::env::var("HF_TOKEN") {
        builder = builder.with_token(Some(token));
    }
    let api = builder.build().map_err(|error| Error::network("the Hub client did not start").because(error))?;
    Ok(api.repo(repo))
}

/// The files of the repository. The client has no timeout of its own, so the question runs beside a clock.
fn info(id: &HubId) -> Result<RepoInfo> {
    let repo = api(id.repo())?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = send.send(repo.info());
    });
    match receive.recv_timeout(ANSWER_WITHIN) {
        Ok(Ok(info)) => Ok(info),
        Ok(Err(error)) => {
            let text = error.to_string();
            let message = if text.contains("404") || text.contains("401") {
                "the Hub has no such model, or it is private (set HF_TOKEN)"
            } else {
                "the Hub could not be reached"
            };
            Err(Error::network(message).at(id.place()).because(error))
        }
        Err(_) => {
            Err(Error::network(format!("the Hub did not answer within {} s", ANSWER_WITHIN.as_secs())).at(id.place()))
        }
    }
}

/// The model of an earlier fetch, when its files are there; asks no network.
pub fn fetched_before(id: &HubId, dtype: Option<&str>, kind: Kind) -> Option<PathBuf> {
    let cached = Cache::from_env().repo(id.repo());
    let folder = ["config.json", "generation_config.json", "tokenizer.json"]
        .iter()
        .find_map(|file| cached.get(file))
        .and_then(|path| path.parent().map(Path::to_path_buf))
        .or_else(|| snapshot_of(&cached))?;
    let mut files = Vec::new();
    list(&folder, &folder, &mut files, 0);
    choose(&files, dtype, kind).ok().and_then(|choice| ready(id, &folder, &choice).ok())
}

/// The snapshot folder of a repository that has none of the usual files (a repository of GGUF files only).
fn snapshot_of(cached: &hf_hub::CacheRepo) -> Option<PathBuf> {
    // An empty file name is the snapshot folder itself.
    cached.get("").filter(|path| path.is_dir())
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>, depth: usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && depth < 3 {
            list(root, &path, files, depth + 1);
        } else if let Ok(name) = path.strip_prefix(root) {
            files.push(name.to_string_lossy().replace('\\', "/"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_organisation_and_a_name() {
        let id = HubId::parse("org-1/Some.Model_2", Some("v1")).unwrap();
        assert_eq!((id.id.as_str(), id.revision.as_str()), ("org-1/Some.Model_2", "v1"));
        assert_eq!(HubId::parse("org/name", None).unwrap().revision, "main");
    }

    #[test]
    fn takes_paths_for_paths() {
        for path in ["name", "./org/name", "/org/name", "a/b/c", "../name", "org/", "/name", "~/name", "org/.."] {
            assert_eq!(HubId::parse(path, None), None, "{path}");
        }
        assert_eq!(HubId::parse("org/name", Some("../x")), None);
    }

    #[test]
    fn a_file_name_cannot_leave_the_cache() {
        assert!(is_plain("onnx/model.onnx"));
        for name in ["../x", "/etc/passwd", "a/../../b", "a\\..\\b"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
