//! The rules against the definition, and their numbers.

use proptest::prelude::*;

use super::*;
use crate::config::MaxLength;
use crate::error::ErrorKind;
use crate::row::Row;

const NONE: f32 = f32::NEG_INFINITY;

fn apply(mut rule: impl Processor, ids: &[u32], scores: &[f32]) -> Vec<f32> {
    let mut scores = scores.to_vec();
    rule.apply(&Row { ids, prompt_len: ids.len(), prompt: 0 }, &mut scores).unwrap();
    scores
}

fn logs(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln()).collect()
}

/// Which ids stay.
fn kept(rule: impl Processor, scores: &[f32]) -> Vec<usize> {
    let got = apply(rule, &[0], scores);
    for (after, before) in got.iter().zip(scores) {
        assert!(*after == NONE || after.to_bits() == before.to_bits(), "a filter changed {before} to {after}");
    }
    (0..got.len()).filter(|&id| got[id] > NONE).collect()
}

#[test]
fn top_k_keeps_ties_and_takes_more_than_the_vocabulary() {
    assert_eq!(kept(TopK::new(2, 1).unwrap(), &[3.0, 2.0, 2.0, 1.0]), [0, 1, 2]);
    assert_eq!(kept(TopK::new(20, 1).unwrap(), &[3.0, 2.0, 2.0, 1.0]), [0, 1, 2, 3]);
    assert_eq!(kept(TopK::new(1, 3).unwrap(), &[4.0, 3.0, 2.0, 1.0]), [0, 1, 2]);
    assert_eq!(kept(TopK::new(1, 1).unwrap(), &[0.0, -0.0]), [0, 1]);
}

