//! Files that a living process holds: the operating system frees them when the process ends, however it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// An exclusive lock on a file of its own; dropping it removes the file.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    // Locked as long as it is open.
    _file: File,
}

impl FileLock {
    /// Takes the lock at `path`, creating the file; `None` while another process, or another `FileLock`, holds it.
    ///
    /// # Errors
    ///
    /// When the file cannot be created, or its file system has no locks.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Between opening and locking, the holder before may have removed the file: then this lock is on nothing that
        // others see.
        Ok(is_at(&file, path).then(|| FileLock { path: path.to_owned(), _file: file }))
    }

    /// Whether someone holds the lock at `path`; nobody does when there is no such file.
    pub fn is_held(path: &Path) -> bool {
        File::options()
            .write(true)
            .open(path)
            .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Removed while it is still locked; a file that stays is taken by the next lock.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_at_a_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = FileLock::try_take(&path).unwrap().unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none() && FileLock::is_held(&path));
        drop(held);
        assert!(!path.exists());
        assert!(!FileLock::is_held(&path));
        fs::write(&path, "left behind").unwrap();
        assert!(!FileLock::is_held(&path) && path.exists());
        drop(FileLock::try_take(&path).unwrap().unwrap());
        assert!(!path.exists());
    }
}
