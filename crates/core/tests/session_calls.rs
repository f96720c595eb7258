//! What the loop asks of a session: chunks, one run per prompt, finished rows leaving, errors passed on.

use unspool_core::config::MaxLength;
use unspool_core::stop::FinishReason;
use unspool_core::{ErrorKind, Keep, Own, Request, Row, Settings, TokenId, generate};
use unspool_testing::{Call, ScriptedModel, StepRow, tables};

fn new_tokens(count: usize) -> Settings {
    Settings { max_length: MaxLength::New(count), ..Settings::default() }
}

fn ids(output: &unspool_core::Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

#[test]
fn a_prompt_runs_in_chunks_and_asks_for_scores_only_with_the_last() {
    let model = ScriptedModel::hashed(50);
    let prompt: Vec<TokenId> = (0..100).map(|id| id % 50).collect();
    let settings = Settings { prefill_chunk_size: 32, ..new_tokens(1) };
    generate(&model, Request::new(vec![prompt.clone()], settings)).unwrap();
    let chunk = |from: usize, to: usize, keep| StepRow { tokens: prompt[from..to].to_vec(), keep };
    let expected = [
        Call::Open { rows: 1, capacity: 100 },
        Call::Step { rows: vec![chunk(0, 32, Keep::None)] },
        Call::Step { rows: vec![chunk(32, 64, Keep::None)] },
        Call::Step { rows: vec![chunk(64, 96, Keep::None)] },
        Call::Step { rows: vec![chunk(96, 100, Keep::Last)] },
    ];
    assert_eq!(model.log().calls(), expected);
}

#[test]
fn prompts_of_different_lengths_run_together() {
    let model = ScriptedModel::hashed(50);
    let prompts = vec![(0..20).collect(), vec![7; 3], vec![9; 16]];
    generate(&model, Request::new(prompts, new_tokens(1))).unwrap();
    let Call::Step { rows } = &model.log().calls()[1] else { panic!("a step") };
    let shape: Vec<_> = rows.iter().map(|row| (row.tokens.len(), row.keep)).collect();
    assert_eq!(shape, [(16, Keep::None), (3, Keep::Last), (16, Keep::Last)]);
    let Call::Step { rows } = &model.log().calls()[2] else { panic!("a step") };
    let shape: Vec<_> = rows.iter().map(|row| (row.tokens.len(), row.keep)).collect();
    assert_eq!(shape, [(4, Keep::Last), (0, Keep::None), (0, Keep::None)]);
}

#[test]
fn the_default_chunk_is_512_and_the_default_length_20_new_tokens() {
    let model = ScriptedModel::hashed(50);
    let output = generate(&model, Request::new(vec![vec![1; 600]], Settings::default())).unwrap();
    let sizes: Vec<_> = model.log().steps().iter().map(|rows| rows[0].len()).collect();
    assert_eq!(sizes[..4], [512, 64, 16, 8]);
    assert_eq!(output.prompts[0].sequences[0].ids.len(), 20);
    assert_eq!(output.prompts[0].sequences[0].finish, FinishReason::Length);
    assert_eq!((output.timing.prompt_tokens, output.timing.new_tokens), (600, 20));
}

#[test]
fn finished_rows_leave_the_session() {
    let model = ScriptedModel::table(&tables::C);
    let settings = Settings { eos_token_id: vec![3], ..new_tokens(5) };
    let output = generate(&model, Request::new(vec![vec![1], vec![2], vec![0], vec![3]], settings)).unwrap();
    assert_eq!(ids(&output), [vec![2, 3], vec![3], vec![1, 2, 3], vec![0, 1, 2, 3]]);
    // After the first token row 1 is done; then old row 0; then, of the two that are left, the first.
    assert_eq!(model.log().reorders(), [vec![0, 2, 3], vec![1, 2], vec![1]]);
    let steps = model.log().steps();
    assert_eq!(steps[1..], [vec![vec![2], vec![1], vec![0]], vec![vec![2], vec![1]], vec![vec![2]]]);
}

#[test]
fn rows_that_end_together_need_no_further_step() {
    let model = ScriptedModel::table(&tables::C);
    generate(&model, Request::new(vec![vec![0], vec![1]], new_tokens(3))).unwrap();
    assert_eq!(model.log().steps().len(), 3);
    assert!(model.log().reorders().is_empty());
}

#[test]
fn a_prompt_with_several_sequences_runs_once() {
    let model = ScriptedModel::hashed(50);
    let settings = Settings { num_return_sequences: 3, do_sample: true, ..new_tokens(4) };
    let output = generate(&model, Request::new(vec![vec![1, 2], vec![3]], settings)).unwrap();
    assert_eq!(model.log().steps()[0], [vec![1, 2], vec![3]]);
    assert_eq!(model.log().reorders(), [[0, 0, 0, 1, 1, 1]]);
    assert_eq!(output.timing.prompt_tokens, 3);
    for prompt in &output.prompts {
        let rows: Vec<_> = prompt.sequences.iter().map(|sequence| &sequence.ids).collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[0] != rows[1] && rows[1] != rows[2] && rows[0] != rows[2], "{rows:?}");
    }
}

#[test]
fn an_engine_failure_is_passed_on() {
    for step in 0..3 {
        let model = ScriptedModel::table(&tables::C).failing_at(step);
        let error = generate(&model, Request::new(vec![vec![0]], new_tokens(9))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Engine);
        assert_eq!(error.message(), format!("the scripted failure of step {step}"));
        assert_eq!(model.log().steps().len(), step + 1);
    }
}

#[test]
fn a_failing_rule_names_the_row_and_the_token() {
    let model = ScriptedModel::table(&tables::C);
    let rule = |row: &Row<'_>, _: &mut [f32]| match (row.prompt, row.new_tokens().len()) {
        (1, 2) => Err(unspool_core::Error::callback("no more")),
        _ => Ok(()),
    };
    let error = generate(&model, Request::new(vec![vec![0], vec![1]], new_tokens(9)).own(Own::new().processor(rule)))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert_eq!(error.to_string(), "row 1, new token 2: no more");
}

#[test]
fn a_row_ends_at_the_models_last_position() {
    let model = ScriptedModel::table(&tables::C).with_max_positions(5);
    let output = generate(&model, Request::new(vec![vec![0, 1, 2]], new_tokens(100))).unwrap();
    assert_eq!(ids(&output), [[3, 0, 1]]);
    assert_eq!(output.prompts[0].sequences[0].finish, FinishReason::Length);
}
