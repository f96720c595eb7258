//! Which engine runs a graph.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use unspool_core::{Error, Result};

use super::contract::Engine;
use super::ort::{OrtEngine, library};
use super::rten::RtenEngine;
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
        EngineChoice::Rten => Ok(plain(Arc::new(RtenEngine::load(path, signature, threads)?))),
        EngineChoice::Ort => Ok(plain(Arc::new(OrtEngine::load(path, signature, threads)?))),
        EngineChoice::Auto if library::load(threads).is_ok() => match OrtEngine::load(path, signature, threads) {
            Ok(engine) => Ok(plain(Arc::new(engine))),
            Err(from_ort) => match RtenEngine::load(path, signature, threads) {
                Ok(engine) => Ok(Chosen {
                    engine: Arc::new(engine),
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
            let hint = match library::load(threads) {
                Err(error) if named => format!("note: the built-in engine (rten) runs this model, because {error}"),
                _ => "note: the built-in engine (rten) runs this model; `pip install onnxruntime` makes it about twice as fast"
                    .to_owned(),
            };
            Ok(Chosen { engine: Arc::new(RtenEngine::load(path, signature, threads)?), hint: Some(hint) })
        }
    }
}
