//! Sizes and settings from the metadata of a GGUF file.

use unspool_core::{Error, Result};

use super::family::unsupported;
use super::hyper::{
    Hyper, MAX_HEAD_DIM, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH, bounded, even_share,
};
use crate::gguf::{Gguf, Value};
use crate::graph::RopeScaling;
use crate::quant::dequantize;

/// Llama.cpp's architectures that are supported. Mistral's files call themselves `llama`.
const ARCHITECTURES: [&str; 3] = ["llama", "qwen2", "qwen3"];
/// Llama.cpp's architectures with an encoder.
const ENCODERS: [&str; 2] = ["t5", "t5encoder"];
/// Keys of an architecture that change the computation in ways not built here.
const REFUSED: [&str; 7] = [
    "attention.scale",
    "attention.clamp_kqv",
    "attention.layer_norm_epsilon",
    "embedding_scale",
    "expert_shared_count",
    "logit_scale",
    "residual_scale",
];
/// The divisors of rotary frequencies that Llama 3.1 and later carry.
pub(super) const ROPE_FACTORS: &str = "rope_freqs.weight";
/// Llama.cpp's base of rotary frequencies when the file gives none.
const DEFAULT_THETA: f32 = 10_000.0;
/// The head size of Qwen3, whatever its width.
const QWEN3_HEAD_DIM: usize = 128;

/// The architecture, if it is supported.
pub(super) fn architecture(file: &Gguf) -> Result<&str> {
    let name = file.str("general.architecture")?;
    if ARCHITECTURES.contains(&name) {
        return Ok(name);
    }
    if ENCODERS.contains(&name) {
        return Err(Error::unsupported(format!(
            "GGUF architecture {name:?} has an encoder and a decoder; only decoders are imported ({})",
            ARCHITECTURES.join(", ")
        )));
    }
    Err(unsupported("GGUF architecture", name, &ARCHITECTURES))
}

/// Sizes and settings, all but those that follow from the presence of tensors.
pub(super) fn hyper(file: &Gguf) -> Result<Hyper> {
    let keys = Keys { file, architecture: architecture(file)? };
    keys.refuse_unbuilt()?;
    let layers = keys.size("block_count", MAX_LAYERS)?;
    let hidden_size = keys.size("embedding_length", MAX_WIDTH)?;
    let heads = keys.size("attention.head_count", MAX_HEADS)?;
    let head_dim = keys.head_dim(hidden_size, heads)?;
    let window = keys.optional_size("attention.sliding_window", MAX_POSITIONS)?;
    Ok(Hyper {
        hidden_size,
        intermediate_size: keys.size("feed_forward_length", MAX_WIDTH)?,
        layers,
        heads,
        kv_heads: keys.optional_size("attention.head_count_kv", MAX_HEADS)?.unwrap_or(heads),
        head_dim,
        vocab_size: keys.vocab_size()?,
        max_position_embeddings: keys.size("context_length", MAX_POSITIONS)?,
        rms_norm_eps: file.f32(&keys.key("attention.layer_norm_rms_epsilon"))?,
        rope_theta: keys.optional_float("rope.freq_base")?.unwrap_or(DEFAULT_THETA).into(),
        rope_scaling: keys.rope_scaling()?,
        attention_bias: false,
        output_bias: false,
        qk_norm: keys.architecture == "qwen3",
        tied_embeddings: file.tensor("output.weight").is_none(),
        sliding_windows: window.map(|window| vec![Some(window); layers]).unwrap_or_default(),
    })
}

/// The metadata keys of one architecture.
struct Keys<'a> {
    file: &'a Gguf,
    architecture: &'a str,
}

