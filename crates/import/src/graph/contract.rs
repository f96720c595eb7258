//! What the graph writer must know of a decoder besides its tensors.

/// The sizes and settings of a Llama-like decoder (Llama, Mistral, Qwen2, Qwen3).
#[derive(Clone, Debug, PartialEq)]
pub struct Decoder {
    /// Layers.
    pub layers: usize,
    /// Width of the hidden states.
    pub hidden: usize,
    /// Width inside the feed-forward network.
    pub intermediate: usize,
    /// Attention heads.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// The largest number of positions.
    pub max_positions: usize,
    /// What is added under the root of the norms.
    pub norm_epsilon: f32,
    /// Rotary positions.
    pub rope: Rope,
    /// Positions that a token of a layer sees, itself included, where that is limited: one entry per layer, or none.
    pub sliding_windows: Vec<Option<usize>>,
    /// Whether the output matrix is the embedding table.
    pub tied: bool,
}

impl Decoder {
    /// The width of a head in the cache and inside attention. ONNX Runtime's GroupQueryAttention with rotary positions takes
    /// multiples of 16 alone, so each half of a head is filled up with zeros, which change no product.
    pub fn cached_head_dim(&self) -> usize {
        self.head_dim.next_multiple_of(16)
    }
}

/// What is written of a decoder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Every tensor dequantised.
    pub float: bool,
    /// The hidden states among the outputs, and the output matrix as a graph of its own.
    pub hidden_states: bool,
    /// Numbers of first layers that are models of their own too.
    pub early_exits: Vec<usize>,
}

/// Rotary positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Base of the frequencies (`rope_theta`).
    pub theta: f64,
    /// How frequencies are stretched for contexts beyond the trained ones.
    pub scaling: RopeScaling,
}

/// How rotary frequencies are stretched.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Every frequency divided by a factor.
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Llama 3: low frequencies divided, high ones kept, a ramp between.
    Llama3 {
        /// What low frequencies are divided by.
        factor: f64,
        /// Wavelengths above `original_positions / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original_positions / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// Positions the model was trained on.
        original_positions: usize,
    },
    /// One divisor per frequency, as GGUF files carry them (`rope_freqs.weight`).
    Factors(Vec<f32>),
}
