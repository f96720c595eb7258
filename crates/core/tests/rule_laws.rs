//! What holds of every rule, whatever the scores.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use unspool_core::build::processors;
use unspool_core::config::{FIELDS, GenerationConfig, Group, Layers, MaxLength, ModelFacts, Rules, Status};
use unspool_core::processor::{
    EncoderNoRepeatNGram, EncoderRepetitionPenalty, Epsilon, Eta, ExponentialDecay, ForcedBos, ForcedEos,
    GreenListWatermark, InfNanRemove, LogitNormalization, MinLength, MinNewTokens, MinP, NoBadWords, NoRepeatNGram,
    PrefixConstrained, Processor, RepetitionPenalty, SeedingScheme, SequenceBias, SuppressTokens,
    SuppressTokensAtBegin, SynthIdConfig, SynthIdWatermark, Temperature, TopH, TopK, TopP, Typical, WatermarkConfig,
    WatermarkingConfig,
};
use unspool_core::{Row, Settings, TokenId};

const NONE: f32 = f32::NEG_INFINITY;
const VOCAB: usize = 60;

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

fn size(size: usize) -> NonZeroUsize {
    NonZeroUsize::new(size).unwrap()
}

/// A green list; the scheme that hashes by a table of a million entries makes it once.
fn green(bias: f64, seeding_scheme: SeedingScheme) -> Box<dyn Processor> {
    static MADE: [OnceLock<GreenListWatermark>; 2] = [const { OnceLock::new() }; 2];
    let make = |bias| {
        let config = WatermarkConfig { bias, seeding_scheme, ..WatermarkConfig::default() };
        GreenListWatermark::new(config, VOCAB).unwrap()
    };
    if seeding_scheme == SeedingScheme::LeftHash {
        return Box::new(make(bias));
    }
    let warm = MADE[usize::from(bias == 0.0)].get_or_init(|| {
        let mut rule = make(bias);
        rule.apply(&Row { ids: &[1, 2], prompt_len: 1, prompt: 0 }, &mut [0.0; VOCAB]).unwrap();
        rule
    });
    Box::new(warm.clone())
}

/// One of each rule, with its effect.
fn every_rule() -> Vec<Box<dyn Processor>> {
    let synth_id = SynthIdConfig { context_history_size: 3, ..SynthIdConfig::new(2, vec![11, 22, 33]) };
    vec![
        Box::new(SequenceBias::new(vec![(vec![3], 1.5), (vec![1, 2], -2.0)]).unwrap()),
        Box::new(EncoderRepetitionPenalty::new(1.7).unwrap()),
        Box::new(RepetitionPenalty::new(1.3).unwrap()),
        Box::new(NoRepeatNGram::new(size(2))),
        Box::new(EncoderNoRepeatNGram::new(size(2))),
        Box::new(NoBadWords::new(vec![vec![4], vec![1, 5]], &[0]).unwrap()),
        Box::new(MinLength::new(6, vec![0])),
        Box::new(MinNewTokens::new(3, vec![0])),
        Box::new(PrefixConstrained::new(|prompt, ids| {
            (0..40).map(|id| id + (prompt + ids.len()) as u32 % 20).collect()
        })),
        Box::new(ForcedBos::new(2)),
        Box::new(ForcedEos::new(vec![0, 1], MaxLength::Total(5), None)),
        Box::new(InfNanRemove),
        Box::new(ExponentialDecay::new(1, 1.2, vec![0]).unwrap()),
        Box::new(SuppressTokens::new(vec![7, 8])),
        Box::new(SuppressTokensAtBegin::new(vec![9], false)),
        Box::new(Temperature::new(0.7).unwrap()),
        Box::new(TopH::new(0.6).unwrap()),
        Box::new(TopK::new(9, 1).unwrap()),
        Box::new(TopP::new(0.8, 1).unwrap()),
        Box::new(MinP::new(0.05, 2).unwrap()),
        Box::new(Typical::new(0.7, 2).unwrap()),
        Box::new(Epsilon::new(0.01, 1).unwrap()),
        Box::new(Eta::new(0.05, 1).unwrap()),
        green(2.0, SeedingScheme::LeftHash),
        green(2.0, SeedingScheme::SelfHash),
        Box::new(SynthIdWatermark::new(synth_id).unwrap()),
        Box::new(LogitNormalization),
    ]
}

