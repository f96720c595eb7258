//! Checked settings of one generation: what the loops read after defaults, model file and call were merged.

use std::time::Duration;

use serde_json::Value;

use crate::config::assisted::AssistedSettings;
use crate::config::beams::Beams;
use crate::config::contrast::{Contrastive, DolaLayers};
use crate::config::layers::{Resolved, Source};
use crate::config::mode::GenerationMode;
use crate::config::rules::Rules;
use crate::config::validate;
use crate::error::{Error, ErrorKind, Result};
use crate::token::TokenId;

/// New tokens when neither the model nor the call says a length.
const DEFAULT_NEW_TOKENS: usize = 20;

/// Prompt tokens in one step when nobody says otherwise: large enough to fill the engine, small enough that the
/// activations of a long prompt stay small beside the weights.
const DEFAULT_PREFILL_CHUNK: usize = 512;

/// How long rows may become; resolved per row, since rows have their own prompt lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxLength {
    /// Nobody said: 20 new tokens, or up to the model's last position.
    Default,
    /// At most this many new tokens (`max_new_tokens`).
    New(usize),
    /// At most this many tokens with the prompt (`max_length`).
    Total(usize),
}

/// What the settings must know of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFacts {
    /// Entries of the vocabulary.
    pub vocab_size: usize,
    /// The model's limit of positions, when it has one.
    pub max_positions: Option<usize>,
}

/// The settings a generation runs with. A rule that is off is `None`.
///
/// [`Settings::default`] is a generation that nobody set anything for: greedy, 20 new tokens, no end token.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Draw from the distribution instead of taking the best token.
    pub do_sample: bool,
    /// Sequences returned per prompt.
    pub num_return_sequences: usize,
    /// Maximum length of a row.
    pub max_length: MaxLength,
    /// The model's limit of positions, when it has one.
    pub max_positions: Option<usize>,
    /// Tokens that end a row.
    pub eos_token_id: Vec<TokenId>,
    /// The token that stands for "no prompt".
    pub bos_token_id: Option<TokenId>,
    /// The token that fills finished rows in padded outputs; the first end token when nobody says one.
    pub pad_token_id: Option<TokenId>,
    /// Wall-clock limit.
    pub max_time: Option<Duration>,
    /// Texts that end a row.
    pub stop_strings: Vec<String>,
    /// Probability of a written token below which a row ends; set for a drafting model (`is_assistant`) only.
    pub assistant_confidence_threshold: Option<f64>,
    /// Penalty of tokens that occurred.
    pub repetition_penalty: Option<f64>,
    /// Choose the last token of each prompt again. The core has no tokenizer and refuses it; whoever has one heals the
    /// prompts and switches it off.
    pub token_healing: bool,
    /// The other rules that change scores.
    pub rules: Rules,
    /// Beam search.
    pub beams: Beams,
    /// Contrastive search.
    pub contrastive: Option<Contrastive>,
    /// DoLa: the layers that the last one is contrasted with.
    pub dola_layers: Option<DolaLayers>,
    /// What is drafted before the model sees it.
    pub assisted: AssistedSettings,
    /// Divides the scores; sampling only.
    pub temperature: Option<f64>,
    /// Keeps the best k; sampling only.
    pub top_k: Option<usize>,
    /// Keeps the smallest set with this mass; sampling only.
    pub top_p: Option<f64>,
    /// Keeps what has at least this share of the best probability; sampling only.
    pub min_p: Option<f64>,
    /// Keep the processed scores of every step.
    pub output_scores: bool,
    /// Keep the raw logits of every step.
    pub output_logits: bool,
    /// Keep the hidden states of every step.
    pub output_hidden_states: bool,
    /// Largest number of prompt tokens in one step.
    pub prefill_chunk_size: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            do_sample: false,
            num_return_sequences: 1,
            max_length: MaxLength::Default,
            max_positions: None,
            eos_token_id: Vec::new(),
            bos_token_id: None,
            pad_token_id: None,
            max_time: None,
            stop_strings: Vec::new(),
            assistant_confidence_threshold: None,
            repetition_penalty: None,
            token_healing: false,
            rules: Rules::default(),
            beams: Beams::default(),
            contrastive: None,
            dola_layers: None,
            assisted: AssistedSettings::default(),
            temperature: None,
            top_k: Some(50),
            top_p: None,
            min_p: None,
            output_scores: false,
            output_logits: false,
            output_hidden_states: false,
            prefill_chunk_size: DEFAULT_PREFILL_CHUNK,
        }
    }
}

