//! Fetching a model: which files, in which order, and what stands in when the Hub does not answer.

use std::fs;
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use unspool_core::{Error, Result};

use crate::choice::{Choice, Kind, choose};
use crate::client::Client;
use crate::download::Repository;
use crate::hub::Hub;
use crate::id::HubId;
use crate::listing::{self, Listed, Listing};
use crate::space;
use crate::store::{Store, place};

impl Hub {
    /// Fetches what a generation with `dtype` needs and returns the folder, or the `.gguf` file, on this machine.
    ///
    /// Offline, or when the Hub does not answer, a copy that was fetched before is used.
    ///
    /// # Errors
    ///
    /// When the Hub cannot be reached and nothing was fetched before, the repository has no usable model, what the server
    /// sends is not what it announced, or the disk has no room for it.
    pub fn fetch(&self, id: &HubId, dtype: Option<&str>, kind: Kind) -> Result<PathBuf> {
        if self.offline {
            return self.fetched_before(id, dtype, kind).ok_or_else(|| {
                Error::network(
                    "HF_HUB_OFFLINE is set and this model was not fetched before; unset it, or give a local folder",
                )
                .at(id)
            });
        }
        let client = Client::new(self);
        let listing = match list_files(&client, id) {
            Ok(listing) => listing,
            Err(error) => return self.fetched_before(id, dtype, kind).ok_or_else(|| error.at(id)),
        };
        let names: Vec<String> = listing.files.iter().map(|file| file.name.clone()).collect();
        let choice = choose(&names, dtype, kind).map_err(|error| error.at(id))?;
        let store = Store::new(&self.cache, id);
        // The list names the commit; asking for it keeps all files of one version.
        let repository = Repository { hub: self, client: &client, store: &store, id, commit: &listing.commit };
        let listed = |name: &String| listing.files.iter().find(|file| file.name == *name);
        let missing: Vec<&Listed> =
            choice.files().iter().filter_map(listed).filter(|file| !repository.has(file)).collect();
        space::check(&self.cache, missing.iter().filter_map(|file| file.size)).map_err(|error| error.at(id))?;
        for listed in missing {
            repository.fetch(listed)?;
        }
        // So that the next start finds the revision without the network.
        store.note(id.revision(), &listing.commit)?;
        self.ready(id, &store.snapshot(&listing.commit), &choice)
    }

    /// The model of an earlier fetch, by this crate or by Python's library, when its files are there; asks no network.
    pub fn fetched_before(&self, id: &HubId, dtype: Option<&str>, kind: Kind) -> Option<PathBuf> {
        let store = Store::new(&self.cache, id);
        let folder = store.snapshot(&store.commit(id.revision())?);
        let mut files = Vec::new();
        list(&folder, &folder, &mut files, 0);
        choose(&files, dtype, kind).ok().and_then(|choice| self.ready(id, &folder, &choice).ok())
    }

    /// The model below `folder`, a folder of the Hub's cache.
    ///
    /// The cache holds symbolic links to files with other names. An engine that follows the link of a graph no longer finds
    /// the data file beside it, so a graph gets a folder of hard links of its own.
    fn ready(&self, id: &HubId, folder: &Path, choice: &Choice) -> Result<PathBuf> {
        if !choice.files().iter().any(|file| file.ends_with(".onnx")) {
            return Ok(choice.model_in(folder));
        }
        let commit = folder.file_name().unwrap_or_default().to_string_lossy();
        let target = self.links.join(format!("{}--{commit}", id.name().replace('/', "--")));
        for file in choice.files() {
            let to = target.join(file);
            link(&folder.join(file), &to).map_err(|error| {
                Error::io("the fetched file could not be put in place").at(to.display()).because(error)
            })?;
        }
        Ok(choice.model_in(&target))
    }
}

/// The files of the repository.
fn list_files(client: &Client<'_>, id: &HubId) -> Result<Listing> {
    let revision = utf8_percent_encode(id.revision(), NON_ALPHANUMERIC);
    // What is unreserved in an address may stay as it is.
    let revision = revision.to_string().replace("%2D", "-").replace("%2E", ".").replace("%5F", "_").replace("%7E", "~");
    listing::read(&client.text(&format!("/api/models/{}/revision/{revision}?blobs=true", id.name()))?)
}

/// Makes `to` the same file as `from`, or a copy of it where the file system has no hard links.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    let from = fs::canonicalize(from)?;
    // The files of a commit do not change.
    if fs::metadata(to).is_ok_and(|there| fs::metadata(&from).is_ok_and(|here| here.len() == there.len())) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
    place(to, |new| fs::hard_link(&from, new).or_else(|_| fs::copy(&from, new).map(drop)))
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
