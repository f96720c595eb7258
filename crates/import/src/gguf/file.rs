//! The file: header, metadata, tensor table, data.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use unspool_core::{Error, Result, file};

use super::bytes::Bytes;
use super::cursor::Cursor;
use super::value::Value;
use crate::quant::GgmlType;

/// GGML's own bound on a tensor's dimensions.
const MAX_DIMS: u32 = 4;
/// The bytes that data is aligned to when the file does not say.
const DEFAULT_ALIGNMENT: usize = 32;
/// The least bytes of a metadata entry: an empty key's length, a type, a one-byte value.
const LEAST_ENTRY: usize = 8 + 4 + 1;
/// The least bytes of a tensor's entry: an empty name's length, a count, one dimension, a type, an offset.
const LEAST_TENSOR: usize = 8 + 4 + 8 + 4 + 8;

/// A GGUF file, read and checked: every tensor it lists lies inside the file and overlaps no other.
///
/// ```no_run
/// use unspool_import::gguf::Gguf;
/// let file = Gguf::open("model.gguf")?;
/// println!("{} with {} tensors", file.str("general.architecture")?, file.tensors().len());
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "GGUFReader")]
#[derive(Debug)]
pub struct Gguf {
    bytes: Bytes,
    path: Option<PathBuf>,
    version: u32,
    metadata: BTreeMap<String, Value>,
    tensors: Vec<TensorInfo>,
    by_name: HashMap<String, usize>,
}

/// A tensor's entry in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, unique in the file.
    pub name: String,
    /// How its numbers are stored.
    pub ggml_type: GgmlType,
    /// Its dimensions, innermost first: `[columns, rows, ...]`; 1 to 4 of them, none zero.
    pub dims: Vec<usize>,
    range: Range<usize>,
}

/// A tensor with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Its name.
    pub name: &'a str,
    /// How its numbers are stored.
    pub ggml_type: GgmlType,
    /// Its dimensions, innermost first.
    pub dims: &'a [usize],
    /// Its bytes: whole rows of `dims[0]` numbers.
    pub data: &'a [u8],
}

/// A tensor's entry as written, its place not yet checked.
struct Entry {
    name: String,
    kind: GgmlType,
    dims: Vec<usize>,
    size: usize,
    offset: u64,
}

