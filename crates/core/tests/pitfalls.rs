//! Mistakes that are easily made, with the numbers that Python gives; those of single rules are beside the rules.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use unspool_core::config::{GenerationConfig, Layers, MaxLength, ModelFacts, Rules};
use unspool_core::processor::{EncoderRepetitionPenalty, NoBadWords, Processor, RepetitionPenalty, TopP};
use unspool_core::{Model, Output, Own, Request, Row, Settings, TokenId, generate};
use unspool_testing::{ScriptedModel, tables};

const NONE: f32 = f32::NEG_INFINITY;

fn new_tokens(count: usize) -> Settings {
    Settings { max_length: MaxLength::New(count), ..Settings::default() }
}

fn written(settings: Settings, prompt: &[TokenId]) -> Vec<TokenId> {
    let model = ScriptedModel::table(&tables::C);
    generate(&model, Request::new(vec![prompt.to_vec()], settings)).unwrap().prompts[0].sequences[0].ids.clone()
}

fn applied(rule: &mut dyn Processor, ids: &[TokenId], scores: &[f32]) -> Vec<f32> {
    let mut scores = scores.to_vec();
    rule.apply(&Row { ids, prompt_len: 1, prompt: 0 }, &mut scores).unwrap();
    scores
}

fn first_scores(output: &Output) -> Vec<f32> {
    output.prompts[0].sequences[0].scores.as_ref().unwrap()[0].clone()
}

#[test]
fn shares_are_those_of_what_is_left() {
    let logits: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
    let left = applied(&mut TopP::new(0.6, 1).unwrap(), &[0], &logits);
    let sum: f32 = left.iter().map(|score| score.exp()).sum();
    let shares: Vec<f32> = left.iter().map(|score| score.exp() / sum).collect();
    assert!(
        shares.iter().zip([0.625, 0.375, 0.0, 0.0]).all(|(got, expected)| (got - expected).abs() < 1e-6),
        "{shares:?}"
    );
}

#[test]
fn padding_is_not_penalised() {
    let mut rule = RepetitionPenalty::new(2.0).unwrap();
    // What Python has as [0, 0, 1] with the mask [0, 0, 1] is the row [1] here.
    assert_eq!(applied(&mut rule, &[1], &[4.0, 3.0, 2.0, 1.0]), [4.0, 1.5, 2.0, 1.0]);
    assert_eq!(applied(&mut rule, &[2, 1, 2], &[4.0, 3.0, 2.0, 1.0]), [4.0, 1.5, 1.0, 1.0]);
}

#[test]
fn an_end_token_is_no_bad_word() {
    let mut rule = NoBadWords::new(vec![vec![3], vec![2]], &[3]).unwrap();
    assert_eq!(applied(&mut rule, &[0], &[0.0; 4]), [0.0, 0.0, NONE, 0.0]);
}

#[test]
fn the_source_of_a_row_is_its_own_prompt() {
    let mut rule = EncoderRepetitionPenalty::new(2.0).unwrap();
    assert_eq!(applied(&mut rule, &[0, 1], &[2.0, -2.0, 1.0, 1.0])[0], 4.0);
    let of = |rule: &mut EncoderRepetitionPenalty, source: TokenId, ids: &[TokenId]| {
        let row: Vec<TokenId> = [&[source], ids].concat();
        applied(rule, &row, &[2.0, 2.0, 1.0])
    };
    for ids in [&[][..], &[2]] {
        assert_eq!(of(&mut rule, 0, ids), [4.0, 2.0, 1.0]);
        assert_eq!(of(&mut rule, 1, ids), [2.0, 4.0, 1.0]);
    }
}

#[test]
fn a_forced_end_is_the_last_new_token() {
    let rules = Rules { forced_eos_token_id: vec![1], ..Rules::default() };
    assert_eq!(written(Settings { rules, ..new_tokens(3) }, &[0, 1]), [2, 3, 1]);
}