#[test]
fn top_p_keeps_the_documented_sets() {
    let p = logs(&[0.5, 0.3, 0.15, 0.05]);
    assert_eq!(kept(TopP::new(0.8, 1).unwrap(), &p), [0, 1]);
    assert_eq!(kept(TopP::new(0.81, 1).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(TopP::new(0.6, 1).unwrap(), &p), [0, 1]);
    assert_eq!(kept(TopP::new(0.0, 1).unwrap(), &p), [0]);
    assert_eq!(kept(TopP::new(0.0, 3).unwrap(), &p), [0, 1, 2]);
    // The sum is exactly at the bound.
    assert_eq!(kept(TopP::new(0.75, 1).unwrap(), &logs(&[0.5, 0.25, 0.125, 0.125])), [0, 1]);
}

#[test]
fn top_p_removes_the_lower_index_of_a_tie_first() {
    assert_eq!(kept(TopP::new(0.3, 1).unwrap(), &[1.0; 4]), [2, 3]);
    assert_eq!(kept(TopP::new(0.6, 1).unwrap(), &[1.0; 4]), [1, 2, 3]);
}

#[test]
fn min_p_compares_strictly_with_a_share_of_the_best() {
    let p = [2.0 * 2f32.ln(), 2f32.ln(), 2f32.ln()];
    assert_eq!(kept(MinP::new(0.5, 1).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(MinP::new(0.6, 1).unwrap(), &p), [0]);
    assert_eq!(kept(MinP::new(0.6, 2).unwrap(), &p), [0, 1]);
    assert_eq!(kept(MinP::new(1.0, 5).unwrap(), &p), [0, 1, 2]);
}

#[test]
fn repetition_penalty_counts_each_token_once_and_ignores_strange_ids() {
    let rule = RepetitionPenalty::new(2.0).unwrap();
    assert_eq!(apply(rule.clone(), &[0, 1, 1, 2], &[2.0, -2.0, 0.0, 4.0]), [1.0, -4.0, 0.0, 4.0]);
    assert_eq!(apply(rule.clone(), &[1, 4, u32::MAX], &[2.0, NONE]), [2.0, NONE]);
    assert_eq!(apply(rule.clone(), &[2, 1, 2], &[4.0, 3.0, 2.0, 1.0]), [4.0, 1.5, 1.0, 1.0]);
    // The next row, of another length, does not remember.
    let mut rule = rule;
    for ids in [&[0u32, 65][..], &[1], &[65, 0, 70]] {
        let mut scores = vec![1.0; 70];
        rule.apply(&Row { ids, prompt_len: 1, prompt: 0 }, &mut scores).unwrap();
        let halved: Vec<u32> = (0..70).filter(|&id| scores[id as usize] == 0.5).collect();
        let mut expected: Vec<u32> = ids.iter().copied().filter(|id| *id < 70).collect();
        expected.sort_unstable();
        assert_eq!(halved, expected);
    }
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let cases = [
        (Temperature::new(0.0).err(), "temperature is 0"),
        (Temperature::new(-1.0).err(), "temperature is -1"),
        (Temperature::new(f64::NAN).err(), "temperature is NaN"),
        (Temperature::new(f64::INFINITY).err(), "temperature is inf"),
        (RepetitionPenalty::new(0.0).err(), "repetition_penalty is 0"),
        (RepetitionPenalty::new(f64::NAN).err(), "repetition_penalty is NaN"),
        (TopK::new(0, 1).err(), "top_k is 0"),
        (TopP::new(-0.1, 1).err(), "top_p is -0.1"),
        (TopP::new(1.1, 1).err(), "top_p is 1.1"),
        (TopP::new(f64::NAN, 1).err(), "top_p is NaN"),
        (MinP::new(-0.1, 1).err(), "min_p is -0.1"),
        (MinP::new(f64::NAN, 1).err(), "min_p is NaN"),
    ];
    for (error, expected) in cases {
        let error = error.unwrap_or_else(|| panic!("accepted: {expected}"));
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().starts_with(expected), "{error}");
    }
}

#[test]
fn scores_that_are_no_distribution_are_left_alone() {
    for scores in [[f32::NAN, 1.0, 2.0], [f32::INFINITY, 1.0, 2.0], [NONE; 3]] {
        for mut rule in [
            Box::new(TopP::new(0.5, 1).unwrap()) as Box<dyn Processor>,
            Box::new(MinP::new(0.9, 1).unwrap()) as Box<dyn Processor>,
        ] {
            let mut got = scores;
            rule.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut got).unwrap();
            assert_eq!(got.map(f32::to_bits), scores.map(f32::to_bits));
        }
    }
    // In top-k a NaN is the largest value.
    let got = apply(TopK::new(2, 1).unwrap(), &[0], &[1.0, -f32::NAN, 3.0, 2.0]);
    assert!(got[1].is_nan());
    assert_eq!((got[0], got[2], got[3]), (NONE, 3.0, NONE));
    for mut rule in [
        Box::new(TopP::new(0.5, 1).unwrap()) as Box<dyn Processor>,
        Box::new(TopK::new(5, 1).unwrap()) as Box<dyn Processor>,
        Box::new(MinP::new(0.9, 1).unwrap()) as Box<dyn Processor>,
    ] {
        rule.apply(&Row { ids: &[], prompt_len: 0, prompt: 0 }, &mut []).unwrap();
    }
}

/// Ids that the definition keeps: sort everything, sum from the bottom.
fn literal_top_p(scores: &[f32], top_p: f64, keep: usize) -> Vec<usize> {
    let mut probabilities = Vec::new();
    softmax::softmax(scores, &mut probabilities).unwrap();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].partial_cmp(&scores[b]).unwrap());
    let (mut sum, mut removed) = (0.0f64, vec![false; scores.len()]);
    for (place, &id) in order.iter().enumerate() {
        sum += f64::from(probabilities[id]);
        if sum as f32 <= (1.0 - top_p) as f32 && place + keep < order.len() {
            removed[id] = true;
        }
    }
    (0..scores.len()).filter(|&id| scores[id] > NONE && !removed[id]).collect()
}

