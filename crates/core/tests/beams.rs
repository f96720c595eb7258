//! Beam search as the specification's numbers say, and its laws on the scripted model.

use proptest::prelude::*;
use unspool_core::config::{Beams, Constraint, EarlyStopping, MaxLength, Rules};
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_core::{Output, Own, Request, Row, Sequence, Settings, TokenId, generate};
use unspool_testing::{ScriptedModel, tables};

fn beams(num_beams: usize, new: usize) -> Settings {
    Settings {
        eos_token_id: vec![4],
        max_length: MaxLength::New(new),
        num_return_sequences: num_beams,
        beams: Beams { num_beams, ..Beams::default() },
        ..Settings::default()
    }
}

fn with(settings: &Settings, change: impl FnOnce(&mut Beams)) -> Settings {
    let mut settings = settings.clone();
    change(&mut settings.beams);
    settings
}

fn search(model: &ScriptedModel, prompt: &[TokenId], settings: Settings) -> Vec<Sequence> {
    let request = Request::new(vec![prompt.to_vec()], settings).logprobs(true);
    generate(model, request).unwrap().prompts.remove(0).sequences
}

fn check(got: &[Sequence], expected: &[(&[TokenId], f32)]) {
    let ids: Vec<_> = got.iter().map(|sequence| sequence.ids.as_slice()).collect();
    assert_eq!(ids, expected.iter().map(|(ids, _)| *ids).collect::<Vec<_>>());
    for (sequence, (_, score)) in got.iter().zip(expected) {
        assert!((sequence.score.unwrap() - score).abs() < 2e-5, "{:?}, expected {score}", sequence.score);
    }
}

#[test]
fn returns_paths_and_log_probabilities() {
    let got = search(&ScriptedModel::table(&tables::T5), &[1], beams(3, 3));
    check(&got, &[(&[3, 4], -0.63648), (&[2, 4], -0.82513), (&[2, 2, 4], -0.87261)]);
    let paths: Vec<_> = got.iter().map(|sequence| sequence.beam_indices.clone().unwrap()).collect();
    assert_eq!(paths, [vec![0, 1], vec![0, 0], vec![0, 0, 0]]);
    let expected = [vec![-0.91629, -0.35667], vec![-0.73397, -0.91629], vec![-0.73397, -0.96758, -0.91629]];
    for (sequence, expected) in got.iter().zip(expected) {
        let logprobs = sequence.logprobs.as_ref().unwrap();
        assert_eq!(logprobs.len(), expected.len());
        assert!(logprobs.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 2e-5), "{logprobs:?}");
        assert_eq!(sequence.finish, FinishReason::Eos);
    }
}

#[test]
fn only_the_best_candidates_of_a_step_may_finish() {
    let model = ScriptedModel::table(&tables::T2);
    let first = with(&beams(2, 6), |beams| beams.early_stopping = EarlyStopping::First);
    check(&search(&model, &[1], first), &[(&[3, 4], -0.52606), (&[2, 2, 4], -0.71622)]);
    assert_eq!(model.log().steps().len(), 3);
    model.log().take();
    check(&search(&model, &[1], beams(2, 6)), &[(&[2, 2, 2, 2, 2, 2], -0.44669), (&[3, 4], -0.52606)]);
    assert_eq!(model.log().steps().len(), 6);
    check(&search(&model, &[1], beams(2, 4)), &[(&[2, 2, 2, 2], -0.45310), (&[3, 4], -0.52606)]);
}

#[test]
fn length_penalty_counts_new_tokens_with_the_end_token() {
    let model = ScriptedModel::table(&tables::T5);
    for (penalty, scores) in [
        (1.0, [-0.63648, -0.82513]),
        (0.0, [-1.27297, -1.65026]),
        (2.0, [-0.31824, -0.41256]),
        (-1.0, [-2.54593, -3.30052]),
    ] {
        let settings = with(&beams(2, 5), |beams| beams.length_penalty = penalty);
        check(&search(&model, &[1], settings), &[(&[3, 4], scores[0]), (&[2, 4], scores[1])]);
    }
    check(&search(&model, &[2, 1], beams(2, 5)), &[(&[3, 4], -0.63648), (&[2, 4], -0.82513)]);
}

