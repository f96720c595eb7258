//! What a GGUF file says about its vocabulary.

use serde_json::Value;
use unspool_core::{Error, Result};

use super::special::special_ids;
use super::{byte_level, config, sentencepiece};
use crate::gguf::Gguf;

/// More tokens than any model has.
const MAX_TOKENS: usize = 1 << 21;
/// More text than all tokens, or all merges, of any model have.
const MAX_BYTES: usize = 128 << 20;

/// The vocabulary of a GGUF file, as its metadata `tokenizer.*` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GgufVocabulary {
    /// `tokenizer.ggml.model`: `gpt2` (byte-level BPE) or `llama` (SentencePiece).
    pub model: String,
    /// `tokenizer.ggml.pre`: how text is cut before the merges of a byte-level BPE.
    pub pre: Option<String>,
    /// The tokens; a token's place is its id.
    pub tokens: Vec<String>,
    /// One score per token (SentencePiece).
    pub scores: Option<Vec<f32>>,
    /// One kind per token: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub token_types: Option<Vec<i32>>,
    /// Pairs of tokens that merge, best first, each two tokens with a space between.
    pub merges: Option<Vec<String>>,
    /// Id of the token that begins a text.
    pub bos_token_id: Option<u32>,
    /// Id of the token that ends a text.
    pub eos_token_id: Option<u32>,
    /// Id of the token for what the vocabulary does not have.
    pub unk_token_id: Option<u32>,
    /// Id of the token that fills up shorter rows.
    pub pad_token_id: Option<u32>,
    /// Whether encoding begins with the bos token; without it, what models of that kind do.
    pub add_bos_token: Option<bool>,
    /// Whether encoding ends with the eos token.
    pub add_eos_token: Option<bool>,
    /// Whether SentencePiece puts a space before the text (yes, unless it says no).
    pub add_space_prefix: Option<bool>,
    /// The default chat template.
    pub chat_template: Option<String>,
    /// Other chat templates by name.
    pub chat_templates: Vec<(String, String)>,
}

impl GgufVocabulary {
    /// Reads the metadata.
    ///
    /// # Errors
    ///
    /// When there is no vocabulary in it, or a key has a value of another type.
    pub fn from_metadata(file: &Gguf) -> Result<GgufVocabulary> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let has = |name: &str| file.metadata(&key(name)).is_some();
        let ids = special_ids(file)?;
        let optional_bool = |name: &str| if has(name) { file.bool(&key(name)).map(Some) } else { Ok(None) };
        let mut chat_templates = Vec::new();
        for (entry, value) in file.entries() {
            if let (Some(name), Some(text)) = (entry.strip_prefix("tokenizer.chat_template."), value.as_str()) {
                chat_templates.push((name.to_owned(), text.to_owned()));
            }
        }
        Ok(GgufVocabulary {
            model: file.str(&key("model"))?.to_owned(),
            pre: if has("pre") { Some(file.str(&key("pre"))?.to_owned()) } else { None },
            tokens: file.strings(&key("tokens"))?.to_vec(),
            scores: if has("scores") { Some(file.f32s(&key("scores"))?.to_vec()) } else { None },
            token_types: if has("token_type") { Some(file.i32s(&key("token_type"))?.to_vec()) } else { None },
            merges: if has("merges") { Some(file.strings(&key("merges"))?.to_vec()) } else { None },
            bos_token_id: ids.bos,
            eos_token_id: ids.eos,
            unk_token_id: ids.unk,
            pad_token_id: ids.pad,
            add_bos_token: optional_bool("add_bos_token")?,
            add_eos_token: optional_bool("add_eos_token")?,
            add_space_prefix: optional_bool("add_space_prefix")?,
            chat_template: file.metadata("tokenizer.chat_template").and_then(|value| value.as_str()).map(str::to_owned),
            chat_templates,
        })
    }

    /// `tokenizer.json` as the `tokenizers` library reads it.
    ///
    /// # Errors
    ///
    /// When the vocabulary is broken, or of a kind that is not supported (the message names it and those that are).
    pub fn tokenizer_json(&self) -> Result<Value> {
        self.check()?;
        match self.model.as_str() {
            "gpt2" => byte_level::tokenizer(self),
            "llama" => sentencepiece::tokenizer(self),
            other => Err(Error::unsupported(format!(
                "the tokenizer kind {other:?} (tokenizer.ggml.model) is not supported; supported are gpt2 (byte-level \
                 BPE) and llama (SentencePiece)"
            ))),
        }
    }

    /// `tokenizer_config.json`: special tokens, chat templates, and that decoding leaves spaces alone.
    ///
    /// # Errors
    ///
    /// When an id of a special token is outside the vocabulary.
    pub fn tokenizer_config_json(&self) -> Result<Value> {
        self.check()?;
        config::tokenizer_config(self)
    }

    /// The token of a special id.
    pub(super) fn special(&self, id: Option<u32>) -> Option<&str> {
        id.and_then(|id| self.tokens.get(id as usize)).map(String::as_str)
    }

    /// The named special tokens by their Python names.
    pub(super) fn named(&self) -> [(&'static str, Option<u32>); 4] {
        [
            ("bos_token", self.bos_token_id),
            ("eos_token", self.eos_token_id),
            ("unk_token", self.unk_token_id),
            ("pad_token", self.pad_token_id),
        ]
    }

    fn check(&self) -> Result<()> {
        let count = self.tokens.len();
        if count == 0 || count > MAX_TOKENS {
            return Err(Error::invalid_model(format!(
                "a vocabulary of {count} tokens (1 to {MAX_TOKENS} are possible)"
            )));
        }
        for (what, texts) in [("tokens", Some(&self.tokens)), ("merges", self.merges.as_ref())] {
            let bytes = texts.into_iter().flatten().fold(0usize, |sum, text| sum.saturating_add(text.len()));
            if bytes > MAX_BYTES {
                return Err(Error::invalid_model(format!(
                    "the {what} of the vocabulary have more than {MAX_BYTES} bytes"
                )));
            }
        }
        let lengths = [
            ("tokenizer.ggml.scores", self.scores.as_ref().map(Vec::len)),
            ("tokenizer.ggml.token_type", self.token_types.as_ref().map(Vec::len)),
        ];
        for (key, length) in lengths {
            if length.is_some_and(|length| length != count) {
                let length = length.unwrap_or_default();
                return Err(Error::invalid_model(format!("{key} has {length} values for {count} tokens")));
            }
        }
        for (name, id) in self.named() {
            if id.is_some_and(|id| id as usize >= count) {
                let id = id.unwrap_or_default();
                return Err(Error::invalid_model(format!("the {name} has the id {id}, but there are {count} tokens")));
            }
        }
        Ok(())
    }
}
