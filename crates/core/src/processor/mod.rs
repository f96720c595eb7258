//! Rules that change a row's scores before a token is picked, one file each.

pub mod bad_words;
pub mod chain;
pub mod contract;
pub mod cutoff;
pub mod encoder_repetition_penalty;
pub mod exponential_decay;
pub mod forced_tokens;
pub mod hamming_diversity;
pub mod log_normalization;
pub mod min_length;
pub mod min_p;
pub mod no_repeat_ngram;
pub mod prefix_constrained;
pub mod remove_invalid;
pub mod repetition_penalty;
pub mod sequence_bias;
pub(crate) mod softmax;
pub mod suppress_tokens;
pub mod temperature;
pub mod top_h;
pub mod top_k;
pub mod top_p;
pub mod typical;
pub mod watermark;

pub use bad_words::NoBadWords;
pub use chain::Chain;
pub use contract::Processor;
pub use cutoff::{Epsilon, Eta};
pub use encoder_repetition_penalty::EncoderRepetitionPenalty;
pub use exponential_decay::ExponentialDecay;
pub use forced_tokens::{ForcedBos, ForcedEos};
pub use hamming_diversity::HammingDiversity;
pub use log_normalization::LogitNormalization;
pub use min_length::{MinLength, MinNewTokens};
pub use min_p::MinP;
pub use no_repeat_ngram::{EncoderNoRepeatNGram, NoRepeatNGram};
pub use prefix_constrained::PrefixConstrained;
pub use remove_invalid::InfNanRemove;
pub use repetition_penalty::RepetitionPenalty;
pub use sequence_bias::SequenceBias;
pub use suppress_tokens::{SuppressTokens, SuppressTokensAtBegin};
pub use temperature::Temperature;
pub use top_h::TopH;
pub use top_k::TopK;
pub use top_p::TopP;
pub use typical::Typical;
pub use watermark::{
    BayesianDetector, GreenListWatermark, SeedingScheme, SynthIdConfig, SynthIdDetector, SynthIdWatermark,
    WatermarkConfig, WatermarkDetection, WatermarkDetector, WatermarkingConfig,
};

#[cfg(test)]
mod tests;