/// One of each rule that has a value, or a row, at which it does nothing: rows here have 2 to 12 tokens.
fn neutral_rules() -> Vec<Box<dyn Processor>> {
    let synth_id = SynthIdConfig { skip_first_ngram_calls: true, ..SynthIdConfig::new(100, vec![11]) };
    vec![
        Box::new(SequenceBias::new(vec![(vec![3], 0.0)]).unwrap()),
        Box::new(EncoderRepetitionPenalty::new(1.0).unwrap()),
        Box::new(RepetitionPenalty::new(1.0).unwrap()),
        Box::new(NoRepeatNGram::new(size(13))),
        Box::new(EncoderNoRepeatNGram::new(size(13))),
        Box::new(NoBadWords::new(vec![vec![0]], &[0]).unwrap()),
        Box::new(MinLength::new(0, vec![0])),
        Box::new(MinNewTokens::new(0, vec![0])),
        Box::new(PrefixConstrained::new(|_, _| (0..VOCAB as u32).collect())),
        Box::new(ForcedBos::new(2)),
        Box::new(ForcedEos::new(vec![0], MaxLength::Total(50), None)),
        Box::new(InfNanRemove),
        Box::new(ExponentialDecay::new(0, 1.0, vec![0]).unwrap()),
        Box::new(SuppressTokens::new(vec![])),
        Box::new(SuppressTokensAtBegin::new(vec![], false)),
        Box::new(Temperature::new(1.0).unwrap()),
        Box::new(TopK::new(VOCAB, 1).unwrap()),
        Box::new(TopP::new(1.0, 1).unwrap()),
        Box::new(MinP::new(0.0, 1).unwrap()),
        Box::new(Typical::new(0.5, VOCAB).unwrap()),
        Box::new(Epsilon::new(1e-300, 1).unwrap()),
        Box::new(Eta::new(1e-300, 1).unwrap()),
        green(0.0, SeedingScheme::LeftHash),
        green(0.0, SeedingScheme::SelfHash),
        Box::new(SynthIdWatermark::new(synth_id).unwrap()),
    ]
}

/// Scores with ties and forbidden tokens; one at least is allowed.
fn scores() -> impl Strategy<Value = Vec<f32>> {
    let score = prop_oneof![4 => -20.0f32..20.0, 2 => (1i8..9).prop_map(|n| f32::from(n) * 0.5), 1 => Just(NONE)];
    (prop::collection::vec(score, VOCAB), 0..VOCAB).prop_map(|(mut scores, allowed)| {
        scores[allowed] = if scores[allowed] > NONE { scores[allowed] } else { 0.25 };
        scores
    })
}

fn allowed(scores: &[f32]) -> usize {
    scores.iter().filter(|score| **score > NONE).count()
}

#[derive(Clone, Debug)]
struct Given {
    ids: Vec<TokenId>,
    prompt_len: usize,
    prompt: usize,
    scores: Vec<f32>,
}

impl Given {
    fn row(&self) -> Row<'_> {
        Row { ids: &self.ids, prompt_len: self.prompt_len, prompt: self.prompt }
    }

    fn applied(&self, rule: &mut dyn Processor) -> Vec<u32> {
        let mut scores = self.scores.clone();
        rule.apply(&self.row(), &mut scores).unwrap();
        bits(&scores)
    }
}

fn given() -> impl Strategy<Value = Given> {
    (prop::collection::vec(0..VOCAB as u32, 2..13), 0usize..3, scores(), any::<prop::sample::Index>())
        .prop_map(|(ids, prompt, scores, cut)| Given { prompt_len: 1 + cut.index(ids.len() - 1), ids, prompt, scores })
}

