//! From a path to something that can be run: what is there, and an import when it needs one.

use std::fs;
use std::path::{Path, PathBuf};

use unspool_core::{Error, Result};
use unspool_import::manifest::Manifest;
use unspool_import::{ImportOptions, OnProgress, Weights};
use unspool_onnx::EngineChoice;

use crate::cache::{cache_folder, import_once};

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The engine that runs the graph.
    pub engine: EngineChoice,
    /// Threads of the engine; the physical cores by default.
    pub threads: Option<usize>,
    /// Which graph of the folder: `q4` is `onnx/model_q4.onnx`, and so on.
    pub dtype: Option<String>,
    /// How a checkpoint is imported.
    pub weights: Weights,
    /// Whether the graph of an imported checkpoint gives hidden states.
    pub hidden_states: bool,
    /// After how many layers the import of a checkpoint can end early, to draft for itself (`assistant_early_exit`).
    pub early_exits: Vec<usize>,
    /// Asked after each tensor of an import, and each piece of a download, whether to stop it. Of an import nothing is left
    /// then, a download goes on there the next time.
    pub interrupted: Option<fn() -> bool>,
    /// Branch, tag or commit of a model of the Hub; `main` by default.
    pub revision: Option<String>,
    /// Called while files are downloaded.
    #[cfg(feature = "hub")]
    pub on_download: Option<unspool_hub::OnDownload>,
    /// Progress callback of an import; its error ends the import, and nothing is left behind.
    pub on_import: Option<OnProgress>,
    /// Where imported checkpoints are kept; [`cache_folder`] by default.
    pub cache: Option<PathBuf>,
}

/// What a path holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// A folder with an ONNX graph, or the graph itself.
    Graph(PathBuf),
    /// A checkpoint that must be imported: a file, or a folder with safetensors.
    Checkpoint(PathBuf),
}

/// Endings of the files of models: a path with one of them is no name on the Hub.
const ENDINGS: [&str; 8] = ["gguf", "onnx", "safetensors", "ort", "bin", "pt", "pth", "json"];

/// Where the model `path` is on this machine: there, or, for the name of a model of the Hub (`org/name`), where it was
/// fetched to.
///
/// What has the ending of a model's file, or lies in a folder that is there, is a path and not asked of the Hub.
///
/// # Errors
///
/// When there is nothing at `path` and it is no name of a model that can be fetched.
pub fn locate(path: &Path, options: &OpenOptions) -> Result<PathBuf> {
    let refused = |message: &str| Err(Error::invalid_input(message).at(path.display()));
    match fs::metadata(path) {
        Ok(_) if options.revision.is_some() => {
            return refused("a revision is for models of the Hub, and this is a path");
        }
        Ok(_) => return Ok(path.to_path_buf()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("this path cannot be looked at").at(path.display()).because(error));
        }
        Err(_) => {}
    }
    // Only a model of the Hub has revisions.
    if options.revision.is_none() {
        if ENDINGS.contains(&ending(path).as_str()) {
            return refused("there is no such file");
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if parent.is_some_and(Path::is_dir) {
            return refused("there is no such file or folder");
        }
    }
    fetched(path, options)
}

#[cfg(feature = "hub")]
fn fetched(path: &Path, options: &OpenOptions) -> Result<PathBuf> {
    use unspool_hub::{Hub, HubId, Kind};
    let Some(id) = path.to_str().and_then(|id| HubId::parse(id, options.revision.as_deref())) else {
        return Err(Error::invalid_input(
            "there is no model at this path; give a model folder, a .gguf file or a Hub id such as org/name",
        )
        .at(path.display()));
    };
    let cache = match &options.cache {
        Some(cache) => cache.clone(),
        None => cache_folder()?,
    };
    Hub::from_env()?
        .links(cache.join("hub"))
        .on_download(options.on_download.clone())
        .interrupted(options.interrupted)
        .fetch(&id, options.dtype.as_deref(), Kind::Any)
        .map_err(|error| match error.kind() {
            // The name may be a path with a mistake in it.
            unspool_core::ErrorKind::Network => Error::network(format!(
                "there is no such folder here, and as a model of the Hub it could not be fetched: {error}"
            )),
            _ => error,
        })
}

#[cfg(not(feature = "hub"))]
fn fetched(path: &Path, _: &OpenOptions) -> Result<PathBuf> {
    let message = "there is no model at this path, and this program was built without the feature `hub`, which fetches \
                   models by their names; give a model folder or a .gguf file";
    Err(Error::invalid_input(message).at(path.display()))
}

