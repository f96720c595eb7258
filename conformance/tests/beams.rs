//! Beam, group and constrained search on random small models, held against what Python found (`data/beams.json`).

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use unspool_core::config::{GenerationConfig, Layers, ModelFacts};
use unspool_core::{AttentionMask, Request, Sequence, Settings, TokenId, generate};
use unspool_testing::ScriptedModel;

/// Scores from here down belong to beams that never were: Python starts all beams but one at -1e9 and takes 1e9 off what
/// is finished or forbidden. Such a sequence fills a place that nothing else could take.
const FILLER: f32 = -1.0e7;

/// Of sums of at most eight log-probabilities in f32, whose sums of exponentials run in another order than Python's.
const TOLERANCE: f32 = 1e-5;

#[derive(Deserialize)]
struct Recorded {
    search: Vec<Case>,
    groups: Vec<Case>,
    constrained: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    model: Formula,
    settings: Value,
    prompts: Vec<Vec<TokenId>>,
    expected: Vec<Vec<Expected>>,
}

/// New tokens, score, beam indices and log-probabilities; what is null is not known, in log-probabilities minus infinity.
#[derive(Debug, Deserialize)]
struct Expected(Vec<TokenId>, Option<f32>, Option<Vec<usize>>, Option<Vec<Option<f32>>>);

/// The model of `record/beams.py`.
#[derive(Clone, Debug, Deserialize)]
struct Formula {
    vocab: usize,
    seed: u64,
    order: usize,
    levels: u64,
    step: f32,
    forbidden: u64,
}

impl Formula {
    fn scores_after(&self, ids: &[TokenId]) -> Vec<f32> {
        let last = &ids[ids.len().saturating_sub(self.order)..];
        let row = last.iter().fold(self.seed, |row, token| scramble(row ^ (u64::from(*token) + 1)));
        let score = |token: u64| {
            let bits = scramble(row ^ ((token + 1) << 32));
            if bits % 16 < self.forbidden && token != row % self.vocab as u64 {
                f32::NEG_INFINITY
            } else if self.levels > 0 {
                -(((bits >> 8) % self.levels) as f32) * self.step
            } else {
                ((bits >> 40) as f32 / (1u32 << 23) as f32 - 1.0) * self.step
            }
        };
        (0..self.vocab as u64).map(score).collect()
    }

    fn model(&self) -> ScriptedModel {
        let formula = self.clone();
        ScriptedModel::from_fn(self.vocab, move |ids| formula.scores_after(ids))
    }
}

/// The finaliser of MurmurHash3.
fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

fn recorded() -> Recorded {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/beams.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn near(got: f32, expected: f32) -> bool {
    got == expected || (got - expected).abs() <= TOLERANCE * expected.abs().max(1.0)
}

/// What was found differently, if anything.
fn difference(case: &Case) -> unspool_core::Result<Option<String>> {
    let call = GenerationConfig::from_json(&case.settings)?;
    let facts = ModelFacts { vocab_size: case.model.vocab, max_positions: None };
    let (mut settings, _) = Settings::resolve(&Layers::new(GenerationConfig::new()).with_call(call), &facts)?;
    settings.output_logits = true;
    let power = settings.beams.length_penalty;
    // Recorded with a mask of ones: the padding token stands for itself where it is in a prompt.
    let masks = vec![AttentionMask::Ones; case.prompts.len()];
    let request = Request::new(case.prompts.clone(), settings).attention_mask(masks).logprobs(true);
    let output = generate(&case.model.model(), request)?;
    for (place, (prompt, expected)) in output.prompts.iter().zip(&case.expected).enumerate() {
        if prompt.sequences.len() != expected.len() {
            return Ok(Some(format!("{} sequences, in Python {}", prompt.sequences.len(), expected.len())));
        }
        for (got, expected) in prompt.sequences.iter().zip(expected) {
            if !same(got, expected) || !is_its_own(case, &case.prompts[place], got, power) {
                return Ok(Some(format!("prompt {place}: {}, in Python {expected:?}", shown(got))));
            }
        }
    }
    Ok(None)
}

fn shown(got: &Sequence) -> String {
    format!("{:?} {:?} {:?} {:?}", got.ids, got.score, got.beam_indices, got.logprobs)
}

fn same(got: &Sequence, Expected(ids, score, path, logprobs): &Expected) -> bool {
    let (value, expected) = (got.score.unwrap(), score.unwrap_or(f32::NEG_INFINITY));
    if expected <= FILLER {
        return value <= FILLER;
    }
    let found = got.logprobs.as_ref().unwrap();
    got.ids == *ids
        && near(value, expected)
        && path.as_ref().is_none_or(|path| got.beam_indices.as_ref() == Some(path))
        && logprobs.as_ref().is_none_or(|logprobs| {
            let expected = logprobs.iter().map(|logprob| logprob.unwrap_or(f32::NEG_INFINITY));
            found.len() == logprobs.len() && found.iter().zip(expected).all(|(a, b)| near(*a, b))
        })
}

/// Whether the path leads through beams that held the sequence's tokens, and its log-probabilities sum up to its score.
fn is_its_own(case: &Case, prompt: &[TokenId], got: &Sequence, power: f64) -> bool {
    if got.score.is_some_and(|score| score <= FILLER) {
        return true;
    }
    let sum: f32 = got.logprobs.iter().flatten().sum();
    let score = sum / (got.ids.len() as f64).powf(power) as f32;
    let row = |step: usize| case.model.scores_after(&[prompt, &got.ids[..step]].concat());
    let logits = got.logits.as_ref().unwrap();
    near(got.score.unwrap(), score)
        && logits.len() == got.ids.len()
        && logits.iter().enumerate().all(|(step, logits)| *logits == row(step))
}

fn check(cases: &[Case], least: usize) {
    assert!(cases.len() >= least, "{} cases, expected at least {least}", cases.len());
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let difference = difference(case).unwrap_or_else(|error| Some(error.to_string()));
        if let Some(difference) = difference {
            wrong.push(format!("{index}, {:?} {} {:?}: {difference}", case.model, case.settings, case.prompts));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn beams_find_what_python_s_find() {
    check(&recorded().search, 300);
}

#[test]
fn groups_of_beams_find_what_python_s_find() {
    check(&recorded().groups, 100);
}

#[test]
fn beams_with_required_words_find_what_python_s_find() {
    check(&recorded().constrained, 100);
}