/// Settings with any mixture of filters, and penalties that forbid nothing.
fn filters() -> impl Strategy<Value = Settings> {
    let share = || prop::option::of(0.001f64..0.999);
    (share(), share(), share(), share(), share(), share(), prop::option::of(1usize..70), 0.05f64..5.0, 0.5f64..3.0)
        .prop_map(|(top_h, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff, top_k, temperature, penalty)| {
            let rules = Rules {
                top_h,
                typical_p,
                epsilon_cutoff,
                eta_cutoff,
                renormalize_logits: top_h.is_some(),
                encoder_repetition_penalty: Some(penalty),
                watermarking_config: min_p.map(|_| WatermarkingConfig::GreenList(WatermarkConfig::default())),
                ..Rules::default()
            };
            Settings {
                do_sample: true,
                temperature: Some(temperature),
                repetition_penalty: Some(penalty),
                top_k,
                top_p,
                min_p,
                rules,
                ..Settings::default()
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unspool_testing::scaled(48)))]

    #[test]
    fn a_neutral_rule_changes_nothing_bit_for_bit(given in given()) {
        // Where everything has a finite score, so that cleaning has nothing to do.
        let finite: Vec<f32> = given.scores.iter().map(|score| score.max(-25.0)).collect();
        let given = Given { scores: finite, ..given };
        for mut rule in neutral_rules() {
            prop_assert_eq!(given.applied(&mut *rule), bits(&given.scores), "{}", rule.name());
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(rows in prop::collection::vec(given(), 1..5), shift in 0usize..4) {
        let fresh: Vec<Vec<Vec<u32>>> = rows
            .iter()
            .map(|given| every_rule().iter_mut().map(|rule| given.applied(&mut **rule)).collect())
            .collect();
        for order in [(0..rows.len()).collect::<Vec<_>>(), (0..rows.len()).rev().collect()] {
            let mut rules = every_rule();
            for place in &order {
                let row = (place + shift) % rows.len();
                for (index, rule) in rules.iter_mut().enumerate() {
                    prop_assert_eq!(&rows[row].applied(&mut **rule), &fresh[row][index], "{}", rule.name());
                }
            }
        }
    }

    #[test]
    fn filters_of_any_mixture_leave_a_candidate(given in given(), settings in filters()) {
        let (mut chain, _) = processors(&settings, VOCAB, None, Vec::new()).unwrap();
        let mut scores = given.scores.clone();
        chain.apply(&given.row(), &mut scores).unwrap();
        prop_assert!(allowed(&scores) > 0, "{settings:?}");
        prop_assert!(scores.iter().zip(&given.scores).all(|(after, before)| *before > NONE || *after == NONE));
    }

    /// Only bans may forbid the last candidate, as in Python: filters behind them never do.
    #[test]
    fn a_row_is_left_without_a_candidate_by_its_bans_alone(
        given in given(),
        settings in filters(),
        banned in prop::collection::vec(0..VOCAB as u32, 0..40),
        ngram in 0usize..3,
    ) {
        let rules = Rules { suppress_tokens: banned, no_repeat_ngram_size: ngram, ..settings.rules.clone() };
        let bans = Rules {
            suppress_tokens: rules.suppress_tokens.clone(),
            no_repeat_ngram_size: ngram,
            ..Rules::default()
        };
        let left = |settings: Settings| {
            let (mut chain, _) = processors(&settings, VOCAB, None, Vec::new()).unwrap();
            let mut scores = given.scores.clone();
            // Few candidates, so that bans sometimes forbid them all.
            scores.iter_mut().skip(4).for_each(|score| *score = NONE);
            scores[0] = 1.0;
            chain.apply(&given.row(), &mut scores).unwrap();
            allowed(&scores)
        };
        let after_bans = left(Settings { rules: bans, ..Settings::default() });
        // log-softmax of nothing is NaN in Python too, so the normalisation stays out.
        let rules = Rules { renormalize_logits: false, ..rules };
        prop_assert_eq!(left(Settings { rules, ..settings }) > 0, after_bans > 0);
    }
}

#[test]
fn every_field_of_scores_at_its_neutral_value_builds_no_rule() {
    let mut call = json!({"do_sample": true, "max_new_tokens": 5, "eos_token_id": 0});
    for field in FIELDS.iter().filter(|field| field.group == Group::Scores && field.status == Status::Supported) {
        call[field.name] = match field.name {
            // Its default is a rule: the fifty best.
            "top_k" => json!(0),
            "min_p"
            | "top_h"
            | "watermarking_config"
            | "bad_words_ids"
            | "sequence_bias"
            | "forced_bos_token_id"
            | "forced_eos_token_id"
            | "exponential_decay_length_penalty" => Value::Null,
            "guidance_scale" => json!(1.0),
            "suppress_tokens" | "begin_suppress_tokens" => json!([]),
            "renormalize_logits" | "token_healing" => json!(false),
            _ => field.fill.value().unwrap_or_else(|| panic!("{} has no neutral value in this test", field.name)),
        };
    }
    call["min_length"] = json!(0);
    call["min_new_tokens"] = json!(0);
    let fields = Layers::new(GenerationConfig::new()).with_call(GenerationConfig::from_json(&call).unwrap());
    let facts = ModelFacts { vocab_size: VOCAB, max_positions: None };
    let (settings, _) = Settings::resolve(&fields, &facts).unwrap();
    let (chain, warnings) = processors(&settings, VOCAB, None, Vec::new()).unwrap();
    assert!(chain.is_empty() && warnings.is_empty(), "{chain:?}");
}
