//! What is refused before any work, and what the message tells.

use unspool_core::config::{MaxLength, Rules};
use unspool_core::{Error, ErrorKind, Request, Settings, TokenId, generate};
use unspool_testing::ScriptedModel;

fn refusal(prompts: Vec<Vec<TokenId>>, settings: Settings) -> Error {
    let model = ScriptedModel::hashed(10).with_max_positions(6);
    let error = generate(&model, Request::new(prompts, settings)).unwrap_err();
    assert!(model.log().calls().is_empty(), "nothing is opened or run");
    error
}

#[test]
fn no_prompts() {
    let error = refusal(Vec::new(), Settings::default());
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "no prompts were given; give at least one prompt");
}

#[test]
fn an_empty_prompt_without_bos() {
    let error = refusal(vec![vec![1], Vec::new()], Settings::default());
    assert_eq!(error.place(), Some("prompt 1"));
    assert!(error.message().contains("bos_token_id"), "{error}");
}

#[test]
fn an_empty_prompt_begins_with_bos() {
    let model = ScriptedModel::hashed(10);
    let settings = Settings { bos_token_id: Some(4), ..Settings::default() };
    generate(&model, Request::new(vec![Vec::new()], settings.clone())).unwrap();
    assert_eq!(model.log().steps()[0], [[4]]);
    let outside = Settings { bos_token_id: Some(10), ..settings };
    assert!(refusal(vec![Vec::new()], outside).message().contains("id 10"));
}

#[test]
fn an_id_outside_the_vocabulary() {
    let error = refusal(vec![vec![1], vec![2, 3, 10]], Settings::default()).to_string();
    assert!(error.starts_with("prompt 1: id 10 at position 2 is outside the vocabulary of 10 entries"), "{error}");
    refusal(vec![vec![TokenId::MAX]], Settings::default());
}

#[test]
fn a_prompt_longer_than_the_positions() {
    let error = refusal(vec![vec![1; 7]], Settings::default()).to_string();
    assert!(error.starts_with("the prompt has 7 tokens and the model takes at most 6 positions"), "{error}");
}

#[test]
fn a_prompt_that_leaves_no_room_below_max_length() {
    let settings = Settings { max_length: MaxLength::Total(3), ..Settings::default() };
    let error = refusal(vec![vec![1], vec![1; 3]], settings);
    assert_eq!(error.place(), Some("prompt 1"));
    assert!(error.message().contains("3 tokens") && error.message().contains("max_length"), "{error}");
}

#[test]
fn no_sequences_or_too_many() {
    let settings = Settings { num_return_sequences: 0, ..Settings::default() };
    assert_eq!(refusal(vec![vec![1]], settings).kind(), ErrorKind::InvalidConfig);
    let settings = Settings { num_return_sequences: usize::MAX, ..Settings::default() };
    assert!(refusal(vec![vec![1]; 2], settings).message().contains("num_return_sequences"));
}

#[test]
fn token_healing_without_a_tokenizer() {
    let settings = Settings { token_healing: true, ..Settings::default() };
    assert!(refusal(vec![vec![1]], settings).message().starts_with("token_healing"));
}

#[test]
fn stop_strings_without_a_vocabulary() {
    let settings = Settings { stop_strings: vec!["end".to_owned()], ..Settings::default() };
    assert!(refusal(vec![vec![1]], settings).message().contains("stop_strings"));
}

#[test]
fn negative_prompts_that_do_not_fit() {
    let guided = || Settings {
        max_length: MaxLength::New(2),
        rules: Rules { guidance_scale: Some(2.0), ..Rules::default() },
        ..Settings::default()
    };
    let plain = || Settings { max_length: MaxLength::New(2), ..Settings::default() };
    let cases = [
        (plain(), vec![vec![1]], "guidance_scale is not set"),
        (guided(), vec![vec![1], vec![2]], "got 2 negative prompts for 1 prompts"),
        (guided(), vec![vec![]], "negative prompt: it has no tokens"),
        (guided(), vec![vec![10]], "id 10 at position 0 is outside the vocabulary"),
        (guided(), vec![vec![1; 6]], "reaches 7 tokens, the model has 6 positions"),
    ];
    for (settings, negative, expected) in cases {
        let model = ScriptedModel::hashed(10).with_max_positions(6);
        let request = Request::new(vec![vec![1]], settings).negative_prompts(negative);
        let error = generate(&model, request).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
