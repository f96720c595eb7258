//! `unspool inspect`: what a model is and how it would run.

use clap::{ArgMatches, FromArgMatches};
use serde_json::{Map, Value, json};
use unspool::config::{Resolved, Source, shown};
use unspool::{Call, Description, EngineSupport, Error, GenerationConfig};

use super::notice;
use crate::args::fields;
use crate::args::model::ModelArgs;
use crate::failure::Failure;
use crate::print::out;
use crate::print::table::{bytes, two_columns};

/// Tokens whose cache is told when neither the user nor the model names a number.
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
    let description = pipeline.description().ok_or_else(|| Error::engine("the model has no description"))?;
    let positions = description.max_positions.and_then(|positions| u64::try_from(positions).ok());
    let tokens = matches.get_one::<u64>("tokens").copied().or(positions).unwrap_or(TOKENS);
    let told = Told {
        description,
        settings: pipeline.resolve(&call),
        engines: pipeline.engine_support(),
        tokens,
        cache_bytes: tokens.saturating_mul(u64::try_from(description.cache_bytes_per_token).unwrap_or(u64::MAX)),
    };
    if matches.get_flag("json") { out::line(&told.json()?.to_string()) } else { out::write(&told.text()) }
}

struct Told<'a> {
    description: &'a Description,
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

impl Told<'_> {
    fn json(&self) -> Result<Value, Failure> {
        let plain = |error: serde_json::Error| Error::engine("the description is not JSON").because(error);
        let mut value = serde_json::to_value(self.description).map_err(plain)?;
        let settings: Map<String, Value> = self
            .settings
            .iter()
            .map(|(field, value, from)| (field.name.to_string(), json!({"value": value, "source": source(from)})))
            .collect();
        if let Value::Object(object) = &mut value {
            object.insert("engines".to_string(), serde_json::to_value(&self.engines).map_err(plain)?);
            object.insert("settings".to_string(), Value::Object(settings));
            object.insert("unread_settings".to_string(), Value::Object(self.settings.extra().clone()));
            object.insert("memory".to_string(), json!({"tokens": self.tokens, "cache_bytes": self.cache_bytes}));
        }
        Ok(value)
    }

    fn text(&self) -> String {
        let of = self.description;
        let or_unknown = |number: Option<usize>| number.map_or("not declared".to_string(), |number| number.to_string());
        let mut text = format!("Graph {}\n", of.graph);
        for (title, ports) in [("Inputs", &of.inputs), ("Outputs", &of.outputs)] {
            let rows: Vec<(String, String)> = ports
                .iter()
                .map(|port| (port.name.clone(), format!("{} [{}]", word(&port.dtype), port.shape.join(", "))))
                .collect();
            text.push_str(&format!("\n{title}\n{}", two_columns(&rows)));
        }
        let row = |name: &str, value: String| (name.to_string(), value);
        let exits = of.early_exits.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let exits = if exits.is_empty() { "none".to_string() } else { format!("after {exits} layers") };
        text.push_str("\nModel\n");
        text.push_str(&two_columns(&[
            row("cache mode", format!("{}, because {}", word(&of.cache_mode), of.cache_reason)),
            row("layers", of.layers.to_string()),
            row("key/value heads", or_unknown(of.kv_heads)),
            row("head size", or_unknown(of.head_dim)),
            row("vocabulary", of.vocab_size.to_string()),
            row("maximum positions", or_unknown(of.max_positions)),
            row("early exits", exits),
            row(
                "cache memory",
                format!(
                    "{} a token and row; {} for {} tokens",
                    bytes(of.cache_bytes_per_token as u64),
                    bytes(self.cache_bytes),
                    self.tokens
                ),
            ),
        ]));
        text.push_str("\nEngines\n");
        let mut engines = vec![row("in use", format!("{} {}, {} threads", of.engine, of.engine_version, of.threads))];
        engines.extend(self.engines.iter().map(|engine| {
            let why = engine.why.as_deref().unwrap_or("no reason given");
            row(engine.engine, if engine.loads { "loads it".to_string() } else { format!("does not load it: {why}") })
        }));
        text.push_str(&two_columns(&engines));
        text.push_str("\nGeneration settings in force\n");
        let settings: Vec<(String, String)> = self
            .settings
            .iter()
            .map(|(field, value, from)| (field.name.to_string(), format!("{value}  ({})", source(from))))
            .collect();
        text.push_str(&two_columns(&settings));
        if !self.settings.extra().is_empty() {
            text.push_str("\nIn the model's file, and no generation settings here\n");
            let unread = self.settings.extra().iter().map(|(name, value)| (name.clone(), shown(value)));
            text.push_str(&two_columns(&unread.collect::<Vec<_>>()));
        }
        text
    }
}
