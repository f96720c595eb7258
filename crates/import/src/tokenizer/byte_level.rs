//! Byte-level BPE: GPT-2's way, with the pre-tokenizer of the model's family.

use std::collections::HashSet;

use serde_json::{Value, json};
use unspool_core::{Error, Result};

use super::added;
use super::pre::{self, byte_level};
use super::vocabulary::GgufVocabulary;

pub(super) fn tokenizer(vocabulary: &GgufVocabulary) -> Result<Value> {
    let family = pre::family(vocabulary.pre.as_deref())?;
    let merges = vocabulary.merges.as_deref().ok_or_else(|| {
        Error::invalid_model("the vocabulary has no tokenizer.ggml.merges, which a byte-level BPE needs")
    })?;
    let merges = merges.iter().map(|merge| pair(merge)).collect::<Result<Vec<_>>>()?;
    let merges = checked(vocabulary, merges)?;
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added::added_tokens(vocabulary),
        "normalizer": family.normalizer,
        "pre_tokenizer": family.pre_tokenizer,
        "post_processor": added::post_processor(vocabulary, family.add_bos)?,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": family.ignore_merges,
            "vocab": added::vocab(vocabulary),
            "merges": merges,
        },
    }))
}

/// The two tokens of a merge.
pub(super) fn pair(merge: &str) -> Result<(&str, &str)> {
    // A token may be a space itself only as the first of the two.
    let space = merge.char_indices().skip(1).find(|&(_, c)| c == ' ').map(|(at, _)| at);
    space
        .and_then(|at| Some((merge.get(..at)?, merge.get(at + 1..)?)))
        .filter(|(_, right)| !right.is_empty())
        .ok_or_else(|| Error::invalid_model(format!("the merge {merge:?} is not two tokens with a space between")))
}

/// Refuses merges of or into tokens that do not exist.
pub(super) fn checked(vocabulary: &GgufVocabulary, merges: Vec<(&str, &str)>) -> Result<Vec<Value>> {
    let tokens = vocabulary.tokens.iter().map(String::as_str).collect::<HashSet<_>>();
    let mut joined = String::new();
    for &(left, right) in &merges {
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        if let Some(missing) = [left, right, &joined].into_iter().find(|token| !tokens.contains(token)) {
            return Err(Error::invalid_model(format!(
                "the merge of {left:?} and {right:?} needs the token {missing:?}, which the vocabulary does not have"
            )));
        }
    }
    Ok(merges.into_iter().map(|(left, right)| json!([left, right])).collect())
}
