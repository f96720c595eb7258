//! Beam sampling draws as often as its definition says: every outcome of a small search, with its probability.

use std::collections::BTreeMap;

use unspool_core::config::{Beams, MaxLength};
use unspool_core::{Request, Settings, TokenId, generate};
use unspool_testing::ScriptedModel;

const SEEDS: u64 = 20_000;
const VOCAB: usize = 5;
/// The probabilities of the next token, by the last one; no two sequences of two tokens are equally likely.
const TABLE: [[f32; VOCAB]; VOCAB] = [
    [0.11, 0.23, 0.31, 0.28, 0.07],
    [0.05, 0.08, 0.43, 0.29, 0.15],
    [0.06, 0.13, 0.38, 0.16, 0.27],
    [0.14, 0.09, 0.22, 0.21, 0.34],
    [0.19, 0.27, 0.12, 0.32, 0.1],
];
/// Candidates that are drawn for two beams without an end token.
const KEEP: usize = 4;

/// The two returned sequences, best first.
type Outcome = Vec<Vec<TokenId>>;

/// A running beam.
#[derive(Clone, Debug)]
struct Beam {
    ids: Vec<TokenId>,
    score: f64,
}

/// Log-probabilities after `last`, divided by the temperature and cut to the best `top_k`: they are not normalised again,
/// and the running score is added afterwards.
fn warped(last: TokenId, temperature: f64, top_k: usize) -> Vec<f64> {
    let row = TABLE[last as usize].map(|p| f64::from(p).ln() / temperature);
    let mut sorted = row.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    row.map(|score| if score < sorted[top_k - 1] { f64::NEG_INFINITY } else { score }).to_vec()
}

/// Every set of `KEEP` places that may be drawn without replacement, with its probability.
fn draws(weights: &[f64]) -> BTreeMap<Vec<usize>, f64> {
    let mut open = vec![(Vec::new(), 1.0)];
    for _ in 0..KEEP {
        open = open
            .into_iter()
            .flat_map(|(drawn, probability): (Vec<usize>, f64)| {
                let left = weights.iter().sum::<f64>() - drawn.iter().map(|place| weights[*place]).sum::<f64>();
                let others = (0..weights.len()).filter(|place| !drawn.contains(place) && weights[*place] > 0.0);
                let next = |place| ([drawn.as_slice(), &[place]].concat(), probability * weights[place] / left);
                others.map(next).collect::<Vec<_>>()
            })
            .collect();
    }
    let mut sets = BTreeMap::new();
    for (mut drawn, probability) in open {
        drawn.sort_unstable();
        *sets.entry(drawn).or_insert(0.0) += probability;
    }
    sets
}

/// The two best of every draw from the continuations of `beams`.
fn step(beams: &[Beam], temperature: f64, top_k: usize) -> Vec<(Vec<Beam>, f64)> {
    let longer: Vec<Beam> = beams
        .iter()
        .flat_map(|beam| {
            let row = warped(*beam.ids.last().unwrap(), temperature, top_k);
            let next = |(token, score): (usize, &f64)| Beam {
                ids: [beam.ids.as_slice(), &[token as TokenId]].concat(),
                score: beam.score + score,
            };
            row.iter().enumerate().map(next).collect::<Vec<_>>()
        })
        .collect();
    let weights: Vec<f64> = longer.iter().map(|beam| beam.score.exp()).collect();
    let best = |drawn: &Vec<usize>| {
        let mut drawn: Vec<Beam> = drawn.iter().map(|place| longer[*place].clone()).collect();
        drawn.sort_by(|a, b| b.score.total_cmp(&a.score));
        drawn.truncate(2);
        drawn
    };
    draws(&weights).iter().map(|(drawn, probability)| (best(drawn), *probability)).collect()
}

fn expected(prompt: TokenId, temperature: f64, top_k: usize) -> BTreeMap<Outcome, f64> {
    let mut outcomes = BTreeMap::new();
    for (running, first) in step(&[Beam { ids: vec![prompt], score: 0.0 }], temperature, top_k) {
        for (finished, second) in step(&running, temperature, top_k) {
            let outcome: Outcome = finished.iter().map(|beam| beam.ids[1..].to_vec()).collect();
            *outcomes.entry(outcome).or_insert(0.0) += first * second;
        }
    }
    outcomes
}

/// Holds what `SEEDS` seeds give against the expected distribution; Pearson's chi-square over all outcomes that are
/// expected five times or more, the rest as one.
fn check(prompt: TokenId, temperature: f64, top_k: usize) {
    let model = ScriptedModel::table(&TABLE);
    let settings = Settings {
        do_sample: true,
        temperature: Some(temperature),
        top_k: Some(top_k),
        num_return_sequences: 2,
        max_length: MaxLength::New(2),
        beams: Beams { num_beams: 2, ..Beams::default() },
        ..Settings::default()
    };
    let expected = expected(prompt, temperature, top_k);
    let mut counts: BTreeMap<Outcome, f64> = BTreeMap::new();
    for seed in 0..SEEDS {
        let output = generate(&model, Request::new(vec![vec![prompt]], settings.clone()).seed(seed)).unwrap();
        let outcome: Outcome = output.prompts[0].sequences.iter().map(|sequence| sequence.ids.clone()).collect();
        assert!(expected.contains_key(&outcome), "{outcome:?} cannot come out");
        *counts.entry(outcome).or_insert(0.0) += 1.0;
    }
    let (mut square, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
    for (outcome, probability) in &expected {
        let (count, mean) = (counts.get(outcome).copied().unwrap_or(0.0), probability * SEEDS as f64);
        if mean < 5.0 {
            rest = (rest.0 + count, rest.1 + mean);
        } else {
            square += (count - mean).powi(2) / mean;
            cells += 1.0;
        }
    }
    if rest.1 > 0.0 {
        square += (rest.0 - rest.1).powi(2) / rest.1.max(1.0);
        cells += 1.0;
    }
    let freedom: f64 = cells - 1.0;
    // Four standard deviations above the mean of the distribution.
    assert!(freedom > 3.0 && square < freedom + 4.0 * (2.0 * freedom).sqrt(), "{square} with {freedom} degrees");
}

#[test]
fn draws_from_accumulated_scores() {
    check(1, 1.0, VOCAB);
}

#[test]
fn temperature_divides_log_probabilities_and_not_the_running_score() {
    check(1, 0.5, VOCAB);
}

#[test]
fn a_high_temperature_flattens_the_draws() {
    check(2, 1.7, VOCAB);
}

#[test]
fn filters_cut_each_beam_before_scores_are_summed() {
    check(1, 0.8, 4);
}
