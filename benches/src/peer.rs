//! rten's own generation loop on the same graph.

use std::sync::Arc;
use std::time::Instant;

use rten::{ModelOptions, RunOptions, ThreadPool};
use rten_generate::{Generator, GeneratorConfig};
use rten_tensor::NdTensorView;
use unspool_core::{Error, Result};

use crate::{Measured, Task, graph};

/// The last token's, as our own loop asks for.
static LOGITS_TO_KEEP: [i32; 1] = [1];

/// Runs the task with rten-generate: greedy, caches of full capacity from the start.
pub fn rten_generate(task: &Task) -> Result<Measured> {
    let start = Instant::now();
    let path = graph(&task.folder);
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(task.prepack);
    let model =
        options.load_file(&path).map_err(|e| Error::engine("cannot load the graph").at(path.display()).because(e))?;
    let load = start.elapsed();

    let start = Instant::now();
    let config =
        GeneratorConfig { kv_cache_capacity: Some(task.prompt.len() + task.new_tokens), ..GeneratorConfig::default() };
    let pool = task.threads.map(|threads| Arc::new(ThreadPool::with_num_threads(threads)));
    let mut generator = Generator::from_model_config(&model, config)
        .map_err(|e| Error::engine("rten-generate refuses the graph").because(e.to_string()))?
        .with_run_options(Some(RunOptions::default().with_thread_pool(pool)))
        .with_prompt(&task.prompt);
    // Graphs of ours ask how many logits are wanted: the peer reads the last ones.
    if let Some(input) = model.find_node("logits_to_keep") {
        generator = generator.with_constant_input(input, NdTensorView::from_data([1], &LOGITS_TO_KEEP).into());
    }
    let mut ids = Vec::new();
    let mut prompt = None;
    while ids.len() < task.new_tokens {
        let next = generator.next().ok_or_else(|| Error::engine("rten-generate ended by itself"))?;
        ids.push(next.map_err(|e| Error::engine("rten-generate failed").because(e.to_string()))?);
        prompt.get_or_insert_with(|| start.elapsed());
    }
    let prompt = prompt.unwrap_or_default();
    Ok(Measured { load, prompt, decode: start.elapsed().saturating_sub(prompt), model_share: None, ids })
}
