//! A second pipeline that drafts for a first one.

use std::sync::{Arc, Mutex, PoisonError};

use unspool_core::Settings;
use unspool_core::config::{AssistedSettings, FIELDS, Field, GenerationConfig, Group, Layers};
use unspool_core::draft::{Assistant, Draft, TranslatedAssistant};
use unspool_core::{Error, Model, Result};
use unspool_tasks::{Tokenizer, TokenizerPair};

use crate::call::Call;

/// A model that drafts, as a pipeline keeps it.
pub(crate) struct Helper {
    model: Arc<dyn Model>,
    layers: Layers,
    /// Both tokenizers, when they are different ones.
    pair: Option<Arc<TokenizerPair>>,
    /// Where the schedule `heuristic` stands after the last call.
    tokens: Mutex<Option<usize>>,
}

/// A draft of a [`Helper`].
pub(crate) enum Helping {
    /// With the model's own ids.
    Same(Assistant),
    /// With ids of its own.
    Translated(TranslatedAssistant),
}

impl Helping {
    pub(crate) fn draft(&mut self) -> &mut dyn Draft {
        match self {
            Helping::Same(assistant) => assistant,
            Helping::Translated(assistant) => assistant,
        }
    }

    fn tokens(&self) -> usize {
        match self {
            Helping::Same(assistant) => assistant.num_assistant_tokens(),
            Helping::Translated(assistant) => assistant.num_assistant_tokens(),
        }
    }
}

impl Helper {
    /// `model` drafts by its own settings; both tokenizers tell whether its ids are those of the model it drafts for.
    pub(crate) fn new(
        model: Arc<dyn Model>,
        layers: Layers,
        target_vocab: usize,
        tokenizers: Option<(Tokenizer, Tokenizer)>,
    ) -> Result<Self> {
        let pair = tokenizers.map(|(target, own)| TokenizerPair::new(target, own));
        if pair.is_none() && model.vocab_size() != target_vocab {
            return Err(Error::invalid_input(format!(
                "the assistant has {} tokens and the model {target_vocab}, and without both tokenizers nothing can be \
                 translated; give an assistant of the same vocabulary, or tokenizers for both",
                model.vocab_size()
            )));
        }
        let pair = pair.filter(|pair| !pair.is_same()).map(Arc::new);
        Ok(Helper { model, layers, pair, tokens: Mutex::new(None) })
    }

    /// A draft for calls with these settings: what the call says of assistants stands above the assistant's own file.
    pub(crate) fn draft(&self, call: &GenerationConfig) -> Result<Helping> {
        let mut settings = AssistedSettings::resolve(&self.layers.with_call(about_assistants(call)?))?;
        if let Some(tokens) = *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) {
            settings.num_assistant_tokens = tokens;
        }
        let model = self.model.clone();
        Ok(match &self.pair {
            None => Helping::Same(Assistant::new(model, settings)),
            Some(pair) => Helping::Translated(TranslatedAssistant::new(model, settings, pair.clone())),
        })
    }

    /// A call has ended; its schedule may go on in the next one.
    pub(crate) fn used(&self, helping: &Helping, call: &GenerationConfig) {
        let schedule = self.layers.with_call(call.clone());
        if schedule.text("num_assistant_tokens_schedule") == Some("heuristic") {
            *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(helping.tokens());
        }
    }
}

/// What a call says about the assistant itself.
fn about_assistants(call: &GenerationConfig) -> Result<GenerationConfig> {
    let own = [
        "num_assistant_tokens",
        "num_assistant_tokens_schedule",
        "assistant_confidence_threshold",
        "assistant_lookbehind",
        "target_lookbehind",
    ];
    let mut config = GenerationConfig::new();
    for name in own {
        if let Some(value) = call.value(name) {
            config.set(name, value.clone())?;
        }
    }
    Ok(config)
}

/// One line for each thing that the call says of drafts and that nothing drafts by. `assistant` tells whether a model or the
/// caller drafts.
pub(crate) fn without_effect(call: &Call, settings: &Settings, assistant: bool) -> Vec<String> {
    let set = |name: &str| call.config.value(name).is_some_and(|value| !value.is_null() && *value != false);
    let assistant = assistant || settings.assisted.assistant_early_exit.is_some();
    let lookup = settings.assisted.prompt_lookup_num_tokens.is_some();
    let without = |field: &Field| match field.name {
        // A model that drafts for another one stops by itself where it is not sure.
        "is_assistant" => None,
        "assistant_confidence_threshold" if settings.assistant_confidence_threshold.is_some() => None,
        "max_matching_ngram_size" => (!lookup).then_some("prompt_lookup_num_tokens"),
        name if name.contains("assistant") || name == "target_lookbehind" => {
            (!assistant).then_some("an assistant model")
        }
        _ => None,
    };
    let fields = FIELDS.iter().filter(|field| field.group == Group::Assisted && set(field.name));
    let mut told: Vec<String> = fields
        .filter_map(|field| without(field).map(|what| format!("{} has no effect without {what}", field.name)))
        .collect();
    if call.always_draft && !assistant && !lookup {
        told.push("always_draft has no effect, because nothing drafts".to_owned());
    }
    told
}
