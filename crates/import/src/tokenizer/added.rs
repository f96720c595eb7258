//! Tokens that are found in a text before anything else, and the tokens put around a text.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use unspool_core::{Error, Result};

use super::vocabulary::GgufVocabulary;

/// Kinds of tokens in GGUF files.
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// `vocab`: ids by token. Of several equal tokens the last one counts, as in Python.
pub(super) fn vocab(vocabulary: &GgufVocabulary) -> Value {
    let ids = vocabulary.tokens.iter().enumerate();
    Value::Object(ids.map(|(id, token)| (token.clone(), id.into())).collect::<Map<_, _>>())
}

/// `added_tokens`: control tokens and the tokens with a name (bos, eos, ...) are special, user-defined ones are not.
pub(super) fn added_tokens(vocabulary: &GgufVocabulary) -> Value {
    let types = vocabulary.token_types.as_deref().unwrap_or_default();
    let mut added = BTreeMap::new();
    for (id, kind) in types.iter().enumerate() {
        if matches!(*kind, UNKNOWN | CONTROL | USER_DEFINED) {
            added.insert(id, *kind != USER_DEFINED);
        }
    }
    for (_, id) in vocabulary.named() {
        added.extend(id.map(|id| (id as usize, true)));
    }
    // An equal token later in the list has taken the text over.
    let mut last = BTreeMap::new();
    for (&id, &special) in &added {
        if let Some(token) = vocabulary.tokens.get(id).filter(|token| !token.is_empty()) {
            last.insert(token.as_str(), (id, special));
        }
    }
    let mut tokens = last.into_iter().map(|(token, (id, special))| (id, token, special)).collect::<Vec<_>>();
    tokens.sort_unstable();
    let entry = |(id, token, special)| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": special})
    };
    Value::Array(tokens.into_iter().map(entry).collect())
}

/// `post_processor`: bos before and eos after the text, as the file says or, for bos, as the family does.
pub(super) fn post_processor(vocabulary: &GgufVocabulary, family_adds_bos: bool) -> Result<Value> {
    let wanted = |add: bool, id: Option<u32>, name: &str, said: bool| match (add, vocabulary.special(id), id) {
        (true, Some(token), Some(id)) if !token.is_empty() => Ok(Some((token, id))),
        (true, ..) if said => {
            Err(Error::invalid_model(format!("tokenizer.ggml.add_{name} is true, but the vocabulary has no {name}")))
        }
        _ => Ok(None),
    };
    let add_bos = vocabulary.add_bos_token.unwrap_or(family_adds_bos);
    let bos = wanted(add_bos, vocabulary.bos_token_id, "bos_token", vocabulary.add_bos_token.is_some())?;
    let eos = wanted(vocabulary.add_eos_token == Some(true), vocabulary.eos_token_id, "eos_token", true)?;
    if bos.is_none() && eos.is_none() {
        return Ok(Value::Null);
    }
    let around = |sequence: &str, kind: u32| {
        let token = |token: Option<(&str, u32)>| {
            token.map(|(token, _)| json!({"SpecialToken": {"id": token, "type_id": kind}}))
        };
        let text = json!({"Sequence": {"id": sequence, "type_id": kind}});
        token(bos).into_iter().chain([text]).chain(token(eos)).collect::<Vec<_>>()
    };
    let special = bos
        .into_iter()
        .chain(eos)
        .map(|(token, id)| (token.to_owned(), json!({"id": token, "ids": [id], "tokens": [token]})));
    let pair = [around("A", 0), around("B", 1)].concat();
    Ok(json!({
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": pair,
        "special_tokens": special.collect::<Map<_, _>>(),
    }))
}