impl Gguf {
    /// Maps and reads a file. It must not be changed by others while the value lives.
    ///
    /// # Errors
    ///
    /// When the file cannot be read; is not GGUF 2 or 3, or big endian; names a tensor type that is not supported; or
    /// contradicts itself (a count, length, dimension or offset that the file's length cannot hold, a name twice). The
    /// error names the file, what, got and expected.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut file = Self::read(Bytes::map(path)?).map_err(|error| error.at(path.display()))?;
        file.path = Some(path.to_owned());
        Ok(file)
    }

    /// Reads a file's bytes (a slice is copied, a vector taken). Memory stays within a small multiple of them.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::open`].
    pub fn parse(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        Self::read(Bytes::Owned(bytes.into()))
    }

    fn read(bytes: Bytes) -> Result<Self> {
        if let Some(what) = file::mistaken(&bytes) {
            return Err(Error::invalid_model(what));
        }
        let mut cursor = Cursor::new(&bytes);
        let version = read_version(&mut cursor)?;
        let tensor_count = cursor.count(LEAST_TENSOR, "the count of tensors")?;
        let entry_count = cursor.count(LEAST_ENTRY, "the count of metadata entries")?;
        let metadata = read_metadata(&mut cursor, entry_count)?;
        let entries = (0..tensor_count).map(|_| read_entry(&mut cursor)).collect::<Result<Vec<_>>>()?;
        let tensors = place(entries, cursor.position(), alignment(&metadata)?, bytes.len())?;
        let mut by_name = HashMap::with_capacity(tensors.len());
        for (index, tensor) in tensors.iter().enumerate() {
            if by_name.insert(tensor.name.clone(), index).is_some() {
                return Err(Error::invalid_model(format!("tensor {:?} is listed twice", tensor.name)));
            }
        }
        Ok(Gguf { bytes, path: None, version, metadata, tensors, by_name })
    }

    /// The file's version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Where the file is, if it was opened by path.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// A metadata value.
    pub fn metadata(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    /// All metadata, sorted by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The table of tensors, in the file's order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// A tensor with its bytes.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let info = self.tensors.get(*self.by_name.get(name)?)?;
        let data = self.bytes.get(info.range.clone())?;
        Some(TensorView { name: &info.name, ggml_type: info.ggml_type, dims: &info.dims, data })
    }

    /// A metadata text.
    ///
    /// # Errors
    ///
    /// This and the getters below: when the key is missing or its value of another type.
    pub fn str(&self, key: &str) -> Result<&str> {
        self.typed(key, "a text", Value::as_str)
    }

    /// A metadata integer of any width that fits.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::str`].
    pub fn u32(&self, key: &str) -> Result<u32> {
        self.typed(key, "an integer from 0 to 4294967295", Value::as_u32)
    }

    /// A metadata float.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::str`].
    pub fn f32(&self, key: &str) -> Result<f32> {
        self.typed(key, "a float", Value::as_f32)
    }

    /// A metadata truth value.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::str`].
    pub fn bool(&self, key: &str) -> Result<bool> {
        self.typed(key, "a truth value", Value::as_bool)
    }

    /// A metadata array of texts.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::str`].
    pub fn strings(&self, key: &str) -> Result<&[String]> {
        self.typed(key, "an array of texts", Value::as_strings)
    }

    /// A metadata array of F32.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::str`].
    pub fn f32s(&self, key: &str) -> Result<&[f32]> {
        self.typed(key, "an array of F32", Value::as_f32s)
    }

    /// A metadata array of I32.
    ///
    /// # Errors
    ///
    /// As for [`Gguf::str`].
    pub fn i32s(&self, key: &str) -> Result<&[i32]> {
        self.typed(key, "an array of I32", Value::as_i32s)
    }

    fn typed<'a, T>(&'a self, key: &str, expected: &str, read: fn(&'a Value) -> Option<T>) -> Result<T> {
        let error = match self.metadata.get(key) {
            None => Error::invalid_model(format!("metadata {key:?} is missing, expected {expected}")),
            Some(value) => match read(value) {
                Some(found) => return Ok(found),
                None => Error::invalid_model(format!("metadata {key:?} is {}, expected {expected}", value.kind())),
            },
        };
        Err(match &self.path {
            Some(path) => error.at(path.display()),
            None => error,
        })
    }
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32> {
    let magic = cursor.take(4, "the magic number")?;
    if magic != b"GGUF" {
        return Err(Error::invalid_model(format!("not a GGUF file: it starts with {magic:02x?}, expected \"GGUF\"")));
    }
    let version = cursor.u32("the version")?;
    match version {
        2 | 3 => Ok(version),
        1 => Err(Error::unsupported("GGUF version 1 is not supported; convert the model anew to version 3")),
        _ if version & 0xffff == 0 && version != 0 => {
            Err(Error::unsupported("the file is a big-endian GGUF, only little-endian ones are supported"))
        }
        _ => Err(Error::unsupported(format!("GGUF version {version} is not known, expected 2 or 3"))),
    }
}

fn read_metadata(cursor: &mut Cursor<'_>, count: usize) -> Result<BTreeMap<String, Value>> {
    let mut metadata = BTreeMap::new();
    for index in 0..count {
        let key = cursor.name(&format!("the key of metadata entry {index}"))?;
        let what = format!("metadata {key:?}");
        let kind = cursor.u32(&what)?;
        let value = cursor.value(kind, &what)?;
        if metadata.insert(key, value).is_some() {
            return Err(Error::invalid_model(format!("{what} is given twice")));
        }
    }
    Ok(metadata)
}

