//! The ids of special tokens in a GGUF file.

use unspool_core::{Error, Result};

use crate::gguf::{Gguf, Value};

/// Ids of special tokens, those outside the vocabulary left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpecialIds {
    /// Begins a text.
    pub bos: Option<u32>,
    /// Ends a text.
    pub eos: Option<u32>,
    /// Ends a turn.
    pub eot: Option<u32>,
    /// Stands for what the vocabulary does not have.
    pub unk: Option<u32>,
    /// Fills up shorter rows.
    pub pad: Option<u32>,
    /// One line for each id that was left out.
    pub warnings: Vec<String>,
}

/// The ids that a file names. An id outside the vocabulary (converters write -1, also as 4294967295, for "none") is left out
/// with a warning.
///
/// # Errors
///
/// When an id is no integer.
pub(crate) fn special_ids(file: &Gguf) -> Result<SpecialIds> {
    let tokens = file.metadata("tokenizer.ggml.tokens").and_then(Value::as_strings).map_or(0, <[String]>::len);
    let mut warnings = Vec::new();
    let mut id = |name: &str| {
        let key = format!("tokenizer.ggml.{name}");
        let Some(value) = file.metadata(&key) else { return Ok(None) };
        let given = match (value.as_u64(), value.as_i64()) {
            (Some(id), _) => id.to_string(),
            (None, Some(id)) => id.to_string(),
            (None, None) => {
                let message = format!("metadata {key:?} is {}, expected the id of a token", value.kind());
                return Err(Error::invalid_model(message));
            }
        };
        let inside = value.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|id| (*id as usize) < tokens);
        if inside.is_none() {
            warnings.push(format!("{key} is {given}, but there are {tokens} tokens; it is left out"));
        }
        Ok(inside)
    };
    Ok(SpecialIds {
        bos: id("bos_token_id")?,
        eos: id("eos_token_id")?,
        eot: id("eot_token_id")?,
        unk: id("unknown_token_id")?,
        pad: id("padding_token_id")?,
        warnings,
    })
}