#[test]
fn never_goes_on_until_nothing_can_be_better() {
    let model = ScriptedModel::table(&tables::T5);
    let steps = |early_stopping, length_penalty| {
        model.log().take();
        let settings =
            with(&beams(2, 5), |beams| (beams.early_stopping, beams.length_penalty) = (early_stopping, length_penalty));
        (search(&model, &[1], settings), model.log().steps().len())
    };
    let (found, count) = steps(EarlyStopping::Heuristic, 1.0);
    check(&found, &[(&[3, 4], -0.63648), (&[2, 4], -0.82513)]);
    assert_eq!(count, 2);
    let (found, count) = steps(EarlyStopping::Never, 1.0);
    check(&found, &[(&[3, 4], -0.63648), (&[2, 4], -0.82513)]);
    assert_eq!(count, 5);
    let (found, _) = steps(EarlyStopping::Never, 2.0);
    check(&found, &[(&[2, 2, 2, 2, 4], -0.18212), (&[2, 2, 2, 2, 2], -0.18417)]);
    let (found, _) = steps(EarlyStopping::Heuristic, 2.0);
    check(&found[..1], &[(&[3, 4], -0.31824)]);
}

#[test]
fn rules_work_on_log_probabilities_that_are_not_normalised_again() {
    let model = ScriptedModel::table(&tables::T5);
    let rules = Rules { suppress_tokens: vec![2], ..Rules::default() };
    let settings = Settings { rules: rules.clone(), ..beams(2, 5) };
    check(&search(&model, &[1], settings), &[(&[3, 4], -0.63648), (&[3, 3, 4], -0.96080)]);
    let settings = Settings { rules: Rules { renormalize_logits: true, ..rules }, ..beams(2, 5) };
    check(&search(&model, &[1], settings), &[(&[3, 4], -0.26783), (&[3, 3, 4], -0.68724)]);
}

#[test]
fn a_callers_criterion_finishes_beams() {
    let table = [[0.25; 4], [0.05, 0.1, 0.15, 0.7], [0.1, 0.3, 0.5, 0.1], [0.25; 4]];
    let model = ScriptedModel::table(&table);
    let settings = Settings { eos_token_id: Vec::new(), num_return_sequences: 1, ..beams(2, 4) };
    let criterion = |row: &Row<'_>, _: &[f32]| {
        Ok((row.ids.last() == Some(&3)).then(|| FinishReason::Custom("last id is 3".to_owned())))
    };
    let output =
        generate(&model, Request::new(vec![vec![1], vec![2]], settings).own(Own::new().criterion(criterion))).unwrap();
    let ids: Vec<_> = output.prompts.iter().map(|prompt| prompt.sequences[0].ids.clone()).collect();
    assert_eq!(ids, [vec![3], vec![2, 2, 2, 2]]);
    assert_eq!(output.prompts[0].sequences[0].finish.as_str(), "last id is 3");
    assert_eq!(output.prompts[1].sequences[0].finish, FinishReason::Length);
}

#[test]
fn a_prompt_runs_once_and_a_finished_one_leaves_the_session() {
    let model = ScriptedModel::table(&tables::T5);
    let settings = Settings { num_return_sequences: 1, ..beams(2, 5) };
    let request = Request::new(vec![vec![2, 3, 1], vec![0]], settings);
    let output = generate(&model, request).unwrap();
    assert_eq!(output.timing.prompt_tokens, 4);
    let rows: Vec<_> = model.log().steps().iter().map(Vec::len).collect();
    assert_eq!(rows[..2], [2, 4]);
    assert!(rows[2..].iter().all(|rows| *rows == 2), "{rows:?}");
}

#[test]
fn forbidding_all_but_one_token_leaves_the_other_beams_aside() {
    let model = ScriptedModel::table(&tables::T5);
    let rules = Rules { forced_bos_token_id: Some(3), ..Rules::default() };
    let got = search(&model, &[1], Settings { rules, ..beams(3, 3) });
    assert!(got.iter().all(|sequence| sequence.ids[0] == 3), "{got:?}");
    assert_eq!(got[0].ids, [3, 4]);
    assert!(got.iter().all(|sequence| sequence.score.unwrap().is_finite()));
}

