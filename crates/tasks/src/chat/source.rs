//! Where a model keeps its chat templates.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use unspool_core::file::read_text;
use unspool_core::{Error, Result};

use crate::tokenizer::TokenizerConfig;

/// The largest chat template that is read; known ones have less than 30 KB.
pub(super) const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// A model has a handful of named templates at most.
const MAX_TEMPLATES: usize = 64;

/// Templates by name, in Python's order of precedence: `chat_template.jinja` and the files of
/// `additional_chat_templates/` replace what `tokenizer_config.json` says.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut templates = BTreeMap::new();
    if let Some(text) = read_text(&folder.join("chat_template.jinja"), MAX_TEMPLATE_BYTES as u64)? {
        templates.insert("default".to_owned(), text);
    }
    if let Ok(entries) = std::fs::read_dir(folder.join("additional_chat_templates")) {
        for path in entries.flatten().map(|entry| entry.path()).take(MAX_TEMPLATES) {
            let is_template = path.extension().is_some_and(|extension| extension == "jinja");
            let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_template);
            if let (Some(name), Some(text)) = (name, read_text(&path, MAX_TEMPLATE_BYTES as u64)?) {
                templates.insert(name.to_owned(), text);
            }
        }
    }
    if templates.is_empty() {
        let config = TokenizerConfig::from_folder(folder)?;
        templates = named(config.chat_template.as_ref()).map_err(|error| error.at(folder.display()))?;
    }
    if templates.is_empty() {
        return Err(Error::invalid_input(
            "the model has no chat template (no chat_template.jinja, no chat_template in tokenizer_config.json), so it \
             is probably not a chat model; give it plain text, or add a chat_template.jinja",
        )
        .at(folder.display()));
    }
    Ok(templates)
}

/// The templates of a `chat_template` value: a string, or a list of `{"name", "template"}`.
pub(super) fn named(value: Option<&Value>) -> Result<BTreeMap<String, String>> {
    let broken = || Error::invalid_model("chat_template must be a string or a list of {name, template}");
    let mut templates = BTreeMap::new();
    match value {
        None | Some(Value::Null) => {}
        Some(Value::String(template)) => {
            templates.insert("default".to_owned(), template.clone());
        }
        Some(Value::Array(list)) if list.len() <= MAX_TEMPLATES => {
            for entry in list {
                let field = |name: &str| entry.get(name).and_then(Value::as_str).ok_or_else(broken);
                templates.insert(field("name")?.to_owned(), field("template")?.to_owned());
            }
        }
        Some(Value::Object(map)) if map.len() <= MAX_TEMPLATES => {
            for (name, template) in map {
                templates.insert(name.clone(), template.as_str().ok_or_else(broken)?.to_owned());
            }
        }
        Some(_) => return Err(broken()),
    }
    Ok(templates)
}
