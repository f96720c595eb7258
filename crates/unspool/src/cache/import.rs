//! A checkpoint is imported once; later starts open the folder that was written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use unspool_core::{Error, Result};
use unspool_import::ImportOptions;

use super::content::{Contents, hex};

/// Raised when the same checkpoint is written differently, so that folders of older versions are not taken for new ones.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "-6");

/// The ends of the files that an import reads beside the weights.
const READ: [&str; 5] = [".safetensors", ".json", ".jinja", ".model", ".txt"];

/// Imports `checkpoint` (a `.gguf` file, a `.safetensors` file or a folder) into `cache`, unless the same content was
/// imported with the same `options` before; returns the model folder. `tell` hears one line before and after an import.
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
    let target = cache.join("imports").join(format!("{name}-{form}-{}", key.get(..20).unwrap_or(&key)));
    if ["config.json", "onnx/model.onnx", "onnx/model.onnx.data"].iter().all(|file| target.join(file).is_file()) {
        return Ok(target);
    }
    if target.is_dir() {
        tell(&format!("The import in {} is damaged and is made anew.", target.display()));
        fs::remove_dir_all(&target).map_err(|error| {
            Error::io("this damaged import could not be removed; remove it by hand").at(target.display()).because(error)
        })?;
    }
    tell(&format!("Importing {} (once) ...", checkpoint.display()));
    match unspool_import::import(checkpoint, &target, options) {
        Ok(report) => tell(&format!("Imported {report}.")),
        // Another process imported the same content meanwhile.
        Err(_) if target.join("config.json").is_file() => {}
        Err(error) => return Err(error),
    }
    Ok(target)
}

/// One hash over everything an import reads.
fn key(checkpoint: &Path, cache: &Path) -> Result<String> {
    let mut contents = Contents::open(cache);
    let mut digest = Sha256::new();
    digest.update(FORMAT);
    if checkpoint.is_dir() {
        let mut files: Vec<PathBuf> = fs::read_dir(checkpoint)
            .map_err(|error| Error::io("this folder could not be read").at(checkpoint.display()).because(error))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_file() && READ.iter().any(|end| path.to_string_lossy().ends_with(end)))
            .collect();
        files.sort();
        for file in files {
            digest.update(file.file_name().unwrap_or_default().to_string_lossy().as_bytes());
            digest.update([0]);
            digest.update(contents.sha256(&file)?);
        }
    } else {
        digest.update(contents.sha256(checkpoint)?);
    }
    contents.save();
    Ok(hex(&digest.finalize()))
}
