//! `tokenizer_config.json`.

use serde_json::{Map, Value, json};
use unspool_core::Result;

use super::vocabulary::GgufVocabulary;

pub(super) fn tokenizer_config(vocabulary: &GgufVocabulary) -> Result<Value> {
    let mut config = Map::new();
    config.insert("tokenizer_class".to_owned(), "PreTrainedTokenizerFast".into());
    for (name, id) in vocabulary.named() {
        if let Some(token) = vocabulary.special(id) {
            config.insert(name.to_owned(), token.into());
        }
    }
    for (name, add) in [("add_bos_token", vocabulary.add_bos_token), ("add_eos_token", vocabulary.add_eos_token)] {
        if let Some(add) = add {
            config.insert(name.to_owned(), add.into());
        }
    }
    config.insert("clean_up_tokenization_spaces".to_owned(), false.into());
    if let Some(templates) = chat_template(vocabulary) {
        config.insert("chat_template".to_owned(), templates);
    }
    Ok(Value::Object(config))
}

/// One template as text, several as a list of named ones.
fn chat_template(vocabulary: &GgufVocabulary) -> Option<Value> {
    if vocabulary.chat_templates.is_empty() {
        return vocabulary.chat_template.as_deref().map(Value::from);
    }
    let default = vocabulary.chat_template.as_deref().map(|template| ("default", template));
    let others = vocabulary.chat_templates.iter().map(|(name, template)| (name.as_str(), template.as_str()));
    let entry = |(name, template)| json!({"name": name, "template": template});
    Some(Value::Array(default.into_iter().chain(others).map(entry).collect()))
}
