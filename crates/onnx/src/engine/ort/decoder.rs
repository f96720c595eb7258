//! A decoder graph loaded into ONNX Runtime.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use half::f16;
use ort::logging::LogLevel;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use unspool_core::{Error, Result, Together};

use super::library::{self, Library};
use super::raw::{self, Binding, CpuMemory};
use crate::cache::kv::{KvData, on_data};
use crate::engine::contract::{CacheCall, Call, Engine, Feed, HiddenCall};
use crate::exits;
use crate::folder;
use crate::graph::{ElementType, Signature, read};

/// A decoder graph loaded into ONNX Runtime.
pub struct OrtEngine {
    session: Session,
    /// Runs steps of several tokens, where the folder has a graph for them.
    prompt: Option<Session>,
    memory: CpuMemory,
    inputs: HashMap<String, (CString, ElementType)>,
    past: Vec<CString>,
    present: Vec<CString>,
    logits: CString,
    logits_dtype: ElementType,
    /// Names of the hidden states.
    hidden: Vec<CString>,
    hidden_dtype: ElementType,
    width: usize,
    vocab_size: usize,
    rounds_tokens: bool,
}

impl OrtEngine {
    /// Loads the graph in `path` to run on `threads` threads.
    ///
    /// # Errors
    ///
    /// When ONNX Runtime is not found or refuses the graph.
    pub fn load(path: &Path, signature: &Signature, threads: usize) -> Result<Self> {
        let library = library::load(threads)?;
        if let Some(why) = &signature.refused_by_ort {
            return Err(Error::unsupported(format!("ONNX Runtime cannot run this graph: {why}; use --engine rten"))
                .at(path.display()));
        }
        let beside = Beside::of(path, signature)?;
        let path = beside.token.as_deref().unwrap_or(path);
        let open = |path: &Path| open(library, path, threads);
        let (session, prompt) = std::thread::scope(|scope| {
            let prompt = beside.prompt.as_deref().map(|path| scope.spawn(move || open(path)));
            (open(path), prompt.map(|thread| thread.join()))
        });
        let prompt = match prompt {
            Some(Ok(session)) => Some(session?),
            Some(Err(_)) => return Err(Error::engine("ONNX Runtime failed while it loaded the graph for prompts")),
            None => None,
        };
        let session = session?;
        let mut inputs = HashMap::new();
        for input in &signature.inputs {
            inputs.insert(input.name.clone(), (raw::c_name(&input.name)?, input.dtype));
        }
        Ok(OrtEngine {
            session,
            prompt,
            memory: CpuMemory::new()?,
            inputs,
            past: signature.cache.iter().map(|s| raw::c_name(&s.past)).collect::<Result<_>>()?,
            present: signature.cache.iter().map(|s| raw::c_name(&s.present)).collect::<Result<_>>()?,
            logits: raw::c_name("logits")?,
            logits_dtype: signature.logits_dtype,
            hidden: match &signature.hidden {
                Some(hidden) => hidden.outputs.iter().map(|name| raw::c_name(name)).collect::<Result<_>>()?,
                None => Vec::new(),
            },
            hidden_dtype: signature.hidden.as_ref().map_or(ElementType::F32, |hidden| hidden.dtype),
            width: signature.hidden.as_ref().map_or(0, |hidden| hidden.width),
            vocab_size: signature.vocab_size,
            rounds_tokens: signature.rounds_tokens || beside.token.is_some() || beside.prompt.is_some(),
        })
    }
}

