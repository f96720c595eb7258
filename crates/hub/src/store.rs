//! The cache as Python's `huggingface_hub` lays it out: `models--org--name/` with `blobs/` (files by their hash), `refs/`
//! (revisions) and `snapshots/COMMIT/` (links into `blobs/` by the files' names).

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use unspool_core::{Error, Result, file};

use crate::id::HubId;
use crate::names::is_hash;

/// The folder of one repository.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    locks: PathBuf,
}

impl Store {
    /// The folder of `id` below `cache`.
    pub fn new(cache: &Path, id: &HubId) -> Self {
        let name = format!("models--{}", id.name().replace('/', "--"));
        Store { folder: cache.join(&name), locks: cache.join(".locks").join(name) }
    }

    /// The folder of a commit.
    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// The file with this hash.
    pub fn blob(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(hash)
    }

    /// The folder of the files, made when it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn blobs(&self) -> Result<PathBuf> {
        let folder = self.folder.join("blobs");
        create(&folder)?;
        Ok(folder)
    }

    /// Waits until no other process fetches the file with this hash; as Python's library does, which honours the same lock.
    ///
    /// # Errors
    ///
    /// When the lock cannot be made.
    pub fn lock(&self, hash: &str) -> Result<File> {
        create(&self.locks)?;
        let path = self.locks.join(format!("{hash}.lock"));
        let failed = |error| Error::io("this lock could not be taken").at(path.display()).because(error);
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match file.lock() {
            // A file system without locks: two processes at once may both fetch the file.
            Err(error) if error.kind() != ErrorKind::Unsupported => Err(failed(error)),
            _ => Ok(file),
        }
    }

    /// The commit that a revision stands for, as it was when it was last fetched.
    pub fn commit(&self, revision: &str) -> Option<String> {
        let known = file::read_text(&self.folder.join("refs").join(revision), 128).ok().flatten();
        let commit = known.map_or_else(|| revision.to_owned(), |known| known.trim().to_owned());
        is_hash(&commit).then_some(commit)
    }

    /// Notes that `revision` stands for `commit`.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn note(&self, revision: &str, commit: &str) -> Result<()> {
        if revision == commit {
            return Ok(());
        }
        let path = self.folder.join("refs").join(revision);
        let folder = path.parent().unwrap_or(&self.folder);
        create(folder)?;
        let failed = |error| Error::io("this revision could not be noted").at(path.display()).because(error);
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        new.write_all(commit.as_bytes()).map_err(failed)?;
        new.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Lets `name` at `commit` be the file with this hash.
    ///
    /// # Errors
    ///
    /// When the link cannot be made.
    pub fn link(&self, commit: &str, name: &str, hash: &str) -> Result<PathBuf> {
        let path = self.snapshot(commit).join(name);
        create(path.parent().unwrap_or(&self.folder))?;
        let failed = |error| Error::io("this file could not be put in place").at(path.display()).because(error);
        // From snapshots/COMMIT/a/b up to the folder of the repository.
        let up = "../".repeat(2 + name.matches('/').count());
        place(&path, |new| {
            symlink(Path::new(&format!("{up}blobs/{hash}")), new)
                .or_else(|_| fs::hard_link(self.blob(hash), new))
                .or_else(|_| fs::copy(self.blob(hash), new).map(drop))
        })
        .map_err(failed)?;
        Ok(path)
    }
}

/// Puts the file that `make` makes at the path it is given to `path`, at once. In place of a file that is there, so that no
/// other process sees none, and never through a link.
pub fn place(path: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let new = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(folder)?;
    let part = new.path().join("file");
    make(&part)?;
    fs::rename(&part, path)
}

/// Makes `folder` with those above it.
pub fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|error| Error::io("this folder could not be made").at(folder.display()).because(error))
}

#[cfg(unix)]
fn symlink(to: &Path, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, path)
}

#[cfg(not(unix))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    // Needs rights elsewhere that users rarely have.
    Err(std::io::Error::from(ErrorKind::Unsupported))
}
