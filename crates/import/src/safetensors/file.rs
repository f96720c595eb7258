//! One safetensors file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_core::{Error, Result, file};

use super::header::{self, Entry};
use crate::gguf::Bytes;
use crate::quant::GgmlType;

/// A safetensors file, its header read and checked: every tensor it lists lies inside the file and overlaps no other.
#[derive(Debug)]
pub struct SafetensorsFile {
    bytes: Bytes,
    path: Option<PathBuf>,
    entries: BTreeMap<String, Entry>,
}

/// A tensor of f32, f16 or bf16 numbers with its bytes (little endian).
#[derive(Clone, Copy, Debug)]
pub struct SafetensorsTensor<'a> {
    /// How its numbers are stored: one of the float types.
    pub ggml_type: GgmlType,
    /// Its shape, outermost axis first; empty for a scalar.
    pub shape: &'a [usize],
    /// Its bytes, row-major.
    pub data: &'a [u8],
}

impl SafetensorsFile {
    /// Maps and reads a file. It must not be changed by others while the value lives.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or its header is larger than the file or the format allows, is not the JSON that the
    /// format says, or contradicts itself (bytes outside the file, sizes that do not match shapes, a name twice).
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
    /// As for [`SafetensorsFile::open`].
    pub fn parse(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        Self::read(Bytes::Owned(bytes.into()))
    }

    fn read(bytes: Bytes) -> Result<Self> {
        if let Some(what) = file::mistaken(&bytes) {
            return Err(Error::invalid_model(what));
        }
        let entries = header::read(&bytes)?;
        Ok(SafetensorsFile { bytes, path: None, entries })
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// A tensor's dtype by its safetensors name, and its shape.
    pub fn info(&self, name: &str) -> Option<(&str, &[usize])> {
        self.entries.get(name).map(|entry| (entry.dtype.as_str(), entry.shape.as_slice()))
    }

    /// A tensor, or nothing when the file has none of that name.
    ///
    /// # Errors
    ///
    /// When its dtype is not F32, F16 or BF16; the error names it.
    pub fn tensor(&self, name: &str) -> Result<Option<SafetensorsTensor<'_>>> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let ggml_type = match entry.dtype.as_str() {
            "F32" => GgmlType::F32,
            "F16" => GgmlType::F16,
            "BF16" => GgmlType::BF16,
            other => {
                let error = Error::unsupported(format!(
                    "tensor {name:?} has dtype {other}, supported are F32, F16 and BF16; save the checkpoint in one of them"
                ));
                return Err(match &self.path {
                    Some(path) => error.at(path.display()),
                    None => error,
                });
            }
        };
        let data = self.bytes.get(entry.range.clone()).unwrap_or_default();
        Ok(Some(SafetensorsTensor { ggml_type, shape: &entry.shape, data }))
    }
}