impl Settings {
    /// Checks merged fields and makes them settings; the second value is a list of warnings, one line each, about
    /// settings that have no effect as they are combined.
    ///
    /// # Errors
    ///
    /// A value that Python refuses ([`InvalidConfig`](crate::ErrorKind::InvalidConfig)), or a setting that would change
    /// tokens and is not built ([`Unsupported`](crate::ErrorKind::Unsupported)); the message names the field, the value
    /// and where it came from.
    pub fn resolve(fields: &Resolved, model: &ModelFacts) -> Result<(Settings, Vec<String>)> {
        let mut warnings = validate::validate(fields)?;
        let do_sample = fields.bool("do_sample").unwrap_or(false);
        let (eos_token_id, unusable) = eos_ids(fields, model);
        if !unusable.is_empty() {
            warnings.push(format!(
                "eos_token_id {unusable:?} is outside the vocabulary of {} tokens and never ends a row",
                model.vocab_size
            ));
        }
        let pad_token_id = token(fields, "pad_token_id")?.or(eos_token_id.first().copied());
        let rules = Rules::resolve(fields, model, &eos_token_id)?;
        let (mode, _) = GenerationMode::of(fields, false);
        let settings = Settings {
            do_sample,
            num_return_sequences: count(fields, "num_return_sequences", 1)?.unwrap_or(1),
            max_length: max_length(fields)?,
            max_positions: model.max_positions,
            eos_token_id,
            bos_token_id: token(fields, "bos_token_id")?,
            pad_token_id,
            max_time: max_time(fields)?,
            stop_strings: texts(fields.value("stop_strings")),
            assistant_confidence_threshold: fields
                .float("assistant_confidence_threshold")
                .filter(|threshold| fields.bool("is_assistant") == Some(true) && *threshold > 0.0),
            repetition_penalty: number(fields, "repetition_penalty", "a number above 0", 1.0, |x| x > 0.0)?,
            token_healing: fields.bool("token_healing").unwrap_or(false),
            rules,
            beams: Beams::resolve(fields, model)?,
            contrastive: Contrastive::resolve(fields, mode)?,
            dola_layers: DolaLayers::resolve(fields, mode)?,
            assisted: AssistedSettings::resolve(fields)?,
            temperature: if do_sample {
                let expected = "a number above 0; for the best token every time set do_sample=false";
                number(fields, "temperature", expected, 1.0, |x| x > 0.0)?
            } else {
                None
            },
            top_k: if do_sample { count(fields, "top_k", 0)?.filter(|top_k| *top_k != 0) } else { None },
            top_p: if do_sample {
                number(fields, "top_p", "a number from 0 to 1", 1.0, |x| (0.0..=1.0).contains(&x))?
            } else {
                None
            },
            min_p: if do_sample {
                number(fields, "min_p", "a number from 0 to 1", f64::NAN, |x| (0.0..=1.0).contains(&x))?
            } else {
                None
            },
            output_scores: fields.bool("output_scores").unwrap_or(false),
            output_logits: fields.bool("output_logits").unwrap_or(false),
            output_hidden_states: fields.bool("output_hidden_states").unwrap_or(false),
            prefill_chunk_size: count(fields, "prefill_chunk_size", 1)?.unwrap_or(DEFAULT_PREFILL_CHUNK),
        };
        Ok((settings, warnings))
    }

    /// The length, prompt included, at which a row of `prompt_len` prompt tokens ends.
    ///
    /// # Errors
    ///
    /// When there is no room for a single new token; the message names both lengths.
    pub fn max_length_for(&self, prompt_len: usize) -> Result<usize> {
        let limit = self.total_length(prompt_len);
        if prompt_len < limit {
            return Ok(limit);
        }
        let (kind, field, advice) = match self.max_length {
            MaxLength::Default => (ErrorKind::TooLong, "the model's maximum of positions", "shorten the prompt"),
            MaxLength::New(_) => (ErrorKind::InvalidInput, "max_new_tokens", "give at least 1"),
            MaxLength::Total(_) => {
                (ErrorKind::TooLong, "max_length", "shorten the prompt, raise max_length or set max_new_tokens instead")
            }
        };
        Err(Error::new(
            kind,
            format!(
                "the prompt has {prompt_len} tokens and {field} allows {limit} in all, so there is no room for a new one; \
                 {advice}"
            ),
        ))
    }

