//! A conversation on a kept session runs only what is new and says the same as a fresh one.

use proptest::prelude::*;
use unspool_core::config::MaxLength;
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_core::{KeptSession, Request, Settings, TokenId, generate, generate_kept};
use unspool_testing::{Call, ScriptedModel};

fn request<'a>(prompt: &[TokenId], count: usize) -> Request<'a> {
    Request::new(vec![prompt.to_vec()], Settings { max_length: MaxLength::New(count), ..Settings::default() })
}

fn say(model: &ScriptedModel, kept: &mut Option<KeptSession>, prompt: &[TokenId], count: usize) -> Vec<TokenId> {
    generate_kept(model, kept, request(prompt, count)).unwrap().prompts[0].sequences[0].ids.clone()
}

#[test]
fn the_next_turn_runs_only_new_tokens() {
    let model = ScriptedModel::hashed(40);
    let mut kept = None;
    let mut talk = vec![1, 2, 3];
    talk.extend(say(&model, &mut kept, &talk, 4));
    assert_eq!(kept.as_ref().unwrap().tokens(), &talk[..6], "the last token has not been run");
    talk.extend([5, 6]);
    model.log().take();
    let output = generate_kept(&model, &mut kept, request(&talk, 1)).unwrap();
    assert_eq!(model.log().calls().len(), 1, "no open, no crop");
    assert_eq!(model.log().steps(), [[talk[6..].to_vec()]]);
    assert_eq!(output.timing.prompt_tokens, 3);
    assert_eq!(kept.unwrap().tokens(), talk);
}

#[test]
fn an_edited_turn_is_cropped_to_what_is_shared() {
    let model = ScriptedModel::hashed(40);
    let mut kept = None;
    say(&model, &mut kept, &[1, 2, 3, 4], 3);
    model.log().take();
    let edited = say(&model, &mut kept, &[1, 2, 9], 3);
    assert_eq!(model.log().calls()[0], Call::Crop { row: 0, len: 2 });
    assert_eq!(model.log().steps()[0], [[9]]);
    assert_eq!(edited, say(&model, &mut None, &[1, 2, 9], 3));
}

#[test]
fn the_same_prompt_again_runs_its_last_token() {
    let model = ScriptedModel::hashed(40);
    let mut kept = None;
    let first = say(&model, &mut kept, &[1, 2, 3], 3);
    model.log().take();
    assert_eq!(say(&model, &mut kept, &[1, 2, 3], 3), first);
    assert_eq!(model.log().steps()[0], [[3]]);
}

#[test]
fn a_session_that_cannot_crop_is_opened_anew() {
    let model = ScriptedModel::hashed(40).without_crop();
    let mut kept = None;
    let mut talk = vec![1, 2, 3];
    talk.extend(say(&model, &mut kept, &talk, 4));
    model.log().take();
    say(&model, &mut kept, &talk, 1);
    assert!(!model.log().calls().iter().any(|call| matches!(call, Call::Open { .. })), "an append needs no crop");
    model.log().take();
    say(&model, &mut kept, &[1, 2, 9], 1);
    assert_eq!(model.log().calls()[0], Call::Open { rows: 1, capacity: 3 });
    assert_eq!(model.log().steps(), [[[1, 2, 9]]]);
}

/// Stops its row after some tokens.
struct StopAfter(usize);

impl TokenSink for StopAfter {
    fn put(&mut self, _: &TokenEvent) -> Flow {
        self.0 -= 1;
        if self.0 == 0 { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, _: usize, _: &FinishReason) {}
}

#[test]
fn a_stopped_generation_leaves_the_session_usable() {
    let model = ScriptedModel::hashed(40);
    let (mut kept, mut sink) = (None, StopAfter(3));
    let output = generate_kept(&model, &mut kept, request(&[1, 2], 50).sink(&mut sink)).unwrap();
    let sequence = &output.prompts[0].sequences[0];
    assert_eq!((sequence.ids.len(), &sequence.finish), (3, &FinishReason::Cancelled));
    let talk = [&[1, 2][..], &sequence.ids, &[7]].concat();
    model.log().take();
    let next = say(&model, &mut kept, &talk, 5);
    assert_eq!(model.log().steps()[0], [talk[4..].to_vec()]);
    assert_eq!(next, say(&model, &mut None, &talk, 5));
}

#[test]
fn an_engine_failure_drops_the_session() {
    let model = ScriptedModel::hashed(40).failing_at(3);
    let mut kept = None;
    say(&model, &mut kept, &[1, 2], 2);
    assert!(generate_kept(&model, &mut kept, request(&[1, 2, 3], 5)).is_err());
    assert!(kept.is_none());
    say(&model, &mut kept, &[1, 2, 3], 2);
}

#[test]
fn a_refused_prompt_leaves_the_session_as_it_was() {
    let model = ScriptedModel::hashed(40);
    let mut kept = None;
    say(&model, &mut kept, &[1, 2], 2);
    assert!(generate_kept(&model, &mut kept, request(&[1, 99], 5)).is_err());
    assert_eq!(kept.unwrap().tokens().len(), 3);
}

#[test]
fn several_rows_are_refused() {
    let model = ScriptedModel::hashed(40);
    let settings = Settings { num_return_sequences: 2, ..Settings::default() };
    let error = generate_kept(&model, &mut None, Request::new(vec![vec![1]], settings)).unwrap_err();
    assert!(error.message().contains("num_return_sequences 2"), "{error}");
    let error = generate_kept(&model, &mut None, Request::new(vec![vec![1]; 2], Settings::default())).unwrap_err();
    assert!(error.message().contains("2 prompts"), "{error}");
}

proptest! {
    #[test]
    fn a_kept_session_never_changes_an_answer(
        prompts in prop::collection::vec(prop::collection::vec(0u32..3, 1..12), 1..8),
        can_crop: bool,
        seed: u64,
    ) {
        let model = ScriptedModel::hashed(3);
        let model = if can_crop { model } else { model.without_crop() };
        let mut kept = None;
        for prompt in prompts {
            let settings = Settings { do_sample: true, max_length: MaxLength::New(3), ..Settings::default() };
            let request = || Request::new(vec![prompt.clone()], settings.clone()).seed(seed);
            let got = generate_kept(&model, &mut kept, request()).unwrap();
            prop_assert_eq!(got.prompts, generate(&model, request()).unwrap().prompts);
        }
    }
}
