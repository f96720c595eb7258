//! What one file or one call says about generation: some fields with values of the right type.

use serde_json::{Map, Value};

use crate::config::field::Field;
use crate::config::fields::FIELDS;
use crate::error::{Error, Result};

/// The largest JSON text that is read; real files have a few kilobytes.
const MAX_JSON_BYTES: usize = 16 << 20;

/// Sub-objects of a `config.json` that may hold generation fields, the first present one is read.
const TEXT_CONFIGS: [&str; 3] = ["decoder", "generator", "text_config"];

/// What Python writes into a saved file beside the settings: who wrote it, and of what.
pub(super) const BOOKKEEPING: [&str; 4] =
    ["transformers_version", "_from_model_config", "_commit_hash", "_original_object_hash"];

/// Outputs that Python returns only in an object.
const EXTRA_OUTPUTS: [&str; 4] = ["output_attentions", "output_hidden_states", "output_scores", "output_logits"];

/// Generation settings of one layer: field -> value of the field's type, in the order they were set.
///
/// A field that is absent was not set; a field that is `null` was set to "nothing", which in a call switches a default
/// off. Keys that are no fields are kept apart in [`extra`](GenerationConfig::extra) (speech models store tables there).
///
/// ```
/// use unspool_core::config::GenerationConfig;
///
/// let mut config = GenerationConfig::from_json_str(r#"{"temperature": 0.7, "eos_token_id": [1, 2]}"#)?;
/// config.set("top_k", 5.into())?;
/// assert_eq!(config.value("top_k"), Some(&5.into()));
/// let error = config.set("top_k", "many".into()).unwrap_err();
/// assert_eq!(error.to_string(), "top_k is \"many\", expected an integer");
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationConfig {
    values: Map<String, Value>,
    extra: Map<String, Value>,
}

impl GenerationConfig {
    /// Nothing set.
    pub fn new() -> Self {
        GenerationConfig::default()
    }

