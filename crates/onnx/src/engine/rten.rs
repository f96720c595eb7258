//! The built-in engine: rten, pure Rust.
//!
//! Caches are given to the graph as owned values with spare capacity, which its operators extend in place.

use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use unspool_core::{Error, Result, Together};

use super::contract::{CacheCall, Call, Engine, Feed, HiddenCall};
use crate::cache::kv::{KvCache, KvData, KvSlot};
use crate::graph::external::{self, Mapped};
use crate::graph::{ElementType, Signature};

/// A decoder graph loaded into rten.
pub struct RtenEngine {
    model: Model,
    pool: Arc<ThreadPool>,
    past: Vec<NodeId>,
    present: Vec<NodeId>,
    logits: NodeId,
    hidden: Vec<NodeId>,
    vocab_size: usize,
    rounds_tokens: bool,
    /// The memory that `model` borrows its weights from: after it, since fields are dropped in their order.
    _files: Vec<Mmap>,
}

/// The graph in `path`, and the mapped files that its weights lie in.
fn read(path: &Path) -> Result<(Model, Vec<Mmap>)> {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(false);
    let failed = |e: rten::LoadError| refused(e.to_string()).at(path.display());
    let mapped = external::map(path).map_err(|error| error.at(path.display()))?;
    match mapped {
        // rten opens files of certain names only, so they are opened here.
        Some(Mapped { graph, files }) => {
            for (number, file) in files.iter().enumerate() {
                // SAFETY: the map lives in the engine beside the model and is dropped after it (fields are dropped in
                // their order), nothing that the model returns borrows from it, and the address of a map does not
                // change when its owner moves.
                let bytes: &'static [u8] = unsafe { std::slice::from_raw_parts(file.as_ptr(), file.len()) };
                options.external_data_static(&external::plain_name(number), bytes);
            }
            Ok((options.load(graph).map_err(failed)?, files))
        }
        None => {
            // SAFETY: the map is private to this process and weights are only read. As with every memory-mapped model,
            // a file that is changed while it runs gives wrong numbers, not invalid memory accesses by this crate.
            Ok((unsafe { options.load_mmap(path) }.map_err(failed)?, Vec::new()))
        }
    }
}

/// The stack of a thread that loads a graph, in bytes: rten walks along chains of operators by recursion, and the graph may
/// have tens of thousands of them.
const LOADING_STACK: usize = 512 << 20;

/// Runs `load` where it may recurse deeply.
fn deeply<T: Send>(load: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LOADING_STACK).spawn_scoped(scope, load);
        let thread =
            thread.map_err(|error| Error::engine("no thread could be started to load the graph").because(error))?;
        thread.join().map_err(|_| Error::engine("rten failed while it loaded the graph"))
    })
}

impl RtenEngine {
    /// Loads the graph in `path` to run on `threads` threads.
    ///
    /// # Errors
    ///
    /// When the graph has an operator or element type that rten lacks; the message names it.
    pub fn load(path: &Path, signature: &Signature, threads: usize) -> Result<Self> {
        if let Some(slot) = signature.cache.iter().find(|s| s.dtype == ElementType::F16) {
            return Err(refused(format!("cache input '{}' is f16", slot.past)).at(path.display()));
        }
        let (model, files) = deeply(|| read(path))??;
        let node = |name: &str| {
            model
                .find_node(name)
                .ok_or_else(|| Error::engine(format!("rten does not know '{name}' after loading")).at(path.display()))
        };
        let past = signature.cache.iter().map(|s| node(&s.past)).collect::<Result<_>>()?;
        let present = signature.cache.iter().map(|s| node(&s.present)).collect::<Result<_>>()?;
        let logits = node("logits")?;
        let states = signature.hidden.iter().flat_map(|hidden| &hidden.outputs);
        let hidden = states.map(|name| node(name)).collect::<Result<_>>()?;
        let pool = Arc::new(ThreadPool::with_num_threads(threads));
        Ok(RtenEngine {
            pool,
            past,
            present,
            logits,
            hidden,
            vocab_size: signature.vocab_size,
            rounds_tokens: signature.rounds_tokens,
            model,
            _files: files,
        })
    }

