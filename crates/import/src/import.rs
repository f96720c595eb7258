//! A checkpoint becomes a model folder.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use prost::Message;
use unspool_core::{Error, Result};

use crate::checkpoint::{Checkpoint, Role, Tensor};
use crate::folder::write_description;
use crate::graph::{self, Extent, HEAD_GRAPH};
use crate::onnx::proto::ModelProto;
use crate::onnx::{Built, DataFile, GraphBuilder, Variants};
use crate::progress::{OnProgress, Progress};
use crate::staging::{Staging, parent_of};
use crate::weights::{Form, Requantised, Source};

/// Name of the graph's file; its weights lie beside it with `.data` appended.
const GRAPH: &str = "model.onnx";

/// The graph that runs prompts, over the same weights, on engines that would round them otherwise.
const PROMPT_GRAPH: &str = "prompt.onnx";
/// The graph that runs single tokens on ONNX Runtime, over the same weights.
const TOKEN_GRAPH: &str = "token.onnx";

/// How weights are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weights {
    /// As the checkpoint has them, without loss; f32 where a graph cannot say its quantised values.
    #[default]
    Keep,
    /// As f32, dequantised.
    F32,
    /// Requantised to 8 bits in blocks of 32.
    Int8,
    /// Requantised to 4 bits in blocks of 32.
    Int4,
}

impl Weights {
    /// The names that [`parse`](Self::parse) knows.
    pub const NAMES: [&str; 4] = ["keep", "f32", "int8", "int4"];

    /// The mode of a name.
    ///
    /// # Errors
    ///
    /// When it is none of [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "keep" => Ok(Weights::Keep),
            "f32" => Ok(Weights::F32),
            "int8" => Ok(Weights::Int8),
            "int4" => Ok(Weights::Int4),
            other => Err(Error::invalid_input(format!(
                "unknown kind of weights {other:?}, expected one of {}",
                Self::NAMES.join(", ")
            ))),
        }
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Weights::Keep => "keep",
            Weights::F32 => "f32",
            Weights::Int8 => "int8",
            Weights::Int4 => "int4",
        }
    }
}

/// Settings of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// How weights are written.
    pub weights: Weights,
    /// Whether the graph gives hidden states too, and the output matrix becomes a graph of its own.
    pub hidden_states: bool,
    /// Numbers of first layers that become models of their own too, over the same weights: they draft for the whole one
    /// (`assistant_early_exit`).
    pub early_exits: Vec<usize>,
    /// Progress callback.
    pub progress: Option<OnProgress>,
}

/// How one tensor was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorReport {
    /// Hugging Face name.
    pub name: String,
    /// How the checkpoint stores it, by GGUF's name (`Q4_1`, `BF16`, ...).
    pub stored: String,
    /// How the graph says it.
    pub form: Form,
    /// Whether its values were rounded anew.
    pub requantised: bool,
}

/// What an import did.
#[derive(Clone, Debug)]
pub struct ImportReport {
    /// Architecture of the checkpoint.
    pub architecture: String,
    /// How weights were to be written.
    pub weights: Weights,
    /// Each tensor, in the order written.
    pub tensors: Vec<TensorReport>,
    /// Bytes of the file of weights.
    pub bytes: u64,
    /// What of the checkpoint was left out, one line each.
    pub warnings: Vec<String>,
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted: fn(&TensorReport) -> bool| self.tensors.iter().filter(|tensor| wanted(tensor)).count();
        let quantised = |tensor: &TensorReport| matches!(tensor.form, Form::Nibbles(_));
        let kept = count(|tensor| matches!(tensor.form, Form::Nibbles(_)) && !tensor.requantised);
        let requantised = count(|tensor| tensor.requantised);
        let floats = self.tensors.iter().filter(|tensor| !quantised(tensor)).count();
        write!(f, "{} with {} tensors: ", self.architecture, self.tensors.len())?;
        let mut parts = Vec::new();
        if kept > 0 {
            parts.push(format!("{kept} quantised ones kept without loss"));
        }
        if requantised > 0 {
            parts.push(format!("{requantised} requantised to {}", self.weights.name()));
        }
        if floats > 0 {
            parts.push(format!("{floats} as f32"));
        }
        let dequantised: Vec<&str> = self
            .tensors
            .iter()
            .filter(|tensor| !quantised(tensor) && tensor.stored.starts_with('Q'))
            .map(|tensor| tensor.name.as_str())
            .collect();
        match (dequantised.len(), dequantised.first()) {
            (0, _) | (_, None) => {}
            (1, Some(name)) => parts.push(format!("among them {name} dequantised")),
            (more, Some(name)) => parts.push(format!("among them {more} dequantised ({name}, ...)")),
        }
        write!(f, "{}; {:.1} MB of weights", parts.join(", "), self.bytes as f64 / 1e6)
    }
}

