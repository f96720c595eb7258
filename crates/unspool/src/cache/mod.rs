//! What is kept between runs: fetched models and imported checkpoints.

pub mod content;
pub mod entries;
pub mod folder;
pub mod import;

pub use entries::{Caches, Entry, EntryKind, PruneOptions};
pub use folder::cache_folder;
pub use import::import_once;