impl OrtEngine {
    fn session_for(&self, feeds: &[Feed<'_>]) -> &Session {
        let several = feeds.iter().any(
            |feed| matches!(feed, Feed::Ints { name: "input_ids", shape, .. } if shape.get(1).is_some_and(|&n| n > 1)),
        );
        self.prompt.as_ref().filter(|_| several).unwrap_or(&self.session)
    }
}

/// The graphs that importing writes beside `model.onnx` (and beside those of early exits) over the same weights, when they are
/// there.
struct Beside {
    /// In place of the graph itself: with operators that only ONNX Runtime has.
    token: Option<PathBuf>,
    /// For steps of several tokens: with f32 activations.
    prompt: Option<PathBuf>,
}

impl Beside {
    /// # Errors
    ///
    /// When a graph is there and broken, or hostile.
    fn of(path: &Path, signature: &Signature) -> Result<Self> {
        let mut found = Beside { token: None, prompt: None };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let prefix = match &*stem {
            "model" => String::new(),
            stem if exits::layers_of(stem).is_some() => format!("{stem}_"),
            _ => return Ok(found),
        };
        let facts = folder::config_facts(&folder::root_of(path))?;
        for (name, slot) in [("token.onnx", &mut found.token), ("prompt.onnx", &mut found.prompt)] {
            let graph = path.with_file_name(format!("{prefix}{name}"));
            if graph.is_file() {
                // It is checked as the graph itself was, and must be fed as that is.
                let named = |error: Error| {
                    let what = format!("this graph of the model cannot be used: {error}");
                    Error::new(error.kind(), what).at(graph.display())
                };
                let own = read::read(&graph, &facts).map_err(named)?;
                if !own.is_fed_like(signature) {
                    let error = Error::invalid_model("its inputs and outputs are not those of the graph beside it");
                    return Err(named(error));
                }
                *slot = Some(graph);
            }
        }
        Ok(found)
    }
}

fn open(library: &Library, path: &Path, threads: usize) -> Result<Session> {
    let failed = |e: ort::Error| Error::engine("ONNX Runtime cannot load this graph").at(path.display()).because(e);
    let mut builder = Session::builder(&library.environment).map_err(failed)?;
    if threads != library.shared_threads {
        builder = builder.with_independent_thread_pool().map_err(|e| failed(e.into()))?;
        builder = builder.with_intra_threads(threads).map_err(|e| failed(e.into()))?;
    }
    builder
        // What goes wrong is returned as an error; the library's own log would only repeat it.
        .with_log_level(LogLevel::Fatal)
        .map_err(|e| failed(e.into()))?
        .with_optimization_level(GraphOptimizationLevel::All)
        .map_err(|e| failed(e.into()))?
        .commit_from_file(path)
        .map_err(failed)
}

/// The values of a feed in the type that the graph declares.
enum Fed {
    I64(Vec<i64>, Vec<usize>),
    I32(Vec<i32>, Vec<usize>),
    F32(Vec<f32>, Vec<usize>),
    Bool([bool; 1]),
}

impl Engine for OrtEngine {
    fn name(&self) -> &'static str {
        "ort"
    }

    fn version(&self) -> String {
        library::version()
    }

    fn shares_buffers(&self) -> bool {
        true
    }

    fn together(&self) -> Together {
        // Products that round activations do so by the rows of a run, and the graph for prompts beside such a one does not round.
        if self.rounds_tokens { Together::Differ } else { Together::Same }
    }