/// A model that can be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loadable {
    /// A folder with a graph, or the graph itself.
    pub graph: PathBuf,
    /// Which graph of the folder.
    pub dtype: Option<String>,
}

/// What can be loaded at `path`, or of the model of the Hub with this name: a graph, or the import of the checkpoint that is
/// there, made now or found in the cache. `tell` hears of an import.
///
/// # Errors
///
/// When there is nothing that can be run at `path`, an option has no effect on what is there, or the fetch or the import
/// fails.
pub(crate) fn loadable(path: &Path, options: &OpenOptions, tell: &mut dyn FnMut(&str)) -> Result<Loadable> {
    let found = look(&locate(path, options)?)?;
    check(&found, options)?;
    match found {
        Found::Graph(graph) => {
            Manifest::check_graphs(&graph)?;
            Ok(Loadable { graph, dtype: options.dtype.clone() })
        }
        Found::Checkpoint(checkpoint) => {
            let cache = match &options.cache {
                Some(cache) => cache.clone(),
                None => cache_folder()?,
            };
            let import = ImportOptions {
                weights: options.weights,
                hidden_states: options.hidden_states,
                early_exits: options.early_exits.clone(),
                progress: Some(progress(options)),
            };
            let graph = import_once(&checkpoint, &import, &cache, tell)?;
            Ok(Loadable { graph, dtype: None })
        }
    }
}

/// Whether the model at `path` is a checkpoint, which is imported before it is run, and not a graph.
///
/// # Errors
///
/// When there is no model at `path`.
pub fn is_checkpoint(path: impl AsRef<Path>) -> Result<bool> {
    Ok(matches!(look(path.as_ref())?, Found::Checkpoint(_)))
}

/// Refuses options that would have no effect on what was found.
fn check(found: &Found, options: &OpenOptions) -> Result<()> {
    let refused = |message: &str, path: &Path| Err(Error::invalid_input(message).at(path.display()));
    match found {
        Found::Graph(path) if options.weights != Weights::Keep => refused(
            "weights (--weights) says how a checkpoint is imported, and this is an ONNX graph, which is used as it is; leave it \
             out, or give the checkpoint",
            path,
        ),
        Found::Graph(path) if options.dtype.is_some() && path.is_file() => {
            refused("dtype (--dtype) chooses among the graphs of a folder, and this is one graph; leave it out", path)
        }
        // A GGUF file of the Hub was chosen by it.
        Found::Checkpoint(path) if options.dtype.as_ref().is_some_and(|dtype| !is_named(path, dtype)) => refused(
            "dtype (--dtype) chooses among the ONNX graphs of a folder, and this is a checkpoint; leave it out (weights, \
             --weights, says how a checkpoint is imported)",
            path,
        ),
        _ => Ok(()),
    }
}

/// Whether `word` stands in the name of a GGUF file.
fn is_named(path: &Path, word: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ending(path) == "gguf" && name.contains(&word.to_lowercase())
}

/// The progress callback of an import for `options`.
fn progress(options: &OpenOptions) -> OnProgress {
    let (interrupted, on_import) = (options.interrupted, options.on_import.clone());
    OnProgress::new(move |progress| {
        if interrupted.is_some_and(|interrupted| interrupted()) {
            return Err(Error::callback("the import was stopped"));
        }
        on_import.as_ref().map_or(Ok(()), |on_import| on_import.call(progress))
    })
}