fn read_entry(cursor: &mut Cursor<'_>) -> Result<Entry> {
    let name = cursor.name("a tensor's name")?;
    let what = format!("the entry of tensor {name:?}");
    let dims_count = cursor.u32(&what)?;
    if !(1..=MAX_DIMS).contains(&dims_count) {
        return Err(Error::invalid_model(format!(
            "tensor {name:?} has {dims_count} dimensions, expected 1 to {MAX_DIMS}"
        )));
    }
    let claimed = (0..dims_count).map(|_| cursor.u64(&what)).collect::<Result<Vec<_>>>()?;
    let id = cursor.u32(&what)?;
    let offset = cursor.u64(&what)?;
    let Some(kind) = GgmlType::from_id(id) else {
        let supported = GgmlType::ALL.map(GgmlType::name).join(", ");
        return Err(Error::unsupported(format!(
            "tensor {name:?} has type {}, supported are {supported}; convert the model to one of them",
            GgmlType::name_of_id(id)
        )));
    };
    let size = size(&claimed, kind).ok_or_else(|| {
        Error::invalid_model(format!(
            "tensor {name:?} has dimensions {claimed:?} of {kind}: expected sizes above zero whose product fits, rows of \
             whole blocks of {} numbers",
            kind.block_weights()
        ))
    })?;
    let dims = claimed.into_iter().map(|dim| dim as usize).collect();
    Ok(Entry { name, kind, dims, size, offset })
}

/// Bytes of a tensor, if its dimensions are possible at all.
fn size(dims: &[u64], kind: GgmlType) -> Option<usize> {
    let mut bytes = 1usize;
    for (axis, dim) in dims.iter().enumerate() {
        let dim = usize::try_from(*dim).ok().filter(|dim| *dim > 0)?;
        bytes = bytes.checked_mul(if axis == 0 { kind.bytes_of(dim)? } else { dim })?;
    }
    Some(bytes)
}

fn alignment(metadata: &BTreeMap<String, Value>) -> Result<usize> {
    let Some(value) = metadata.get("general.alignment") else { return Ok(DEFAULT_ALIGNMENT) };
    value.as_u32().filter(|n| n.is_power_of_two()).map(|n| n as usize).ok_or_else(|| {
        Error::invalid_model(format!("metadata \"general.alignment\" is {value:?}, expected a power of two"))
    })
}

/// Gives every tensor its range of the file, and refuses ranges outside it or over one another.
fn place(entries: Vec<Entry>, head: usize, alignment: usize, file: usize) -> Result<Vec<TensorInfo>> {
    let start = head.checked_next_multiple_of(alignment);
    let mut tensors = Vec::with_capacity(entries.len());
    for Entry { name, kind, dims, size, offset } in entries {
        if !offset.is_multiple_of(alignment as u64) {
            return Err(Error::invalid_model(format!(
                "tensor {name:?} starts at offset {offset}, expected a multiple of the alignment {alignment}"
            )));
        }
        let range = usize::try_from(offset)
            .ok()
            .zip(start)
            .and_then(|(offset, start)| start.checked_add(offset))
            .and_then(|from| Some(from..from.checked_add(size)?))
            .filter(|range| range.end <= file)
            .ok_or_else(|| {
                Error::invalid_model(format!(
                    "tensor {name:?} of {size} bytes at offset {offset} does not fit the file of {file} bytes (is the \
                     download complete?)"
                ))
            })?;
        tensors.push(TensorInfo { name, ggml_type: kind, dims, range });
    }
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.range.start);
    for pair in order.windows(2) {
        if let [first, second] = pair
            && second.range.start < first.range.end
        {
            return Err(Error::invalid_model(format!(
                "tensors {:?} and {:?} overlap in the file",
                first.name, second.name
            )));
        }
    }
    Ok(tensors)
}
