//! Checks of merged fields: what Python refuses, what is not built, and what has no effect as it is combined.

use std::collections::HashSet;

use serde_json::Value;

use crate::config::field::{Neutral, Status};
use crate::config::fields::FIELDS;
use crate::config::generation_config::{shown, unknown};
use crate::config::layers::{Resolved, Source};
use crate::config::mode::GenerationMode;
use crate::error::{Error, Result};

/// Kinds of cache that Python knows.
const CACHES: [&str; 11] = [
    "static",
    "offloaded_static",
    "dynamic",
    "offloaded",
    "quantized",
    "paged",
    "sliding_window",
    "hybrid",
    "hybrid_chunked",
    "offloaded_hybrid",
    "offloaded_hybrid_chunked",
];

/// Refuses what cannot be honoured; returns one line per setting that has no effect.
///
/// # Errors
///
/// Unknown names in the call, values that Python refuses, modes and rules that are not built.
pub(crate) fn validate(fields: &Resolved) -> Result<Vec<String>> {
    if let Some(name) = fields.unknown() {
        return Err(unknown(name));
    }
    refuse_wrong(fields)?;
    let (mode, mut warnings) = GenerationMode::of(fields, false);
    refuse_states(fields, mode)?;
    refuse_drafts_with(fields, mode)?;
    refuse_not_built(fields)?;
    if mode == GenerationMode::Dola && fields.float("repetition_penalty").is_none_or(|penalty| penalty < 1.2) {
        warnings.push("DoLa tends to repeat itself; set repetition_penalty to 1.2 or more".to_owned());
    }
    warn(fields, mode, &mut warnings);
    Ok(warnings)
}

/// The hard errors of Python's own check.
fn refuse_wrong(fields: &Resolved) -> Result<()> {
    let positive = |name: &str| match fields.value(name) {
        Some(value) if value.as_i64().is_some_and(|value| value <= 0) => {
            Err(fields.refuse(name, "an integer of at least 1"))
        }
        _ => Ok(()),
    };
    positive("max_new_tokens")?;
    positive("num_beams")?;
    positive("num_return_sequences")?;
    if fields.text("early_stopping").is_some_and(|text| text != "never") {
        return Err(fields.refuse("early_stopping", "true, false or \"never\""));
    }
    if fields.float("assistant_ensemble_weight").is_some_and(|weight| !(weight > 0.0 && weight < 1.0)) {
        return Err(fields.refuse("assistant_ensemble_weight", "a number between 0 and 1, both excluded"));
    }
    if fields.text("cache_implementation").is_some_and(|name| !CACHES.contains(&name)) {
        return Err(fields.refuse("cache_implementation", &format!("one of {}", CACHES.join(", "))));
    }
    let sequences = fields.int("num_return_sequences").unwrap_or(1);
    let beams = fields.int("num_beams").unwrap_or(1);
    if sequences > 1 && beams == 1 && fields.bool("do_sample") != Some(true) {
        return Err(fields.refuse(
            "num_return_sequences",
            "1 in greedy decoding; set do_sample=true, or num_beams, for several answers",
        ));
    }
    if beams > 1 && fields.bool("low_memory") == Some(true) {
        return Err(fields.refuse("low_memory", "false or nothing with num_beams above 1"));
    }
    if beams > 1 && sequences > beams {
        return Err(fields.refuse("num_return_sequences", &format!("at most num_beams={beams}")));
    }
    let suppressed: HashSet<i64> = ids(fields.value("suppress_tokens")).into_iter().collect();
    for name in ["forced_bos_token_id", "forced_eos_token_id"] {
        let forced = ids(fields.value(name));
        if forced.iter().any(|id| *id < 0) {
            return Err(fields.refuse(name, "a token of the vocabulary"));
        }
        if !forced.is_empty() && forced.iter().all(|id| suppressed.contains(id)) {
            return Err(
                fields.refuse(name, "a token that is not in suppress_tokens too, or no token is left to choose")
            );
        }
    }
    Ok(())
}

fn ids(value: Option<&Value>) -> Vec<i64> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_i64).collect(),
        Some(value) => value.as_i64().into_iter().collect(),
        None => Vec::new(),
    }
}

/// Hidden states are returned by loops that write one token per row and step.
fn refuse_states(fields: &Resolved, mode: GenerationMode) -> Result<()> {
    let singly =
        [GenerationMode::Greedy, GenerationMode::Sample, GenerationMode::ContrastiveSearch, GenerationMode::Dola];
    if fields.bool("output_hidden_states") == Some(true) && !singly.contains(&mode) {
        return Err(not_built(fields, "output_hidden_states", &format!("returning them from {}", mode.as_str())));
    }
    Ok(())
}

/// Drafts are verified by greedy decoding and sampling only; Python ignores them elsewhere and says so.
fn refuse_drafts_with(fields: &Resolved, mode: GenerationMode) -> Result<()> {
    let chosen = GenerationMode::Assisted
        .chosen_by()
        .iter()
        .find(|name| fields.value(name).is_some_and(|value| *value != Value::Bool(false)));
    let other = match mode {
        GenerationMode::Assisted => fields.value("dola_layers").map(|_| GenerationMode::Dola),
        other => Some(other),
    };
    match (chosen, other) {
        (Some(name), Some(other)) => Err(fields.locate(
            name,
            Error::unsupported(format!(
                "{name}={} does not work with {}: drafts serve greedy decoding and sampling; leave one of the two out",
                shown_field(fields, name),
                other.as_str()
            )),
        )),
        _ => Ok(()),
    }
}