fn literal_top_k(scores: &[f32], k: usize) -> Vec<usize> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.partial_cmp(a).unwrap());
    let bound = sorted[k.min(sorted.len()) - 1];
    (0..scores.len()).filter(|&id| scores[id] > NONE && scores[id] >= bound).collect()
}

fn literal_min_p(scores: &[f32], min_p: f64, keep: usize) -> Vec<usize> {
    let mut probabilities = Vec::new();
    softmax::softmax(scores, &mut probabilities).unwrap();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].partial_cmp(&probabilities[a]).unwrap());
    let bound = min_p as f32 * probabilities[order[0]];
    let stays = |id: usize| probabilities[id] >= bound || order[..keep.min(order.len())].contains(&id);
    (0..scores.len()).filter(|&id| scores[id] > NONE && stays(id)).collect()
}

/// Scores with many ties, some of them forbidden, from flat to steep.
fn logits(longest: usize) -> impl Strategy<Value = Vec<f32>> {
    let score = prop_oneof![
        4 => (-8i32..8).prop_map(|score| score as f32 * 0.5),
        4 => -30.0..30.0f32,
        2 => -1.0..1.0f32,
        1 => Just(NONE),
    ];
    (prop::collection::vec(score, 1..longest), 0.0..2.0f32).prop_map(|(mut scores, steep)| {
        scores.iter_mut().filter(|score| **score > NONE).for_each(|score| *score *= steep);
        scores[0] = if scores[0] > NONE { scores[0] } else { 0.0 };
        scores
    })
}

proptest! {
    #[test]
    fn top_p_equals_its_definition(
        scores in logits(400),
        top_p in prop_oneof![0.0..=1.0f64, (0u32..=8).prop_map(|n| f64::from(n) / 8.0), Just(0.9), Just(0.95)],
        keep in 1usize..4,
    ) {
        prop_assert_eq!(kept(TopP::new(top_p, keep).unwrap(), &scores), literal_top_p(&scores, top_p, keep));
    }

    #[test]
    fn top_p_equals_its_definition_on_equal_scores(n in 1usize..600, top_p in 0.0..=1.0f64) {
        let scores = vec![0.5; n];
        prop_assert_eq!(kept(TopP::new(top_p, 1).unwrap(), &scores), literal_top_p(&scores, top_p, 1));
    }

    #[test]
    fn top_k_equals_its_definition(scores in logits(2000), k in 1usize..300) {
        prop_assert_eq!(kept(TopK::new(k, 1).unwrap(), &scores), literal_top_k(&scores, k));
    }

    #[test]
    fn min_p_equals_its_definition(scores in logits(300), min_p in 0.0..=1.0f64, keep in 1usize..4) {
        prop_assert_eq!(kept(MinP::new(min_p, keep).unwrap(), &scores), literal_min_p(&scores, min_p, keep));
    }

    #[test]
    fn neutral_values_change_nothing_bit_for_bit(scores in logits(100), ids in prop::collection::vec(0u32..120, 0..50)) {
        let bits = |scores: &[f32]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
        let neutral = [
            apply(Temperature::new(1.0).unwrap(), &ids, &scores),
            apply(RepetitionPenalty::new(1.0).unwrap(), &ids, &scores),
            apply(TopK::new(scores.len(), 1).unwrap(), &ids, &scores),
            apply(MinP::new(0.0, 1).unwrap(), &ids, &scores),
            apply(Chain::default(), &ids, &scores),
        ];
        for got in neutral {
            prop_assert_eq!(bits(&got), bits(&scores));
        }
    }

    #[test]
    fn a_rule_used_again_gives_the_same(scores in logits(2000), other in logits(2000), top_p in 0.0..=1.0f64) {
        let row = Row { ids: &[0], prompt_len: 1, prompt: 0 };
        let fresh = kept(TopP::new(top_p, 1).unwrap(), &scores);
        let mut rules = (TopP::new(top_p, 1).unwrap(), TopK::new(7, 1).unwrap(), MinP::new(0.1, 2).unwrap());
        rules.0.apply(&row, &mut other.clone()).unwrap();
        rules.1.apply(&row, &mut other.clone()).unwrap();
        rules.2.apply(&row, &mut other.clone()).unwrap();
        prop_assert_eq!(kept(rules.0, &scores), fresh);
        prop_assert_eq!(kept(rules.1, &scores), literal_top_k(&scores, 7));
        prop_assert_eq!(kept(rules.2, &scores), literal_min_p(&scores, 0.1, 2));
    }
}

