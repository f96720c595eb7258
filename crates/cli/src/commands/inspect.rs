//! `unspool inspect`: what a model is and how it would run.

use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use serde_json::{Map, Value, json};
use unspool::config::{Resolved, Source, shown};
use unspool::{Call, Description, EngineSupport, Error, GenerationConfig, GraphWeights, Pipeline, TokenId};

use super::notice;
use crate::args::fields;
use crate::args::model::ModelArgs;
use crate::failure::Failure;
use crate::print::out;
use crate::print::summary::engine;
use crate::print::table::{bytes, grouped, two_columns};

/// Tokens whose cache is measured when neither the user nor the model names a number.
const TOKENS: u64 = 2048;

/// Runs the command.
///
/// # Errors
///
/// When the model cannot be opened or a setting cannot be honoured.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let model = ModelArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let config = GenerationConfig::from_json(&Value::Object(fields::read(matches)?))?;
    let call = Call { config, ..Call::new() }.for_texts();
    let pipeline = notice::open(&model.path()?, &model.options_for(&call.config))?;
    pipeline.settings(&call)?;
    let missing = || Error::engine("the model has no description");
    let description = pipeline.description().ok_or_else(missing)?;
    let positions = description.max_positions.and_then(|positions| u64::try_from(positions).ok());
    let tokens = matches.get_one::<u64>("tokens").copied().or(positions).unwrap_or(TOKENS);
    let settings = pipeline.resolve(&call);
    let report = Report {
        description,
        weights: pipeline.weights()?.ok_or_else(missing)?,
        templates: pipeline.chat_template().ok().map(|template| template.names().map(str::to_owned).collect()),
        special_tokens: special_tokens(&pipeline, &settings),
        engine: engine(&pipeline).unwrap_or_default(),
        settings,
        engines: pipeline.engine_support(),
        tokens,
        cache_bytes: tokens.saturating_mul(u64::try_from(description.cache_bytes_per_token).unwrap_or(u64::MAX)),
    };
    if matches.get_flag("json") {
        out::line(&report.json()?.to_string())
    } else {
        out::write(&report.text(matches.get_flag("tensors"), matches.get_flag("settings")))
    }
}

/// A token with a part of its own.
#[derive(Serialize)]
struct SpecialToken {
    /// `bos_token`, `eos_token`, ...
    name: &'static str,
    id: TokenId,
    /// `null` without a tokenizer.
    token: Option<String>,
}

/// The special tokens that generation uses, as the settings say.
fn special_tokens(pipeline: &Pipeline, settings: &Resolved) -> Vec<SpecialToken> {
    let mut found = Vec::new();
    for (field, name) in [("bos_token_id", "bos_token"), ("eos_token_id", "eos_token"), ("pad_token_id", "pad_token")] {
        let value = settings.value(field);
        let ids =
            value.and_then(Value::as_array).map_or_else(|| value.into_iter().collect(), |ids| ids.iter().collect());
        let ids: Vec<&Value> = ids;
        for id in ids.into_iter().filter_map(Value::as_u64).filter_map(|id| TokenId::try_from(id).ok()) {
            let token = pipeline.tokenizer().ok().and_then(|tokenizer| tokenizer.token(id).map(str::to_owned));
            found.push(SpecialToken { name, id, token });
        }
    }
    found
}

struct Report<'a> {
    description: &'a Description,
    weights: GraphWeights,
    /// The names of the chat templates; `None` without any.
    templates: Option<Vec<String>>,
    special_tokens: Vec<SpecialToken>,
    engine: String,
    settings: Resolved,
    engines: Vec<EngineSupport>,
    tokens: u64,
    cache_bytes: u64,
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Default => "default",
        Source::Pipeline => "pipeline",
        Source::ModelFile => "model file",
        Source::Call => "flag",
    }
}

