//! The engines a case is replayed on.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use unspool_core::{Error, Model, Result};
use unspool_onnx::{EngineChoice, OnnxModel, OnnxOptions};

/// An engine that runs graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The built-in engine.
    Rten,
    /// ONNX Runtime, when its library is found.
    Ort,
}

impl Engine {
    /// Both engines.
    pub const ALL: [Engine; 2] = [Engine::Rten, Engine::Ort];

    /// The name used on command lines and in the baseline.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Rten => "rten",
            Engine::Ort => "ort",
        }
    }

    /// Opens a model folder on this engine.
    ///
    /// # Errors
    ///
    /// When the folder is no model, or the engine cannot load its graph.
    pub fn open(self, folder: &Path) -> Result<Box<dyn Model>> {
        let engine = match self {
            Engine::Rten => EngineChoice::Rten,
            Engine::Ort => EngineChoice::Ort,
        };
        Ok(Box::new(OnnxModel::open(folder, &OnnxOptions { engine, ..OnnxOptions::default() })?))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Engine> {
        Engine::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| Error::invalid_input(format!("no engine is called {name:?}; there are rten and ort")))
    }
}
