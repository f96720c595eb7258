//! Greedy and sampling as the specification's numbers say, and what is kept of every step.

use std::sync::{Arc, Mutex};

use unspool_core::config::MaxLength;
use unspool_core::draft::{Assist, PromptLookup};
use unspool_core::stop::FinishReason;
use unspool_core::{AttentionMask, ErrorKind, Output, Own, Request, Row, Settings, TokenId, generate};
use unspool_testing::{ScriptedModel, tables};

fn new_tokens(count: usize) -> Settings {
    Settings { max_length: MaxLength::New(count), ..Settings::default() }
}

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

#[test]
fn a_finished_row_is_not_padded() {
    let model = ScriptedModel::table(&tables::T5);
    let settings = Settings { eos_token_id: vec![4], pad_token_id: Some(0), ..new_tokens(4) };
    let output = generate(&model, Request::new(vec![vec![3], vec![1]], settings.clone())).unwrap();
    assert_eq!(ids(&output), [vec![4], vec![2, 4]]);
    let both = Settings { eos_token_id: vec![4, 3], ..settings };
    assert_eq!(ids(&generate(&model, Request::new(vec![vec![3], vec![1]], both)).unwrap()), [vec![4], vec![2, 4]]);
}

#[test]
fn a_callers_criterion_ends_its_row_alone() {
    let model = ScriptedModel::table(&tables::C);
    let criterion = |row: &Row<'_>, _: &[f32]| {
        Ok((row.ids.last() == Some(&3)).then(|| FinishReason::Custom("last id is 3".to_owned())))
    };
    let request = Request::new(vec![vec![1], vec![0]], new_tokens(9)).own(Own::new().criterion(criterion));
    let output = generate(&model, request).unwrap();
    assert_eq!(ids(&output), [vec![2, 3], vec![1, 2, 3]]);
    assert_eq!(output.prompts[0].sequences[0].finish.as_str(), "last id is 3");
}

#[test]
fn a_prompt_that_ends_with_eos_still_gets_a_token() {
    let model = ScriptedModel::table(&tables::C);
    let settings = Settings { eos_token_id: vec![3], ..new_tokens(2) };
    assert_eq!(ids(&generate(&model, Request::new(vec![vec![3]], settings)).unwrap()), [[0, 1]]);
}

#[test]
fn an_end_token_may_come_first() {
    let model = ScriptedModel::table(&tables::C);
    let settings = Settings { eos_token_id: vec![1], ..new_tokens(5) };
    let output = generate(&model, Request::new(vec![vec![0], vec![1]], settings)).unwrap();
    assert_eq!(ids(&output), [vec![1], vec![2, 3, 0, 1]]);
    assert!(output.prompts.iter().all(|prompt| prompt.sequences[0].finish == FinishReason::Eos));
}

#[test]
fn padding_in_a_prompt_is_told_and_not_run() {
    let model = ScriptedModel::table(&tables::C);
    let run = |prompts: Vec<Vec<TokenId>>, settings: Settings, masks: Vec<AttentionMask>| {
        generate(&model, Request::new(prompts, settings).attention_mask(masks)).unwrap()
    };
    let padded = |max| Settings { pad_token_id: Some(3), ..new_tokens(max) };
    let output = run(vec![vec![1], vec![3, 2, 3, 3]], padded(2), Vec::new());
    assert_eq!(output.warnings.len(), 1);
    assert!(output.warnings[0].starts_with("the padding token 3 in ids is not read"), "{:?}", output.warnings);
    assert_eq!(model.log().steps()[0], [vec![1], vec![2]]);
    assert_eq!(ids(&output), [[2, 3], [3, 0]], "what is written is no padding");
    // A text is read whole, and so is padding that is an end token too.
    let before = model.log().steps().len();
    assert!(run(vec![vec![3, 2]], padded(1), vec![AttentionMask::Ones]).warnings.is_empty());
    let settings = Settings { eos_token_id: vec![3], ..padded(1) };
    assert!(run(vec![vec![3, 2]], settings, Vec::new()).warnings.is_empty());
    assert_eq!(model.log().steps()[before..], [[vec![3, 2]], [vec![3, 2]]]);
    // A draft and an own loop read the same; the length of the prompt is that of the padded one.
    let mut lookup = PromptLookup::new(2, 2).unwrap();
    let request = Request::new(vec![vec![3, 0, 1, 0, 3]], padded(3)).assist(Assist::new(&mut lookup));
    let output = generate(&model, request).unwrap();
    assert_eq!(ids(&output), [[1, 2, 3]]);
    let settings = Settings { max_length: MaxLength::Total(5), ..padded(1) };
    assert_eq!(ids(&run(vec![vec![3, 3, 0]], settings, Vec::new())), [[1, 2]]);
}

