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

/// The folder of models of the Hugging Face Hub, which Python's library uses too: `hub` in `HF_HOME`, or in the user's
/// `.cache/huggingface`; nothing when neither is known.
pub fn hub_folder() -> Option<PathBuf> {
    let home = std::env::var_os("HF_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = home.or_else(|| dirs::home_dir().map(|home| home.join(".cache").join("huggingface")));
    home.map(|home| home.join("hub"))
}