    /// Runs with the caches of all rows of `kv`.
    fn run_rows(
        &self,
        feeds: &[Feed<'_>],
        kv: Option<(&mut KvCache, usize)>,
        logits: Option<&mut Vec<f32>>,
        hidden: Option<HiddenCall<'_>>,
    ) -> Result<()> {
        let mut inputs: Vec<(NodeId, ValueOrView)> = Vec::with_capacity(feeds.len() + self.past.len());
        for feed in feeds {
            inputs.push(self.feed(feed)?);
        }
        let mut outputs: Vec<NodeId> = Vec::with_capacity(self.present.len() + 1);
        let mut kv = kv;
        if let Some((kv, _)) = kv.as_mut() {
            let (rows, columns) = (kv.rows, kv.columns);
            for (slot, &id) in kv.slots.iter_mut().zip(&self.past) {
                inputs.push((id, take_past(slot, rows, columns)?.into()));
            }
            outputs.extend_from_slice(&self.present);
        }
        if let Some(hidden) = &hidden {
            outputs.extend(hidden.states.iter().filter_map(|&state| self.hidden.get(state)));
        }
        if logits.is_some() {
            outputs.push(self.logits);
        }
        let options = RunOptions::default().with_thread_pool(Some(self.pool.clone()));
        let mut values = self
            .model
            .run(inputs, &outputs, Some(options))
            .map_err(|e| Error::engine("rten could not run the graph").because(e))?;
        if let Some(out) = logits {
            let value = values.pop().ok_or_else(|| Error::engine("rten returned no logits"))?;
            let tensor: Tensor<f32> = value.try_into().map_err(|e| Error::engine("logits are not f32").because(e))?;
            if tensor.size(tensor.ndim().saturating_sub(1)) != self.vocab_size {
                return Err(Error::invalid_model(format!(
                    "logits of shape {:?}; expected a last axis of {}, the vocabulary in config.json",
                    tensor.shape(),
                    self.vocab_size
                )));
            }
            *out = tensor.into_data();
        }
        if let Some(HiddenCall { states, out, .. }) = hidden {
            out.clear();
            for value in values.drain(values.len().saturating_sub(states.len())..) {
                let tensor: Tensor<f32> =
                    value.try_into().map_err(|e| Error::engine("hidden states are not f32").because(e))?;
                out.extend(tensor.into_data());
            }
        }
        if let Some((kv, new_columns)) = kv {
            let (rows, columns) = (kv.rows, kv.columns + new_columns);
            for (slot, value) in kv.slots.iter_mut().zip(values) {
                put_present(slot, value, rows, columns)?;
            }
            kv.columns = columns;
        }
        Ok(())
    }

    fn feed<'a>(&self, feed: &Feed<'_>) -> Result<(NodeId, ValueOrView<'a>)> {
        let id = |name: &str| {
            self.model.find_node(name).ok_or_else(|| Error::engine(format!("rten does not know input '{name}'")))
        };
        match feed {
            Feed::Ints { name, shape, data } => {
                // rten narrows 64-bit integers to 32 bits; ids, positions and masks are far below that limit.
                let data: Vec<i32> = data.iter().map(|&n| n as i32).collect();
                Ok((id(name)?, Value::from(Tensor::from_data(shape, data)).into()))
            }
            Feed::Floats { name, shape, data } => {
                Ok((id(name)?, Value::from(Tensor::from_data(shape, data.to_vec())).into()))
            }
            Feed::Flag { name, value } => {
                Ok((id(name)?, Value::from(Tensor::from_data(&[1], vec![i32::from(*value)])).into()))
            }
        }
    }
}