/// Makes a model folder `out` of the checkpoint at `checkpoint` (a `.gguf` file, a `.safetensors` file with its
/// `config.json`, or a folder of one).
///
/// The folder holds `onnx/model.onnx` with `onnx/model.onnx.data` (and over the same weights `onnx/prompt.onnx`, where 4-bit
/// products are kept, `onnx/token.onnx`, where there are 8-bit products, with hidden states `onnx/head.onnx`, and for an early
/// exit after 6 layers `onnx/exit_6.onnx`), `config.json`, `generation_config.json`, `tokenizer.json` and `tokenizer_config.json`
/// (from a safetensors folder: those that it has), and `import.json`, the list of these files with their sizes. It appears
/// whole or not at all: everything is written beside it, handed to the disk and moved at the end; what a killed import left
/// is removed by the next one into the same parent folder. Memory stays bounded: large tensors pass in pieces.
///
/// ```no_run
/// use unspool_import::{ImportOptions, Weights, import};
/// let options = ImportOptions { weights: Weights::Keep, ..ImportOptions::default() };
/// let report = import("SmolLM2.Q4_1.gguf".as_ref(), "smollm2".as_ref(), &options)?;
/// println!("{report}");
/// # Ok::<(), unspool_core::Error>(())
/// ```
///
/// # Errors
///
/// When the checkpoint is broken or not supported, an early exit is not inside it, `out` is there and not empty, writing fails, or the progress callback
/// ends the import.
pub fn import(checkpoint: &Path, out: &Path, options: &ImportOptions) -> Result<ImportReport> {
    refuse_occupied(out)?;
    let checkpoint = Checkpoint::open(checkpoint)?;
    let staging = Staging::begin(&parent_of(out))?;
    let model = staging.model();
    let graphs = model.join("onnx");
    fs::create_dir(&graphs)
        .map_err(|error| Error::io("cannot create the folder to write").at(out.display()).because(error))?;
    write_description(&checkpoint, &model)?;
    let mut report = write_graph(&checkpoint, &graphs, options)?;
    if !model.join("tokenizer.json").is_file() {
        report
            .warnings
            .push("there is no tokenizer.json beside the checkpoint; the model takes token ids and no text".to_owned());
    }
    // Another process may have written there meanwhile.
    refuse_occupied(out)?;
    staging.publish(out)?;
    Ok(report)
}

fn refuse_occupied(out: &Path) -> Result<()> {
    let occupied = match fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => out.symlink_metadata().is_ok(),
    };
    if occupied {
        return Err(Error::invalid_input("is there already and not empty; remove it or choose another folder")
            .at(out.display()));
    }
    Ok(())
}

