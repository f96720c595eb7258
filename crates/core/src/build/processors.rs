//! The rules of a generation, in order.

use std::num::NonZeroUsize;

use crate::config::Settings;
use crate::error::Result;
use crate::processor::{
    Chain, EncoderNoRepeatNGram, EncoderRepetitionPenalty, Epsilon, Eta, ExponentialDecay, ForcedBos, ForcedEos,
    GreenListWatermark, InfNanRemove, LogitNormalization, MinLength, MinNewTokens, MinP, NoBadWords, NoRepeatNGram,
    PrefixConstrained, Processor, RepetitionPenalty, SequenceBias, SuppressTokens, SuppressTokensAtBegin,
    SynthIdWatermark, Temperature, TopH, TopK, TopP, Typical, WatermarkingConfig,
};

/// Tokens that a filter must leave. Beams need one that goes on besides those that end them.
fn min_tokens_to_keep(settings: &Settings) -> usize {
    match (settings.beams.num_beams, settings.eos_token_id.len()) {
        (1, _) => 1,
        (_, 0) => 2,
        (_, ends) => ends + 1,
    }
}

/// The rules that `settings` ask for and the caller's own, in Python's order:
///
/// 1. biases, penalties, bans, lengths and forced tokens, in greedy decoding too;
/// 2. `custom`, in the order given. One of a kind that the settings build too takes that one's place instead, and the
///    second value returned, a list of warnings, says so;
/// 3. the filters of sampling: `temperature` first, so that the others see the distribution that is drawn from, then
///    `top_h`, `top_k`, `top_p`, `min_p`, `typical_p`, `epsilon_cutoff`, `eta_cutoff`;
/// 4. the watermark, over a vocabulary of `vocab` tokens, and the normalisation.
///
/// A rule at its neutral value is left out.
///
/// # Errors
///
/// A value outside a rule's range; the message names the field.
#[doc(alias = "_get_logits_processor")]
pub fn processors(
    settings: &Settings,
    vocab: usize,
    prefix: Option<PrefixConstrained>,
    custom: Vec<Box<dyn Processor>>,
) -> Result<(Chain, Vec<String>)> {
    let (mut chain, warnings) = replaced(penalties(settings, prefix)?, custom);
    if settings.do_sample {
        filters(settings, &mut chain)?;
    }
    match &settings.rules.watermarking_config {
        Some(WatermarkingConfig::GreenList(config)) => chain.push(GreenListWatermark::new(config.clone(), vocab)?),
        Some(WatermarkingConfig::SynthId(config)) => chain.push(SynthIdWatermark::new(config.clone())?),
        None => {}
    }
    if settings.rules.renormalize_logits {
        chain.push(LogitNormalization);
    }
    Ok((chain, warnings))
}

/// The built rules and then the caller's; the first of the caller's of a built one's kind takes its place.
fn replaced(built: Vec<Box<dyn Processor>>, custom: Vec<Box<dyn Processor>>) -> (Chain, Vec<String>) {
    let mut custom: Vec<Option<Box<dyn Processor>>> = custom.into_iter().map(Some).collect();
    let mut warnings = Vec::new();
    let mut chain = Vec::new();
    for rule in built {
        let kind = (*rule).kind();
        let own = custom.iter_mut().find(|own| own.as_ref().is_some_and(|own| (**own).kind() == kind));
        match own.and_then(Option::take) {
            Some(own) => {
                warnings
                    .push(format!("the caller's {} takes the place of the one that the settings ask for", own.name()));
                chain.push(own);
            }
            None => chain.push(rule),
        }
    }
    chain.extend(custom.into_iter().flatten());
    (Chain::new(chain), warnings)
}

/// What applies with and without sampling, before the caller's own.
fn penalties(settings: &Settings, prefix: Option<PrefixConstrained>) -> Result<Vec<Box<dyn Processor>>> {
    let rules = &settings.rules;
    let eos = &settings.eos_token_id;
    let mut built: Vec<Box<dyn Processor>> = Vec::new();
    if !rules.sequence_bias.is_empty() {
        built.push(Box::new(SequenceBias::new(rules.sequence_bias.clone())?));
    }
    if let Some(penalty) = rules.encoder_repetition_penalty.filter(|penalty| *penalty != 1.0) {
        built.push(Box::new(EncoderRepetitionPenalty::new(penalty)?));
    }
    if let Some(penalty) = settings.repetition_penalty.filter(|penalty| *penalty != 1.0) {
        built.push(Box::new(RepetitionPenalty::new(penalty)?));
    }
    if let Some(size) = NonZeroUsize::new(rules.no_repeat_ngram_size) {
        built.push(Box::new(NoRepeatNGram::new(size)));
    }
    if let Some(size) = NonZeroUsize::new(rules.encoder_no_repeat_ngram_size) {
        built.push(Box::new(EncoderNoRepeatNGram::new(size)));
    }
    if !rules.bad_words_ids.is_empty() {
        built.push(Box::new(NoBadWords::new(rules.bad_words_ids.clone(), eos)?));
    }
    if !eos.is_empty() {
        match rules.min_new_tokens {
            Some(new) if new > 0 => built.push(Box::new(MinNewTokens::new(new, eos.clone()))),
            None if rules.min_length > 0 => built.push(Box::new(MinLength::new(rules.min_length, eos.clone()))),
            _ => {}
        }
    }
    if let Some(prefix) = prefix {
        built.push(Box::new(prefix));
    }
    if let Some(id) = rules.forced_bos_token_id {
        built.push(Box::new(ForcedBos::new(id)));
    }
    if !rules.forced_eos_token_id.is_empty() {
        let ids = rules.forced_eos_token_id.clone();
        built.push(Box::new(ForcedEos::new(ids, settings.max_length, settings.max_positions)));
    }
    if rules.remove_invalid_values {
        built.push(Box::new(InfNanRemove));
    }
    if let Some((start, factor)) = rules.exponential_decay_length_penalty {
        built.push(Box::new(ExponentialDecay::new(start, factor, eos.clone())?));
    }
    if !rules.suppress_tokens.is_empty() {
        built.push(Box::new(SuppressTokens::new(rules.suppress_tokens.clone())));
    }
    if !rules.begin_suppress_tokens.is_empty() {
        let ids = rules.begin_suppress_tokens.clone();
        built.push(Box::new(SuppressTokensAtBegin::new(ids, rules.forced_bos_token_id.is_some())));
    }
    Ok(built)
}

