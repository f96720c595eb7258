//! A checkpoint is imported once; later starts open the folder that was written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use sha2::{Digest, Sha256};
use unspool_core::{Error, Result};
use unspool_import::lock::FileLock;
use unspool_import::manifest::{MANIFEST, Manifest};
use unspool_import::{ImportOptions, Progress};

use super::content::{Contents, hex};

/// How often a process that waits for another one's import looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The folder of all imports in a cache.
pub(super) fn imports(cache: &Path) -> PathBuf {
    cache.join("imports")
}

/// Imports `checkpoint` (a `.gguf` file, a `.safetensors` file or a folder) into `cache`, unless the same content was
/// imported with the same `options` before; returns the model folder. `tell` receives one line before and after an import.
///
/// A folder in the cache that does not match its list of files, or that another version wrote, is imported again. Of several
/// processes that want the same import one makes it, and the others wait for it.
///
/// # Errors
///
/// When the checkpoint cannot be read or imported, or the cache cannot be written.
pub fn import_once(
    checkpoint: &Path,
    options: &ImportOptions,
    cache: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<PathBuf> {
    let target = target(checkpoint, options, cache)?;
    if Manifest::check(&target).is_ok() {
        used(&target);
        return Ok(target);
    }
    let _lock = lock(&target, options, tell)?;
    if fs::symlink_metadata(&target).is_ok() {
        // Perhaps whole by now, by the process that held the lock.
        let Err(why) = Manifest::check(&target) else { return Ok(target) };
        tell(&format!("The import in {} is made again: {why}.", target.display()));
        fs::remove_dir_all(&target).map_err(|error| {
            Error::io("this damaged import cannot be removed; remove it by hand").at(target.display()).because(error)
        })?;
    }
    tell(&format!("Importing {} (once) ...", checkpoint.display()));
    let started = Instant::now();
    let report = unspool_import::import(checkpoint, &target, options)?;
    for warning in &report.warnings {
        tell(&format!("warning: {warning}"));
    }
    tell(&format!("Imported {report}, in {:.1} s.", started.elapsed().as_secs_f64()));
    Ok(target)
}

/// The folder that an import of `checkpoint` with `options` has in `cache`.
fn target(checkpoint: &Path, options: &ImportOptions, cache: &Path) -> Result<PathBuf> {
    let key = key(checkpoint, cache)?;
    let name: String = checkpoint
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .take(80)
        .collect();
    let mut form = options.weights.name().to_owned();
    if options.hidden_states {
        form.push_str("-hidden");
    }
    for layers in BTreeSet::from_iter(&options.early_exits) {
        form.push_str(&format!("-exit{layers}"));
    }
    Ok(imports(cache).join(format!("{name}-{form}-{}", key.get(..20).unwrap_or(&key))))
}

/// Notes the time of this use, which the list of a cache shows. A failure costs only that.
fn used(target: &Path) {
    let file = fs::File::options().write(true).open(target.join(MANIFEST));
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// The file that a process holds while it imports into `target`.
pub(super) fn lock_of(target: &Path) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

/// Waits until no other process imports into `target`.
fn lock(target: &Path, options: &ImportOptions, tell: &mut dyn FnMut(&str)) -> Result<FileLock> {
    let path = lock_of(target);
    let failed = |error| Error::io("the cache folder cannot be written").at(path.display()).because(error);
    fs::create_dir_all(target.parent().unwrap_or(target)).map_err(failed)?;
    let mut waits = false;
    loop {
        if let Some(lock) = FileLock::try_take(&path).map_err(failed)? {
            return Ok(lock);
        }
        if !std::mem::replace(&mut waits, true) {
            tell("Waiting for another process that imports the same checkpoint ...");
        }
        if let Some(progress) = &options.progress {
            progress.call(Progress { done: 0, total: 0, bytes: 0, total_bytes: 0, tensor: "" })?;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// One hash over everything an import reads.
fn key(checkpoint: &Path, cache: &Path) -> Result<String> {
    let mut contents = Contents::open(cache);
    let mut digest = Sha256::new();
    for file in unspool_import::files_read(checkpoint)? {
        // Relative to the checkpoint, so that a copy elsewhere is the same; the checkpoint itself has no name.
        let name = file.strip_prefix(checkpoint).unwrap_or(Path::new(file.file_name().unwrap_or_default()));
        digest.update(name.to_string_lossy().as_bytes());
        digest.update([0]);
        digest.update(contents.sha256(&file)?);
    }
    contents.save();
    Ok(hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/llama/model.safetensors")
    }

    /// What is told of one import of `checkpoint` into `cache`, and its folder.
    fn import(cache: &Path) -> (PathBuf, Vec<String>) {
        let mut told = Vec::new();
        let folder =
            import_once(&checkpoint(), &ImportOptions::default(), cache, &mut |line| told.push(line.to_owned()))
                .unwrap();
        (folder, told)
    }

    #[test]
    fn what_is_damaged_is_imported_again_with_one_line() {
        let cache = tempfile::tempdir().unwrap();
        let (folder, told) = import(cache.path());
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(import(cache.path()), (folder.clone(), vec![]));
        let data = folder.join("onnx/model.onnx.data");
        let whole = fs::read(&data).unwrap();
        let cut: [(&str, &dyn Fn()); 4] = [
            ("onnx/model.onnx.data has 10 bytes", &|| fs::write(&data, &whole[..10]).unwrap()),
            ("config.json has 0 bytes", &|| fs::write(folder.join("config.json"), "").unwrap()),
            ("tokenizer.json is missing", &|| fs::remove_file(folder.join("tokenizer.json")).unwrap()),
            ("import.json is missing", &|| fs::remove_file(folder.join(MANIFEST)).unwrap()),
        ];
        for (why, damage) in cut {
            damage();
            let (again, told) = import(cache.path());
            assert_eq!(again, folder);
            assert!(told[0].starts_with("The import in ") && told[0].contains(why), "{told:?}");
            assert_eq!(told.len(), 3, "{told:?}");
            assert!(import(cache.path()).1.is_empty());
        }
        assert_eq!(fs::read(&data).unwrap(), whole);
        assert_eq!(fs::read_dir(imports(cache.path())).unwrap().count(), 1, "no lock and no hidden folder is left");
    }

    #[test]
    fn several_at_once_share_one_import() {
        let cache = tempfile::tempdir().unwrap();
        let imported: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| import(cache.path()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let made = imported.iter().filter(|(_, told)| told.iter().any(|line| line.starts_with("Imported"))).count();
        assert_eq!(made, 1, "{imported:?}");
        assert!(imported.iter().all(|(folder, _)| *folder == imported[0].0));
        assert_eq!(fs::read_dir(imports(cache.path())).unwrap().count(), 1);
    }
}