fn look(path: &Path) -> Result<Found> {
    let metadata = fs::metadata(path)
        .map_err(|error| Error::io("there is no model at this path").at(path.display()).because(error))?;
    if !metadata.is_dir() && !metadata.is_file() {
        let message =
            "this is a pipe, a device or a socket, expected a model folder, a .gguf, .onnx or .safetensors file";
        return Err(Error::invalid_input(message).at(path.display()));
    }
    if !metadata.is_dir() {
        return match ending(path).as_str() {
            "gguf" | "safetensors" => Ok(Found::Checkpoint(path.to_path_buf())),
            "onnx" => Ok(Found::Graph(path.to_path_buf())),
            _ => Err(Error::invalid_input(
                "this file is no model; expected a model folder, a .gguf, .onnx or a .safetensors file",
            )
            .at(path.display())),
        };
    }
    if !with_ending(path, "onnx").is_empty() || !with_ending(&path.join("onnx"), "onnx").is_empty() {
        return Ok(Found::Graph(path.to_path_buf()));
    }
    // Shards may lie in a folder below; their index is here.
    if !with_ending(path, "safetensors").is_empty() || path.join("model.safetensors.index.json").is_file() {
        return Ok(Found::Checkpoint(path.to_path_buf()));
    }
    let torch = ["bin", "pt", "pth"].iter().flat_map(|end| with_ending(path, end)).next();
    match with_ending(path, "gguf").as_slice() {
        [] if torch.is_some() => Err(Error::invalid_input(
            "this folder holds weights in PyTorch's own format, which are not read; save them as safetensors \
             (model.save_pretrained(folder) in Python), or take a .gguf file or an ONNX export",
        )
        .at(path.display())),
        [one] => Ok(Found::Checkpoint(one.clone())),
        [] => Err(Error::invalid_input(
            "this folder holds no model; expected an ONNX graph (model.onnx or onnx/model.onnx), a safetensors \
             checkpoint or a .gguf file",
        )
        .at(path.display())),
        many => Err(Error::invalid_input(format!("this folder holds {} .gguf files; give one of them", many.len()))
            .at(path.display())),
    }
}

fn ending(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn with_ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| ending(path) == end).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        folder
    }

    #[test]
    fn options_without_effect_are_refused_by_name() {
        let (graph, checkpoint) = (folder(&["onnx/model.onnx"]), folder(&["a-Q4_0.gguf"]));
        let refused = |path: &Path, options: OpenOptions| {
            check(&look(path).unwrap(), &options).map_or_else(|error| error.to_string(), |()| String::new())
        };
        let dtype = |word: &str| OpenOptions { dtype: Some(word.to_owned()), ..OpenOptions::default() };
        let weights = OpenOptions { weights: Weights::Int8, ..OpenOptions::default() };
        assert!(refused(graph.path(), weights.clone()).contains("--weights"));
        assert_eq!(refused(checkpoint.path(), weights), "");
        assert!(refused(checkpoint.path(), dtype("fp16")).contains("--dtype"));
        assert_eq!(refused(checkpoint.path(), dtype("q4_0")), "");
        assert!(refused(&graph.path().join("onnx/model.onnx"), dtype("fp16")).contains("--dtype"));
        assert_eq!(refused(graph.path(), dtype("fp16")), "");
    }

    #[test]
    fn a_graph_comes_before_a_checkpoint() {
        let both = folder(&["onnx/model.onnx", "model.safetensors"]);
        assert_eq!(look(both.path()).unwrap(), Found::Graph(both.path().to_path_buf()));
        let plain = folder(&["model.safetensors"]);
        assert_eq!(look(plain.path()).unwrap(), Found::Checkpoint(plain.path().to_path_buf()));
        let gguf = folder(&["a.gguf"]);
        assert_eq!(look(gguf.path()).unwrap(), Found::Checkpoint(gguf.path().join("a.gguf")));
    }

    #[test]
    fn a_mistyped_path_is_not_asked_of_the_hub() {
        let folder = folder(&["a.txt"]);
        let missing = |path: &Path| locate(path, &OpenOptions::default()).unwrap_err().to_string();
        assert!(missing(Path::new("dl/nosuch.gguf")).contains("no such file"));
        assert!(missing(&folder.path().join("nosuch")).contains("there is no such file or folder"));
        assert!(missing(Path::new("./a/b/c")).contains("no model at this path"));
        let pinned = OpenOptions { revision: Some("v1".into()), ..OpenOptions::default() };
        assert!(
            locate(folder.path(), &pinned).unwrap_err().to_string().contains("a revision is for models of the Hub")
        );
    }

    #[test]
    fn says_what_is_missing() {
        let empty = folder(&["README.md", "a.txt"]);
        assert!(look(empty.path()).unwrap_err().to_string().contains("holds no model"));
        assert!(look(&empty.path().join("a.txt")).unwrap_err().to_string().contains("no model"));
        assert!(look(&empty.path().join("nothing")).unwrap_err().to_string().contains("no model at this path"));
        let torch = folder(&["config.json", "pytorch_model.bin"]);
        assert!(look(torch.path()).unwrap_err().to_string().contains("PyTorch's own format"));
        let two = folder(&["a.gguf", "b.gguf"]);
        assert!(look(two.path()).unwrap_err().to_string().contains("2 .gguf files"));
    }
}