#[test]
fn scores_and_logits_are_those_of_the_beams_that_were_extended() {
    let model = ScriptedModel::hashed(9);
    let settings = Settings { output_scores: true, output_logits: true, eos_token_id: vec![2], ..beams(3, 5) };
    for sequence in search(&model, &[1, 5], settings) {
        let (scores, logits) = (sequence.scores.unwrap(), sequence.logits.unwrap());
        assert_eq!((scores.len(), logits.len()), (sequence.ids.len(), sequence.ids.len()));
        for (step, token) in sequence.ids.iter().enumerate() {
            assert_eq!(scores[step][*token as usize], sequence.logprobs.as_ref().unwrap()[step]);
            let row = [&[1, 5], &sequence.ids[..step]].concat();
            assert_eq!(logits[step], model.scores(&row));
        }
    }
}

#[derive(Default)]
struct Told {
    rows: Vec<Vec<TokenId>>,
    before_the_end: usize,
    ended: Vec<(usize, FinishReason)>,
    stop_at: Option<usize>,
}

impl TokenSink for Told {
    fn put(&mut self, event: &TokenEvent) -> Flow {
        if self.rows.len() <= event.row {
            self.rows.resize(event.row + 1, Vec::new());
        }
        self.rows[event.row].push(event.token);
        if self.ended.is_empty() {
            self.before_the_end = self.rows[0].len();
        }
        if self.stop_at == Some(self.rows[0].len()) { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        self.ended.push((row, reason.clone()));
    }
}

#[test]
fn a_stream_is_told_what_is_final_and_may_stop() {
    // One token is far likelier than the others, so all beams soon share their beginning.
    let model = ScriptedModel::from_fn(6, |ids| {
        (0..6).map(|id| if id == (ids.len() as u32 % 3) + 1 { 4.0 } else { 0.1 * f32::from(id as u8) }).collect()
    });
    let settings = Settings { eos_token_id: vec![5], num_return_sequences: 2, ..beams(3, 12) };
    let mut told = Told::default();
    let request = Request::new(vec![vec![1], vec![2, 2]], settings.clone()).sink(&mut told);
    let output = generate(&model, request).unwrap();
    let written: Vec<_> = output.prompts.iter().flat_map(|p| &p.sequences).map(|s| s.ids.clone()).collect();
    assert_eq!(told.rows, written);
    assert_eq!(told.ended.len(), 4);
    assert!(told.before_the_end > 4, "{}", told.before_the_end);

    let mut told = Told { stop_at: Some(3), ..Told::default() };
    let output = generate(&model, Request::new(vec![vec![1]], settings).sink(&mut told)).unwrap();
    let first = &output.prompts[0].sequences[0];
    assert_eq!(first.finish, FinishReason::Cancelled);
    assert!(first.ids.starts_with(&told.rows[0]) && first.ids.len() < 12);
}

fn all(output: &Output) -> Vec<Vec<Sequence>> {
    output.prompts.iter().map(|prompt| prompt.sequences.clone()).collect()
}

/// Sum of the log-probabilities of `new` after `prompt`, from the model itself.
fn sum_of(model: &ScriptedModel, prompt: &[TokenId], new: &[TokenId]) -> f64 {
    let mut row = prompt.to_vec();
    let mut sum = 0.0;
    for &token in new {
        let scores = model.scores(&row);
        let mass: f64 = scores.iter().map(|score| f64::from(*score).exp()).sum();
        sum += f64::from(scores[token as usize]) - mass.ln();
        row.push(token);
    }
    sum
}

/// Every sequence that ends with `eos` or has `length` tokens.
fn every(vocab: TokenId, eos: TokenId, length: usize) -> Vec<Vec<TokenId>> {
    let mut open = vec![Vec::new()];
    let mut ended = Vec::new();
    for _ in 0..length {
        let longer: Vec<Vec<TokenId>> =
            open.iter().flat_map(|ids: &Vec<TokenId>| (0..vocab).map(|id| [ids.as_slice(), &[id]].concat())).collect();
        let (end, go_on) = longer.into_iter().partition(|ids| ids.last() == Some(&eos));
        ended.extend::<Vec<_>>(end);
        open = go_on;
    }
    ended.extend(open);
    ended
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unspool_testing::scaled(48)))]

    #[test]
    fn many_beams_are_exhaustive_search(salt in 0u32..1000, penalty in -1.0f64..2.0) {
        let model = ScriptedModel::hashed(4);
        let prompt = [salt % 4, salt / 4 % 4, salt / 16 % 4];
        let settings = Settings {
            eos_token_id: vec![3],
            num_return_sequences: 5,
            max_length: MaxLength::New(3),
            beams: Beams {
                num_beams: 64,
                length_penalty: penalty,
                early_stopping: EarlyStopping::Never,
                ..Beams::default()
            },
            ..Settings::default()
        };
        let got = search(&model, &prompt, settings);
        let value = |ids: &[TokenId]| sum_of(&model, &prompt, ids) / (ids.len() as f64).powf(penalty);
        let mut expected: Vec<f64> = every(4, 3, 3).iter().map(|ids| value(ids)).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        for (sequence, best) in got.iter().zip(expected) {
            prop_assert!((value(&sequence.ids) - best).abs() < 1e-4, "{:?}", sequence);
        }
    }

    #[test]
    fn scores_are_those_of_a_fresh_scoring(salt in 0u32..1000, count in 2usize..6, penalty in -1.0f64..2.0) {
        let model = ScriptedModel::hashed(11);
        let prompt = [salt % 11, salt / 11 % 11];
        let settings = Settings { eos_token_id: vec![4, 7], ..with(&beams(count, 7), |b| b.length_penalty = penalty) };
        let got = search(&model, &prompt, settings);
        for sequence in &got {
            let expected = sum_of(&model, &prompt, &sequence.ids) / (sequence.ids.len() as f64).powf(penalty);
            prop_assert!((f64::from(sequence.score.unwrap()) - expected).abs() < 1e-4 * expected.abs().max(1.0));
        }
        prop_assert!(got.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }

    #[test]
    fn a_batch_is_searched_as_each_prompt_alone(salt in 0u32..1000, count in 2usize..5, do_sample: bool) {
        let model = ScriptedModel::hashed(13);
        let prompts = vec![vec![salt % 13], vec![3, salt / 13 % 13, 1], vec![7, 7], vec![salt % 5; 5]];
        let settings = Settings { do_sample, eos_token_id: vec![4, 9], ..beams(count, 9) };
        let together = generate(&model, Request::new(prompts.clone(), settings.clone()).seed(5)).unwrap();
        for (index, prompt) in prompts.into_iter().enumerate() {
            let request = Request::new(vec![prompt], settings.clone()).seed(5).first_row(index);
            let alone = all(&generate(&model, request).unwrap());
            prop_assert_eq!(&alone[0], &together.prompts[index].sequences);
        }
    }
}

