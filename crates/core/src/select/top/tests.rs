use super::*;
use proptest::prelude::*;
use serde::Deserialize;

/// A call of `torch.topk` 2.x on Linux x86-64: one digit per score.
#[derive(Deserialize)]
struct Recorded {
    scores: String,
    places: Vec<usize>,
}

#[test]
fn equal_scores_come_in_pytorchs_order() {
    let cases: Vec<Recorded> = serde_json::from_str(include_str!("topk.json")).unwrap();
    assert!(cases.len() > 50);
    for (number, case) in cases.iter().enumerate() {
        let scores: Vec<f32> = case.scores.bytes().map(|digit| f32::from(digit - b'0')).collect();
        let mut top = Top::default();
        let places: Vec<_> = top.best(&scores, case.places.len()).iter().map(|entry| entry.1).collect();
        assert_eq!(places, case.places, "case {number}: {} of {}", case.places.len(), scores.len());
    }
}

#[test]
fn nan_is_the_best_and_too_many_are_all() {
    let mut top = Top::default();
    assert_eq!(top.best(&[1.0, f32::NAN, 2.0], 2)[0].1, 1);
    assert_eq!(top.best(&[1.0, 3.0, 2.0], 9), [(3.0, 1), (2.0, 2), (1.0, 0)]);
    assert_eq!(top.best(&[], 2), []);
    let mut long = vec![0.0; 1000];
    long[700] = f32::NAN;
    assert_eq!(top.best(&long, 1)[0].1, 700);
}

proptest! {
    #[test]
    fn the_best_are_what_sorting_gives(
        scores in prop::collection::vec(-1.0e3f32..1.0e3, 1..3000),
        base in -10.0f32..10.0,
        k in 1usize..40,
    ) {
        let vocab = scores.len().div_ceil(2);
        let mut all: Vec<f32> = scores[..vocab].to_vec();
        all.extend(scores[vocab..].iter().map(|score| score + base));
        let mut top = Top::default();
        let got: Vec<Entry> = top.best_of_lanes(&scores, vocab, &[0.0, base], k).to_vec();
        for &(score, place) in &got {
            prop_assert_eq!(score, all[place]);
        }
        all.sort_by(|a, b| b.total_cmp(a));
        all.truncate(k);
        prop_assert_eq!(got.iter().map(|entry| entry.0).collect::<Vec<_>>(), all);
    }
}
