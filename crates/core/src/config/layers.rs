//! The layers of settings and their merge: default < pipeline < model file < call.

use serde_json::{Map, Value};

use crate::config::field::Field;
use crate::config::fields::FIELDS;
use crate::config::generation_config::{BOOKKEEPING, GenerationConfig, refusal};
use crate::error::Error;

/// Which layer a value in force came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Nobody set it: the default of the table.
    Default,
    /// Nobody set it: the default of a call that writes texts ([`Layers::with_defaults`]).
    Pipeline,
    /// The model's `generation_config.json`, or `config.json` of old models.
    ModelFile,
    /// The call: a flag, an argument, a request.
    Call,
}

impl Source {
    /// The word that tables print.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::Pipeline => "pipeline",
            Source::ModelFile => "model file",
            Source::Call => "call",
        }
    }
}

/// The layers below a call.
///
/// ```
/// use unspool_core::config::{GenerationConfig, Layers, Source};
///
/// let model = GenerationConfig::from_json_str(r#"{"temperature": 0.6, "top_k": 20}"#)?;
/// let call = GenerationConfig::from_json_str(r#"{"top_k": null}"#)?;
/// let fields = Layers::new(model).with_call(call);
/// assert_eq!((fields.float("temperature"), fields.source("temperature")), (Some(0.6), Some(Source::ModelFile)));
/// assert_eq!((fields.int("top_k"), fields.source("top_k")), (None, Some(Source::Call)));
/// assert_eq!((fields.float("top_p"), fields.source("top_p")), (Some(1.0), Some(Source::Default)));
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Layers {
    model: GenerationConfig,
    defaults: GenerationConfig,
}

impl Layers {
    /// The defaults with the model's own settings above them.
    pub fn new(model: GenerationConfig) -> Self {
        Layers { model, defaults: GenerationConfig::new() }
    }

    /// The same layers with other defaults for what neither the model's file nor the call sets; Python's pipelines have
    /// such. A default `max_new_tokens` stands back when either sets `max_length`, which it would beat.
    #[must_use]
    #[doc(alias = "_default_generation_config")]
    pub fn with_defaults(&self, defaults: GenerationConfig) -> Self {
        Layers { model: self.model.clone(), defaults }
    }

    /// The settings in force when `call` stands above all. What the call sets to `null` is switched off, defaults too;
    /// a `null` in the model's file counts as not set.
    #[must_use]
    pub fn with_call(&self, call: GenerationConfig) -> Resolved {
        let in_file = |name: &str| self.model.value(name).filter(|value| !value.is_null());
        let length_set = call.value("max_length").is_some() || in_file("max_length").is_some();
        let default = |name: &str| self.defaults.value(name).filter(|_| name != "max_new_tokens" || !length_set);
        let entries = FIELDS.iter().filter_map(|field| {
            let (value, source) = if let Some(value) = call.value(field.name) {
                (value.clone(), Source::Call)
            } else if let Some(value) = in_file(field.name) {
                (value.clone(), Source::ModelFile)
            } else if let Some(value) = default(field.name) {
                (value.clone(), Source::Pipeline)
            } else {
                (field.fill.value()?, Source::Default)
            };
            Some(Entry { field, value, source })
        });
        let unknown = call.extra().keys().find(|name| !BOOKKEEPING.contains(&name.as_str())).cloned();
        Resolved { entries: entries.collect(), extra: self.model.extra().clone(), unknown }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    field: &'static Field,
    value: Value,
    source: Source,
}

/// Every field in force, its value, and the layer it came from.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// In the order of the table.
    entries: Vec<Entry>,
    extra: Map<String, Value>,
    /// A key of the call that is no field.
    unknown: Option<String>,
}

impl Resolved {
    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.field.name == name)
    }

    /// The value in force; `None` when unset or switched off.
    pub fn value(&self, name: &str) -> Option<&Value> {
        Some(&self.entry(name)?.value).filter(|value| !value.is_null())
    }

    /// Where the value in force came from; `None` when nobody set it and it has no default.
    pub fn source(&self, name: &str) -> Option<Source> {
        Some(self.entry(name)?.source)
    }

    /// The value of a boolean field, when in force.
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.value(name)?.as_bool()
    }

    /// The value of an integer field, when in force and within `i64`.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.value(name)?.as_i64()
    }

    /// The value of a numeric field, when in force.
    pub fn float(&self, name: &str) -> Option<f64> {
        self.value(name)?.as_f64()
    }

    /// The value of a text field, when in force.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name)?.as_str()
    }

    /// All fields that some layer sets, in the order of the table. A field that the call switched off has a `null`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Field, &Value, Source)> {
        self.entries.iter().map(|entry| (entry.field, &entry.value, entry.source))
    }

    /// Keys of the model's file that are no generation fields.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// A key of the call that is no generation field.
    pub(crate) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// Whether the call itself said something about the field.
    pub(crate) fn in_call(&self, name: &str) -> bool {
        self.source(name) == Some(Source::Call)
    }

    /// The error about a field's value; its place is the model's file when it came from there.
    pub(crate) fn refuse(&self, name: &str, expected: &str) -> Error {
        let got = self.value(name).unwrap_or(&Value::Null);
        self.locate(name, refusal(name, got, expected))
    }

    /// Adds the model's file as the place of an error about a field that was set there.
    pub(crate) fn locate(&self, name: &str, error: Error) -> Error {
        match self.source(name) {
            Some(Source::ModelFile) => error.at("the model's generation settings"),
            _ => error,
        }
    }
}
