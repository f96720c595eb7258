//! One file of a repository, from the server into the cache.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sha2::{Digest, Sha256};
use unspool_core::{Error, Result};

use crate::client::{Answer, Client};
use crate::fault::{Fault, retried};
use crate::hub::Hub;
use crate::id::HubId;
use crate::listing::Listed;
use crate::names::{etag, is_hash};
use crate::store::Store;

/// The most bytes of a file whose size nobody announced.
const MOST_UNANNOUNCED: u64 = 1 << 30;

/// What has another meaning in an address than in a file's name.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}');

/// One repository at one commit.
pub struct Repository<'a> {
    pub hub: &'a Hub,
    pub client: &'a Client<'a>,
    pub store: &'a Store,
    pub id: &'a HubId,
    pub commit: &'a str,
}

impl Repository<'_> {
    /// Whether `listed` is in the cache.
    pub fn has(&self, listed: &Listed) -> bool {
        whole(&self.store.snapshot(self.commit).join(&listed.name), listed.size)
    }

    /// Brings `listed` into the cache, unless it is there, and returns its path in the snapshot.
    ///
    /// # Errors
    ///
    /// When it cannot be fetched or written, or has another size or content than was announced.
    pub fn fetch(&self, listed: &Listed) -> Result<PathBuf> {
        if self.has(listed) {
            return Ok(self.store.snapshot(self.commit).join(&listed.name));
        }
        let fetched = match &listed.hash {
            Some(hash) => {
                let _lock = self.store.lock(hash)?;
                // Another process may have brought it while this one waited.
                if whole(&self.store.blob(hash), listed.size) { Ok(hash.clone()) } else { self.resuming(listed, hash) }
            }
            None => self.at_once(listed),
        };
        let hash = fetched.map_err(|error| error.at(format!("{} of {}", listed.name, self.id)))?;
        self.store.link(self.commit, &listed.name, &hash)
    }

    fn address(&self, name: &str) -> String {
        format!("/{}/resolve/{}/{}", self.id.name(), self.commit, utf8_percent_encode(name, ESCAPED))
    }

    /// A file whose hash is known: what is there of it stays after a failure, and the next try goes on behind it.
    fn resuming(&self, listed: &Listed, hash: &str) -> Result<String> {
        let part = self.store.blobs()?.join(format!("{hash}.incomplete"));
        retried(|| {
            let have = fs::metadata(&part).map_or(0, |metadata| metadata.len());
            self.append(listed, &part, have)?;
            check(&part, hash, &listed.name).map_err(|error| Fault::new(error, have > 0))
        })?;
        put(&part, &self.store.blob(hash))?;
        Ok(hash.to_owned())
    }

    /// Adds to `part`, which has `have` bytes, what it lacks. What turns out to be the beginning of another file is thrown
    /// away, and another try begins anew.
    fn append(&self, listed: &Listed, part: &Path, have: u64) -> Result<(), Fault> {
        if listed.size.is_some_and(|size| have > size) {
            discard(part)?;
            return self.append(listed, part, 0);
        }
        if have > 0 && listed.size == Some(have) {
            return Ok(());
        }
        let thrown_away = |error: Error| {
            let discarded = discard(part);
            Fault::new(discarded.err().unwrap_or(error), have > 0)
        };
        let mut answer = self.client.get(&self.address(&listed.name), Some(have).filter(|&have| have > 0))?;
        let goes_on = answer.status == 206 && answer.range.is_some_and(|(first, _)| first == have);
        if answer.status == 206 && !goes_on {
            let message = "the server sends another part of the file than the one asked for";
            return Err(thrown_away(Error::network(message)));
        }
        let done = if goes_on { have } else { 0 };
        let total = announced(listed, &answer, done).map_err(thrown_away)?;
        let file = File::options().create(true).truncate(!goes_on).append(goes_on).write(true).open(part);
        let mut file = file.map_err(|error| unwritten(part, error))?;
        self.copy(&mut answer, (&mut file, part), &listed.name, done, total)
    }

    /// A file whose hash nobody told: named by the hash of what came, and gone after a failure.
    fn at_once(&self, listed: &Listed) -> Result<String> {
        let blobs = self.store.blobs()?;
        let (part, said) = retried(|| {
            let part = tempfile::Builder::new().suffix(".incomplete").tempfile_in(&blobs);
            let mut part = part.map_err(|error| unwritten(&blobs, error))?;
            let mut answer = self.client.get(&self.address(&listed.name), None)?;
            if answer.status != 200 && answer.range.is_none_or(|(first, _)| first != 0) {
                return Err(Error::network("the server sends a part of the file, expected the whole").into());
            }
            let total = announced(listed, &answer, 0)?;
            self.copy(&mut answer, (part.as_file_mut(), &blobs), &listed.name, 0, total)?;
            Ok((part, answer.etag))
        })?;
        let said = said.as_deref().map(etag).filter(|said| is_hash(said));
        // The name that Python's library would give, when it is the content's own.
        let hash = match said {
            Some(said) if hash_of(part.path(), said.len())? == said => said.to_owned(),
            _ => hash_of(part.path(), 64)?,
        };
        let part = part.into_temp_path();
        put(&part, &self.store.blob(&hash))?;
        // It has another name now.
        let _ = part.close();
        Ok(hash)
    }

    /// Writes the body behind the `done` bytes of a file that are there; the path is for errors.
    fn copy(
        &self,
        answer: &mut Answer,
        (file, path): (&mut File, &Path),
        name: &str,
        mut done: u64,
        total: Option<u64>,
    ) -> Result<(), Fault> {
        let tell = |done, total| {
            if let Some(progress) = &self.hub.progress {
                progress.call(name, done, total);
            }
        };
        tell(done, total);
        while let Some(piece) = answer.next()? {
            done += piece.len() as u64;
            let most = total.unwrap_or(MOST_UNANNOUNCED);
            if done > most {
                let what = if total.is_some() { "announced" } else { "taken of a file without an announced size" };
                return Err(Error::network(format!("the server sends more than the {most} bytes {what}")).into());
            }
            file.write_all(&piece).map_err(|error| unwritten(path, error))?;
            tell(done, total);
            if self.hub.interrupted.is_some_and(|interrupted| interrupted()) {
                return Err(Error::network("the download was stopped; run the same command again").into());
            }
        }
        if let Some(total) = total.filter(|&total| total != done) {
            let message = format!("the file ended after {done} of {total} bytes; run the same command again to go on");
            return Err(Fault::passing(Error::network(message)));
        }
        if total.is_none() {
            tell(done, Some(done));
        }
        file.sync_all().map_err(|error| unwritten(path, error).into())
    }
}

