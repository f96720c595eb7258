//! The vocabulary in a GGUF file becomes `tokenizer.json` and `tokenizer_config.json`.
//!
//! Two kinds are known: byte-level BPE (`tokenizer.ggml.model` = `gpt2`) with the pre-tokenizers of the llama family,
//! and SentencePiece BPE (`llama`) of Llama 2 and Mistral 7B. Others are refused by name.

mod added;
mod byte_level;
mod config;
mod pre;
mod sentencepiece;
mod special;
mod vocabulary;

use serde_json::Value;
use unspool_core::Result;

use crate::gguf::Gguf;

pub use pre::SUPPORTED_PRE_TOKENIZERS;
pub(crate) use special::special_ids;
pub use vocabulary::GgufVocabulary;

/// The `tokenizer.json` of a GGUF file's vocabulary.
///
/// # Errors
///
/// When the metadata has no vocabulary, it is broken, or of a kind that is not supported (the message names it).
pub fn tokenizer_json(file: &Gguf) -> Result<Value> {
    GgufVocabulary::from_metadata(file)?.tokenizer_json()
}

/// The `tokenizer_config.json` of a GGUF file's vocabulary.
///
/// # Errors
///
/// As for [`tokenizer_json`].
pub fn tokenizer_config_json(file: &Gguf) -> Result<Value> {
    GgufVocabulary::from_metadata(file)?.tokenizer_config_json()
}

#[cfg(test)]
mod tests;
