//! Which engine runs a graph.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use unspool_core::{Error, Result};

use super::contract::Engine;
use crate::graph::Signature;

/// The caller's wish for an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// ONNX Runtime when its library is found, else the built-in engine.
    #[default]
    Auto,
    /// The built-in engine.
    Rten,
    /// ONNX Runtime.
    Ort,
}

impl FromStr for EngineChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(EngineChoice::Auto),
            "rten" => Ok(EngineChoice::Rten),
            "ort" => Ok(EngineChoice::Ort),
            other => Err(Error::invalid_input(format!("engine '{other}'; expected auto, rten or ort"))),
        }
    }
}

/// The hint when the built-in engine runs a model because ONNX Runtime is not on the machine. It is the same for every model.
pub const NO_ORT_HINT: &str =
    "note: the built-in engine (rten) runs this model; `pip install onnxruntime` makes it about twice as fast";

/// A loaded engine, and what to tell the user about the choice.
pub struct Chosen {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// A line for standard error when the built-in engine runs for want of ONNX Runtime.
    pub hint: Option<String>,
}

/// Loads the graph in `path` into the engine of `choice`.
///
/// # Errors
///
/// When the engine asked for is not there or refuses the graph; with `Auto`, when every engine refuses it.
pub fn choose(choice: EngineChoice, path: &Path, signature: &Signature, threads: usize) -> Result<Chosen> {
    let plain = |engine: Arc<dyn Engine>| Chosen { engine, hint: None };
    match choice {
        EngineChoice::Rten => Ok(plain(load_rten(path, signature, threads)?)),
        EngineChoice::Ort => Ok(plain(load_ort(path, signature, threads)?)),
        EngineChoice::Auto if !cfg!(feature = "rten") => Ok(plain(load_ort(path, signature, threads)?)),
        EngineChoice::Auto if !cfg!(feature = "ort") => Ok(plain(load_rten(path, signature, threads)?)),
        EngineChoice::Auto if find_ort(threads).is_ok() => match load_ort(path, signature, threads) {
            Ok(engine) => Ok(plain(engine)),
            Err(from_ort) => match load_rten(path, signature, threads) {
                Ok(engine) => Ok(Chosen {
                    engine,
                    hint: Some(format!("note: the built-in engine runs this graph, because {from_ort}")),
                }),
                Err(from_rten) => {
                    Err(Error::unsupported(format!("no engine loads this graph: {from_ort}; {from_rten}")))
                }
            },
        },
        EngineChoice::Auto => {
            // Who named a library wants to know why it is not used.
            let named = std::env::var_os("ORT_DYLIB_PATH").is_some_and(|path| !path.is_empty());
            let hint = match find_ort(threads) {
                Err(error) if named => format!("note: the built-in engine (rten) runs this model, because {error}"),
                _ => NO_ORT_HINT.to_owned(),
            };
            Ok(Chosen { engine: load_rten(path, signature, threads)?, hint: Some(hint) })
        }
    }
}

#[cfg(feature = "rten")]
fn load_rten(path: &Path, signature: &Signature, threads: usize) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(super::rten::RtenEngine::load(path, signature, threads)?))
}

#[cfg(not(feature = "rten"))]
fn load_rten(_: &Path, _: &Signature, _: usize) -> Result<Arc<dyn Engine>> {
    Err(left_out("rten"))
}

#[cfg(feature = "ort")]
fn load_ort(path: &Path, signature: &Signature, threads: usize) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(super::ort::OrtEngine::load(path, signature, threads)?))
}

#[cfg(not(feature = "ort"))]
fn load_ort(_: &Path, _: &Signature, _: usize) -> Result<Arc<dyn Engine>> {
    Err(left_out("ort"))
}

/// Whether ONNX Runtime is there.
///
/// # Errors
///
/// Why it is not.
#[cfg(feature = "ort")]
fn find_ort(threads: usize) -> Result<()> {
    super::ort::library::load(threads).map(|_| ())
}

#[cfg(not(feature = "ort"))]
fn find_ort(_: usize) -> Result<()> {
    Err(left_out("ort"))
}

#[cfg(not(all(feature = "rten", feature = "ort")))]
fn left_out(engine: &str) -> Error {
    Error::unsupported(format!(
        "this program was built without the engine {engine}; build it with the cargo feature `{engine}`, or choose another engine"
    ))
}

#[cfg(test)]
mod tests {
    use unspool_core::ErrorKind;

    use super::*;
    use crate::{OnnxModel, OnnxOptions};

    /// `cargo test -p unspool-onnx --no-default-features --features rten` (or `ort`) leaves one out.
    #[test]
    fn an_engine_that_was_left_out_is_named() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/llama");
        let engines =
            [(EngineChoice::Rten, "rten", cfg!(feature = "rten")), (EngineChoice::Ort, "ort", cfg!(feature = "ort"))];
        for (engine, name, _) in engines.into_iter().filter(|(_, _, built)| !built) {
            let error = OnnxModel::open(&folder, &OnnxOptions { engine, ..OnnxOptions::default() }).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(&format!("cargo feature `{name}`")), "{error}");
        }
    }
}
