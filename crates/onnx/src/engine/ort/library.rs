//! Finding and loading ONNX Runtime's shared library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use ort::environment::{Environment, GlobalThreadPoolOptions};
use unspool_core::{Error, Result};

/// How to get ONNX Runtime, for messages.
pub const HOW_TO_GET: &str = "install it with `pip install onnxruntime`, or set ORT_DYLIB_PATH to its shared library";

/// The loaded library.
pub struct Library {
    /// What sessions are made in.
    pub environment: Environment,
    /// Threads of the pool that all sessions share. Graphs run by turns (a model and its assistant, prompts and tokens), and
    /// threads of their own would spin for work on each other's cores: measured at twice the time of a step.
    pub shared_threads: usize,
}

/// Loads ONNX Runtime once per process: from `ORT_DYLIB_PATH`, else from the usual places, among them an installed Python
/// `onnxruntime`. The first call decides on the `threads` that sessions share.
///
/// # Errors
///
/// When no library is found, or what was found cannot be loaded or is too old.
pub fn load(threads: usize) -> Result<&'static Library> {
    static LOADED: OnceLock<Result<Library, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let init = |path: &Path| -> Result<Library, String> {
            let environment = init(path, threads)?;
            Ok(Library { environment, shared_threads: threads })
        };
        if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|p| !p.is_empty()) {
            let path = PathBuf::from(path);
            return init(&path).map_err(|e| format!("ORT_DYLIB_PATH is {}, but {e}", path.display()));
        }
        let mut failures = Vec::new();
        for candidates in [system_places, environment_places, python_places] {
            for path in candidates() {
                match init(&path) {
                    Ok(library) => return Ok(library),
                    Err(e) => failures.push(format!("{}: {e}", path.display())),
                }
            }
        }
        let tried = if failures.is_empty() { String::new() } else { format!("; tried {}", failures.join("; ")) };
        Err(format!("ONNX Runtime was not found: {HOW_TO_GET}{tried}"))
    });
    match loaded {
        Ok(library) => Ok(library),
        Err(why) => Err(Error::unsupported(why.clone())),
    }
}

/// The version in the loaded library's file name, e.g. `1.32.0`; call after [`load`].
pub fn version() -> String {
    VERSION.get().filter(|version| !version.is_empty()).map_or("of unknown version", String::as_str).to_owned()
}

/// `1.32.0` of `libonnxruntime.so.1.32.0` and `libonnxruntime.1.32.0.dylib`; empty when the name tells none.
fn version_in(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned()
}

static VERSION: OnceLock<String> = OnceLock::new();

fn init(path: &Path, threads: usize) -> Result<Environment, String> {
    if !path.is_file() {
        return Err("there is no such file".to_owned());
    }
    let builder = ort::init_from(path).map_err(|e| e.to_string())?;
    VERSION.get_or_init(|| version_in(path));
    let pool = GlobalThreadPoolOptions::default().with_intra_threads(threads).map_err(|e| e.to_string())?;
    let builder = builder.with_name("unspool").with_telemetry(false).with_global_thread_pool(pool);
    builder.build().map_err(|e| e.to_string())
}

/// Whether a file name is that of the library (`libonnxruntime.so.1.32.0`, `libonnxruntime.dylib`, `onnxruntime.dll`).
fn is_library(name: &str) -> bool {
    let stem = format!("{}onnxruntime", std::env::consts::DLL_PREFIX);
    let Some(rest) = name.strip_prefix(&stem) else { return false };
    match std::env::consts::OS {
        "windows" => rest == ".dll",
        "macos" => rest.ends_with(".dylib") && !rest.starts_with('_'),
        _ => rest.starts_with(".so"),
    }
}

fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(is_library))
        .collect();
    found.sort();
    found
}

fn system_places() -> Vec<PathBuf> {
    ["/usr/local/lib", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/opt/homebrew/lib"]
        .iter()
        .flat_map(|folder| libraries_in(Path::new(folder)))
        .collect()
}

/// The `onnxruntime` package of an active virtual environment, found without starting Python.
fn environment_places() -> Vec<PathBuf> {
    let roots = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    roots
        .flat_map(|root| {
            let lib = std::fs::read_dir(root.join("lib"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|e| e.path().join("site-packages"));
            let windows = [root.join("Lib").join("site-packages")];
            lib.chain(windows).flat_map(|p| libraries_in(&p.join("onnxruntime").join("capi"))).collect::<Vec<_>>()
        })
        .collect()
}

/// The `onnxruntime` package of the Python on the path; the package is located, not imported.
fn python_places() -> Vec<PathBuf> {
    const LOCATE: &str = "import importlib.util as u; s = u.find_spec('onnxruntime'); print(s.origin if s else '')";
    for python in ["python3", "python"] {
        let output = Command::new(python).args(["-c", LOCATE]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let Ok(output) = output else { continue };
        let origin = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if let Some(folder) = Path::new(&origin).parent().filter(|_| !origin.is_empty()) {
            return libraries_in(&folder.join("capi"));
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version_off_the_file_name() {
        assert_eq!(version_in(Path::new("/x/libonnxruntime.so.1.32.0")), "1.32.0");
        assert_eq!(version_in(Path::new("/x/libonnxruntime.1.20.1.dylib")), "1.20.1");
        assert_eq!(version_in(Path::new("/x/libonnxruntime.so")), "");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn knows_the_library_by_its_file_name() {
        assert!(is_library("libonnxruntime.so") && is_library("libonnxruntime.so.1.32.0"));
        assert!(!is_library("libonnxruntime_providers_shared.so") && !is_library("onnxruntime.so"));
    }
}