    /// The same length without the check.
    pub(crate) fn total_length(&self, prompt_len: usize) -> usize {
        self.max_length.total(prompt_len, self.max_positions)
    }
}

impl MaxLength {
    /// The length, prompt included, at which a row of `prompt_len` prompt tokens ends.
    pub fn total(self, prompt_len: usize, max_positions: Option<usize>) -> usize {
        match self {
            MaxLength::Default => {
                let wanted = prompt_len.saturating_add(DEFAULT_NEW_TOKENS);
                max_positions.map_or(wanted, |positions| wanted.min(positions))
            }
            MaxLength::New(new) => prompt_len.saturating_add(new),
            MaxLength::Total(total) => total,
        }
    }
}

fn max_length(fields: &Resolved) -> Result<MaxLength> {
    if let Some(new) = count(fields, "max_new_tokens", 1)? {
        return Ok(MaxLength::New(new));
    }
    if fields.source("max_length") == Some(Source::Default) {
        return Ok(MaxLength::Default);
    }
    match count(fields, "max_length", 1)? {
        Some(total) => Ok(MaxLength::Total(total)),
        None => {
            Err(Error::invalid_config("max_length is null, expected a number of tokens; leave it out for the default"))
        }
    }
}

fn max_time(fields: &Resolved) -> Result<Option<Duration>> {
    let expected = "a number of seconds, 0 or above";
    let seconds = number(fields, "max_time", expected, f64::NAN, |seconds| seconds >= 0.0)?;
    // A limit that no clock can reach is no limit.
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

/// A float in a range; `None` when unset or neutral.
pub(super) fn number(
    fields: &Resolved,
    name: &str,
    expected: &str,
    neutral: f64,
    in_range: impl Fn(f64) -> bool,
) -> Result<Option<f64>> {
    let Some(value) = fields.float(name) else { return Ok(None) };
    // Scores are f32: what becomes 0 or infinite there would not do what it says.
    if !in_range(value) || !in_range(f64::from(value as f32)) || !(value as f32).is_finite() {
        return Err(fields.refuse(name, expected));
    }
    Ok(Some(value).filter(|value| *value != neutral))
}

/// An integer of at least `least`; `None` when unset.
pub(super) fn count(fields: &Resolved, name: &str, least: usize) -> Result<Option<usize>> {
    let Some(value) = fields.value(name) else { return Ok(None) };
    let value = value.as_u64().and_then(|value| usize::try_from(value).ok()).filter(|value| *value >= least);
    value.map(Some).ok_or_else(|| fields.refuse(name, &format!("an integer of at least {least}")))
}

/// A token id; `None` when unset, or negative, which old files write for "none".
pub(super) fn token(fields: &Resolved, name: &str) -> Result<Option<TokenId>> {
    match fields.value(name) {
        None => Ok(None),
        Some(value) if value.as_i64().is_some_and(|id| id < 0) => Ok(None),
        Some(value) => {
            let id = value.as_u64().and_then(|id| TokenId::try_from(id).ok());
            id.map(Some).ok_or_else(|| fields.refuse(name, "a token id"))
        }
    }
}

/// The end tokens that can occur, and those that cannot.
fn eos_ids(fields: &Resolved, model: &ModelFacts) -> (Vec<TokenId>, Vec<String>) {
    let value = fields.value("eos_token_id");
    let all = value.and_then(Value::as_array).map_or_else(|| Vec::from_iter(value), |ids| ids.iter().collect());
    let (mut usable, mut unusable) = (Vec::new(), Vec::new());
    for id in all {
        let inside =
            id.as_u64().and_then(|id| TokenId::try_from(id).ok()).filter(|id| (*id as usize) < model.vocab_size);
        match inside {
            Some(id) if usable.contains(&id) => {}
            Some(id) => usable.push(id),
            None => unusable.push(id.to_string()),
        }
    }
    (usable, unusable)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
