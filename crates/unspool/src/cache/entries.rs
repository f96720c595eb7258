//! What the caches hold, and how it is removed.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use unspool_core::{Error, Result};
use unspool_import::lock::FileLock;
use unspool_import::manifest::{MANIFEST, Manifest};
use unspool_import::staging::{leftovers, remove_leftover};

use super::folder::cache_folder;
use super::import::imports;

/// Folders below each other that are followed; no model has more.
const MAX_DEPTH: usize = 16;

/// The caches of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Where imports are; [`cache_folder`].
    pub imports: PathBuf,
    /// Where models of the Hugging Face Hub are, for Python too; nothing when this platform has no such place, or downloads
    /// are left out of the build.
    pub hub: Option<PathBuf>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// An imported checkpoint.
    Import,
    /// A model of the Hugging Face Hub, shared with Python's library.
    Download,
    /// What a run that was killed left behind.
    Leftover,
}

impl EntryKind {
    /// The kind in a word.
    pub fn name(self) -> &'static str {
        match self {
            EntryKind::Import => "import",
            EntryKind::Download => "download",
            EntryKind::Leftover => "leftover",
        }
    }
}

/// One thing in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name to remove it by: of an import its folder, of a download `org/name`.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its folders.
    pub paths: Vec<PathBuf>,
    /// Bytes on the disk; a file with several names counts once.
    pub bytes: u64,
    /// When it was last used, as far as the file system tells.
    pub last_used: Option<SystemTime>,
    /// Why it is of no use: damaged, of another version, left behind.
    pub fault: Option<String>,
}

/// What [`Caches::prune`] removes besides what is of no use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Imports that were not used for so long. Downloads belong to Python too, and are removed by name only.
    pub older_than: Option<Duration>,
}

impl Caches {
    /// The caches that [`open`](fn@crate::open) uses.
    ///
    /// # Errors
    ///
    /// When this platform has no folder for caches and none is set.
    pub fn here() -> Result<Self> {
        Ok(Caches { imports: cache_folder()?, hub: hub_folder() })
    }

    /// Everything in the caches, imports first, each kind by name.
    ///
    /// Links in a cache folder are no entries, and nothing behind them is counted.
    ///
    /// # Errors
    ///
    /// When a cache folder is there and cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let folder = imports(&self.imports);
        for (name, path) in folders(&folder)? {
            if name.starts_with('.') {
                continue;
            }
            let last_used = modified(&path.join(MANIFEST)).or_else(|| modified(&path));
            let fault = Manifest::check(&path).err();
            entries.push(Entry::new(name, EntryKind::Import, vec![path], last_used, fault));
        }
        for left in leftovers(&folder) {
            entries.push(of_leftover(left));
        }
        let mut downloads: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        if let Some(hub) = &self.hub {
            for (name, path) in folders(hub)? {
                if let Some(id) = name.strip_prefix("models--") {
                    downloads.entry(id.replacen("--", "/", 1)).or_default().push(path);
                }
            }
        }
        // Folders of hard links to the files of a download, `org--name--commit`.
        for (name, path) in folders(&self.imports.join("hub"))? {
            if let Some((id, _)) = name.rsplit_once("--") {
                downloads.entry(id.replacen("--", "/", 1)).or_default().push(path);
            }
        }
        // The checkpoint that `unspool demo` takes out of a Python package.
        for (name, path) in folders(&self.imports)?.into_iter().filter(|(name, _)| name == "demo") {
            downloads.entry(name).or_default().push(path);
        }
        for (name, paths) in downloads {
            let last_used = paths.iter().filter_map(|path| newest(path, 0)).max();
            entries.push(Entry::new(name, EntryKind::Download, paths, last_used, None));
        }
        Ok(entries)
    }

    /// Removes the entry called `name`, and returns it.
    ///
    /// # Errors
    ///
    /// When there is no entry of that name, a process is importing it, or something in it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<Entry> {
        let entries = self.list()?;
        let Some(entry) = entries.into_iter().find(|entry| entry.name == name) else {
            return Err(Error::invalid_input(format!(
                "there is no {name:?} in the cache; `unspool cache list` shows the names"
            )));
        };
        self.delete(&entry)?;
        Ok(entry)
    }

    /// Removes imports that are damaged or of another version, what killed runs left behind, and what `options` says; returns
    /// what was removed. Imports that a process writes at this moment stay.
    ///
    /// # Errors
    ///
    /// When a folder cannot be read, or something in it cannot be removed.
    pub fn prune(&self, options: PruneOptions) -> Result<Vec<Entry>> {
        let now = SystemTime::now();
        let old = |entry: &Entry| {
            let age = entry.last_used.and_then(|used| now.duration_since(used).ok());
            options.older_than.is_some_and(|limit| age.is_some_and(|age| age > limit))
        };
        let mut removed = Vec::new();
        for entry in self.list()? {
            let wanted = match entry.kind {
                EntryKind::Import => entry.fault.is_some() || old(&entry),
                EntryKind::Leftover => true,
                EntryKind::Download => false,
            };
            if wanted && self.delete(&entry)? {
                removed.push(entry);
            }
        }
        // Locks whose process was killed; those in use cannot be taken.
        for path in files(&imports(&self.imports))? {
            if path.extension().is_some_and(|ending| ending == "lock") {
                let _ = FileLock::try_take(&path);
            }
        }
        Ok(removed)
    }

    /// Removes the folders of `entry`; false when a process writes it at this moment and it is one to prune.
    fn delete(&self, entry: &Entry) -> Result<bool> {
        let failed = |path: &Path, error| Error::io("this cannot be removed").at(path.display()).because(error);
        for path in &entry.paths {
            let _lock = match entry.kind {
                EntryKind::Download => None,
                EntryKind::Leftover => return remove_leftover(path),
                EntryKind::Import => {
                    let lock = super::import::lock_of(path);
                    match FileLock::try_take(&lock).map_err(|error| failed(&lock, error))? {
                        Some(lock) => Some(lock),
                        None if entry.fault.is_some() => return Ok(false),
                        None => {
                            let message = "a process is importing this; try again when it is done";
                            return Err(Error::invalid_input(message).at(path.display()));
                        }
                    }
                }
            };
            // The list has no links; one that came since is removed itself, and nothing behind it.
            fs::remove_dir_all(path).map_err(|error| failed(path, error))?;
        }
        Ok(true)
    }
}

