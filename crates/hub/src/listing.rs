//! What the Hub says of a repository.

use serde::Deserialize;
use unspool_core::{Error, Result, json};

use crate::names::{is_hash, is_plain};

/// Most files of a repository that are looked at.
const MOST_FILES: usize = 100_000;

/// The files of a repository at one commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// The commit, 40 or 64 hexadecimal digits.
    pub commit: String,
    /// Files with names that may become paths; others are passed over.
    pub files: Vec<Listed>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name in the repository.
    pub name: String,
    /// Its bytes, when the Hub says.
    pub size: Option<u64>,
    /// Its content, when the Hub says: a SHA-256 of 64 digits, or the SHA-1 of git's blob, of 40.
    pub hash: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    #[serde(rename = "blobId")]
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
    size: Option<u64>,
}

/// Reads the answer to `/api/models/org/name/revision/main?blobs=true`.
///
/// # Errors
///
/// When it is not such an answer, or its commit is no commit.
pub fn read(text: &str) -> Result<Listing> {
    let answer: Answer = json::from_str(text).map_err(|error| {
        Error::network(match unspool_core::file::mistaken(text.as_bytes()) {
            Some(_) => {
                "got an HTML page in place of the Hub's list of files; perhaps this network wants you to log in first"
            }
            None => "the answer is not the Hub's list of files",
        })
        .because(error)
    })?;
    if !is_hash(&answer.sha) {
        let sha: String = answer.sha.chars().take(80).collect();
        return Err(Error::network(format!("the Hub names the commit {sha:?}, expected 40 hexadecimal digits")));
    }
    if answer.siblings.len() > MOST_FILES {
        let message = format!("the repository has {} files, expected at most {MOST_FILES}", answer.siblings.len());
        return Err(Error::network(message));
    }
    let files = answer.siblings.into_iter().filter(|sibling| is_plain(&sibling.rfilename)).map(Sibling::into).collect();
    Ok(Listing { commit: answer.sha, files })
}

impl From<Sibling> for Listed {
    fn from(sibling: Sibling) -> Self {
        // A file of LFS has the content that is fetched under `lfs`; its blob is a pointer.
        let (size, hash) = match sibling.lfs {
            Some(lfs) => (lfs.size.or(sibling.size), lfs.sha256),
            None => (sibling.size, sibling.blob_id),
        };
        Listed { name: sibling.rfilename, size, hash: hash.filter(|hash| is_hash(hash)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes_and_hashes() {
        let (sha, blob, lfs) = ("a".repeat(40), "b".repeat(40), "c".repeat(64));
        let text = format!(
            r#"{{"sha": "{sha}", "siblings": [
                {{"rfilename": "config.json", "size": 5, "blobId": "{blob}"}},
                {{"rfilename": "m.onnx", "size": 9, "blobId": "{blob}", "lfs": {{"sha256": "{lfs}", "size": 9, "pointerSize": 1}}}},
                {{"rfilename": "../up.json"}}, {{"rfilename": "x", "blobId": "../../climbed"}}]}}"#
        );
        let listing = read(&text).unwrap();
        let hashes: Vec<_> =
            listing.files.iter().map(|file| (file.name.as_str(), file.size, file.hash.clone())).collect();
        assert_eq!(hashes, [("config.json", Some(5), Some(blob)), ("m.onnx", Some(9), Some(lfs)), ("x", None, None)]);
    }

    #[test]
    fn refuses_what_is_no_listing() {
        let html = read("<html>please log in to this network</html>").unwrap_err().to_string();
        assert!(html.contains("HTML page") && html.contains("log in"), "{html}");
        let climbs = read(r#"{"sha": "../../../../../../climbed", "siblings": []}"#).unwrap_err().to_string();
        assert!(climbs.contains("expected 40 hexadecimal digits"), "{climbs}");
        assert!(read(r#"{"sha": 5}"#).is_err());
    }
}