    /// The settings of a JSON object; unknown keys go to [`extra`](GenerationConfig::extra).
    ///
    /// # Errors
    ///
    /// Not an object, a field of the wrong type, or a key that is an argument of the call and no setting.
    pub fn from_json(json: &Value) -> Result<Self> {
        let object = json.as_object().ok_or_else(|| {
            Error::invalid_config(format!("generation settings are {}, expected a JSON object", shown(json)))
        })?;
        let mut config = GenerationConfig::new();
        for (name, value) in object {
            refuse_call_argument(name)?;
            match Field::named(name) {
                Some(field) => config.put(field, value.clone())?,
                None => {
                    config.extra.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(config)
    }

    /// The settings of a JSON text, at most 16 MiB.
    ///
    /// # Errors
    ///
    /// As [`from_json`](GenerationConfig::from_json); also a text that is no JSON, too long or nested too deeply.
    pub fn from_json_str(text: &str) -> Result<Self> {
        GenerationConfig::from_json(&parse(text)?)
    }

    /// Sets one field; `null` sets it to nothing.
    ///
    /// # Errors
    ///
    /// An unknown name (the message tells the nearest one) or a value of the wrong type.
    pub fn set(&mut self, name: &str, value: Value) -> Result<()> {
        refuse_call_argument(name)?;
        let field = Field::named(name).ok_or_else(|| unknown(name))?;
        self.put(field, value)
    }

    fn put(&mut self, field: &Field, value: Value) -> Result<()> {
        let value = field.kind.read(&value).ok_or_else(|| refusal(field.name, &value, field.kind.expected()))?;
        self.values.insert(field.name.to_owned(), value);
        Ok(())
    }

    /// The value of a field: `None` when it was not set, `Some(null)` when it was set to nothing.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The value of a boolean field, when set.
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.value(name)?.as_bool()
    }

    /// The value of an integer field, when set and within `i64`.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.value(name)?.as_i64()
    }

    /// The value of a numeric field, when set.
    pub fn float(&self, name: &str) -> Option<f64> {
        self.value(name)?.as_f64()
    }

    /// The value of a text field, when set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }

    /// The fields that were set, explicit nulls included, in the order of setting.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Keys that are no generation fields.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// Fields and extra keys as one JSON object.
    pub fn to_json(&self) -> Value {
        Value::Object(
            self.values.iter().chain(&self.extra).map(|(name, value)| (name.clone(), value.clone())).collect(),
        )
    }
}

/// The generation settings of a model folder, from the texts of its `generation_config.json` and its `config.json`.
///
/// A `generation_config.json` is taken alone. Without one, old models keep generation fields in `config.json`: those
/// are read, then fields that are still unset from the first present of its `decoder`, `generator` and `text_config`.
///
/// # Errors
///
/// As [`GenerationConfig::from_json_str`]; the place names the file.
pub fn from_folder_json(generation_config: Option<&str>, config: Option<&str>) -> Result<GenerationConfig> {
    if let Some(text) = generation_config {
        return GenerationConfig::from_json_str(text).map_err(|error| error.at("generation_config.json"));
    }
    config.map_or_else(|| Ok(GenerationConfig::new()), from_model_config).map_err(|error| error.at("config.json"))
}

fn from_model_config(text: &str) -> Result<GenerationConfig> {
    let json = parse(text)?;
    let mut config = GenerationConfig::new();
    let inner = TEXT_CONFIGS.iter().find_map(|name| json.get(name).filter(|value| !value.is_null()));
    for source in [Some(&json), inner].into_iter().flatten() {
        for field in FIELDS {
            let value = source.get(field.name).filter(|value| !value.is_null());
            if let Some(value) = value.filter(|_| config.value(field.name).is_none()) {
                config.put(field, value.clone())?;
            }
        }
    }
    if json.get("force_bos_token_to_be_generated").and_then(Value::as_bool) == Some(true)
        && let Some(bos) = config.value("bos_token_id").cloned()
    {
        config.set("forced_bos_token_id", bos)?;
    }
    if EXTRA_OUTPUTS.iter().any(|name| config.bool(name) == Some(true)) {
        config.set("return_dict_in_generate", true.into())?;
    }
    Ok(config)
}

fn parse(text: &str) -> Result<Value> {
    if text.len() > MAX_JSON_BYTES {
        return Err(Error::invalid_config(format!(
            "the JSON text has {} bytes, expected at most {MAX_JSON_BYTES}",
            text.len()
        )));
    }
    crate::json::parse(text)
}

/// The error about a value: what, got, expected.
pub(crate) fn refusal(name: &str, got: &Value, expected: &str) -> Error {
    Error::invalid_config(format!("{name} is {}, expected {expected}", shown(got)))
}

/// The error about a name that is no field.
pub(crate) fn unknown(name: &str) -> Error {
    let advice = match Field::nearest(name) {
        _ if name == "forced_decoder_ids" => {
            "generate() has it no more (transformers 4.57, 5.x) and only Whisper still reads it, from \
             its own files; for a forced first token set forced_bos_token_id, for others prefix_allowed_tokens_fn"
                .to_owned()
        }
        Some(field) => format!("did you mean {}?", field.name),
        None => "`unspool generate --help` and docs/compatibility.md list them".to_owned(),
    };
    let name: String = name.chars().take(64).collect();
    Error::invalid_config(format!("{name:?} is not a generation setting; {advice}"))
}

/// Things that Python's `generate()` takes beside its settings.
fn refuse_call_argument(name: &str) -> Result<()> {
    const ARGUMENTS: [&str; 8] = [
        "logits_processor",
        "stopping_criteria",
        "prefix_allowed_tokens_fn",
        "synced_gpus",
        "assistant_model",
        "streamer",
        "negative_prompt_ids",
        "negative_prompt_attention_mask",
    ];
    if ARGUMENTS.contains(&name) {
        return Err(Error::invalid_config(format!(
            "{name} is an argument of the call and not a generation setting; take it out of the settings"
        )));
    }
    Ok(())
}

/// A value for a message, cut when long.
pub fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        // Containers may be huge: say only what they are.
        Value::Array(items) if items.len() > 8 => return format!("a list of {} items", items.len()),
        Value::Object(_) => return "an object".to_owned(),
        Value::String(text) if text.len() > LONGEST => return format!("a text of {} bytes", text.len()),
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain("...".chars()).collect()
}