#[test]
fn rules_see_the_padding_that_the_model_does_not_read() {
    let model = ScriptedModel::table(&tables::C);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let rule = move |row: &Row<'_>, _: &mut [f32]| {
        sees.lock().unwrap().push(row.ids.to_vec());
        Ok(())
    };
    let settings = Settings { pad_token_id: Some(3), ..new_tokens(2) };
    generate(&model, Request::new(vec![vec![3, 1]], settings).own(Own::new().processor(rule))).unwrap();
    assert_eq!(*seen.lock().unwrap(), [vec![3, 1], vec![3, 1, 2]]);
}

#[test]
fn a_prompt_of_padding_alone_is_refused() {
    let settings = Settings { pad_token_id: Some(3), ..new_tokens(2) };
    let request = Request::new(vec![vec![1], vec![3, 3]], settings);
    let error = generate(&ScriptedModel::table(&tables::C), request).unwrap_err().to_string();
    assert!(error.contains("nothing but the padding token 3") && error.contains("prompt 1"), "{error}");
}

#[test]
fn max_length_counts_the_prompt_and_max_new_tokens_does_not() {
    let model = ScriptedModel::table(&tables::C);
    let total = Settings { max_length: MaxLength::Total(8), ..Settings::default() };
    assert_eq!(ids(&generate(&model, Request::new(vec![vec![0, 1, 2]], total)).unwrap())[0].len(), 5);
    assert_eq!(ids(&generate(&model, Request::new(vec![vec![0, 1, 2]], Settings::default())).unwrap())[0].len(), 20);
}

#[test]
fn max_time_of_zero_gives_one_token() {
    let model = ScriptedModel::table(&tables::C);
    let settings = Settings { max_time: Some(std::time::Duration::ZERO), ..new_tokens(9) };
    let output = generate(&model, Request::new(vec![vec![0]], settings)).unwrap();
    assert_eq!(ids(&output), [[1]]);
    assert_eq!(output.prompts[0].sequences[0].finish, FinishReason::Time);
}

#[test]
fn greedy_takes_id_zero_when_everything_is_forbidden_and_sampling_says_so() {
    let model = ScriptedModel::table(&tables::C);
    let forbid = |_: &Row<'_>, scores: &mut [f32]| {
        scores.fill(f32::NEG_INFINITY);
        Ok(())
    };
    let greedy = Request::new(vec![vec![1]], new_tokens(1)).own(Own::new().processor(forbid));
    assert_eq!(ids(&generate(&model, greedy).unwrap()), [[0]]);
    let settings = Settings { do_sample: true, ..new_tokens(1) };
    let error = generate(&model, Request::new(vec![vec![1]], settings).own(Own::new().processor(forbid))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert_eq!(error.place(), Some("row 0, new token 0"));
}

