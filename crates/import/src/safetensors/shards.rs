//! A folder's weights: `model.safetensors`, or the shards that `model.safetensors.index.json` lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use unspool_core::{Error, Result, file, json};

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
        let names: BTreeSet<&String> = weight_map.values().collect();
        if names.len() > MAX_SHARDS {
            return Err(Error::invalid_model(format!("the index lists more than {MAX_SHARDS} files")));
        }
        let mut files = Vec::new();
        let mut number = HashMap::new();
        let mut file_of = BTreeMap::new();
        for shard in names {
            let file = SafetensorsFile::open(shard_in(folder, shard)?)?;
            // As in Python, a tensor of a listed shard counts though the index does not name it.
            for name in file.names() {
                file_of.entry(name.to_owned()).or_insert(files.len());
            }
            number.insert(shard, files.len());
            files.push(file);
        }
        let mut promised: Vec<_> = weight_map.iter().collect();
        promised.sort();
        for (name, shard) in promised {
            let index = number.get(shard).copied().unwrap_or_default();
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

    /// Whether there is a tensor of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.file_of.contains_key(name)
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
    let text =
        file::read_text(path, MAX_INDEX)?.ok_or_else(|| Error::io("there is no such file").at(path.display()))?;
    let index: Index = json::from_str(&text).map_err(|error| {
        Error::invalid_model("not an index with a \"weight_map\" from tensors to files")
            .at(path.display())
            .because(error)
    })?;
    Ok(index.weight_map)
}

/// Only names inside the folder or below it: no parent, no root, no other kind of file.
fn check_name(shard: &str) -> Result<()> {
    let below = !shard.is_empty()
        && shard.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        && Path::new(shard).components().all(|part| matches!(part, Component::Normal(_)));
    if below && !shard.contains(['\\', ':', '\0']) && shard.ends_with(".safetensors") {
        return Ok(());
    }
    Err(Error::invalid_model(format!(
        "the index names the file {shard:?}, expected the name of a .safetensors file in the same folder or below it"
    )))
}

/// Where a shard that the index lists is.
fn shard_in(folder: &Path, shard: &str) -> Result<PathBuf> {
    check_name(shard)?;
    let path = folder.join(shard);
    if path.exists() {
        return Ok(path);
    }
    Err(Error::io(format!("the index lists the file {shard}, which is not here; download it too")))
}

/// The files that hold a checkpoint's weights: those that [`Safetensors::open`] reads, with the index.
pub(crate) fn weight_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let single = folder.join(SINGLE);
    let index = folder.join(INDEX);
    if single.exists() || !index.exists() {
        return Ok(vec![single]);
    }
    let mut files = vec![index.clone()];
    for shard in read_index(&index)?.values().collect::<BTreeSet<_>>() {
        files.push(shard_in(folder, shard).map_err(|error| error.at(index.display()))?);
    }
    Ok(files)
}