#[test]
fn a_forced_first_token_moves_what_is_suppressed_at_the_beginning() {
    let rules = Rules { forced_bos_token_id: Some(2), begin_suppress_tokens: vec![3], ..Rules::default() };
    assert_eq!(written(Settings { rules, ..new_tokens(2) }, &[1]), [2, 0]);
    let rules = Rules { begin_suppress_tokens: vec![3], ..Rules::default() };
    assert_eq!(written(Settings { rules, ..new_tokens(1) }, &[2]), [0]);
}

#[test]
fn scores_are_made_finite_before_tokens_are_suppressed() {
    let rules = Rules {
        remove_invalid_values: true,
        forced_bos_token_id: Some(2),
        suppress_tokens: vec![1],
        ..Rules::default()
    };
    let settings = Settings { rules, output_scores: true, ..new_tokens(1) };
    let output = generate(&ScriptedModel::table(&tables::C), Request::new(vec![vec![0]], settings)).unwrap();
    assert_eq!(first_scores(&output), [f32::MIN, NONE, 0.0, f32::MIN]);
}

#[test]
fn a_max_length_of_twenty_is_not_the_default() {
    let columns = |model: Value, call: Value| {
        let config = |json| GenerationConfig::from_json(json).unwrap();
        let model_facts = ModelFacts { vocab_size: 4, max_positions: None };
        let fields = Layers::new(config(&model)).with_call(config(&call));
        3 + written(Settings::resolve(&fields, &model_facts).unwrap().0, &[0, 1, 2]).len()
    };
    assert_eq!(columns(json!({}), json!({})), 23);
    assert_eq!(columns(json!({}), json!({"max_length": 20})), 20);
    assert_eq!(columns(json!({"max_length": 20}), json!({})), 20);
    assert_eq!(columns(json!({"max_length": 8}), json!({})), 8);
}

#[test]
fn the_function_of_allowed_tokens_sees_the_prompts_index() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let settings = Settings { do_sample: true, num_return_sequences: 2, ..new_tokens(1) };
    let own = Own::new().prefix_allowed_tokens_fn(move |prompt, _| {
        told.lock().unwrap().push(prompt);
        vec![0, 1, 2, 3]
    });
    let request = Request::new(vec![vec![0], vec![1]], settings).own(own);
    generate(&ScriptedModel::table(&tables::C), request).unwrap();
    assert_eq!(*seen.lock().unwrap(), [0, 0, 1, 1]);
}

/// The first scores of a prompt [2, 0], guided by `scale` away from `negative`.
fn guided(model: &dyn Model, scale: f64, negative: Vec<Vec<TokenId>>) -> Vec<f32> {
    let rules = Rules { guidance_scale: Some(scale), ..Rules::default() };
    let settings = Settings { rules, output_scores: true, ..new_tokens(1) };
    first_scores(&generate(model, Request::new(vec![vec![2, 0]], settings).negative_prompts(negative)).unwrap())
}

#[test]
fn guidance_works_on_log_probabilities_and_starts_from_the_last_prompt_token() {
    let conditional = [0.1f32, 0.2, 0.3, 0.4];
    let unconditional = [0.4f32, 0.3, 0.2, 0.1];
    // The logits are not normalised: guidance on them would show.
    let model = ScriptedModel::from_fn(4, move |ids| match ids {
        [2, 0] => conditional.map(|p| p.ln() + 3.0).to_vec(),
        [0] | [1, 1] => unconditional.map(|p| p.ln() - 5.0).to_vec(),
        _ => vec![0.0; 4],
    });
    for negative in [vec![], vec![vec![1, 1]]] {
        for (scale, expected) in
            [(2.0, [-3.6889, -2.0149, -0.7985, 0.4700]), (0.5, [-1.6094, -1.4067, -1.4067, -1.6094])]
        {
            let got = guided(&model, scale, negative.clone());
            assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-4), "{scale}: {got:?}");
        }
    }
}
