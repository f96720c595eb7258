//! Checked settings of the rules that change scores.

use serde_json::Value;

use crate::config::layers::Resolved;
use crate::config::settings::{ModelFacts, number, token};
use crate::error::{Error, Result};
use crate::processor::{ExponentialDecay, GreenListWatermark, WatermarkingConfig};
use crate::token::TokenId;

/// The settings of rules, by Python's names. A rule that is off is `None`, empty or 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Strength of the guidance away from another prompt; 1 is none.
    pub guidance_scale: Option<f64>,
    /// Numbers added to the scores of token sequences.
    pub sequence_bias: Vec<(Vec<TokenId>, f32)>,
    /// Raises (above 1) tokens of the source.
    pub encoder_repetition_penalty: Option<f64>,
    /// Runs of so many tokens occur once.
    pub no_repeat_ngram_size: usize,
    /// Runs of so many tokens of the source do not occur.
    pub encoder_no_repeat_ngram_size: usize,
    /// Sequences that are not written.
    pub bad_words_ids: Vec<Vec<TokenId>>,
    /// Tokens, prompt counted, before an end token.
    pub min_length: usize,
    /// New tokens before an end token; beats `min_length`.
    pub min_new_tokens: Option<usize>,
    /// Token after a prompt of one.
    pub forced_bos_token_id: Option<TokenId>,
    /// Tokens of which one comes last at the maximum length.
    pub forced_eos_token_id: Vec<TokenId>,
    /// Makes scores finite.
    pub remove_invalid_values: bool,
    /// New tokens, and the factor that end tokens grow by after them.
    pub exponential_decay_length_penalty: Option<(i64, f64)>,
    /// Tokens that are not written.
    pub suppress_tokens: Vec<TokenId>,
    /// Tokens that are not written first.
    pub begin_suppress_tokens: Vec<TokenId>,
    /// Share of the entropy that is kept; sampling only.
    pub top_h: Option<f64>,
    /// Mass of typical tokens that is kept; sampling only.
    pub typical_p: Option<f64>,
    /// Smallest probability; sampling only.
    pub epsilon_cutoff: Option<f64>,
    /// Smallest probability by entropy; sampling only.
    pub eta_cutoff: Option<f64>,
    /// A watermark.
    pub watermarking_config: Option<WatermarkingConfig>,
    /// Scores become log-probabilities at the end.
    pub renormalize_logits: bool,
}

impl Rules {
    /// Reads and checks the rules of merged fields.
    pub(super) fn resolve(fields: &Resolved, model: &ModelFacts, eos: &[TokenId]) -> Result<Rules> {
        let do_sample = fields.bool("do_sample") == Some(true);
        let vocab = model.vocab_size;
        let sampled = |name: &str| if do_sample { fields.float(name) } else { None };
        let penalty = |name: &str| number(fields, name, "a number above 0", 1.0, |x| x > 0.0);
        // Python takes these rules up inside the unit interval only.
        let cutoff = |name: &str| sampled(name).filter(|x| *x > 0.0 && *x < 1.0);
        let mut rules = Rules {
            guidance_scale: number(fields, "guidance_scale", "a finite number", 1.0, |_| true)?,
            sequence_bias: biases(fields, vocab)?,
            encoder_repetition_penalty: penalty("encoder_repetition_penalty")?,
            no_repeat_ngram_size: size(fields, "no_repeat_ngram_size"),
            encoder_no_repeat_ngram_size: size(fields, "encoder_no_repeat_ngram_size"),
            bad_words_ids: words(fields, vocab)?,
            min_length: size(fields, "min_length"),
            min_new_tokens: fields.int("min_new_tokens").map(|new| usize::try_from(new).unwrap_or(0)),
            forced_bos_token_id: token(fields, "forced_bos_token_id")?,
            forced_eos_token_id: forced(fields, vocab)?,
            remove_invalid_values: fields.bool("remove_invalid_values") == Some(true),
            exponential_decay_length_penalty: decay(fields, eos)?,
            suppress_tokens: ids(fields, "suppress_tokens"),
            begin_suppress_tokens: ids(fields, "begin_suppress_tokens"),
            top_h: None,
            typical_p: sampled("typical_p").filter(|x| *x < 1.0),
            epsilon_cutoff: cutoff("epsilon_cutoff"),
            eta_cutoff: cutoff("eta_cutoff"),
            watermarking_config: watermark(fields, vocab)?,
            renormalize_logits: fields.bool("renormalize_logits") == Some(true),
        };
        if do_sample {
            let expected = "a number above 0 and up to 1";
            rules.top_h = number(fields, "top_h", expected, f64::NAN, |x| x > 0.0 && x <= 1.0)?;
            if rules.typical_p.is_some_and(|mass| mass <= 0.0) {
                return Err(fields.refuse("typical_p", "a number above 0; 1.0 switches it off"));
            }
        }
        if let Some(id) = rules.forced_bos_token_id.filter(|id| *id as usize >= vocab) {
            return Err(outside(fields, "forced_bos_token_id", i64::from(id), vocab));
        }
        Ok(rules)
    }
}

