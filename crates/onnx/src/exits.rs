//! Models that end early: graphs of a decoder's first layers, over the same weights, beside its own graph.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use unspool_core::{Error, Model, Result};

use crate::engine::EngineChoice;
use crate::model::{OnnxModel, OnnxOptions};

/// The first layers that the graph of this file stem has, when it is an early exit: 6 for `exit_6`.
pub(crate) fn layers_of(stem: &str) -> Option<usize> {
    stem.strip_prefix("exit_")?.parse().ok()
}

/// The exits beside a graph. Each is loaded when it is first used.
pub(crate) struct Exits {
    found: BTreeMap<usize, PathBuf>,
    /// Layers of the whole model.
    of: usize,
    options: OnnxOptions,
    loaded: Mutex<BTreeMap<usize, Arc<dyn Model>>>,
}

impl Exits {
    /// Those beside `graph`, which has `of` layers, to run on `engine`.
    pub fn beside(graph: &Path, of: usize, engine: EngineChoice, threads: usize) -> Self {
        let options = OnnxOptions { engine, threads: Some(threads), dtype: None };
        let whole = graph.file_stem().is_some_and(|stem| stem == "model");
        let files = graph.parent().filter(|_| whole).and_then(|folder| std::fs::read_dir(folder).ok());
        let files = files.into_iter().flatten().flatten().map(|entry| entry.path());
        let exit = |path: PathBuf| {
            let layers = layers_of(&path.file_stem()?.to_string_lossy())?;
            (path.extension()? == "onnx" && path.is_file()).then_some((layers, path))
        };
        Exits { found: files.filter_map(exit).collect(), of, options, loaded: Mutex::default() }
    }

    /// After how many layers there are exits, in order.
    pub fn layers(&self) -> Vec<usize> {
        self.found.keys().copied().collect()
    }

    /// The model that ends after `layers` layers of the one with a vocabulary of `vocab`.
    ///
    /// # Errors
    ///
    /// When there is none, or it is not of this model.
    pub fn open(&self, layers: usize, vocab: usize) -> Result<Arc<dyn Model>> {
        let Some(path) = self.found.get(&layers) else {
            let there = self.found.keys().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let there = if there.is_empty() { "none".to_owned() } else { format!("those after {there} layers") };
            let advice = if layers >= self.of {
                format!("the model has {} layers, an early exit lies before its last one", self.of)
            } else {
                format!("import the GGUF or safetensors checkpoint anew with `unspool import --early-exit {layers}`")
            };
            return Err(Error::unsupported(format!(
                "assistant_early_exit={layers}: this model has no exit there; of early exits it has {there}; {advice}"
            )));
        };
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = loaded.get(&layers) {
            return Ok(model.clone());
        }
        // Several graphs lie here: the one that is broken must be named.
        let named = |error: Error| Error::new(error.kind(), format!("the early exit cannot be used: {error}"));
        let model = OnnxModel::open(path, &self.options).map_err(|error| named(error).at(path.display()))?;
        let (own, has) = (model.vocab_size(), model.description().layers);
        if own != vocab || has != layers {
            return Err(Error::invalid_model(format!(
                "this graph has {has} layers and a vocabulary of {own}, expected {layers} layers and {vocab}; import the \
                 checkpoint again"
            ))
            .at(path.display()));
        }
        let model: Arc<dyn Model> = Arc::new(model);
        loaded.insert(layers, model.clone());
        Ok(model)
    }
}