impl Entry {
    fn new(
        name: String,
        kind: EntryKind,
        paths: Vec<PathBuf>,
        last_used: Option<SystemTime>,
        fault: Option<String>,
    ) -> Self {
        let mut seen = HashSet::new();
        let bytes = paths.iter().map(|path| size(path, &mut seen, 0)).sum();
        Entry { name, kind, paths, bytes, last_used, fault }
    }
}

fn of_leftover(path: PathBuf) -> Entry {
    let name = name_of(&path);
    let last_used = newest(&path, 0);
    Entry::new(name, EntryKind::Leftover, vec![path], last_used, Some("an import that was killed left it".to_owned()))
}

#[cfg(feature = "hub")]
fn hub_folder() -> Option<PathBuf> {
    unspool_hub::Hub::from_env().ok().map(|hub| hub.cache().to_owned())
}

#[cfg(not(feature = "hub"))]
fn hub_folder() -> Option<PathBuf> {
    None
}

/// The folders in `folder` by name, without links; none when it is not there.
fn folders(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let of = |kind: fs::FileType| kind.is_dir();
    Ok(entries_of(folder, of)?.into_iter().map(|path| (name_of(&path), path)).collect())
}

/// The regular files in `folder`, without links.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    entries_of(folder, |kind| kind.is_file())
}

fn entries_of(folder: &Path, wanted: impl Fn(fs::FileType) -> bool) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io("this folder of the cache cannot be read").at(folder.display()).because(error);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().is_ok_and(&wanted) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(path).ok()?.modified().ok()
}

/// When something below `path` was last changed or read.
fn newest(path: &Path, depth: usize) -> Option<SystemTime> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let own = metadata.modified().ok();
    if !metadata.is_dir() {
        return own.max(metadata.accessed().ok());
    }
    if depth == MAX_DEPTH {
        return own;
    }
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    // Listing a folder counts as reading it, so only files tell of a use.
    inside.filter_map(|entry| newest(&entry.path(), depth + 1)).max().or(own)
}

/// Bytes of the files below `path` that are not in `seen`.
fn size(path: &Path, seen: &mut HashSet<(u64, u64)>, depth: usize) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if metadata.is_dir() {
        if depth == MAX_DEPTH {
            return 0;
        }
        let inside = fs::read_dir(path).into_iter().flatten().flatten();
        return inside.map(|entry| size(&entry.path(), seen, depth + 1)).sum();
    }
    match identity(&metadata) {
        Some(identity) if !seen.insert(identity) => 0,
        _ if metadata.is_file() => metadata.len(),
        _ => 0,
    }
}

