//! The hidden folder that an import is written in, and what becomes of it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unspool_core::{Error, Result};

use crate::lock::FileLock;
use crate::manifest::Manifest;

/// How the folder's name begins.
const PREFIX: &str = ".unspool-import-";
/// The file inside it that the writing process holds.
const LOCK: &str = "lock";
/// A folder without that file is one whose process was killed before it took the lock, once it is this old.
const UNLOCKED: Duration = Duration::from_secs(60);

/// A folder under construction, beside the place where it belongs. It is removed when dropped; when the process is killed,
/// the next import finds that nobody holds its lock and removes it.
pub(crate) struct Staging {
    // Dropped first: some systems do not remove files that are open.
    lock: FileLock,
    folder: tempfile::TempDir,
}

impl Staging {
    /// Removes what killed imports left in `parent`, and begins a new folder there.
    pub(crate) fn begin(parent: &Path) -> Result<Self> {
        let failed = |error| {
            Error::io("cannot create a temporary folder beside the folder to write").at(parent.display()).because(error)
        };
        fs::create_dir_all(parent)
            .map_err(|error| Error::io("cannot create the folder to write into").at(parent.display()).because(error))?;
        for left in leftovers(parent) {
            // What cannot be removed is not in the way.
            let _ = remove_leftover(&left);
        }
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent).map_err(failed)?;
            // Nothing when another process took the folder for a leftover in this moment.
            match FileLock::try_take(&folder.path().join(LOCK)) {
                Ok(Some(lock)) => {
                    fs::create_dir(folder.path().join("model")).map_err(failed)?;
                    return Ok(Staging { lock, folder });
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The folder to write the model into.
    pub(crate) fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    /// Hands everything to the disk, the list of files last, and moves the folder to `out`, which does not exist or is
    /// empty.
    pub(crate) fn publish(self, out: &Path) -> Result<()> {
        let model = self.model();
        let failed =
            |error| Error::io("cannot move the finished folder into its place").at(out.display()).because(error);
        let manifest = Manifest::of(&model)?;
        for name in manifest.files.keys() {
            sync(&model.join(name))?;
        }
        manifest.write(&model)?;
        sync(&model.join(crate::manifest::MANIFEST))?;
        for folder in [model.join("onnx"), model.clone()] {
            sync_folder(&folder)?;
        }
        if out.is_dir() {
            fs::remove_dir(out).map_err(failed)?;
        }
        fs::rename(&model, out).map_err(failed)?;
        let Staging { lock, folder } = self;
        drop(lock);
        drop(folder);
        sync_folder(&parent_of(out))
    }
}

/// The folder that `path` is in.
pub(crate) fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn sync(path: &Path) -> Result<()> {
    // Windows flushes only what may be written to.
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.sync_all())
        .map_err(|error| Error::io("cannot hand the file to the disk; is it full?").at(path.display()).because(error))
}

/// Makes names in a folder last; only Unix opens folders as files.
fn sync_folder(path: &Path) -> Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(path).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => {
            other.map_err(|error| Error::io("cannot hand the folder to the disk").at(path.display()).because(error))
        }
    }
}

/// The folders in `parent` that killed imports left: no living process holds their locks.
pub fn leftovers(parent: &Path) -> Vec<PathBuf> {
    let is_left = |entry: &fs::DirEntry| {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            return false;
        }
        let lock = entry.path().join(LOCK);
        if lock.exists() {
            return !FileLock::is_held(&lock);
        }
        entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(is_old)
    };
    fs::read_dir(parent).into_iter().flatten().flatten().filter(is_left).map(|entry| entry.path()).collect()
}

/// Removes a folder of [`leftovers`]; false when a process holds it by now.
///
/// # Errors
///
/// When something in it cannot be removed.
pub fn remove_leftover(path: &Path) -> Result<bool> {
    let failed = |error| Error::io("cannot remove what an earlier import left").at(path.display()).because(error);
    let lock = path.join(LOCK);
    // Held while the rest goes, so that nobody else takes the folder.
    let held = match FileLock::try_take(&lock) {
        Ok(Some(held)) => held,
        Ok(None) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(failed(error)),
    };
    for entry in fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path == lock {
            continue;
        }
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.map_err(failed)?;
    }
    drop(held);
    fs::remove_dir(path).map_err(failed)?;
    Ok(true)
}

fn is_old(changed: std::time::SystemTime) -> bool {
    changed.elapsed().is_ok_and(|age| age > UNLOCKED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_what_nobody_holds_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let living = Staging::begin(parent.path()).unwrap();
        for folder in [".unspool-import-killed", ".unspool-import-new", ".unspool-import-old", "other"] {
            fs::create_dir_all(at(folder).join("model/onnx")).unwrap();
            fs::write(at(folder).join("model/onnx/model.onnx.data"), "half").unwrap();
        }
        fs::write(at(".unspool-import-killed/lock"), "").unwrap();
        let past = std::time::SystemTime::now() - 2 * UNLOCKED;
        File::open(at(".unspool-import-old")).unwrap().set_modified(past).unwrap();

        drop(Staging::begin(parent.path()).unwrap());
        let mut names: Vec<_> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let own = living.folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = vec![own, ".unspool-import-new".to_owned(), "other".to_owned()];
        expected.sort();
        assert_eq!(names, expected);
        assert!(living.model().is_dir());
        drop(living);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
    }

    #[test]
    fn publishes_a_folder_with_its_list() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("out");
        let staging = Staging::begin(parent.path()).unwrap();
        fs::create_dir(staging.model().join("onnx")).unwrap();
        fs::write(staging.model().join("onnx/model.onnx"), "graph").unwrap();
        staging.publish(&out).unwrap();
        assert_eq!(Manifest::check(&out).unwrap().files, [("onnx/model.onnx".to_owned(), 5)].into());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
