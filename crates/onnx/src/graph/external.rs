//! External data: files beside a graph that hold its weights. Names stay inside the folder, ranges inside the files, before
//! an engine opens any.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use memmap2::Mmap;
use prost::Message;
use prost::bytes::Bytes;
use unspool_core::{Error, Result};

use super::proto::{Model, Tensor};
use super::wire::{self, Place};

/// A graph whose external data has plain names, and the files behind those names, mapped.
pub(crate) struct Mapped {
    /// The graph's bytes; its tensors lie in `0.data`, `1.data` and so on.
    pub graph: Vec<u8>,
    /// Those files, in the order of their names.
    pub files: Vec<Mmap>,
}

/// The plain name of file `number`.
pub(crate) fn plain_name(number: usize) -> String {
    format!("{number}.data")
}

/// Maps the external data of the graph in `path`; `None` when it has none.
///
/// # Errors
///
/// Those of the check when the graph was read, if a file has changed since; when a file cannot be opened.
pub(crate) fn map(path: &Path) -> Result<Option<Mapped>> {
    let failed = |path: &Path, e| Error::io("the file cannot be opened").at(path.display()).because(e);
    let open = |path: &Path| {
        let file = File::open(path).map_err(|e| failed(path, e))?;
        // SAFETY: the map is only read. As with every memory-mapped model, a file that is changed while it runs gives wrong
        // numbers; one that is cut while it runs ends the process.
        unsafe { Mmap::map(&file) }.map_err(|e| failed(path, e))
    };
    let graph = Bytes::from_owner(open(path)?);
    let folder = path.parent().unwrap_or(Path::new("."));
    let model = Model::decode(graph.clone()).map_err(|e| Error::invalid_model("no ONNX graph").because(e))?;
    let found = check(&model, path, folder)?;
    if found.is_empty() {
        return Ok(None);
    }
    let numbers: BTreeMap<&str, (usize, u64)> =
        found.iter().enumerate().map(|(number, (name, file))| (name.as_str(), (number, file.size))).collect();
    let files = found.values().map(|file| open(&file.path)).collect::<Result<Vec<_>>>()?;
    let graph = wire::relocate(&graph, &mut |tensor| {
        let tensor = Tensor::decode(tensor).map_err(|e| Error::invalid_model("a tensor is broken").because(e))?;
        let range = Range::of(&tensor)?;
        let (number, size) = numbers.get(range.location.as_str()).copied().unwrap_or((usize::MAX, 0));
        let length = range.length.unwrap_or_else(|| tensor.bytes().unwrap_or(size.saturating_sub(range.offset)));
        Ok(Place { location: plain_name(number), offset: range.offset, length })
    })?;
    Ok(Some(Mapped { graph, files }))
}

/// A file of external data.
pub(crate) struct Found {
    /// Where it is, links followed.
    path: PathBuf,
    /// Its bytes.
    pub size: u64,
}

/// Checks every external tensor of `model`, wherever it stands, and returns the files by the names that the graph has for
/// them. `graph` is the graph's file, in `folder`.
///
/// A file may have any name and lie in folders below. Links are followed; what they lead to must lie in the graph's folder,
/// or in the one that the graph itself is a link into (the Hub's cache keeps files in `blobs/` and links in `snapshots/`).
///
/// # Errors
///
/// A location that is absolute or leaves the folder, a missing file, or a range beyond the file's end.
pub(crate) fn check(model: &Model, graph: &Path, folder: &Path) -> Result<BTreeMap<String, Found>> {
    let mut found = BTreeMap::new();
    for tensor in model.tensors().into_iter().filter(|tensor| !tensor.external_data.is_empty()) {
        let place = || format!("external data of tensor '{}'", tensor.name);
        let range = Range::of(tensor).map_err(|error| error.at(place()))?;
        let size = match found.get(&range.location) {
            Some(Found { size, .. }) => *size,
            None => {
                let file = locate(&range.location, graph, folder).map_err(|error| error.at(place()))?;
                let size = file.size;
                found.insert(range.location.clone(), file);
                size
            }
        };
        let length = range.length.or(tensor.bytes()).unwrap_or(0);
        if range.offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(Error::invalid_model(format!(
                "bytes {} to {} are outside '{}' of {size} bytes; the file is cut or belongs to another graph",
                range.offset,
                u128::from(range.offset) + u128::from(length),
                range.location
            ))
            .at(place()));
        }
    }
    Ok(found)
}

/// What a tensor says of its place.
struct Range {
    location: String,
    offset: u64,
    length: Option<u64>,
}

impl Range {
    fn of(tensor: &Tensor) -> Result<Self> {
        let entry = |key: &str| tensor.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
        let location =
            entry("location").ok_or_else(|| Error::invalid_model("no file name is given; export the model again"))?;
        let number = |key: &str| match entry(key) {
            None | Some("") => Ok(None),
            Some(text) => text
                .parse::<u64>()
                .map(Some)
                .map_err(|_| Error::invalid_model(format!("{key} is '{text}', expected a number of bytes"))),
        };
        Ok(Range { location: location.to_owned(), offset: number("offset")?.unwrap_or(0), length: number("length")? })
    }
}

fn locate(location: &str, graph: &Path, folder: &Path) -> Result<Found> {
    let path = Path::new(location);
    let inside =
        !location.is_empty() && path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let leaves = |why: &str| {
        Error::invalid_model(format!(
            "the file name '{location}' leaves the model's folder{why}; only files beside the graph are read"
        ))
    };
    if !inside {
        return Err(leaves(""));
    }
    let missing = |e| {
        Error::io(format!("the file '{location}' cannot be read; it belongs beside the graph, download it too"))
            .because(e)
    };
    let path = folder.join(path).canonicalize().map_err(missing)?;
    let meta = std::fs::metadata(&path).map_err(missing)?;
    if !meta.is_file() {
        return Err(Error::invalid_model(format!("'{location}' is no file")));
    }
    // A graph that was read from memory has no file of its own.
    let own = graph.canonicalize().ok().and_then(|graph| graph.parent().map(Path::to_path_buf));
    let folders = [folder.canonicalize().ok(), own];
    if !folders.iter().flatten().any(|folder| path.starts_with(folder)) {
        return Err(leaves(" through a link"));
    }
    Ok(Found { path, size: meta.len() })
}

impl Tensor {
    /// The bytes of its elements, where their size is known.
    fn bytes(&self) -> Option<u64> {
        let elements = self.dims.iter().try_fold(1u64, |n, &axis| n.checked_mul(u64::try_from(axis).ok()?))?;
        let bits = match self.data_type {
            1 | 6 | 12 => 32,
            2 | 3 | 9 => 8,
            4 | 5 | 10 | 16 => 16,
            7 | 11 | 13 => 64,
            21 | 22 => 4,
            _ => return None,
        };
        Some(elements.checked_mul(bits)?.div_ceil(8))
    }
}