/// The filters of sampling.
fn filters(settings: &Settings, chain: &mut Chain) -> Result<()> {
    let rules = &settings.rules;
    let keep = min_tokens_to_keep(settings);
    if let Some(temperature) = settings.temperature.filter(|temperature| *temperature != 1.0) {
        chain.push(Temperature::new(temperature)?);
    }
    if let Some(top_h) = rules.top_h {
        chain.push(TopH::new(top_h)?);
    }
    if let Some(top_k) = settings.top_k.filter(|top_k| *top_k != 0) {
        chain.push(TopK::new(top_k, keep)?);
    }
    if let Some(top_p) = settings.top_p.filter(|top_p| *top_p < 1.0) {
        chain.push(TopP::new(top_p, keep)?);
    }
    if let Some(min_p) = settings.min_p {
        chain.push(MinP::new(min_p, keep)?);
    }
    if let Some(mass) = rules.typical_p {
        chain.push(Typical::new(mass, keep)?);
    }
    if let Some(epsilon) = rules.epsilon_cutoff {
        chain.push(Epsilon::new(epsilon, keep)?);
    }
    if let Some(epsilon) = rules.eta_cutoff {
        chain.push(Eta::new(epsilon, keep)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rules;
    use crate::row::Row;

    fn apply(settings: &Settings, custom: Vec<Box<dyn Processor>>, scores: &[f32]) -> Vec<f32> {
        let mut scores = scores.to_vec();
        let row = Row { ids: &[0], prompt_len: 1, prompt: 0 };
        processors(settings, scores.len(), None, custom).unwrap().0.apply(&row, &mut scores).unwrap();
        scores
    }

    #[test]
    fn greedy_has_no_filters() {
        let settings = Settings { temperature: Some(0.1), top_k: Some(1), top_p: Some(0.1), ..Settings::default() };
        assert!(processors(&settings, 60, None, Vec::new()).unwrap().0.is_empty());
    }

    #[test]
    fn sampling_keeps_the_fifty_best_by_default() {
        let settings = Settings { do_sample: true, ..Settings::default() };
        let scores: Vec<f32> = (0..60).map(|score| score as f32).collect();
        let got = apply(&settings, Vec::new(), &scores);
        assert!(got[..10].iter().all(|score| *score == f32::NEG_INFINITY));
        assert_eq!(got[10..], scores[10..]);
    }

    #[test]
    fn temperature_comes_before_the_filters() {
        let scores: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
        let settings = Settings { do_sample: true, top_p: Some(0.6), ..Settings::default() };
        let kept = |scores: Vec<f32>| scores.iter().filter(|score| **score > f32::NEG_INFINITY).count();
        assert_eq!(kept(apply(&settings, Vec::new(), &scores)), 2);
        assert_eq!(kept(apply(&Settings { temperature: Some(0.5), ..settings }, Vec::new(), &scores)), 1);
    }

    #[test]
    fn a_callers_rule_comes_after_penalties_and_before_the_filters() {
        let settings = Settings {
            do_sample: true,
            repetition_penalty: Some(2.0),
            temperature: Some(0.5),
            top_k: None,
            ..Settings::default()
        };
        let add: Box<dyn Processor> = Box::new(|_: &Row<'_>, scores: &mut [f32]| {
            scores[0] += 1.0;
            Ok(())
        });
        assert_eq!(apply(&settings, vec![add], &[4.0, 1.0]), [6.0, 2.0]);
    }

    #[test]
    fn a_callers_rule_of_a_built_kind_takes_its_place() {
        let settings = Settings { repetition_penalty: Some(2.0), ..Settings::default() };
        let own: Box<dyn Processor> = Box::new(RepetitionPenalty::new(4.0).unwrap());
        let other: Box<dyn Processor> = Box::new(InfNanRemove);
        let (chain, warnings) = processors(&settings, 2, None, vec![other, own]).unwrap();
        assert_eq!((chain.len(), warnings.len()), (2, 1));
        assert!(warnings[0].contains("RepetitionPenalty"), "{warnings:?}");
        let mut scores = [4.0, 4.0];
        { chain }.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores).unwrap();
        assert_eq!(scores, [1.0, 4.0]);
    }

    #[test]
    fn cleaning_comes_before_suppressing_and_after_forcing() {
        let rules = Rules {
            remove_invalid_values: true,
            forced_bos_token_id: Some(2),
            suppress_tokens: vec![1],
            ..Rules::default()
        };
        let got = apply(&Settings { rules, ..Settings::default() }, Vec::new(), &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(got, [f32::MIN, f32::NEG_INFINITY, 0.0, f32::MIN]);
    }
}