fn unwritten(path: &Path, error: std::io::Error) -> Error {
    Error::io("this file could not be written").at(path.display()).because(error)
}

/// The bytes of the whole file by all that was said of it.
fn announced(listed: &Listed, answer: &Answer, done: u64) -> Result<Option<u64>> {
    let by_answer = match answer.range {
        Some((_, total)) if answer.status == 206 => total,
        _ => answer.length.and_then(|length| length.checked_add(done)),
    };
    match (listed.size, by_answer) {
        (Some(listed), Some(by_answer)) if listed != by_answer => {
            Err(Error::network(format!("the list of files says {listed} bytes, the answer {by_answer}")))
        }
        (listed, by_answer) => Ok(listed.or(by_answer)),
    }
}

/// Whether there is a regular file at `path`, of `size` bytes when that is known.
fn whole(path: &Path, size: Option<u64>) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && size.is_none_or(|size| metadata.len() == size))
}

fn discard(part: &Path) -> Result<()> {
    match fs::remove_file(part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("this file could not be removed").at(part.display()).because(error))
        }
        _ => Ok(()),
    }
}

fn put(part: &Path, blob: &Path) -> Result<()> {
    fs::rename(part, blob)
        .map_err(|error| Error::io("this file could not be put in place").at(blob.display()).because(error))
}

/// Refuses content with another hash, and removes it.
fn check(part: &Path, hash: &str, name: &str) -> Result<()> {
    let got = hash_of(part, hash.len())?;
    if got == hash {
        return Ok(());
    }
    discard(part)?;
    Err(Error::network(format!(
        "{name} arrived with another content than the Hub announced (hash {got}, expected {hash}); try again, and do not use \
         this connection if it happens again"
    )))
}

/// The hash of a file in hexadecimal digits: SHA-256 when 64 are wanted, else the SHA-1 of git's blob of it.
fn hash_of(path: &Path, digits: usize) -> Result<String> {
    let failed = |error| Error::io("this file could not be read").at(path.display()).because(error);
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut sha256 = Sha256::new();
    let mut sha1 = sha1::Sha1::new();
    sha1.update(format!("blob {size}\0"));
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        match buffer.get(..count).filter(|bytes| !bytes.is_empty()) {
            Some(bytes) if digits == 64 => sha256.update(bytes),
            Some(bytes) => sha1.update(bytes),
            None => break,
        }
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(if digits == 64 { hex(&sha256.finalize()) } else { hex(&sha1.finalize()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_git_and_the_hub_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "hello\n").unwrap();
        assert_eq!(hash_of(&path, 40).unwrap(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(hash_of(&path, 64).unwrap(), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
    }
}
