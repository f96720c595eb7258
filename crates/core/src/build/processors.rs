//! The rules of a generation, in order.

use crate::config::Settings;
use crate::error::Result;
use crate::processor::{Chain, MinP, Processor, RepetitionPenalty, Temperature, TopK, TopP};

/// One beam: a filter must leave one token.
const KEEP: usize = 1;

/// The rules that `settings` ask for and the caller's own, in Python's order:
///
/// 1. penalties and bans (`repetition_penalty`), in greedy decoding too;
/// 2. `custom`, in the order given;
/// 3. the filters of sampling: `temperature` first, so that the others see the distribution that is drawn from, then
///    `top_k`, `top_p`, `min_p`.
///
/// A rule at its neutral value is left out.
///
/// # Errors
///
/// A value outside a rule's range; the message names the field.
#[doc(alias = "_get_logits_processor")]
pub fn processors(settings: &Settings, custom: Vec<Box<dyn Processor>>) -> Result<Chain> {
    let mut chain = Chain::default();
    if let Some(penalty) = settings.repetition_penalty.filter(|penalty| *penalty != 1.0) {
        chain.push(RepetitionPenalty::new(penalty)?);
    }
    chain.extend(custom);
    if settings.do_sample {
        if let Some(temperature) = settings.temperature.filter(|temperature| *temperature != 1.0) {
            chain.push(Temperature::new(temperature)?);
        }
        if let Some(top_k) = settings.top_k.filter(|top_k| *top_k != 0) {
            chain.push(TopK::new(top_k, KEEP)?);
        }
        if let Some(top_p) = settings.top_p.filter(|top_p| *top_p < 1.0) {
            chain.push(TopP::new(top_p, KEEP)?);
        }
        if let Some(min_p) = settings.min_p {
            chain.push(MinP::new(min_p, KEEP)?);
        }
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;

    fn apply(settings: &Settings, custom: Vec<Box<dyn Processor>>, scores: &[f32]) -> Vec<f32> {
        let mut scores = scores.to_vec();
        let row = Row { ids: &[0], prompt_len: 1, prompt: 0 };
        processors(settings, custom).unwrap().apply(&row, &mut scores).unwrap();
        scores
    }

    #[test]
    fn greedy_has_no_filters() {
        let settings = Settings { temperature: Some(0.1), top_k: Some(1), top_p: Some(0.1), ..Settings::default() };
        assert!(processors(&settings, Vec::new()).unwrap().is_empty());
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
}
