//! A folder's weights: `model.safetensors`, or the shards that `model.safetensors.index.json` lists.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use serde::Deserialize;
use unspool_core::{Error, Result};

use super::file::{SafetensorsFile, SafetensorsTensor};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// More than the index of any model, in bytes.
const MAX_INDEX: u64 = 100_000_000;
/// More shards than any model has.
const MAX_SHARDS: usize = 10_000;

/// All tensors of a checkpoint folder, whichever file holds them.
#[derive(Debug)]
pub struct Safetensors {
    files: Vec<SafetensorsFile>,
    file_of: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

impl Safetensors {
    /// Opens `model.safetensors` of a folder, or its index and the shards that it lists.
    ///
    /// # Errors
    ///
    /// When the folder has neither; when a shard's name leaves the folder, or it lacks a tensor that the index promises; and
    /// as for [`SafetensorsFile::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let single = folder.join(SINGLE);
        if single.exists() {
            return Self::open_file(single);
        }
        let index = folder.join(INDEX);
        if !index.exists() {
            return Err(Error::io(format!("the folder has neither {SINGLE} nor {INDEX}")).at(folder.display()));
        }
        Self::open_shards(folder, read_index(&index)?).map_err(|error| error.at(index.display()))
    }

    /// Opens one file that holds all tensors.
    ///
    /// # Errors
    ///
    /// As for [`SafetensorsFile::open`].
    pub fn open_file(path: impl AsRef<Path>) -> Result<Self> {
        let file = SafetensorsFile::open(path)?;
        let file_of = file.names().map(|name| (name.to_owned(), 0)).collect();
        Ok(Safetensors { files: vec![file], file_of })
    }

    fn open_shards(folder: &Path, weight_map: HashMap<String, String>) -> Result<Self> {
        let mut files = Vec::new();
        let mut opened: HashMap<&str, usize> = HashMap::new();
        let mut file_of = BTreeMap::new();
        let mut sorted: Vec<_> = weight_map.iter().collect();
        sorted.sort();
        for (name, shard) in sorted {
            let index = match opened.get(shard.as_str()) {
                Some(&index) => index,
                None => {
                    check_name(shard)?;
                    if files.len() == MAX_SHARDS {
                        return Err(Error::invalid_model(format!("the index lists more than {MAX_SHARDS} files")));
                    }
                    files.push(SafetensorsFile::open(folder.join(shard))?);
                    opened.insert(shard, files.len() - 1);
                    files.len() - 1
                }
            };
            if files.get(index).is_none_or(|file| file.info(name).is_none()) {
                return Err(Error::invalid_model(format!(
                    "the index says that tensor {name:?} is in {shard}, it is not"
                )));
            }
            file_of.insert(name.clone(), index);
        }
        Ok(Safetensors { files, file_of })
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.file_of.keys().map(String::as_str)
    }

    /// A tensor, or nothing when the checkpoint has none of that name.
    ///
    /// # Errors
    ///
    /// When its dtype is not F32, F16 or BF16; the error names it.
    pub fn tensor(&self, name: &str) -> Result<Option<SafetensorsTensor<'_>>> {
        match self.file_of.get(name).and_then(|&index| self.files.get(index)) {
            Some(file) => file.tensor(name),
            None => Ok(None),
        }
    }
}

fn read_index(path: &Path) -> Result<HashMap<String, String>> {
    let failed = |error: std::io::Error| Error::io("cannot read the file").at(path.display()).because(error);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_INDEX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_INDEX {
        return Err(Error::invalid_model(format!("the index has more than {MAX_INDEX} bytes")).at(path.display()));
    }
    let index: Index = serde_json::from_slice(&bytes).map_err(|error| {
        Error::invalid_model("not an index with a \"weight_map\" from tensors to files")
            .at(path.display())
            .because(error)
    })?;
    Ok(index.weight_map)
}

/// Only plain names inside the folder: no path, no parent, no other kind of file.
fn check_name(shard: &str) -> Result<()> {
    let mut parts = Path::new(shard).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == shard);
    if plain && !shard.contains(['/', '\\', ':']) && shard.ends_with(".safetensors") {
        return Ok(());
    }
    Err(Error::invalid_model(format!(
        "the index names the file {shard:?}, expected a plain name of a .safetensors file beside it"
    )))
}
