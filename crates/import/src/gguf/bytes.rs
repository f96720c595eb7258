//! The bytes of a file: mapped, or owned.

use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;
use unspool_core::{Error, Result, file};

/// Bytes of a file. A mapped file must not be cut or rewritten while this lives, as with every memory map.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps a file.
    pub(crate) fn map(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io("cannot read the file").at(path.display()).because(error);
        let file = file::open(path)?.ok_or_else(|| Error::io("there is no such file").at(path.display()))?;
        // SAFETY: the map is read only and private to this value. Another process that cuts the file while it is read
        // ends this one with a signal; no reader of large weights can avoid that without copying them.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Bytes::Mapped(map))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}
