//! What `inspect` tells about a graph.

use std::path::Path;

use serde::Serialize;

use crate::engine::EngineChoice;
use crate::engine::choose::choose;
use crate::engine::contract::Engine;
use crate::graph::{CacheMode, Io, Signature};

/// A graph, its cache and its engine.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// The graph file.
    pub graph: String,
    /// The engine that runs it: `rten` or `ort`.
    pub engine: String,
    /// The engine's version.
    pub engine_version: String,
    /// Threads it runs on.
    pub threads: usize,
    /// Declared inputs.
    pub inputs: Vec<Io>,
    /// Declared outputs.
    pub outputs: Vec<Io>,
    /// Those inputs and outputs that are keys and values of the cache.
    #[serde(skip)]
    pub cache_tensors: Vec<String>,
    /// How keys and values are kept.
    pub cache_mode: CacheMode,
    /// Why this cache mode.
    pub cache_reason: &'static str,
    /// Layers with a cache.
    pub layers: usize,
    /// Key and value heads, of the first layer.
    pub kv_heads: Option<usize>,
    /// Size of a head, of the first layer.
    pub head_dim: Option<usize>,
    /// Entries of the vocabulary.
    pub vocab_size: usize,
    /// Largest number of positions, when config.json says.
    pub max_positions: Option<usize>,
    /// After how many layers the model can end early, to draft for itself (`assistant_early_exit`).
    pub early_exits: Vec<usize>,
    /// Bytes of cache per token of one row.
    pub cache_bytes_per_token: usize,
    /// A line for standard error about the choice of the engine.
    #[serde(skip)]
    pub engine_hint: Option<String>,
}

/// Whether an engine loads a graph.
#[derive(Clone, Debug, Serialize)]
pub struct EngineSupport {
    /// `rten` or `ort`.
    pub engine: &'static str,
    /// Whether it loads the graph.
    pub loads: bool,
    /// Why not.
    pub why: Option<String>,
}

impl Description {
    pub(crate) fn new(
        graph: &Path,
        signature: &Signature,
        engine: &dyn Engine,
        threads: usize,
        max_positions: Option<usize>,
        engine_hint: Option<String>,
    ) -> Self {
        let first = signature.cache.first();
        Description {
            graph: graph.display().to_string(),
            engine: engine.name().to_owned(),
            engine_version: engine.version(),
            threads,
            inputs: signature.inputs.clone(),
            outputs: signature.outputs.clone(),
            cache_tensors: signature.cache.iter().flat_map(|slot| [slot.past.clone(), slot.present.clone()]).collect(),
            cache_mode: signature.cache_mode,
            cache_reason: signature.cache_reason,
            layers: signature.layers(),
            kv_heads: first.map(|s| s.heads),
            head_dim: first.map(|s| s.head_dim),
            vocab_size: signature.vocab_size,
            max_positions,
            early_exits: Vec::new(),
            cache_bytes_per_token: signature.cache_bytes_per_token(),
            engine_hint,
        }
    }
}

impl crate::OnnxModel {
    /// Tries to load the graph into each engine (this takes as long as opening it).
    pub fn engine_support(&self) -> Vec<EngineSupport> {
        let runner = self.runner();
        [("rten", EngineChoice::Rten), ("ort", EngineChoice::Ort)]
            .into_iter()
            .map(|(name, choice)| {
                if runner.engine.name() == name {
                    return EngineSupport { engine: name, loads: true, why: None };
                }
                let graph = Path::new(&self.description().graph);
                let why = choose(choice, graph, &runner.signature, 1).err().map(|e| e.to_string());
                EngineSupport { engine: name, loads: why.is_none(), why }
            })
            .collect()
    }
}