#[test]
fn drawing_beams_differ_by_seed_and_repeat_by_seed() {
    let model = ScriptedModel::hashed(50);
    let settings = Settings { do_sample: true, eos_token_id: vec![4], ..beams(3, 8) };
    let run = |seed| all(&generate(&model, Request::new(vec![vec![1, 2]], settings.clone()).seed(seed)).unwrap());
    assert_eq!(run(1), run(1));
    assert!((2..12).any(|seed| run(seed) != run(1)));
}

#[test]
fn groups_avoid_each_others_tokens() {
    let settings = Settings {
        max_length: MaxLength::Total(5),
        beams: Beams { num_beams: 2, num_beam_groups: 2, diversity_penalty: 0.5, ..Beams::default() },
        ..beams(2, 4)
    };
    let got = search(&ScriptedModel::table(&tables::T5), &[1], settings);
    check(&got, &[(&[3, 4], -0.63648), (&[2, 4], -0.82513)]);
}

#[test]
fn required_words_come() {
    let model = ScriptedModel::table(&tables::T5);
    let one = |constraint: Constraint, total| Settings {
        max_length: MaxLength::Total(total),
        num_return_sequences: 1,
        ..with(&beams(2, 5), |beams| beams.constraints = vec![constraint])
    };
    let got = search(&model, &[1], one(Constraint::Phrasal(vec![3, 2]), 6));
    check(&got, &[(&[3, 2, 2, 2, 4], -1.25870)]);
    let got = search(&model, &[1], one(Constraint::Disjunctive(vec![vec![0], vec![3, 3]]), 6));
    check(&got, &[(&[3, 3, 4], -0.96080)]);
}

#[test]
fn when_too_few_beams_fulfil_the_constraints_all_others_count() {
    let model = ScriptedModel::table(&tables::T5);
    let settings = Settings {
        num_return_sequences: 1,
        ..with(&beams(2, 1), |beams| beams.constraints = vec![Constraint::Phrasal(vec![0, 0])])
    };
    check(&search(&model, &[1], settings), &[(&[2], -0.73397)]);
}