impl Engine for RtenEngine {
    fn name(&self) -> &'static str {
        "rten"
    }

    fn version(&self) -> String {
        "0.27.0".to_owned()
    }

    fn shares_buffers(&self) -> bool {
        false
    }

    fn together(&self) -> Together {
        // Its kernel for a single token rounds the activations where the graph allows it, the one for several does not.
        if self.rounds_tokens { Together::Differ } else { Together::Same }
    }

    fn run(&self, call: Call<'_>) -> Result<()> {
        let (out, hidden) = (call.logits.map(|l| l.out), call.hidden);
        match call.cache {
            None => self.run_rows(call.feeds, None, out, hidden),
            Some(CacheCall { kv, rows, new_columns, .. }) if rows == (0..kv.rows) => {
                self.run_rows(call.feeds, Some((kv, new_columns)), out, hidden)
            }
            // rten owns what it extends, so a part of the rows runs on a copy.
            Some(CacheCall { kv, rows, new_columns, .. }) => {
                let all: Vec<usize> = rows.clone().collect();
                for slot in &mut kv.slots {
                    slot.fill(kv.rows);
                }
                let mut part = kv.extract_rows(&all)?;
                // The mask decides how many of the columns are read; the past only has to be long enough.
                self.run_rows(call.feeds, Some((&mut part, new_columns)), out, hidden)?;
                let columns = part.columns;
                kv.reserve(columns)?;
                for (source, row) in rows.enumerate() {
                    kv.write_row(row, &part, source);
                }
                kv.columns = kv.columns.max(columns);
                Ok(())
            }
        }
    }
}

fn refused(why: String) -> Error {
    Error::unsupported(format!(
        "the built-in engine (rten) cannot load this graph: {why}; install ONNX Runtime (`pip install onnxruntime`, or \
         set ORT_DYLIB_PATH to its library) and use --engine ort"
    ))
}

/// Takes the first `columns` columns out as an owned tensor `[rows, heads, columns, head_dim]` with spare capacity.
fn take_past(slot: &mut KvSlot, rows: usize, columns: usize) -> Result<Value> {
    let (heads, stride, dim) = (slot.heads, slot.stride.max(columns), slot.head_dim);
    let KvData::F32(data) = &mut slot.data else {
        return Err(Error::engine("rten has no f16 caches"));
    };
    let data = std::mem::take(data);
    let strides = [heads * stride * dim, stride * dim, dim, 1];
    if columns == 0 {
        let mut data = data;
        data.clear();
        let tensor = NdTensor::<f32, 4>::from_data_with_strides([rows, heads, 0, dim], data, strides);
        return Ok(tensor.map_err(|e| Error::engine("cache layout").because(e))?.into_dyn().into());
    }
    let tensor = NdTensor::<f32, 4>::from_data_with_strides([rows, heads, columns, dim], data, strides)
        .map_err(|e| Error::engine("cache layout").because(e))?;
    Ok(tensor.into_dyn().into())
}

/// Puts a present tensor back, with whatever stride the operator left it.
fn put_present(slot: &mut KvSlot, value: Value, rows: usize, columns: usize) -> Result<()> {
    let tensor: Tensor<f32> = value.try_into().map_err(|e| Error::engine("a present is not f32").because(e))?;
    let (heads, dim) = (slot.heads, slot.head_dim);
    if tensor.shape() != [rows, heads, columns, dim] {
        return Err(Error::invalid_model(format!(
            "a present has shape {:?}, expected {:?}; this graph's cache is not understood",
            tensor.shape(),
            [rows, heads, columns, dim]
        )));
    }
    let plane = tensor.stride(1);
    let strided = tensor.stride(3) == 1
        && tensor.stride(2) == dim
        && plane.is_multiple_of(dim)
        && tensor.stride(0) == heads * plane;
    if strided {
        slot.stride = plane / dim;
        slot.data = KvData::F32(tensor.into_non_contiguous_data());
    } else {
        slot.stride = columns;
        slot.data = KvData::F32(tensor.into_data());
    }
    Ok(())
}
