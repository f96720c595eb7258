//! Room on the disk.

use std::path::Path;

use unspool_core::{Error, Result};

/// Refuses files of these sizes when the disk of `folder` has no room for all of them.
///
/// # Errors
///
/// When there is too little room; where the platform does not say how much there is, never.
pub fn check(folder: &Path, sizes: impl Iterator<Item = u64>) -> Result<()> {
    let needed = sizes.fold(0u64, u64::saturating_add);
    match free(folder) {
        Some(free) if free < needed => Err(Error::io(format!(
            "{needed} bytes are to be fetched and the disk of {} has {free} free; make room, or set HF_HOME to a folder on \
             another disk",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Free bytes where `folder`, or the nearest folder above it that is there, is.
#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder.ancestors().find(|folder| folder.is_dir())?).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}
