//! SentencePiece BPE of Llama 2 and Mistral 7B, as transformers 5 builds its `LlamaTokenizer` from it.

use std::collections::HashMap;

use serde_json::{Value, json};
use unspool_core::{Error, Result};

use super::added;
use super::byte_level::{checked, pair};
use super::vocabulary::GgufVocabulary;

/// Longer tokens than any model has; splitting a token costs the square of its length.
const MAX_TOKEN_BYTES: usize = 512;
/// More merges than any vocabulary implies.
const MAX_MERGES: usize = 1 << 24;

/// SentencePiece's sign for a space.
const SPACE: &str = "▁";

pub(super) fn tokenizer(vocabulary: &GgufVocabulary) -> Result<Value> {
    let merges = match &vocabulary.merges {
        Some(merges) => merges.iter().map(|merge| pair(merge)).collect::<Result<Vec<_>>>()?,
        None => merges_from_scores(vocabulary)?,
    };
    let prefix = vocabulary.add_space_prefix != Some(false);
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let scheme = if prefix { "first" } else { "never" };
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added::added_tokens(vocabulary),
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": false},
        "post_processor": added::post_processor(vocabulary, true)?,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": vocabulary.special(vocabulary.unk_token_id),
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": true,
            "byte_fallback": true,
            "ignore_merges": false,
            "vocab": added::vocab(vocabulary),
            "merges": checked(vocabulary, merges)?,
        },
    }))
}

/// A SentencePiece file lists scores, not merges. Every way to cut a token into two tokens is a merge; the better the
/// token's score the earlier, then the longer the left part, then the longer the right part (in characters), then the
/// order of the tokens and, within one token, of the parts' ids. This is the order transformers takes.
fn merges_from_scores(vocabulary: &GgufVocabulary) -> Result<Vec<(&str, &str)>> {
    let scores = vocabulary.scores.as_deref().ok_or_else(|| {
        Error::invalid_model(
            "the vocabulary has neither tokenizer.ggml.scores nor tokenizer.ggml.merges; one is needed",
        )
    })?;
    if let Some(bad) = scores.iter().position(|score| score.is_nan()) {
        return Err(Error::invalid_model(format!("tokenizer.ggml.scores is not a number for the token {bad}")));
    }
    let ids = vocabulary.tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect::<HashMap<_, _>>();
    let mut merges = Vec::new();
    let mut seen = vec![false; vocabulary.tokens.len()];
    for token in &vocabulary.tokens {
        let token = token.as_str();
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Error::invalid_model(format!(
                "a token of the vocabulary has {} bytes (at most {MAX_TOKEN_BYTES} are possible)",
                token.len()
            )));
        }
        // Of equal tokens the first gives the place and the last the score.
        let Some(&id) = ids.get(token) else { continue };
        let score = scores.get(id).copied().unwrap_or_default();
        if seen.get_mut(id).is_none_or(|seen| std::mem::replace(seen, true)) {
            continue;
        }
        let mut cuts = Vec::new();
        for (characters, (at, _)) in token.char_indices().enumerate().skip(1) {
            let (left, right) = token.split_at(at);
            if let (Some(&left_id), Some(&right_id)) = (ids.get(left), ids.get(right)) {
                cuts.push((left_id, right_id, characters, left, right));
            }
        }
        cuts.sort_unstable_by_key(|&(left, right, ..)| (left, right));
        let length = token.chars().count();
        merges.extend(
            cuts.into_iter()
                .map(|(_, _, characters, left, right)| (score, characters, length - characters, left, right)),
        );
        if merges.len() > MAX_MERGES {
            return Err(Error::invalid_model(format!("the vocabulary implies more than {MAX_MERGES} merges")));
        }
    }
    // Zero of either sign is the same score.
    merges.sort_by(|a, b| (b.0 + 0.0).total_cmp(&(a.0 + 0.0)).then_with(|| (b.1, b.2).cmp(&(a.1, a.2))));
    Ok(merges.into_iter().map(|(_, _, _, left, right)| (left, right)).collect())
}