#[test]
fn scores_are_processed_and_logits_are_raw() {
    let model = ScriptedModel::table(&tables::C);
    let settings = Settings { output_scores: true, output_logits: true, num_return_sequences: 2, ..new_tokens(2) };
    let shift = |_: &Row<'_>, scores: &mut [f32]| {
        scores[2] += 10.0;
        Ok(())
    };
    let output = generate(&model, Request::new(vec![vec![0]], settings).own(Own::new().processor(shift))).unwrap();
    for sequence in &output.prompts[0].sequences {
        assert_eq!(sequence.ids, [2, 2]);
        let (scores, logits) = (sequence.scores.as_ref().unwrap(), sequence.logits.as_ref().unwrap());
        assert_eq!((scores.len(), logits.len()), (2, 2));
        assert_eq!(logits[0], tables::C[0].map(f32::ln));
        assert_eq!(logits[1], tables::C[2].map(f32::ln));
        assert_eq!(scores[0], [0.1f32.ln(), 0.7f32.ln(), 0.1f32.ln() + 10.0, 0.1f32.ln()]);
        assert!(sequence.logprobs.is_none());
    }
}

#[test]
fn nothing_is_kept_unless_asked_for() {
    let model = ScriptedModel::table(&tables::C);
    let output = generate(&model, Request::new(vec![vec![0]], new_tokens(2))).unwrap();
    let sequence = &output.prompts[0].sequences[0];
    assert_eq!((&sequence.scores, &sequence.logits, &sequence.logprobs, sequence.score), (&None, &None, &None, None));
}

#[test]
fn logprobs_are_normalised_processed_scores() {
    let model = ScriptedModel::table(&tables::T5);
    let settings = Settings { eos_token_id: vec![4], ..new_tokens(4) };
    let request = |settings| Request::new(vec![vec![1]], settings).logprobs(true);
    let plain = generate(&model, request(settings.clone())).unwrap();
    let logprobs = plain.prompts[0].sequences[0].logprobs.clone().unwrap();
    assert_eq!(logprobs.len(), 2);
    for (got, expected) in logprobs.iter().zip([0.48f32.ln(), 0.4f32.ln()]) {
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
    }
    let without_two = request(settings).own(Own::new().processor(|_: &Row<'_>, scores: &mut [f32]| {
        scores[2] = f32::NEG_INFINITY;
        Ok(())
    }));
    let output = generate(&model, without_two).unwrap();
    let first = output.prompts[0].sequences[0].logprobs.as_ref().unwrap()[0];
    assert!((first - (0.4f32 / 0.52).ln()).abs() < 1e-6, "{first}");
}

#[test]
fn a_seed_gives_the_same_draws_and_another_seed_others() {
    let model = ScriptedModel::hashed(200);
    let settings = Settings { do_sample: true, ..new_tokens(30) };
    let draw = |seed| ids(&generate(&model, Request::new(vec![vec![1]], settings.clone()).seed(seed)).unwrap());
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
}

#[test]
fn draws_follow_the_distribution() {
    let model = ScriptedModel::table(&tables::T5);
    let settings = Settings { do_sample: true, num_return_sequences: 20_000, ..new_tokens(1) };
    let output = generate(&model, Request::new(vec![vec![1]], settings)).unwrap();
    let mut counts = [0u32; 5];
    output.prompts[0].sequences.iter().for_each(|sequence| counts[sequence.ids[0] as usize] += 1);
    for (count, expected) in counts.into_iter().zip([200u32, 200, 9600, 8000, 2000]) {
        assert!(count.abs_diff(expected) < 300, "{counts:?}");
    }
}

#[test]
fn scores_that_are_no_numbers_are_an_error_unless_they_are_removed() {
    let model =
        ScriptedModel::from_fn(
            4,
            |ids: &[TokenId]| {
                if ids.len() < 3 { vec![0.0, 1.0, 0.5, 2.0] } else { vec![0.0, f32::NAN, 1.0, 0.5] }
            },
        );
    let run = |settings: Settings| generate(&model, Request::new(vec![vec![0], vec![1, 2]], settings));
    let error = run(new_tokens(5)).unwrap_err();
    assert!(error.to_string().contains("NaN") && error.to_string().contains("row 1 of 2"), "{error}");
    let mut settings = new_tokens(5);
    settings.beams.num_beams = 2;
    assert!(run(settings).unwrap_err().to_string().contains("remove_invalid_values"));
    let mut removing = new_tokens(5);
    removing.rules.remove_invalid_values = true;
    assert_eq!(ids(&run(removing).unwrap())[0], [3, 3, 2, 2, 2]);
}