/// Refuses rules that are not built and would change tokens.
fn refuse_not_built(fields: &Resolved) -> Result<()> {
    for field in FIELDS {
        let (Status::NotYet(neutral), Some(value)) = (field.status, fields.value(field.name)) else { continue };
        let is_neutral = match neutral {
            Neutral::Always => true,
            Neutral::Unset => false,
            Neutral::False => value.as_bool() == Some(false),
            Neutral::Number(same) => value.as_f64() == Some(same),
        };
        if !is_neutral {
            return Err(not_built(fields, field.name, "this rule"));
        }
    }
    Ok(())
}

fn not_built(fields: &Resolved, name: &str, what: &str) -> Error {
    let got = shown(fields.value(name).unwrap_or(&Value::Null));
    let advice = match fields.source(name) {
        Some(Source::ModelFile) => format!("set {name} to null in the call to go on without it"),
        _ => format!("leave {name} out"),
    };
    fields.locate(name, Error::unsupported(format!("{name}={got} is not supported yet: {what} is not built; {advice}")))
}

/// One line per setting that has no effect in this combination. Python is silent when the call chose the mode and the
/// setting was only inherited.
fn warn(fields: &Resolved, mode: GenerationMode, warnings: &mut Vec<String>) {
    let told = |chooser: &str, name: &str| !fields.in_call(chooser) || fields.in_call(name);
    let differs = |name: &str, neutral: f64| fields.float(name).is_some_and(|value| value != neutral);
    if fields.int("pad_token_id").is_some_and(|id| id < 0) {
        warnings.push(format!("pad_token_id={} is no token and counts as unset", shown_field(fields, "pad_token_id")));
    }
    if fields.bool("do_sample") != Some(true) {
        let neutral = [("temperature", 1.0), ("top_p", 1.0), ("typical_p", 1.0), ("top_k", 50.0)];
        let cutoffs = [("epsilon_cutoff", 0.0), ("eta_cutoff", 0.0), ("min_p", f64::NAN), ("top_h", f64::NAN)];
        for (name, neutral) in neutral.into_iter().chain(cutoffs) {
            // Contrastive search has its own use for it.
            let used = name == "top_k" && mode == GenerationMode::ContrastiveSearch;
            if differs(name, neutral) && told("do_sample", name) && !used {
                let value = shown_field(fields, name);
                warnings.push(format!("{name}={value} has no effect without do_sample=true"));
            }
        }
    }
    let one_beam = matches!(fields.int("num_beams"), None | Some(1));
    let early = fields.value("early_stopping").is_some_and(|value| *value != Value::Bool(false));
    for (name, set) in [("early_stopping", early), ("length_penalty", differs("length_penalty", 1.0))] {
        if one_beam && set && told("num_beams", name) {
            warnings.push(format!("{name}={} has no effect without beams", shown_field(fields, name)));
        }
    }
    let groups = !one_beam && fields.int("num_beam_groups") > Some(1);
    if differs("diversity_penalty", 0.0) && !groups && told("num_beam_groups", "diversity_penalty") {
        let value = shown_field(fields, "diversity_penalty");
        warnings.push(format!("diversity_penalty={value} has no effect without groups of beams"));
    }
    if !one_beam && fields.float("penalty_alpha") > Some(0.0) && told("num_beams", "penalty_alpha") {
        warnings.push(format!("penalty_alpha={} has no effect with beams", shown_field(fields, "penalty_alpha")));
    }
    let above = |least: &str, most: &str| {
        let (low, high) = (fields.int(least)?, fields.int(most)?);
        (low > high).then(|| format!("{least}={low} cannot be reached: {most}={high} ends the answer before"))
    };
    let most = if fields.value("max_new_tokens").is_some() { "max_new_tokens" } else { "max_length" };
    warnings.extend(above("min_new_tokens", most));
    if most == "max_length" {
        warnings.extend(above("min_length", most));
    }
    if fields.int("min_new_tokens").is_some() && fields.int("min_length") > Some(0) {
        warnings.push("min_new_tokens and min_length are both set; min_new_tokens counts".to_owned());
    }
    let length_set = matches!(fields.source("max_length"), Some(Source::Call | Source::ModelFile));
    match (fields.value("max_new_tokens").is_some(), length_set) {
        (true, true) if fields.value("max_length").is_some() => {
            warnings.push("max_new_tokens and max_length are both set; max_new_tokens counts".to_owned());
        }
        (false, false) => {
            warnings.push("no length is set: at most 20 new tokens; set max_new_tokens for another".to_owned())
        }
        _ => {}
    }
}

fn shown_field(fields: &Resolved, name: &str) -> String {
    shown(fields.value(name).unwrap_or(&Value::Null))
}