    fn run(&self, call: Call<'_>) -> Result<()> {
        let session = self.session_for(call.feeds);
        let mut fed = Vec::with_capacity(call.feeds.len());
        for feed in call.feeds {
            let name = match feed {
                Feed::Ints { name, .. } | Feed::Floats { name, .. } | Feed::Flag { name, .. } => *name,
            };
            let (c_name, dtype) =
                self.inputs.get(name).ok_or_else(|| Error::engine(format!("the graph has no input '{name}'")))?;
            let values = match feed {
                Feed::Flag { value, .. } => Fed::Bool([*value]),
                Feed::Floats { data, shape, .. } => Fed::F32(data.to_vec(), shape.clone()),
                Feed::Ints { data, shape, .. } if raw::is::<i32>(*dtype) => {
                    // Ids, positions and masks are far below the 32-bit limit.
                    Fed::I32(data.iter().map(|&n| n as i32).collect(), shape.clone())
                }
                Feed::Ints { data, shape, .. } => Fed::I64(data.to_vec(), shape.clone()),
            };
            fed.push((c_name, values));
        }
        let mut inputs = Vec::with_capacity(fed.len() + self.past.len());
        for (name, values) in &mut fed {
            inputs.push(match values {
                Fed::I64(data, shape) => Binding::new(name, data, shape)?,
                Fed::I32(data, shape) => Binding::new(name, data, shape)?,
                Fed::F32(data, shape) => Binding::new(name, data, shape)?,
                Fed::Bool(data) => Binding::new(name, data, &[1])?,
            });
        }
        let mut outputs = Vec::with_capacity(self.present.len() + 1);

        let (mut scores, mut halves) = (None, Vec::new());
        if let Some(logits) = call.logits {
            let shape = [logits.shape[0], logits.shape[1], self.vocab_size];
            let len = shape.iter().product();
            if self.logits_dtype == ElementType::F16 {
                halves = vec![0u16; len];
            } else {
                logits.out.resize(len, 0.0);
            }
            scores = Some((logits.out, shape));
        }
        let mut convert = None;
        if let Some((out, shape)) = scores {
            if self.logits_dtype == ElementType::F16 {
                outputs.push(Binding::new(&self.logits, &mut halves, &shape)?);
                convert = Some(out);
            } else {
                outputs.push(Binding::new(&self.logits, out, &shape)?);
            }
        }

        let (mut states, mut state_halves) = (None, Vec::new());
        if let Some(HiddenCall { states: wanted, shape, out }) = call.hidden {
            let shape = [shape[0], shape[1], self.width];
            let one: usize = shape.iter().product();
            let half = self.hidden_dtype == ElementType::F16;
            let names = wanted.iter().filter_map(|&state| self.hidden.get(state));
            if half {
                state_halves = vec![0u16; wanted.len() * one];
                for (name, part) in names.zip(state_halves.chunks_exact_mut(one)) {
                    outputs.push(Binding::new(name, part, &shape)?);
                }
                states = Some(out);
            } else {
                out.resize(wanted.len() * one, 0.0);
                for (name, part) in names.zip(out.chunks_exact_mut(one)) {
                    outputs.push(Binding::new(name, part, &shape)?);
                }
            }
        }

        match call.cache {
            None => raw::run(session, &self.memory, &inputs, &outputs)?,
            Some(CacheCall { kv, rows, in_place: true, .. }) => {
                for (i, slot) in kv.slots.iter_mut().enumerate() {
                    slot.fill(kv.rows);
                    let row = slot.heads * slot.stride * slot.head_dim;
                    let shape = [rows.len(), slot.heads, slot.stride, slot.head_dim];
                    let range = rows.start * row..rows.end * row;
                    let binding = on_data!(&mut slot.data, v => Binding::new(&self.past[i], &mut v[range], &shape)?);
                    outputs.push(binding.alias(&self.present[i]));
                    inputs.push(binding);
                }
                raw::run(session, &self.memory, &inputs, &outputs)?;
            }
            Some(CacheCall { kv, new_columns, .. }) => {
                let (rows, columns) = (kv.rows, kv.columns + new_columns);
                for (i, slot) in kv.slots.iter_mut().enumerate() {
                    let (heads, dim) = (slot.heads, slot.head_dim);
                    debug_assert_eq!(slot.stride, kv.columns, "dense caches keep no spare columns");
                    let past = [rows, heads, kv.columns, dim];
                    let present = [rows, heads, columns, dim];
                    let (past_name, present_name) = (&self.past[i], &self.present[i]);
                    inputs.push(on_data!(&mut slot.data, v => Binding::new(past_name, v, &past)?));
                    outputs.push(on_data!(&mut slot.spare, v => {
                        v.resize(rows * heads * columns * dim, Default::default());
                        Binding::new(present_name, v, &present)?
                    }));
                }
                raw::run(session, &self.memory, &inputs, &outputs)?;
                for slot in &mut kv.slots {
                    std::mem::swap(&mut slot.data, &mut slot.spare);
                    slot.stride = columns;
                }
                kv.columns = columns;
            }
        }
        for (out, halves) in [(convert, halves), (states, state_halves)] {
            if let Some(out) = out {
                out.clear();
                out.extend(halves.iter().map(|&bits| f16::from_bits(bits).to_f32()));
            }
        }
        Ok(())
    }
}
