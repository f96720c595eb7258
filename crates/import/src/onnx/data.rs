//! The file of weights beside the graph (ONNX external data), written region by region.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use unspool_core::{Error, Result};

/// Regions begin at multiples of this, so that engines may map them into memory.
const ALIGNMENT: u64 = 4096;

/// A place in the data file that was set aside for one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// `model.onnx.data` under construction. Regions are reserved first and may then be filled in any order and in parts, so
/// that no tensor need be whole in memory.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    name: String,
    end: u64,
}

impl DataFile {
    /// Creates the file `name` in `folder`.
    ///
    /// # Errors
    ///
    /// When the file cannot be created.
    pub fn create(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let file = File::create(&path)
            .map_err(|cause| Error::io("cannot create the file of weights").at(path.display()).because(cause))?;
        Ok(DataFile { file, name: name.to_owned(), end: 0 })
    }

    /// Name of the file, as the graph refers to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes reserved so far.
    pub fn len(&self) -> u64 {
        self.end
    }

    /// Whether nothing was reserved yet.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Sets `length` bytes aside at the next aligned offset. Bytes never written read as zero.
    ///
    /// # Errors
    ///
    /// When the file would pass 2^63 bytes or the disk refuses.
    pub fn reserve(&mut self, length: u64) -> Result<Region> {
        let offset = self.end.checked_next_multiple_of(ALIGNMENT);
        let end = offset.and_then(|offset| offset.checked_add(length)).filter(|&end| end <= i64::MAX as u64);
        let (Some(offset), Some(end)) = (offset, end) else {
            return Err(Error::invalid_model("the weights would make a file above 2^63 bytes").at(&self.name));
        };
        self.file.set_len(end).map_err(|cause| self.cannot_write(cause))?;
        self.end = end;
        Ok(Region { offset, length })
    }

    /// Writes `bytes` at byte `at` of `region`.
    ///
    /// # Errors
    ///
    /// When the bytes do not fit into the region, or writing fails.
    pub fn write(&mut self, region: Region, at: u64, bytes: &[u8]) -> Result<()> {
        if at.checked_add(bytes.len() as u64).is_none_or(|end| end > region.length) {
            return Err(Error::invalid_model(format!(
                "{} bytes at {at} do not fit into a tensor of {} bytes",
                bytes.len(),
                region.length
            ))
            .at(&self.name));
        }
        self.file
            .seek(SeekFrom::Start(region.offset + at))
            .and_then(|_| self.file.write_all(bytes))
            .map_err(|cause| self.cannot_write(cause))
    }

    /// Hands everything to the disk.
    ///
    /// # Errors
    ///
    /// When the disk refuses.
    pub fn finish(self) -> Result<()> {
        self.file.sync_all().map_err(|cause| self.cannot_write(cause))
    }

    fn cannot_write(&self, cause: std::io::Error) -> Error {
        Error::io("cannot write the weights; is the disk full?").at(&self.name).because(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_regions_and_refuses_bytes_outside() {
        let folder = tempfile::tempdir().unwrap();
        let mut data = DataFile::create(folder.path(), "x.data").unwrap();
        let first = data.reserve(3).unwrap();
        let second = data.reserve(4).unwrap();
        assert_eq!((first.offset, second.offset), (0, 4096));
        data.write(second, 2, &[7, 8]).unwrap();
        data.write(first, 0, &[1]).unwrap();
        assert!(data.write(second, 3, &[1, 2]).is_err());
        assert!(data.write(second, u64::MAX, &[1, 2]).is_err());
        assert!(data.reserve(u64::MAX).is_err());
        data.finish().unwrap();
        let bytes = std::fs::read(folder.path().join("x.data")).unwrap();
        assert_eq!((bytes.len(), bytes[0], &bytes[4096..]), (4100, 1, &[0, 0, 7, 8][..]));
    }
}
