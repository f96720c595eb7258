//! Opens a checkpoint, holds every tensor against the sizes, and lends tensors by role.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use unspool_core::{Error, Result};

use super::config_json::Config;
use super::gguf_metadata::{self, ROPE_FACTORS};
use super::hyper::Hyper;
use super::role::{LayerRole, Role};
use super::tensor::Tensor;
use crate::gguf::Gguf;
use crate::quant::GgmlType;
use crate::safetensors::Safetensors;
use crate::tokenizer;

/// A checkpoint of the Llama family: a GGUF file (architectures llama, qwen2, qwen3), or safetensors with a
/// `config.json` (model types llama, mistral, qwen2, qwen3).
///
/// Whatever the format, tensors have Hugging Face's names, shapes and row order.
///
/// ```no_run
/// use unspool_import::checkpoint::{Checkpoint, Role};
/// let checkpoint = Checkpoint::open("SmolLM2-135M-Instruct.Q4_1.gguf".as_ref())?;
/// println!("{} with {} layers", checkpoint.architecture(), checkpoint.hyper()?.layers);
/// let table = checkpoint.tensor(Role::EmbedTokens)?;
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    weights: Weights,
    architecture: String,
    hyper: Hyper,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum Weights {
    Gguf(Gguf),
    Safetensors(Safetensors),
}

/// A tensor as stored, shape outermost first.
struct Stored<'a> {
    kind: GgmlType,
    shape: Vec<usize>,
    data: &'a [u8],
}

