//! Checked settings of drafts: what is proposed to the model, and how much of it.

use crate::config::layers::Resolved;
use crate::config::settings::count;
use crate::error::{Error, Result};

/// Longest run that is looked up when nobody says one.
const MATCHING_NGRAM: usize = 2;

/// How the number of drafted tokens follows what the model accepts; Python's `num_assistant_tokens_schedule`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// It stays.
    #[default]
    Constant,
    /// Two more after a round that was accepted whole, else one less; later calls of the same assistant go on there.
    Heuristic,
    /// The same, and every call begins anew.
    HeuristicTransient,
}

impl Schedule {
    /// The schedule of a Python name.
    pub fn named(name: &str) -> Option<Schedule> {
        match name {
            "constant" => Some(Schedule::Constant),
            "heuristic" => Some(Schedule::Heuristic),
            "heuristic_transient" => Some(Schedule::HeuristicTransient),
            _ => None,
        }
    }
}

/// The settings of assisted decoding, by Python's names.
///
/// Python reads `num_assistant_tokens`, its schedule, the confidence threshold and the look-behinds from the assistant
/// model's generation config, and the others from the call's.
#[derive(Clone, Debug, PartialEq)]
pub struct AssistedSettings {
    /// Tokens drafted from the row itself; `None` is no prompt lookup.
    pub prompt_lookup_num_tokens: Option<usize>,
    /// First layers of the model itself that draft; `None` is no early exit.
    pub assistant_early_exit: Option<usize>,
    /// Longest run of tokens looked up.
    pub max_matching_ngram_size: usize,
    /// Tokens that an assistant drafts at a time.
    pub num_assistant_tokens: usize,
    /// How that number changes.
    pub num_assistant_tokens_schedule: Schedule,
    /// Probability below which an assistant stops drafting; 0 never stops.
    pub assistant_confidence_threshold: f64,
    /// Tokens of the assistant that are read again when its tokenizer is another one.
    pub assistant_lookbehind: usize,
    /// Tokens of the model that are read again then.
    pub target_lookbehind: usize,
    /// Share of the model in a distribution mixed with the assistant's.
    pub assistant_ensemble_weight: Option<f64>,
}

impl Default for AssistedSettings {
    fn default() -> Self {
        AssistedSettings {
            prompt_lookup_num_tokens: None,
            assistant_early_exit: None,
            max_matching_ngram_size: MATCHING_NGRAM,
            num_assistant_tokens: 20,
            num_assistant_tokens_schedule: Schedule::Constant,
            assistant_confidence_threshold: 0.4,
            assistant_lookbehind: 10,
            target_lookbehind: 10,
            assistant_ensemble_weight: None,
        }
    }
}

impl AssistedSettings {
    /// Reads and checks the settings of merged fields.
    ///
    /// # Errors
    ///
    /// A number out of its range or an unknown schedule; the message names the field.
    pub fn resolve(fields: &Resolved) -> Result<AssistedSettings> {
        let defaults = AssistedSettings::default();
        let lookup = count(fields, "prompt_lookup_num_tokens", 1)?;
        let weight = fields.float("assistant_ensemble_weight");
        if lookup.is_some() && weight.is_some() {
            return Err(fields.locate(
                "assistant_ensemble_weight",
                Error::invalid_config(
                    "assistant_ensemble_weight and prompt_lookup_num_tokens are both set, but looked-up tokens have no \
                     probabilities to mix; leave one of them out",
                ),
            ));
        }
        let early_exit = count(fields, "assistant_early_exit", 1)?;
        if lookup.is_some() && early_exit.is_some() {
            return Err(fields.locate(
                "assistant_early_exit",
                Error::invalid_config(
                    "assistant_early_exit and prompt_lookup_num_tokens are both set, and one of them drafts; leave the other \
                     out",
                ),
            ));
        }
        let ngram = match lookup {
            Some(_) => count(fields, "max_matching_ngram_size", 1)?.unwrap_or(MATCHING_NGRAM),
            None => MATCHING_NGRAM,
        };
        let schedule = match fields.text("num_assistant_tokens_schedule") {
            None => Schedule::Constant,
            Some(name) => Schedule::named(name).ok_or_else(|| {
                fields.refuse("num_assistant_tokens_schedule", "\"constant\", \"heuristic\" or \"heuristic_transient\"")
            })?,
        };
        let threshold = fields.float("assistant_confidence_threshold").unwrap_or(0.0);
        Ok(AssistedSettings {
            prompt_lookup_num_tokens: lookup,
            assistant_early_exit: early_exit,
            max_matching_ngram_size: ngram,
            num_assistant_tokens: count(fields, "num_assistant_tokens", 0)?.unwrap_or(defaults.num_assistant_tokens),
            num_assistant_tokens_schedule: schedule,
            assistant_confidence_threshold: threshold.max(0.0),
            assistant_lookbehind: count(fields, "assistant_lookbehind", 0)?.unwrap_or(defaults.assistant_lookbehind),
            target_lookbehind: count(fields, "target_lookbehind", 0)?.unwrap_or(defaults.target_lookbehind),
            assistant_ensemble_weight: weight,
        })
    }
}
