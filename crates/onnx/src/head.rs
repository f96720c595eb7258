//! The output matrix by itself, for hidden states of earlier layers: a small graph over the decoder's own weights.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use unspool_core::{Error, Result};

use crate::cache::runner::Runner;
use crate::engine::choose::choose;
use crate::engine::contract::{Call, Engine, Feed, LogitsCall};
use crate::graph::read;
use crate::graph::signature::HEAD_INPUT;

/// The graph's file, beside the decoder's.
const FILE: &str = "head.onnx";

/// The graph of the output matrix. It is loaded when it is first used.
pub(crate) struct Head {
    path: PathBuf,
    threads: usize,
    loaded: OnceLock<std::result::Result<Arc<dyn Engine>, String>>,
}

impl Head {
    /// The graph beside `graph`, whether it is there or not.
    pub fn beside(graph: &Path, threads: usize) -> Self {
        Head { path: graph.with_file_name(FILE), threads, loaded: OnceLock::new() }
    }

    /// `[positions, width]` hidden states become `[positions, vocab]` logits, on the engine that runs the decoder.
    ///
    /// # Errors
    ///
    /// When the model has no such graph, it cannot be loaded, or the engine fails.
    pub fn apply(&self, runner: &Runner, states: &[f32], logits: &mut Vec<f32>) -> Result<()> {
        let engine = self
            .loaded
            .get_or_init(|| self.load(runner).map_err(|error| error.to_string()))
            .as_ref()
            .map_err(|why| Error::unsupported(why.clone()))?;
        let width = runner.hidden().map_or(0, |hidden| hidden.width).max(1);
        let positions = states.len() / width;
        if positions * width != states.len() || positions == 0 {
            return Err(Error::invalid_input(format!(
                "{} numbers are no hidden states of {width} each; give whole states",
                states.len()
            )));
        }
        let feeds = [Feed::Floats { name: HEAD_INPUT, shape: vec![1, positions, width], data: states }];
        let logits = Some(LogitsCall { shape: [1, positions], out: logits });
        engine.run(Call { feeds: &feeds, cache: None, logits, hidden: None })
    }

    fn load(&self, runner: &Runner) -> Result<Arc<dyn Engine>> {
        if runner.hidden().is_none() || !self.path.is_file() {
            return Err(Error::unsupported(format!(
                "this model cannot apply its output matrix to the hidden states of earlier layers, because it has no \
                 onnx/{FILE}; import a checkpoint with `unspool import --hidden-states`"
            )));
        }
        let signature = read::read_head(&self.path, runner.signature.vocab_size)?;
        Ok(choose(runner.engine.name().parse()?, &self.path, &signature, self.threads)?.engine)
    }
}