impl Checkpoint {
    /// Opens a `.gguf` file, a `.safetensors` file with `config.json` beside it, or a folder with `config.json` and
    /// `model.safetensors` or its index.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or is broken, when the architecture or one of its settings is not supported (the error
    /// names it), when a tensor is missing or of a wrong shape, or a GGUF has a tensor in one of its layers that its
    /// architecture does not know.
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(path).map_err(|error| error.at(path.display()))
    }

    fn read(path: &Path) -> Result<Self> {
        let (weights, architecture, hyper) = if path.is_dir() {
            let config = Config::open(&path.join("config.json"))?;
            let hyper = config.hyper().map_err(|error| error.at(path.join("config.json").display()))?;
            (Weights::Safetensors(Safetensors::open(path)?), config.model_type().to_owned(), hyper)
        } else if path.extension().is_some_and(|ending| ending == "safetensors") {
            let beside = path.with_file_name("config.json");
            let config = Config::open(&beside)?;
            let hyper = config.hyper().map_err(|error| error.at(beside.display()))?;
            (Weights::Safetensors(Safetensors::open_file(path)?), config.model_type().to_owned(), hyper)
        } else {
            let file = Gguf::open(path)?;
            let architecture = gguf_metadata::architecture(&file)?.to_owned();
            let hyper = gguf_metadata::hyper(&file)?;
            (Weights::Gguf(file), architecture, hyper)
        };
        let mut checkpoint = Checkpoint { path: path.to_owned(), weights, architecture, hyper, warnings: Vec::new() };
        checkpoint.settle_by_presence()?;
        checkpoint.hyper.check()?;
        checkpoint.warnings.extend(checkpoint.check_tensors()?);
        if let Some(file) = checkpoint.gguf() {
            let warnings = tokenizer::special_ids(file)?.warnings;
            checkpoint.warnings.extend(warnings);
        }
        Ok(checkpoint)
    }

    /// The architecture: `llama`, `mistral`, `qwen2` or `qwen3` (GGUF calls Mistral `llama`).
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Sizes and settings.
    ///
    /// # Errors
    ///
    /// None: they were checked when the checkpoint was opened.
    pub fn hyper(&self) -> Result<Hyper> {
        Ok(self.hyper.clone())
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was left out of the model, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The GGUF file, when the checkpoint is one (its metadata holds the tokenizer).
    pub fn gguf(&self) -> Option<&Gguf> {
        match &self.weights {
            Weights::Gguf(file) => Some(file),
            Weights::Safetensors(_) => None,
        }
    }

    /// A tensor, or nothing when this model does without it (a bias, a head's norm, the output matrix of tied embeddings).
    ///
    /// # Errors
    ///
    /// When the tensor is missing though the model needs it, or its shape or type is not what the sizes ask for; the error
    /// names the tensor, what was got and what was expected.
    pub fn tensor(&self, role: Role) -> Result<Option<Tensor<'_>>> {
        if let Role::Layer(layer, _) = role
            && layer >= self.hyper.layers
        {
            return Ok(None);
        }
        if role == Role::LmHead && self.hyper.tied_embeddings {
            return Ok(None);
        }
        let name = self.stored_name(role);
        let expected = role.shape(&self.hyper);
        let Some(stored) = self.stored(role)? else {
            if role.is_required(&self.hyper) {
                return Err(Error::invalid_model(format!("tensor {name:?} is missing, expected shape {expected:?}")));
            }
            return Ok(None);
        };
        if stored.shape != expected {
            return Err(Error::invalid_model(format!(
                "tensor {name:?} has shape {:?}, expected {expected:?} (outputs first)",
                stored.shape
            )));
        }
        Tensor::new(role.hf_name(), stored.shape, stored.kind, stored.data, self.interleaved(role)).map(Some)
    }

    /// Llama.cpp's converter interleaves the halves of queries and keys in `llama` files, and in no other.
    fn interleaved(&self, role: Role) -> Option<usize> {
        let rotated =
            matches!(role, Role::Layer(_, LayerRole::QProj | LayerRole::KProj | LayerRole::QBias | LayerRole::KBias));
        let interleaved = rotated && self.architecture == "llama" && matches!(self.weights, Weights::Gguf(_));
        interleaved.then_some(self.hyper.head_dim)
    }

    /// The name that the file has for a role; the first of the names that are possible when it has none of them.
    fn stored_name(&self, role: Role) -> String {
        let files = match &self.weights {
            Weights::Gguf(_) => return role.gguf_name(),
            Weights::Safetensors(files) => files,
        };
        // As Python does: checkpoints of the base model have no prefix, and either of two tied tensors stands for both.
        let roles = [Some(role), (role == Role::EmbedTokens && self.hyper.tied_embeddings).then_some(Role::LmHead)];
        let possible = roles.into_iter().flatten().map(Role::hf_name).flat_map(|name| {
            let base = name.strip_prefix("model.").map(str::to_owned);
            [Some(name), base].into_iter().flatten()
        });
        possible.into_iter().find(|name| files.contains(name)).unwrap_or_else(|| role.hf_name())
    }

    fn stored(&self, role: Role) -> Result<Option<Stored<'_>>> {
        let name = self.stored_name(role);
        Ok(match &self.weights {
            Weights::Gguf(file) => file.tensor(&name).map(|tensor| Stored {
                kind: tensor.ggml_type,
                shape: tensor.dims.iter().rev().copied().collect(),
                data: tensor.data,
            }),
            Weights::Safetensors(files) => files.tensor(&name)?.map(|tensor| Stored {
                kind: tensor.ggml_type,
                shape: tensor.shape.to_vec(),
                data: tensor.data,
            }),
        })
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.weights {
            Weights::Gguf(file) => Box::new(file.tensors().iter().map(|tensor| tensor.name.as_str())),
            Weights::Safetensors(files) => Box::new(files.names()),
        }
    }

    /// What the file's tensors say of biases, norms and tied embeddings.
    fn settle_by_presence(&mut self) -> Result<()> {
        let present = |role| self.stored(Role::Layer(0, role)).map(|found| found.is_some());
        let attention_bias = present(LayerRole::QBias)? || present(LayerRole::KBias)? || present(LayerRole::VBias)?;
        let output_bias = present(LayerRole::OBias)?;
        let qk_norm = present(LayerRole::QNorm)? || present(LayerRole::KNorm)?;
        if qk_norm && !self.hyper.qk_norm {
            return Err(Error::unsupported(format!(
                "tensors of query and key norms in architecture {:?} are not supported",
                self.architecture
            )));
        }
        let mut tied = self.hyper.tied_embeddings;
        if tied && let (Some(head), Some(table)) = (self.stored(Role::LmHead)?, self.stored(Role::EmbedTokens)?) {
            // As transformers does: both there and different means that the configuration is wrong.
            tied = head.kind == table.kind && head.data == table.data;
        }
        self.hyper.attention_bias |= attention_bias;
        self.hyper.output_bias |= output_bias;
        self.hyper.tied_embeddings = tied;
        Ok(())
    }

    /// Every tensor of the model is there in its shape. What else the file holds is left out, as in Python, with a warning;
    /// but a tensor in a layer of a GGUF that its architecture does not know changes the model, and is refused.
    fn check_tensors(&self) -> Result<Option<String>> {
        let mut known = HashSet::new();
        for role in Role::all(self.hyper.layers) {
            if self.tensor(role)?.is_some() || role == Role::LmHead {
                known.insert(self.stored_name(role));
            }
        }
        let ignored = |name: &str| name == ROPE_FACTORS || name.ends_with("rotary_emb.inv_freq");
        let more: Vec<&str> = self.names().filter(|name| !known.contains(*name) && !ignored(name)).collect();
        let place = format!("no place in architecture {:?} with {} layers", self.architecture, self.hyper.layers);
        let in_layer = |name: &str| {
            let layer = name.strip_prefix("blk.").and_then(|rest| rest.split('.').next()?.parse().ok());
            layer.is_some_and(|layer: usize| layer < self.hyper.layers)
        };
        if let (Weights::Gguf(_), Some(name)) = (&self.weights, more.iter().find(|name| in_layer(name))) {
            return Err(Error::unsupported(format!("tensor {name:?} has {place}")));
        }
        Ok(match more.as_slice() {
            [] => None,
            [name] => Some(format!("tensor {name:?} has {place} and is left out")),
            [name, ..] => Some(format!("{} tensors ({name:?}, ...) have {place} and are left out", more.len())),
        })
    }
}
