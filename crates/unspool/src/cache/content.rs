//! Files by their content: SHA-256, remembered by path, size and time of change so that a second start reads nothing.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use unspool_core::{Error, Result};

/// Hashes that are remembered in one file of the cache folder.
#[derive(Debug)]
pub struct Contents {
    index: PathBuf,
    known: BTreeMap<String, Known>,
    changed: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
struct Known {
    size: u64,
    /// Nanoseconds since 1970.
    changed: u64,
    sha256: String,
}

/// A file changed so lately that the clock may not show a further change.
const FRESH: Duration = Duration::from_secs(2);

impl Contents {
    /// Reads what `cache` remembers; a broken or missing index is an empty one.
    pub fn open(cache: &Path) -> Self {
        let index = cache.join("content.json");
        let known = fs::read(&index).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Contents { index, known, changed: false }
    }

    /// The SHA-256 of `path` in hex.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn sha256(&mut self, path: &Path) -> Result<String> {
        let failed = |error| Error::io("this file could not be read").at(path.display()).because(error);
        let path = fs::canonicalize(path).map_err(failed)?;
        let mut file = File::open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let (size, changed) = (metadata.len(), nanoseconds(&metadata));
        let key = path.to_string_lossy().into_owned();
        if let Some(known) = self.known.get(&key)
            && known.size == size
            && Some(known.changed) == changed
        {
            return Ok(known.sha256.clone());
        }
        let sha256 = hash(&mut file).map_err(failed)?;
        if let Some(changed) = changed
            && metadata.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > FRESH))
        {
            self.known.insert(key, Known { size, changed, sha256: sha256.clone() });
            self.changed = true;
        }
        Ok(sha256)
    }

    /// Writes what was learnt. A failure costs only time at the next start and is no error.
    pub fn save(&mut self) {
        if !self.changed {
            return;
        }
        let Some(folder) = self.index.parent() else { return };
        let written = fs::create_dir_all(folder).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, &self.known)?;
            file.persist(&self.index).map_err(|error| error.error)?;
            Ok(())
        });
        self.changed = written.is_err();
    }
}

fn nanoseconds(metadata: &Metadata) -> Option<u64> {
    let since: Duration = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH).duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

fn hash(file: &mut File) -> std::io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        match buffer.get(..count) {
            Some(bytes) if !bytes.is_empty() => digest.update(bytes),
            _ => break,
        }
    }
    Ok(hex(&digest.finalize()))
}

/// `bytes` in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        let past = SystemTime::now() - Duration::from_secs(60);
        File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
    }

    #[test]
    fn hashes_the_content_and_remembers_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        old(&path, b"abc");
        let mut contents = Contents::open(folder.path());
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(contents.sha256(&path).unwrap(), expected);
        contents.save();
        let again = Contents::open(folder.path());
        assert_eq!(again.known.len(), 1);
    }

    #[test]
    fn sees_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        old(&path, b"abc");
        let mut contents = Contents::open(folder.path());
        let before = contents.sha256(&path).unwrap();
        fs::write(&path, b"abd").unwrap();
        assert_ne!(contents.sha256(&path).unwrap(), before);
    }

    #[test]
    fn a_broken_index_is_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("content.json"), "{").unwrap();
        assert!(Contents::open(folder.path()).known.is_empty());
    }
}