/// A value that is one word in JSON, as that word.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// A row of a table.
fn row(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

impl Report<'_> {
    fn json(&self) -> Result<Value, Failure> {
        let plain = |error: serde_json::Error| Error::engine("the description is not JSON").because(error);
        let mut value = serde_json::to_value(self.description).map_err(plain)?;
        let settings: Map<String, Value> = self
            .settings
            .iter()
            .map(|(field, value, from)| (field.name.to_string(), json!({"value": value, "source": source(from)})))
            .collect();
        if let Value::Object(object) = &mut value {
            object.insert("weights".to_string(), serde_json::to_value(&self.weights).map_err(plain)?);
            object.insert("chat_templates".to_string(), json!(self.templates.as_deref().unwrap_or_default()));
            let special = serde_json::to_value(&self.special_tokens).map_err(plain)?;
            object.insert("special_tokens".to_string(), special);
            object.insert("engines".to_string(), serde_json::to_value(&self.engines).map_err(plain)?);
            object.insert("settings".to_string(), Value::Object(settings));
            object.insert("unread_settings".to_string(), Value::Object(self.settings.extra().clone()));
            object.insert("memory".to_string(), json!({"tokens": self.tokens, "cache_bytes": self.cache_bytes}));
        }
        Ok(value)
    }

    fn text(&self, all_tensors: bool, all_settings: bool) -> String {
        let mut text = format!("{}\n\n{}", self.description.graph, two_columns(&self.summary()));
        text.push_str(&format!("\nGraph\n{}", two_columns(&self.graph())));
        text.push_str(&self.tensors(all_tensors));
        text.push_str(&format!("\nEngines\n{}", two_columns(&self.engines())));
        text.push_str(&self.settings(all_settings));
        if !self.settings.extra().is_empty() {
            text.push_str("\nIn the model's file, and no generation settings here\n");
            let unread = self.settings.extra().iter().map(|(name, value)| (name.clone(), shown(value)));
            text.push_str(&two_columns(&unread.collect::<Vec<_>>()));
        }
        text
    }

    /// What one asks about a model first.
    fn summary(&self) -> Vec<(String, String)> {
        let of = self.description;
        let weights = &self.weights;
        let kind = |kind: &unspool::WeightKind| {
            format!("{} as {} ({})", grouped(kind.parameters), kind.kind, bytes(kind.bytes))
        };
        let titles = std::iter::once("weights").chain(std::iter::repeat(""));
        let kinds = titles.zip(&weights.kinds).map(|(title, of)| row(title, kind(of)));
        let templates = match &self.templates {
            None => "none".to_owned(),
            Some(names) if names.len() < 2 => "yes".to_owned(),
            Some(names) => format!("yes: {}", names.join(", ")),
        };
        let special = self.special_tokens.iter().map(|special| {
            let token = special.token.as_deref().unwrap_or("?");
            let value = format!("{} {}", special.id, json!(token));
            row(&special.name.replace('_', " "), value)
        });
        let positions = of.max_positions.map(|positions| format!("{} tokens", grouped(positions as u64)));
        let mut rows =
            vec![row("parameters", grouped(weights.parameters)), row("size on disk", bytes(weights.bytes_on_disk))];
        rows.extend(kinds);
        rows.extend([
            row("context", positions.unwrap_or_else(|| "not declared".to_owned())),
            row("vocabulary", grouped(of.vocab_size as u64)),
            row("chat template", templates),
        ]);
        rows.extend(special);
        rows.push(row(
            "cache memory",
            format!(
                "{} a token and row; {} for {} tokens",
                bytes(of.cache_bytes_per_token as u64),
                bytes(self.cache_bytes),
                grouped(self.tokens)
            ),
        ));
        rows.push(row("runs on", self.engine.as_str()));
        rows
    }

    fn graph(&self) -> Vec<(String, String)> {
        let of = self.description;
        let or_unknown = |number: Option<usize>| number.map_or("not declared".to_string(), |number| number.to_string());
        let exits = of.early_exits.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let exits = if exits.is_empty() { "none".to_string() } else { format!("after {exits} layers") };
        vec![
            row("cache mode", format!("{}, because {}", word(&of.cache_mode), of.cache_reason)),
            row("layers", of.layers.to_string()),
            row("key/value heads", or_unknown(of.kv_heads)),
            row("head size", or_unknown(of.head_dim)),
            row("early exits", exits),
        ]
    }

    /// The inputs and outputs; those of the cache only when `all` are wanted.
    fn tensors(&self, all: bool) -> String {
        let of = self.description;
        let mut text = String::new();
        let mut hidden = 0;
        for (title, ports) in [("Inputs", &of.inputs), ("Outputs", &of.outputs)] {
            let rows: Vec<(String, String)> = ports
                .iter()
                .filter(|port| all || !of.cache_tensors.contains(&port.name))
                .map(|port| (port.name.clone(), format!("{} [{}]", word(&port.dtype), port.shape.join(", "))))
                .collect();
            hidden += ports.len() - rows.len();
            text.push_str(&format!("\n{title}\n{}", two_columns(&rows)));
        }
        if hidden > 0 {
            text.push_str(&format!("  and {hidden} tensors of the cache (--tensors)\n"));
        }
        text
    }

    fn engines(&self) -> Vec<(String, String)> {
        let engine = |engine: &EngineSupport| {
            let why = engine.why.as_deref().unwrap_or("no reason given");
            let words = if engine.loads { "loads it".to_string() } else { format!("does not load it: {why}") };
            row(engine.engine, words)
        };
        self.engines.iter().map(engine).collect()
    }

    /// The settings in force; those at their defaults only when `all` are wanted.
    fn settings(&self, all: bool) -> String {
        let shown = self.settings.iter().filter(|(_, _, from)| all || *from != Source::Default);
        let rows: Vec<(String, String)> =
            shown.map(|(field, value, from)| row(field.name, format!("{value}  ({})", source(from)))).collect();
        let hidden = self.settings.iter().count() - rows.len();
        let mut text = format!("\nGeneration settings in force\n{}", two_columns(&rows));
        if hidden > 0 {
            text.push_str(&format!("  and {hidden} at their defaults (--settings)\n"));
        }
        text
    }
}
