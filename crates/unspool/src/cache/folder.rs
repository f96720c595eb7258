//! Where the cache is.

use std::path::PathBuf;

use unspool_core::{Error, Result};

/// The folder for fetched and imported models: `UNSPOOL_CACHE`, or `unspool` in the platform's folder for caches.
///
/// # Errors
///
/// When neither is known.
pub fn cache_folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("UNSPOOL_CACHE").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder));
    }
    dirs::cache_dir().map(|folder| folder.join("unspool")).ok_or_else(|| {
        Error::io("this platform names no folder for caches; set UNSPOOL_CACHE to a folder that can be written")
    })
}
