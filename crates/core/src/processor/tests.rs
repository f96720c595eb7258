//! The rules against the definition, and their numbers.

use proptest::prelude::*;

use super::*;
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