fn write_graph(checkpoint: &Checkpoint, folder: &Path, options: &ImportOptions) -> Result<ImportReport> {
    let (int4, int8) = (Requantised::int4(checkpoint), Requantised::int8(checkpoint));
    let source: &dyn Source = match options.weights {
        Weights::Int4 => &int4,
        Weights::Int8 => &int8,
        Weights::Keep | Weights::F32 => checkpoint,
    };
    let hyper = checkpoint.hyper()?;
    let size = |tensor: Tensor<'_>| tensor.rows() as u64 * tensor.row(0).map_or(0, |row| row.len() as u64);
    let mut sizes = HashMap::new();
    for role in Role::all(hyper.layers) {
        if let Some(tensor) = checkpoint.tensor(role)? {
            sizes.insert(role.hf_name(), size(tensor));
        }
    }
    let (total, total_bytes) = (sizes.len(), sizes.values().sum());
    let (mut done, mut bytes) = (0, 0);
    let mut written = |tensor: &str| {
        done += 1;
        bytes += sizes.get(tensor).copied().unwrap_or_default();
        let progress = Progress { done, total, bytes, total_bytes, tensor };
        options.progress.as_ref().map_or(Ok(()), |callback| callback.call(progress))
    };
    let data = DataFile::create(folder, &format!("{GRAPH}.data"))?;
    let mut builder = GraphBuilder::new(checkpoint.architecture(), data);
    let extent = Extent {
        float: options.weights == Weights::F32,
        hidden_states: options.hidden_states,
        early_exits: options.early_exits.clone(),
    };
    let notes = graph::build(&mut builder, source, &hyper.decoder(), &extent, &mut written)
        .map_err(|error| error.at(checkpoint.path().display()))?;
    let bytes = builder.data_len();
    let Built { whole: Variants { portable: model, onnx_runtime }, apart } = builder.finish()?;
    save(&model, &folder.join(GRAPH))?;
    if let Some(token) = onnx_runtime {
        save(&token, &folder.join(TOKEN_GRAPH))?;
    }
    for (name, Variants { portable, onnx_runtime }) in apart {
        save(&portable, &folder.join(format!("{name}.onnx")))?;
        // Layers are contrasted by their exact logits; what only drafts may be rounded.
        if let Some(token) = onnx_runtime.filter(|_| name != HEAD_GRAPH) {
            save(&token, &folder.join(format!("{name}_{TOKEN_GRAPH}")))?;
        }
    }
    let keeps = options.weights == Weights::Keep;
    if let Some(prompt) = keeps.then(|| prompt_graph(model)).flatten() {
        save(&prompt, &folder.join(PROMPT_GRAPH))?;
    }

    let requantised = matches!(options.weights, Weights::Int4 | Weights::Int8);
    let mut tensors = Vec::with_capacity(notes.len());
    for note in notes {
        let tensor = Role::from_hf_name(&note.tensor).map(|role| checkpoint.tensor(role)).transpose()?.flatten();
        tensors.push(TensorReport {
            stored: tensor.map_or_else(String::new, |tensor| tensor.ggml_type().to_string()),
            requantised: requantised && matches!(note.form, Form::Nibbles(_)),
            name: note.tensor,
            form: note.form,
        });
    }
    Ok(ImportReport {
        architecture: checkpoint.architecture().to_owned(),
        weights: options.weights,
        tensors,
        bytes,
        warnings: checkpoint.warnings().to_vec(),
    })
}

fn save(model: &ModelProto, path: &Path) -> Result<()> {
    fs::write(path, model.encode_to_vec())
        .map_err(|cause| Error::io("cannot write the graph").at(path.display()).because(cause))
}

/// The same graph over the same weights, computing 4-bit products with f32 activations; `None` without such products.
///
/// Activations rounded to 8 bits make single tokens twice as fast and prompts no faster, but what they cost in exactness
/// adds up over a prompt: with it, SmolLM2 no longer answers that the capital of France is Paris.
fn prompt_graph(mut model: ModelProto) -> Option<ModelProto> {
    let products = model.graph.as_mut()?.node.iter_mut().filter(|node| node.op_type == "MatMulNBits");
    let changed = products.map(|node| node.attribute.retain(|attribute| attribute.name != "accuracy_level")).count();
    (changed > 0).then_some(model)
}

#[cfg(test)]
mod tests;
