//! The sizes and settings of a checkpoint, bounded before anything is computed from them.

use unspool_core::{Error, Result};

use crate::graph::{Decoder, Rope, RopeScaling};

/// Sizes above these are a broken file, not a model.
pub(super) const MAX_WIDTH: usize = 1 << 20;
pub(super) const MAX_LAYERS: usize = 4096;
pub(super) const MAX_HEADS: usize = 1 << 14;
pub(super) const MAX_HEAD_DIM: usize = 1 << 12;
pub(super) const MAX_VOCAB: usize = 1 << 27;
pub(super) const MAX_POSITIONS: usize = 1 << 31;

/// Sizes and settings, with the names of `config.json` where it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Hyper {
    /// Width of the hidden states.
    pub hidden_size: usize,
    /// Width inside the feed-forward network.
    pub intermediate_size: usize,
    /// Layers (`num_hidden_layers`).
    pub layers: usize,
    /// Attention heads (`num_attention_heads`).
    pub heads: usize,
    /// Heads of keys and values (`num_key_value_heads`); divides `heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Entries of the vocabulary: rows of the embedding table.
    pub vocab_size: usize,
    /// The largest number of positions.
    pub max_position_embeddings: usize,
    /// What is added under the root of the norms.
    pub rms_norm_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// How rotary frequencies are stretched.
    pub rope_scaling: RopeScaling,
    /// Whether queries, keys and values have biases.
    pub attention_bias: bool,
    /// Whether the output of attention has a bias.
    pub output_bias: bool,
    /// Whether each head's queries and keys are normalised (Qwen3).
    pub qk_norm: bool,
    /// Whether the output matrix is the embedding table.
    pub tied_embeddings: bool,
    /// Positions that a token of a layer sees, itself included, where that is limited: one entry per layer, or none.
    pub sliding_windows: Vec<Option<usize>>,
}

impl Hyper {
    /// Holds the fields against each other.
    pub(super) fn check(&self) -> Result<()> {
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(Error::invalid_model(format!(
                "{} attention heads do not divide among {} key-value heads",
                self.heads, self.kv_heads
            )));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(Error::invalid_model(format!(
                "the head size is {}, expected an even number for rotary positions",
                self.head_dim
            )));
        }
        if !(self.rms_norm_eps > 0.0 && self.rms_norm_eps < 1.0) {
            return Err(Error::invalid_model(format!(
                "rms_norm_eps is {}, expected a number above 0 and below 1",
                self.rms_norm_eps
            )));
        }
        positive("rope_theta", self.rope_theta)?;
        match &self.rope_scaling {
            RopeScaling::None => Ok(()),
            RopeScaling::Linear { factor } => positive("the factor of linear rope scaling", *factor),
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_positions } => {
                positive("the factor of llama3 rope scaling", *factor)?;
                positive("low_freq_factor of llama3 rope scaling", *low_freq_factor)?;
                positive("high_freq_factor of llama3 rope scaling", *high_freq_factor)?;
                if low_freq_factor >= high_freq_factor || *original_positions == 0 {
                    return Err(Error::invalid_model(format!(
                        "llama3 rope scaling has low_freq_factor {low_freq_factor}, high_freq_factor {high_freq_factor} and \
                         original_max_position_embeddings {original_positions}, expected low below high and positions above 0"
                    )));
                }
                Ok(())
            }
            RopeScaling::Factors(factors) => {
                if factors.len() != self.head_dim / 2 {
                    return Err(Error::invalid_model(format!(
                        "tensor \"rope_freqs.weight\" has {} numbers, expected {} (half of the head size)",
                        factors.len(),
                        self.head_dim / 2
                    )));
                }
                factors.iter().try_for_each(|&factor| positive("a number of \"rope_freqs.weight\"", factor.into()))
            }
        }
    }

    /// What the graph writer must know.
    pub fn decoder(&self) -> Decoder {
        Decoder {
            layers: self.layers,
            hidden: self.hidden_size,
            intermediate: self.intermediate_size,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            vocab: self.vocab_size,
            max_positions: self.max_position_embeddings,
            norm_epsilon: self.rms_norm_eps,
            rope: Rope { theta: self.rope_theta, scaling: self.rope_scaling.clone() },
            sliding_windows: self.sliding_windows.clone(),
            tied: self.tied_embeddings,
        }
    }
}

/// A size from a file, if it is neither zero nor absurd.
pub(super) fn bounded(name: &str, value: u64, max: usize) -> Result<usize> {
    usize::try_from(value)
        .ok()
        .filter(|size| (1..=max).contains(size))
        .ok_or_else(|| Error::invalid_model(format!("{name} is {value}, expected 1 to {max}")))
}

/// The head size when the file does not give it.
pub(super) fn even_share(hidden_size: usize, heads: usize) -> Result<usize> {
    if hidden_size.is_multiple_of(heads) {
        Ok(hidden_size / heads)
    } else {
        Err(Error::invalid_model(format!("hidden_size {hidden_size} does not divide among {heads} attention heads")))
    }
}

fn positive(name: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(Error::invalid_model(format!("{name} is {value}, expected a finite number above 0")))
    }
}
