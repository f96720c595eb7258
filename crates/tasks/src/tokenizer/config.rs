//! What `tokenizer_config.json` and `special_tokens_map.json` say about a tokenizer.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use tokenizers::AddedToken;
use unspool_core::{Error, Result, file, json};

/// Both files are small; chat templates and lists of thousands of added tokens fit well inside.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// The special tokens every Python tokenizer has a name for; they become special even when `tokenizer.json` says not.
const NAMED: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// The settings of a tokenizer beside its `tokenizer.json`.
#[derive(Clone, Debug, Default)]
pub struct TokenizerConfig {
    /// Special tokens by their Python names (`bos_token`, `eos_token`, `image_token`, ...).
    pub special_tokens: BTreeMap<String, String>,
    /// `clean_up_tokenization_spaces`; Python ignores it for BPE models.
    pub clean_up_tokenization_spaces: bool,
    /// `clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output`.
    pub clean_up_even_for_bpe: bool,
    /// `split_special_tokens`: special tokens in a text are read as plain text.
    pub split_special_tokens: bool,
    /// `model_max_length`, when the file gives a believable one.
    pub model_max_length: Option<usize>,
    /// `chat_template` as written: a string, or a list of named templates.
    pub chat_template: Option<Value>,
    pub(crate) named: BTreeMap<String, AddedToken>,
    pub(crate) added: BTreeMap<u32, AddedToken>,
    pub(crate) extra: Vec<AddedToken>,
}

impl TokenizerConfig {
    /// Reads the files of a folder, `added_tokens.json` included; each may be missing.
    ///
    /// # Errors
    /// When a file is not JSON, is larger than 16 MiB, or its top level is not an object.
    pub fn from_folder(folder: &Path) -> Result<TokenizerConfig> {
        let mut config = read_object(&folder.join("tokenizer_config.json"))?;
        // Since Python writes `added_tokens_decoder`, the older files are only read when that is absent.
        if config.contains_key("added_tokens_decoder") {
            return Ok(TokenizerConfig::from_json(&config));
        }
        config.extend(read_object(&folder.join("special_tokens_map.json"))?);
        let mut result = TokenizerConfig::from_json(&config);
        for (content, id) in read_object(&folder.join("added_tokens.json"))? {
            let Some(id) = id.as_u64().and_then(|id| u32::try_from(id).ok()) else { continue };
            let special = result.special_tokens.values().any(|token| *token == content);
            result.added.insert(id, AddedToken { content, special, normalized: !special, ..AddedToken::default() });
        }
        Ok(result)
    }

    /// Reads the merged settings. Entries of an unexpected type are left out, as they cannot name a token.
    pub fn from_json(config: &Map<String, Value>) -> TokenizerConfig {
        let flag = |name: &str| config.get(name).and_then(json::flag);
        let mut result = TokenizerConfig {
            clean_up_tokenization_spaces: flag("clean_up_tokenization_spaces") == Some(true),
            clean_up_even_for_bpe: flag("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output")
                == Some(true),
            split_special_tokens: flag("split_special_tokens") == Some(true),
            // Python writes int(1e30) for "no limit".
            model_max_length: config.get("model_max_length").and_then(json::int).and_then(|n| usize::try_from(n).ok()),
            chat_template: config.get("chat_template").filter(|value| !value.is_null()).cloned(),
            ..TokenizerConfig::default()
        };
        if let Some(Value::Object(added)) = config.get("added_tokens_decoder") {
            for (id, value) in added {
                if let (Ok(id), Some(token)) = (id.parse(), added_token(value, false)) {
                    result.added.insert(id, token);
                }
            }
        }
        for (name, value) in config {
            if !name.ends_with("_token") {
                continue;
            }
            let Some(mut token) = added_token(value, true) else { continue };
            if let Some(known) = result.added.values().find(|known| known.content == token.content) {
                token = known.clone();
            }
            result.special_tokens.insert(name.clone(), token.content.clone());
            if NAMED.contains(&name.as_str()) {
                result.named.insert(name.clone(), AddedToken { special: true, ..token });
            } else {
                result.extra.push(AddedToken { special: true, ..token });
            }
        }
        for key in ["extra_special_tokens", "additional_special_tokens"] {
            match config.get(key) {
                Some(Value::Array(list)) => {
                    result.extra.extend(list.iter().filter_map(|value| added_token(value, true)))
                }
                Some(Value::Object(map)) => {
                    for (name, value) in map {
                        if let Some(token) = added_token(value, true) {
                            result.special_tokens.insert(name.clone(), token.content.clone());
                            result.extra.push(token);
                        }
                    }
                }
                _ => {}
            }
        }
        result
    }
}

/// A token written as a string or as an object with flags.
fn added_token(value: &Value, special: bool) -> Option<AddedToken> {
    match value {
        Value::String(content) if !content.is_empty() => {
            Some(AddedToken { content: content.clone(), special, normalized: false, ..AddedToken::default() })
        }
        Value::Object(fields) => {
            let flag = |name: &str| fields.get(name).and_then(json::flag);
            let special = special || flag("special").unwrap_or(false);
            Some(AddedToken {
                content: fields.get("content")?.as_str().filter(|content| !content.is_empty())?.to_owned(),
                single_word: flag("single_word").unwrap_or(false),
                lstrip: flag("lstrip").unwrap_or(false),
                rstrip: flag("rstrip").unwrap_or(false),
                normalized: flag("normalized").unwrap_or(!special),
                special,
            })
        }
        _ => None,
    }
}

/// The object in a JSON file; empty when the file is missing.
fn read_object(path: &Path) -> Result<Map<String, Value>> {
    let Some(text) = file::read_text(path, MAX_CONFIG_BYTES)? else { return Ok(Map::new()) };
    match json::parse(&text).map_err(|error| error.at(path.display()))? {
        Value::Object(map) => Ok(map),
        _ => Err(Error::invalid_model("the file must hold a JSON object").at(path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> TokenizerConfig {
        TokenizerConfig::from_json(serde_json::from_str::<Value>(text).unwrap().as_object().unwrap())
    }

    #[test]
    fn reads_tokens_written_as_strings_and_as_objects() {
        let config = parse(
            r#"{"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": true}, "pad_token": null,
                "image_token": "<image>", "additional_special_tokens": ["<a>", {"content": "<b>"}]}"#,
        );
        assert_eq!(config.special_tokens["bos_token"], "<s>");
        assert_eq!(config.special_tokens["eos_token"], "</s>");
        assert_eq!(config.special_tokens["image_token"], "<image>");
        assert!(!config.special_tokens.contains_key("pad_token"));
        assert!(config.named["eos_token"].lstrip && config.named["eos_token"].special);
        assert_eq!(
            config.extra.iter().map(|token| token.content.as_str()).collect::<Vec<_>>(),
            ["<image>", "<a>", "<b>"]
        );
        assert!(!config.clean_up_tokenization_spaces);
    }

    #[test]
    fn the_older_file_is_read_only_without_added_tokens_decoder() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("special_tokens_map.json", r#"{"eos_token": "<old>"}"#);
        write("tokenizer_config.json", r#"{"eos_token": "<new>"}"#);
        assert_eq!(TokenizerConfig::from_folder(folder.path()).unwrap().special_tokens["eos_token"], "<old>");
        write("tokenizer_config.json", r#"{"eos_token": "<new>", "added_tokens_decoder": {}}"#);
        assert_eq!(TokenizerConfig::from_folder(folder.path()).unwrap().special_tokens["eos_token"], "<new>");
    }
}