/// What tells a file from others, by whatever name.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::import_once;
    use unspool_import::ImportOptions;

    fn caches(root: &Path) -> Caches {
        Caches { imports: root.join("unspool"), hub: Some(root.join("hf/hub")) }
    }

    fn write(path: PathBuf, bytes: usize) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; bytes]).unwrap();
    }

    fn import(caches: &Caches) -> PathBuf {
        let checkpoint = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/llama/model.safetensors");
        import_once(&checkpoint, &ImportOptions::default(), &caches.imports, &mut |_| {}).unwrap()
    }

    #[test]
    fn lists_and_removes_by_name() {
        let root = tempfile::tempdir().unwrap();
        let caches = caches(root.path());
        assert_eq!(caches.list().unwrap(), []);
        let imported = import(&caches);
        let blob = root.path().join("hf/hub/models--org--name/blobs/0123");
        write(blob.clone(), 100);
        let link = root.path().join("unspool/hub/org--name--abc/model.onnx");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::hard_link(&blob, &link).unwrap();
        write(root.path().join("hf/hub/datasets--org--data/blobs/1"), 100);

        let entries = caches.list().unwrap();
        let told: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind, entry.fault.clone())).collect();
        let name = imported.file_name().unwrap().to_str().unwrap();
        assert_eq!(told, [(name, EntryKind::Import, None), ("org/name", EntryKind::Download, None)]);
        assert!(entries[0].bytes > 1000 && entries[0].last_used.is_some());
        #[cfg(unix)]
        assert_eq!(entries[1].bytes, 100);

        for wrong in ["", "../hf", "org", "org--name", "imports"] {
            assert!(caches.remove(wrong).unwrap_err().to_string().contains("cache list"), "{wrong}");
        }
        caches.remove("org/name").unwrap();
        assert!(!blob.exists() && !link.exists() && imported.exists());
        caches.remove(name).unwrap();
        assert_eq!(caches.list().unwrap(), []);
        assert!(root.path().join("hf/hub/datasets--org--data/blobs/1").exists());
    }

    #[test]
    fn prune_removes_what_is_of_no_use() {
        let root = tempfile::tempdir().unwrap();
        let caches = caches(root.path());
        let good = import(&caches);
        let folder = imports(&caches.imports);
        write(folder.join("older-keep-0123/config.json"), 5);
        write(folder.join(".unspool-import-killed/lock"), 0);
        write(folder.join(".unspool-import-killed/model/onnx/model.onnx.data"), 500);
        write(folder.join("older-keep-0123.lock"), 0);
        let removed = caches.prune(PruneOptions::default()).unwrap();
        let names: Vec<_> = removed.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
        assert_eq!(names, [("older-keep-0123", 5), (".unspool-import-killed", 500)]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(good.exists());

        let past = SystemTime::now() - Duration::from_secs(3 * 86_400);
        fs::File::options().write(true).open(good.join(MANIFEST)).unwrap().set_modified(past).unwrap();
        let days = |days: u64| PruneOptions { older_than: Some(Duration::from_secs(days * 86_400)) };
        assert_eq!(caches.prune(days(4)).unwrap(), []);
        assert_eq!(caches.prune(days(2)).unwrap().len(), 1);
        assert!(!good.exists());
    }

    #[test]
    fn a_living_import_stays() {
        let root = tempfile::tempdir().unwrap();
        let caches = caches(root.path());
        let good = import(&caches);
        let _held = FileLock::try_take(&super::super::import::lock_of(&good)).unwrap().unwrap();
        let name = name_of(&good);
        assert!(caches.remove(&name).unwrap_err().to_string().contains("a process is importing this"));
        fs::write(good.join("config.json"), "").unwrap();
        assert_eq!(caches.prune(PruneOptions::default()).unwrap(), []);
        assert!(good.exists());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_behind_a_link_is_touched() {
        let root = tempfile::tempdir().unwrap();
        let caches = caches(root.path());
        let outside = root.path().join("outside");
        write(outside.join("precious"), 10);
        let folder = imports(&caches.imports);
        fs::create_dir_all(folder.join("broken-keep-1")).unwrap();
        fs::create_dir_all(root.path().join("hf/hub")).unwrap();
        for link in [
            folder.join("linked-keep-1"),
            folder.join(".unspool-import-linked"),
            folder.join("broken-keep-1/inside"),
            root.path().join("hf/hub/models--a--b"),
        ] {
            std::os::unix::fs::symlink(&outside, link).unwrap();
        }
        let names: Vec<_> = caches.list().unwrap().into_iter().map(|entry| (entry.name, entry.bytes)).collect();
        assert_eq!(names, [("broken-keep-1".to_owned(), 0)]);
        assert_eq!(caches.prune(PruneOptions::default()).unwrap().len(), 1);
        assert!(outside.join("precious").exists() && folder.join("linked-keep-1").exists());
    }
}