/// A size; 0 and below switch the rule off, as in Python.
fn size(fields: &Resolved, name: &str) -> usize {
    fields.int(name).and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
}

fn integers(value: &Value) -> impl Iterator<Item = i64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_i64)
}

/// Ids; those that no token has are left out, as they can match nothing.
fn ids(fields: &Resolved, name: &str) -> Vec<TokenId> {
    fields.value(name).into_iter().flat_map(integers).filter_map(|id| TokenId::try_from(id).ok()).collect()
}

/// The ids of one sequence, all inside the vocabulary.
fn sequence(fields: &Resolved, name: &str, value: &Value, vocab: usize) -> Result<Vec<TokenId>> {
    let inside = |id: i64| TokenId::try_from(id).ok().filter(|id| (*id as usize) < vocab);
    integers(value).map(|id| inside(id).ok_or_else(|| outside(fields, name, id, vocab))).collect()
}

fn outside(fields: &Resolved, name: &str, id: i64, vocab: usize) -> Error {
    fields.locate(
        name,
        Error::invalid_config(format!(
            "{name} names token {id}, the vocabulary has {vocab} tokens (0 to {})",
            vocab.saturating_sub(1)
        )),
    )
}

fn biases(fields: &Resolved, vocab: usize) -> Result<Vec<(Vec<TokenId>, f32)>> {
    let Some(all) = fields.value("sequence_bias").and_then(Value::as_array) else { return Ok(Vec::new()) };
    let mut biases = Vec::new();
    for item in all {
        let (Some(ids), Some(bias)) = (item.get(0), item.get(1).and_then(Value::as_f64)) else { continue };
        let ids = sequence(fields, "sequence_bias", ids, vocab)?;
        if ids.is_empty() {
            return Err(fields.refuse("sequence_bias", "sequences of at least one token"));
        }
        biases.push((ids, bias as f32));
    }
    if biases.is_empty() {
        return Err(fields.refuse("sequence_bias", "at least one [[ids], bias] pair"));
    }
    Ok(biases)
}

fn words(fields: &Resolved, vocab: usize) -> Result<Vec<Vec<TokenId>>> {
    let Some(all) = fields.value("bad_words_ids").and_then(Value::as_array) else { return Ok(Vec::new()) };
    if all.is_empty() {
        return Err(fields.refuse("bad_words_ids", "at least one list of token ids"));
    }
    all.iter().map(|word| sequence(fields, "bad_words_ids", word, vocab)).collect()
}

fn forced(fields: &Resolved, vocab: usize) -> Result<Vec<TokenId>> {
    match fields.value("forced_eos_token_id") {
        None => Ok(Vec::new()),
        Some(list @ Value::Array(_)) => sequence(fields, "forced_eos_token_id", list, vocab),
        Some(one) => sequence(fields, "forced_eos_token_id", &Value::Array(vec![one.clone()]), vocab),
    }
}

fn decay(fields: &Resolved, eos: &[TokenId]) -> Result<Option<(i64, f64)>> {
    let name = "exponential_decay_length_penalty";
    let Some(value) = fields.value(name) else { return Ok(None) };
    let pair = (value.get(0).and_then(Value::as_i64), value.get(1).and_then(Value::as_f64));
    match pair {
        (Some(start), Some(factor)) => match ExponentialDecay::new(start, factor, eos.to_vec()) {
            Ok(_) => Ok(Some((start, factor))),
            Err(error) => Err(fields.locate(name, error)),
        },
        _ => Err(fields.refuse(name, "[new tokens, factor]")),
    }
}

fn watermark(fields: &Resolved, vocab: usize) -> Result<Option<WatermarkingConfig>> {
    let Some(object) = fields.value("watermarking_config").and_then(Value::as_object) else { return Ok(None) };
    let config = WatermarkingConfig::from_json(object).and_then(|config| {
        if let WatermarkingConfig::GreenList(config) = &config {
            GreenListWatermark::new(config.clone(), vocab)?;
        }
        Ok(config)
    });
    config.map(Some).map_err(|error| fields.locate("watermarking_config", error))
}
