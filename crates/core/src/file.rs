//! Reads files that a stranger may have made: regular files only, and never more bytes than allowed.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::{Error, Result};

/// Opens a regular file for reading, following links; `None` when there is no such file.
///
/// A named pipe, a device or a socket is refused before it is opened: opening one can wait for ever, and reading one may
/// have no end.
///
/// # Errors
///
/// When the path is not a regular file, or cannot be opened.
pub fn open(path: &Path) -> Result<Option<File>> {
    let failed = |error| Error::io("this file cannot be opened").at(path.display()).because(error);
    let kind = match std::fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !kind.is_file() {
        let found = if kind.is_dir() { "a folder" } else { "a pipe, a device or a socket" };
        return Err(Error::invalid_input(format!("this is {found}, expected a regular file")).at(path.display()));
    }
    File::open(path).map(Some).map_err(failed)
}

/// The bytes of a regular file of at most `limit` bytes; `None` when there is no such file.
///
/// # Errors
///
/// As [`open`], and when the file is larger than `limit` or cannot be read.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io("this file cannot be read").at(path.display()).because(error))?;
    if bytes.len() as u64 > limit {
        let message = format!("this file is larger than {limit} bytes, the most that is read of such a file");
        return Err(Error::invalid_input(message).at(path.display()));
    }
    Ok(Some(bytes))
}

/// The UTF-8 text of a regular file of at most `limit` bytes, without a byte order mark; `None` when there is no such
/// file.
///
/// # Errors
///
/// As [`read_bytes`], and when the text is not UTF-8.
///
/// ```
/// let folder = std::env::temp_dir();
/// let missing = folder.join("no such file.json");
/// assert_eq!(unspool_core::file::read_text(&missing, 1024)?, None);
/// assert!(unspool_core::file::read_text(&folder, 1024).unwrap_err().to_string().contains("a folder"));
/// # Ok::<(), unspool_core::Error>(())
/// ```
pub fn read_text(path: &Path, limit: u64) -> Result<Option<String>> {
    let Some(bytes) = read_bytes(path, limit)? else { return Ok(None) };
    if let Some(what) = mistaken(&bytes) {
        return Err(Error::invalid_model(what).at(path.display()));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| Error::invalid_input("this file is not UTF-8 text").at(path.display()).because(error))?;
    Ok(Some(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    }))
}

/// What a file is that was taken for a model, by its first bytes: a stand-in of Git LFS, or a page for people. The sentence
/// says what to do.
///
/// ```
/// let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
/// assert!(unspool_core::file::mistaken(pointer).unwrap().contains("git lfs pull"));
/// assert!(unspool_core::file::mistaken(b"<!DOCTYPE html><html>").unwrap().contains("HTML page"));
/// assert_eq!(unspool_core::file::mistaken(b"{}"), None);
/// ```
pub fn mistaken(start: &[u8]) -> Option<&'static str> {
    let start = start.get(..512).unwrap_or(start);
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let begins = |with: &[u8]| start.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    if begins(b"version https://git-lfs.github.com/") {
        return Some(
            "this is a pointer of Git LFS and not the file itself; run `git lfs pull` in its repository, or download the \
             file again",
        );
    }
    if begins(b"<!doctype html") || begins(b"<html") {
        return Some(
            "this is an HTML page and not the file itself; download the file again, logged in if its page asks for it",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_up_to_the_limit() {
        let path = std::env::temp_dir().join(format!("unspool-file-{}", std::process::id()));
        std::fs::write(&path, "\u{feff}[1, 2, 3]").unwrap();
        assert_eq!(read_text(&path, 12).unwrap().unwrap(), "[1, 2, 3]");
        assert!(read_text(&path, 11).unwrap_err().to_string().contains("larger than 11 bytes"));
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read_text(&path, 12).unwrap_err().to_string().contains("not UTF-8"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn refuses_what_is_no_file_of_a_model() {
        for page in ["<!DOCTYPE html><html>", "\u{feff}\n <HTML lang=\"en\">", "<html>"] {
            assert!(mistaken(page.as_bytes()).unwrap().contains("HTML page"), "{page}");
        }
        for fine in ["", "<", "<s>{{ messages }}</s>", "version 2", "{}"] {
            assert_eq!(mistaken(fine.as_bytes()), None, "{fine}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn refuses_what_is_no_regular_file() {
        let error = read_bytes(Path::new("/dev/zero"), 8).unwrap_err().to_string();
        assert!(error.contains("expected a regular file"), "{error}");
    }
}