/// The same, with some of `ids` as the prompt.
fn after(mut rule: impl Processor, prompt_len: usize, ids: &[u32], scores: &[f32]) -> Vec<f32> {
    let mut scores = scores.to_vec();
    rule.apply(&Row { ids, prompt_len, prompt: 0 }, &mut scores).unwrap();
    scores
}

#[test]
fn typical_may_remove_the_best_and_cutoffs_never_do() {
    let p = logs(&[0.5, 0.3, 0.15, 0.05]);
    assert_eq!(kept(Typical::new(0.2, 1).unwrap(), &p), [1]);
    assert_eq!(kept(Typical::new(0.5, 1).unwrap(), &p), [0, 1]);
    assert_eq!(kept(Typical::new(0.9, 1).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(Epsilon::new(0.9, 1).unwrap(), &p), [0]);
    assert_eq!(kept(Epsilon::new(0.9, 3).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(Eta::new(0.1, 1).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(Eta::new(0.3, 1).unwrap(), &p), [0, 1]);
    for wrong in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(Typical::new(wrong, 1).is_err() && Epsilon::new(wrong, 1).is_err() && Eta::new(wrong, 1).is_err());
    }
}

/// Ids that the definition of typical sampling keeps: sort everything by distance, sum from the nearest.
fn literal_typical(scores: &[f32], mass: f64, keep: usize) -> Vec<usize> {
    let mut probabilities = Vec::new();
    softmax::softmax(scores, &mut probabilities).unwrap();
    let log_mass = softmax::log_mass(scores);
    let entropy = softmax::entropy(scores, log_mass) as f32;
    let distance = |id: usize| ((log_mass - f64::from(scores[id])) as f32 - entropy).abs();
    let mut order: Vec<usize> = (0..scores.len()).filter(|&id| scores[id] > NONE).collect();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    let mut sum = 0.0f64;
    let reached = order.iter().position(|&id| {
        sum += f64::from(probabilities[id]);
        sum as f32 >= mass as f32
    });
    let bound = distance(order[reached.unwrap_or(order.len() - 1)]);
    let mut stays: Vec<usize> = order
        .iter()
        .enumerate()
        .filter(|&(place, &id)| place < keep || distance(id) <= bound)
        .map(|(_, &id)| id)
        .collect();
    stays.sort_unstable();
    stays
}

proptest! {
    #[test]
    fn typical_equals_its_definition(
        scores in prop_oneof![3 => logits(400), 1 => logits(4000)],
        mass in prop_oneof![0.001..0.999f64, (1u32..8).prop_map(|n| f64::from(n) / 8.0), Just(0.9), Just(0.95)],
        keep in 1usize..4,
    ) {
        prop_assert_eq!(kept(Typical::new(mass, keep).unwrap(), &scores), literal_typical(&scores, mass, keep));
    }

    /// Few different scores, so that the mass is reached among many ties, and shares at which sums meet it exactly.
    #[test]
    fn typical_keeps_every_tie(
        scores in prop::collection::vec((0u8..3).prop_map(|n| f32::from(n) * 2f32.ln()), 1030..2100),
        eighths in 1u32..8,
        keep in prop_oneof![3 => Just(1usize), 1 => 2usize..2000],
    ) {
        let mass = f64::from(eighths) / 8.0;
        prop_assert_eq!(kept(Typical::new(mass, keep).unwrap(), &scores), literal_typical(&scores, mass, keep));
    }

    #[test]
    fn typical_equals_its_definition_on_equal_scores(n in 1usize..3000, mass in 0.001..0.999f64) {
        prop_assert_eq!(kept(Typical::new(mass, 1).unwrap(), &vec![0.5; n]).len(), n);
    }
}

#[test]
fn top_h_holds_the_terms_of_the_whole_distribution_against_the_entropy() {
    let p = logs(&[0.5, 0.3, 0.15, 0.05]);
    assert_eq!(kept(TopH::new(0.9).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(TopH::new(0.6).unwrap(), &p), [0]);
    assert_eq!(kept(TopH::new(0.999_999).unwrap(), &p), [0, 1, 2]);
    assert_eq!(kept(TopH::new(0.9).unwrap(), &[1.0, NONE, NONE]), [0]);
    let many: Vec<f32> = (0..200).map(|id| id as f32 * 1e-3).collect();
    let got = kept(TopH::new(1.0).unwrap(), &many);
    assert!(got.iter().all(|id| *id >= 100) && got.len() >= 98, "only the hundred best are looked at");
    assert!(TopH::new(0.0).is_err() && TopH::new(1.1).is_err());
}

#[test]
fn runs_are_not_repeated_and_the_prompt_counts() {
    let forbidden = |scores: Vec<f32>| (0..scores.len()).filter(|&id| scores[id] == NONE).collect::<Vec<_>>();
    let rule = |size: usize| NoRepeatNGram::new(size.try_into().unwrap());
    assert_eq!(forbidden(after(rule(2), 4, &[1, 2, 3, 1], &[0.0; 5])), [2]);
    assert_eq!(forbidden(after(rule(3), 1, &[1, 1, 1], &[0.0; 5])), [1]);
    assert!(forbidden(after(rule(3), 1, &[1, 1], &[0.0; 5])).is_empty());
    assert_eq!(forbidden(after(rule(1), 1, &[1, 3], &[0.0; 5])), [1, 3]);
    let source = EncoderNoRepeatNGram::new(2.try_into().unwrap());
    assert_eq!(forbidden(after(source, 5, &[1, 2, 3, 1, 4, 7, 1], &[0.0; 8])), [2, 4]);
}

#[test]
fn sequences_get_their_bias_and_bad_words_are_forbidden() {
    let biases = vec![(vec![1], 1.5), (vec![2, 3], 10.0), (vec![1, 2, 3], -4.0)];
    assert_eq!(after(SequenceBias::new(biases.clone()).unwrap(), 1, &[0, 1, 2], &[0.0; 5]), [0.0, 1.5, 0.0, 6.0, 0.0]);
    assert_eq!(after(SequenceBias::new(biases).unwrap(), 1, &[1, 2], &[0.0; 5]), [0.0, 1.5, 0.0, 6.0, 0.0]);
    let twice = vec![(vec![1], 1.5), (vec![1], 2.0)];
    assert_eq!(after(SequenceBias::new(twice).unwrap(), 1, &[0], &[0.0; 2]), [0.0, 2.0], "the last one counts");
    let ban = || NoBadWords::new(vec![vec![1, 2], vec![3], vec![0], vec![]], &[3]).unwrap();
    assert_eq!(after(ban(), 1, &[1], &[0.0; 4]), [NONE, 0.0, NONE, 0.0]);
    assert_eq!(after(ban(), 1, &[3, 1], &[0.0; 4]), [NONE, 0.0, NONE, 0.0]);
    assert_eq!(after(ban(), 1, &[1, 3], &[0.0; 4]), [NONE, 0.0, 0.0, 0.0]);
    let long = NoBadWords::new(vec![vec![5, 1, 2]], &[]).unwrap();
    assert_eq!(after(long.clone(), 1, &[1], &[0.0; 4]), [0.0; 4]);
    assert_eq!(after(long, 1, &[5, 1], &[0.0; 4]), [0.0, 0.0, NONE, 0.0]);
}

#[test]
fn lengths_hold_the_end_back_and_force_it() {
    let min = |min| MinLength::new(min, vec![1, 9]);
    assert_eq!(after(min(3), 2, &[0, 0], &[1.0, 2.0, 3.0]), [1.0, NONE, 3.0]);
    assert_eq!(after(min(3), 2, &[0, 0, 0], &[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
    assert_eq!(after(MinNewTokens::new(2, vec![1]), 2, &[0, 0, 0], &[1.0, 2.0, 3.0]), [1.0, NONE, 3.0]);
    assert_eq!(after(MinNewTokens::new(2, vec![1]), 2, &[0; 4], &[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
    assert_eq!(after(ForcedBos::new(2), 1, &[0], &[1.0, 2.0, 3.0, 4.0]), [NONE, NONE, 0.0, NONE]);
    assert_eq!(after(ForcedBos::new(2), 1, &[0, 0], &[1.0, 2.0, 3.0, 4.0]), [1.0, 2.0, 3.0, 4.0]);
    let forced = |length| ForcedEos::new(vec![1, 2], length, None);
    assert_eq!(after(forced(MaxLength::Total(4)), 1, &[0; 3], &[1.0; 4]), [NONE, 0.0, 0.0, NONE]);
    assert_eq!(after(forced(MaxLength::New(3)), 2, &[0; 4], &[1.0; 4]), [NONE, 0.0, 0.0, NONE]);
    assert_eq!(after(forced(MaxLength::New(3)), 2, &[0; 3], &[1.0; 4]), [1.0; 4]);
    let decay = || ExponentialDecay::new(1, 2.0, vec![0]).unwrap();
    assert_eq!(after(decay(), 2, &[5; 3], &[-4.0]), [-4.0]);
    assert_eq!(after(decay(), 2, &[5; 4], &[-4.0]), [0.0]);
    assert_eq!(after(decay(), 2, &[5; 5], &[-4.0]), [8.0]);
    assert_eq!(after(decay(), 2, &[5; 5], &[NONE]), [NONE]);
    assert!(ExponentialDecay::new(1, 2.0, vec![]).is_err());
}

#[test]
fn suppressed_tokens_wait_for_a_forced_first_one() {
    let begin = |forced| SuppressTokensAtBegin::new(vec![0], forced);
    assert_eq!(after(begin(false), 1, &[3], &[1.0; 2]), [NONE, 1.0]);
    assert_eq!(after(begin(false), 1, &[3, 3], &[1.0; 2]), [1.0; 2]);
    assert_eq!(after(begin(true), 1, &[3], &[1.0; 2]), [1.0; 2]);
    assert_eq!(after(begin(true), 1, &[3, 3], &[1.0; 2]), [NONE, 1.0]);
    assert_eq!(after(begin(true), 2, &[3, 3], &[1.0; 2]), [NONE, 1.0]);
    assert_eq!(after(SuppressTokens::new(vec![1, 77]), 1, &[3], &[1.0; 2]), [1.0, NONE]);
}

#[test]
fn a_function_allows_tokens_and_saves_a_hopeless_row() {
    let allow = |ids: Vec<u32>| PrefixConstrained::new(move |_, _| ids.clone());
    assert_eq!(after(allow(vec![1, 2]), 1, &[0], &[4.0, 3.0, 2.0]), [NONE, 3.0, 2.0]);
    assert_eq!(after(allow(vec![1]), 1, &[0], &[1.0, NONE, 3.0]), [NONE, 0.0, NONE]);
    let row = Row { ids: &[0], prompt_len: 1, prompt: 3 };
    assert!(allow(vec![]).apply(&row, &mut [0.0]).unwrap_err().to_string().contains("return at least one id"));
    assert!(allow(vec![9]).apply(&row, &mut [0.0]).unwrap_err().to_string().contains("token 9"));
}

#[test]
fn normalised_scores_are_log_probabilities() {
    let got = apply(LogitNormalization, &[0], &[0.0, 0.0, NONE]);
    assert!((got[0] + 2f32.ln()).abs() < 1e-6 && got[2] == NONE);
    assert_eq!(apply(InfNanRemove, &[0], &[f32::NAN, f32::INFINITY, NONE]), [0.0, f32::MAX, f32::MIN]);
}

/// The definition of top-p, over everything.
fn sorted_top_p(scores: &[f32], top_p: f64, keep: usize) -> Vec<usize> {
    let mut probabilities = Vec::new();
    softmax::softmax(scores, &mut probabilities).unwrap();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(a.cmp(b)));
    let mut sum = 0.0f64;
    let fall = order[..scores.len().saturating_sub(keep)].iter().take_while(|id| {
        sum += f64::from(probabilities[**id]);
        sum as f32 <= (1.0 - top_p) as f32
    });
    let fall: Vec<usize> = fall.copied().collect();
    (0..scores.len()).filter(|id| !fall.contains(id) && scores[*id] > NONE).collect()
}

proptest! {
    #[test]
    fn top_p_of_few_candidates_is_that_of_all(
        scores in prop::collection::vec(prop_oneof![3 => Just(NONE), 1 => -9.0f32..9.0, 1 => Just(1.0f32)], 1..300),
        top_p in 0.0f64..1.0,
        keep in 1usize..4,
    ) {
        prop_assume!(scores.iter().any(|score| score.is_finite()));
        let scores: Vec<f32> = scores.into_iter().map(|score| if score == 0.0 { 0.5 } else { score }).collect();
        prop_assert_eq!(kept(TopP::new(top_p, keep).unwrap(), &scores), sorted_top_p(&scores, top_p, keep));
    }

    /// A filter never leaves a row without a candidate and never changes what it keeps.
    #[test]
    fn filters_leave_a_candidate(
        scores in prop::collection::vec(prop_oneof![4 => -30.0f32..30.0, 1 => Just(NONE), 1 => Just(1.0f32)], 1..150),
        share in 0.001f64..0.999,
    ) {
        prop_assume!(scores.iter().any(|score| score.is_finite()));
        let rules: Vec<Box<dyn Processor>> = vec![
            Box::new(TopH::new(share).unwrap()),
            Box::new(Typical::new(share, 1).unwrap()),
            Box::new(Epsilon::new(share, 1).unwrap()),
            Box::new(Eta::new(share, 1).unwrap()),
        ];
        for mut rule in rules {
            let mut got = scores.clone();
            rule.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut got).unwrap();
            prop_assert!(got.iter().any(|score| score.is_finite()), "{}", rule.name());
            prop_assert!(got.iter().zip(&scores).all(|(a, b)| *a == NONE || a.to_bits() == b.to_bits()));
        }
    }

    /// Rules at their neutral value change nothing, bit for bit.
    #[test]
    fn neutral_rules_change_nothing(scores in prop::collection::vec(-30.0f32..30.0, 1..50), prompt_len in 1usize..5) {
        let rules: Vec<Box<dyn Processor>> = vec![
            Box::new(EncoderRepetitionPenalty::new(1.0).unwrap()),
            Box::new(MinLength::new(0, vec![0])),
            Box::new(MinNewTokens::new(0, vec![0])),
            Box::new(SuppressTokens::new(vec![])),
            Box::new(SequenceBias::new(vec![(vec![0], 0.0)]).unwrap()),
            Box::new(ExponentialDecay::new(0, 1.0, vec![0]).unwrap()),
            Box::new(TopH::new(1.0).unwrap()),
            Box::new(InfNanRemove),
        ];
        let ids = [7; 8];
        for mut rule in rules {
            let mut got = scores.clone();
            rule.apply(&Row { ids: &ids, prompt_len, prompt: 0 }, &mut got).unwrap();
            let same = got.iter().zip(&scores).all(|(a, b)| a.to_bits() == b.to_bits());
            // The sum of top-h may fall short of the entropy by a rounding.
            prop_assert!(same || rule.name() == "TopH", "{}", rule.name());
        }
    }
}