impl Keys<'_> {
    fn key(&self, end: &str) -> String {
        format!("{}.{end}", self.architecture)
    }

    fn size(&self, end: &str, max: usize) -> Result<usize> {
        let key = self.key(end);
        bounded(&key, self.file.u32(&key)?.into(), max)
    }

    fn optional_size(&self, end: &str, max: usize) -> Result<Option<usize>> {
        self.file.metadata(&self.key(end)).map(|_| self.size(end, max)).transpose()
    }

    fn optional_float(&self, end: &str) -> Result<Option<f32>> {
        let key = self.key(end);
        self.file.metadata(&key).map(|_| self.file.f32(&key)).transpose()
    }

    fn refuse_unbuilt(&self) -> Result<()> {
        if let Some(parts) = self.file.metadata("split.count").and_then(Value::as_u64)
            && parts > 1
        {
            return Err(Error::unsupported(format!(
                "the file is one of {parts} parts of a split GGUF; merge them first (llama-gguf-split --merge)"
            )));
        }
        if let Some(experts) = self.file.metadata(&self.key("expert_count")).and_then(Value::as_u64)
            && experts > 0
        {
            return Err(Error::unsupported(format!("mixtures of experts are not supported, this one has {experts}")));
        }
        match REFUSED.iter().map(|end| self.key(end)).find(|key| self.file.metadata(key).is_some()) {
            Some(key) => Err(Error::unsupported(format!("metadata {key:?} is not supported"))),
            None => Ok(()),
        }
    }

    fn head_dim(&self, hidden_size: usize, heads: usize) -> Result<usize> {
        let rotated = self.optional_size("rope.dimension_count", MAX_HEAD_DIM)?;
        let head_dim = match self.optional_size("attention.key_length", MAX_HEAD_DIM)? {
            Some(size) => size,
            None if self.architecture == "qwen3" => QWEN3_HEAD_DIM,
            None => even_share(hidden_size, heads)?,
        };
        let values = self.optional_size("attention.value_length", MAX_HEAD_DIM)?.unwrap_or(head_dim);
        if values != head_dim {
            return Err(Error::unsupported(format!("heads with keys of {head_dim} and values of {values} numbers")));
        }
        match rotated {
            Some(rotated) if rotated != head_dim => Err(Error::unsupported(format!(
                "rotary positions on {rotated} of a head's {head_dim} numbers are not supported"
            ))),
            _ => bounded("the head size", head_dim as u64, MAX_HEAD_DIM),
        }
    }

    fn vocab_size(&self) -> Result<usize> {
        if let Some(size) = self.optional_size("vocab_size", MAX_VOCAB)? {
            return Ok(size);
        }
        // The table of embeddings may be padded beyond the tokens.
        let rows = self.file.tensor("token_embd.weight").and_then(|tensor| tensor.dims.get(1).copied());
        match rows {
            Some(rows) => bounded("the rows of tensor \"token_embd.weight\"", rows as u64, MAX_VOCAB),
            None => Err(Error::invalid_model("tensor \"token_embd.weight\" is missing or no matrix")),
        }
    }

    fn rope_scaling(&self) -> Result<RopeScaling> {
        let key = self.key("rope.scaling.type");
        let kind = match self.file.metadata(&key) {
            Some(_) => self.file.str(&key)?,
            None => "none",
        };
        let factor = self.optional_float("rope.scaling.factor")?;
        let old = self.optional_float("rope.scale_linear")?;
        let stretch = match kind {
            "none" => old.filter(|factor| *factor != 1.0),
            "linear" => Some(factor.or(old).ok_or_else(|| {
                Error::invalid_model(format!(
                    "linear rope scaling wants metadata {:?}",
                    self.key("rope.scaling.factor")
                ))
            })?),
            other => {
                return Err(Error::unsupported(format!(
                    "rope scaling {other:?} is not supported, supported are none and linear"
                )));
            }
        };
        let Some(factors) = self.file.tensor(ROPE_FACTORS) else {
            return Ok(stretch.map_or(RopeScaling::None, |factor| RopeScaling::Linear { factor: factor.into() }));
        };
        if stretch.is_some() {
            return Err(Error::unsupported("linear rope scaling together with tensor \"rope_freqs.weight\""));
        }
        match factors.dims {
            [count] if *count <= MAX_HEAD_DIM => {
                let mut numbers = vec![0.0; *count];
                dequantize(factors.ggml_type, factors.data, &mut numbers)?;
                Ok(RopeScaling::Factors(numbers))
            }
            dims => Err(Error::invalid_model(format!(
                "tensor \"rope_freqs.weight\" has shape {dims:?}, expected one axis of half the head size"
            ))),
        }
    }
}
