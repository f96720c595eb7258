//! The list of an import's files, written last: what matches it was written whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use unspool_core::{Error, Result, file, json};

/// Name of the list inside the folder that it describes.
pub const MANIFEST: &str = "import.json";

/// What writes folders of this kind; raised when the same checkpoint is written differently.
const WRITER: &str = concat!(env!("CARGO_PKG_VERSION"), "-8");

/// Bytes of the largest list that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The files of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version that wrote the folder.
    pub writer: String,
    /// Bytes by name, relative to the folder, with `/` between the parts.
    pub files: BTreeMap<String, u64>,
}

impl Manifest {
    /// Lists the files in `folder`, which has none yet.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        list(folder, "", &mut files).map_err(|error| {
            Error::io("cannot list the files that were written").at(folder.display()).because(error)
        })?;
        Ok(Manifest { writer: WRITER.to_owned(), files })
    }

    /// Writes the list into `folder`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(MANIFEST);
        let failed = |error: std::io::Error| Error::io("cannot write the file").at(path.display()).because(error);
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        fs::write(&path, text + "\n").map_err(failed)
    }

    /// Holds the folder against its list.
    ///
    /// # Errors
    ///
    /// What is wrong with the folder, in words that complete "it is imported again, because": no list, one of another
    /// version, a file that is missing or of another size.
    pub fn check(folder: &Path) -> std::result::Result<Self, String> {
        let manifest = match file::read_text(&folder.join(MANIFEST), MAX_BYTES) {
            Ok(Some(text)) => json::from_str::<Manifest>(&text).map_err(|_| format!("{MANIFEST} is damaged"))?,
            Ok(None) => return Err(format!("{MANIFEST} is missing")),
            Err(error) => return Err(error.to_string()),
        };
        if manifest.writer != WRITER {
            return Err(format!("version {} wrote it, this is {WRITER}", manifest.writer));
        }
        manifest.check_files(folder, |_| true)?;
        Ok(manifest)
    }

    /// Holds the graphs and weights of a folder against its list. A folder without a list, or with another version's, is not
    /// judged, and neither are the other files: they may have been edited.
    ///
    /// # Errors
    ///
    /// When a graph or its weights are missing or cut.
    pub fn check_graphs(folder: &Path) -> Result<()> {
        let Ok(Some(text)) = file::read_text(&folder.join(MANIFEST), MAX_BYTES) else { return Ok(()) };
        let Ok(manifest) = json::from_str::<Manifest>(&text) else { return Ok(()) };
        manifest.check_files(folder, |name| name.starts_with("onnx/")).map_err(|why| {
            Error::invalid_model(format!("this import is damaged: {why}; import the checkpoint again"))
                .at(folder.display())
        })
    }

    /// Holds the files that are `wanted` against their sizes.
    fn check_files(&self, folder: &Path, wanted: impl Fn(&str) -> bool) -> std::result::Result<(), String> {
        for (name, expected) in self.files.iter().filter(|(name, _)| wanted(name)) {
            if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(format!("{MANIFEST} is damaged"));
            }
            match fs::metadata(folder.join(name)) {
                Ok(found) if found.is_file() && found.len() == *expected => {}
                Ok(found) if found.is_file() => {
                    return Err(format!("{name} has {} bytes, expected {expected}", found.len()));
                }
                _ => return Err(format!("{name} is missing")),
            }
        }
        Ok(())
    }
}

fn list(folder: &Path, prefix: &str, files: &mut BTreeMap<String, u64>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            list(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, metadata.len());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_a_whole_folder_from_a_damaged_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("onnx")).unwrap();
        for (name, bytes) in [("config.json", "{}"), ("onnx/model.onnx.data", "12345")] {
            fs::write(at(name), bytes).unwrap();
        }
        let check = || Manifest::check(folder.path());
        assert_eq!(check().unwrap_err(), "import.json is missing");
        let manifest = Manifest::of(folder.path()).unwrap();
        manifest.write(folder.path()).unwrap();
        assert_eq!(check().unwrap(), manifest);

        fs::write(at("onnx/model.onnx.data"), "123").unwrap();
        assert_eq!(check().unwrap_err(), "onnx/model.onnx.data has 3 bytes, expected 5");
        let error = Manifest::check_graphs(folder.path()).unwrap_err().to_string();
        assert!(error.contains("this import is damaged: onnx/model.onnx.data has 3 bytes"), "{error}");
        fs::write(at("onnx/model.onnx.data"), "54321").unwrap();
        fs::remove_file(at("config.json")).unwrap();
        assert_eq!(check().unwrap_err(), "config.json is missing");
        Manifest::check_graphs(folder.path()).unwrap();
        fs::write(at("config.json"), "{}").unwrap();
        check().unwrap();

        Manifest { writer: "0.0.1-1".to_owned(), ..manifest.clone() }.write(folder.path()).unwrap();
        assert!(check().unwrap_err().starts_with("version 0.0.1-1 wrote it"));
        let outside = BTreeMap::from([("../x".to_owned(), 1)]);
        Manifest { files: outside, ..manifest }.write(folder.path()).unwrap();
        assert_eq!(check().unwrap_err(), "import.json is damaged");
        fs::write(at(MANIFEST), "").unwrap();
        assert_eq!(check().unwrap_err(), "import.json is damaged");
    }
}
