//! An ONNX graph as a core [`Model`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use unspool_core::{Error, HiddenShape, Model, Result, Session, SessionOptions};

use crate::cache::append::AppendRows;
use crate::cache::fixed::FixedSession;
use crate::cache::grow::GrowRows;
use crate::cache::in_place::InPlaceRows;
use crate::cache::none::NoCacheRows;
use crate::cache::runner::Runner;
use crate::cache::session::{CachedSession, Rows};
use crate::description::Description;
use crate::engine::choose::{Chosen, EngineChoice, choose};
use crate::exits::Exits;
use crate::folder;
use crate::graph::{CacheMode, read};
use crate::head::Head;

/// How to open a model folder.
#[derive(Clone, Debug, Default)]
pub struct OnnxOptions {
    /// Which engine runs the graph.
    pub engine: EngineChoice,
    /// Threads of the engine; the physical cores when `None`.
    pub threads: Option<usize>,
    /// Which of several graphs: the word in the file name (`q4`, `int8`, `fp16`, ...).
    pub dtype: Option<String>,
}

/// A decoder graph with its engine. Cheap to clone; sessions share the weights.
#[derive(Clone)]
pub struct OnnxModel {
    runner: Runner,
    description: Arc<Description>,
    head: Arc<Head>,
    exits: Arc<Exits>,
}

impl OnnxModel {
    /// Opens a model folder (or an `.onnx` file beside its config.json).
    ///
    /// # Errors
    ///
    /// When no graph is found, the graph or its external data is broken or hostile, it is not a decoder-only text graph,
    /// or no engine loads it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unspool_onnx::{OnnxModel, OnnxOptions};
    ///
    /// let model = OnnxModel::open("models/smollm2".as_ref(), &OnnxOptions::default())?;
    /// println!("{} on {}", model.description().cache_reason, model.description().engine);
    /// # Ok::<(), unspool_core::Error>(())
    /// ```
    pub fn open(path: &Path, options: &OnnxOptions) -> Result<Self> {
        let graph: PathBuf = folder::find_graph(path, options.dtype.as_deref())?;
        let facts = folder::config_facts(&folder::root_of(&graph))?;
        let signature = read::read(&graph, &facts)?;
        let threads = options.threads.unwrap_or_else(num_cpus::get_physical).max(1);
        if threads > MAX_THREADS {
            return Err(Error::invalid_input(format!("{threads} threads; expected 1 to {MAX_THREADS}")));
        }
        let Chosen { engine, hint } = choose(options.engine, &graph, &signature, threads)?;
        let max_positions = facts.max_positions;
        let exits = Exits::beside(&graph, signature.layers(), engine.name().parse()?, threads);
        let mut description = Description::new(&graph, &signature, &*engine, threads, max_positions, hint);
        description.early_exits = exits.layers();
        let runner = Runner { engine, signature: Arc::new(signature), max_positions };
        let head = Arc::new(Head::beside(&graph, threads));
        Ok(OnnxModel { runner, description: Arc::new(description), head, exits: Arc::new(exits) })
    }

    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }

    #[cfg(test)]
    pub(crate) fn runner_mut(&mut self) -> &mut Runner {
        &mut self.runner
    }

    /// What the graph declares and how it is run.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

const MAX_THREADS: usize = 1024;

impl Model for OnnxModel {
    fn vocab_size(&self) -> usize {
        self.runner.signature.vocab_size
    }

    fn max_positions(&self) -> Option<usize> {
        self.runner.max_positions
    }

    fn cache_bytes_per_token(&self) -> usize {
        self.description.cache_bytes_per_token
    }

    fn hidden(&self) -> Option<HiddenShape> {
        self.runner.hidden()
    }

    fn head(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<()> {
        self.head.apply(&self.runner, states, logits)
    }

    fn early_exit(&self, layers: usize) -> Result<Arc<dyn Model>> {
        self.exits.open(layers, self.vocab_size())
    }

    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        if options.rows == 0 {
            return Err(Error::invalid_input("a session of no rows; expected at least 1"));
        }
        let (runner, rows, capacity) = (&self.runner, options.rows, options.capacity);
        let places = runner.signature.fixed_batch.unwrap_or(rows);
        Ok(match runner.signature.cache_mode {
            CacheMode::InPlace => opened(runner, rows, InPlaceRows::new(runner, places, capacity)),
            CacheMode::Append => opened(runner, rows, AppendRows::new(runner, places, capacity)),
            CacheMode::Grow => opened(runner, rows, GrowRows::new(runner, places, capacity)),
            CacheMode::None => opened(runner, rows, NoCacheRows::new(places)),
        })
    }
}

/// A session of `rows` empty rows. `kept` has as many, or the number that the graph fixes.
fn opened<R: Rows + Clone + 'static>(runner: &Runner, rows: usize, kept: R) -> Box<dyn Session> {
    match runner.signature.fixed_batch {
        Some(places) => {
            let empty = CachedSession::new(runner.clone(), places, kept);
            Box::new(FixedSession::new(empty, rows, places, runner.signature.vocab_size))
        }
        None => Box::new(CachedSession::new(runner.clone(), rows, kept)),
    }
}
