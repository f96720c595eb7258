//! Beam search at its limits: tiny vocabularies, nothing left to choose, numbers that are none, callers and engines that
//! fail midway.

use std::borrow::Cow;
use std::sync::Arc;

use unspool_core::config::{Beams, Constraint, MaxLength, Rules};
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_core::{Error, ErrorKind, Output, Own, Request, Row, Settings, TextUnit, TokenId, Vocabulary, generate};
use unspool_testing::{ScriptedModel, tables};

fn settings(num_beams: usize, new: usize) -> Settings {
    Settings {
        max_length: MaxLength::New(new),
        num_return_sequences: num_beams,
        beams: Beams { num_beams, ..Beams::default() },
        ..Settings::default()
    }
}

/// Beams, drawing beams, groups and constraints.
fn kinds(num_beams: usize, new: usize) -> Vec<Settings> {
    let base = settings(num_beams, new);
    let change = |change: fn(&mut Settings)| {
        let mut changed = base.clone();
        change(&mut changed);
        changed
    };
    vec![
        base.clone(),
        change(|settings| settings.do_sample = true),
        change(|settings| {
            (settings.beams.num_beam_groups, settings.beams.diversity_penalty) = (settings.beams.num_beams / 2, 0.5);
        }),
        change(|settings| settings.beams.constraints = vec![Constraint::Phrasal(vec![0])]),
    ]
}

fn run(model: &ScriptedModel, settings: Settings) -> unspool_core::Result<Output> {
    generate(model, Request::new(vec![vec![0]], settings).logprobs(true))
}

#[test]
fn more_beams_than_tokens() {
    for vocab in 1..4 {
        for eos in [vec![], vec![0], vec![0, vocab - 1]] {
            for mut settings in kinds(6, 3) {
                settings.eos_token_id.clone_from(&eos);
                let output = run(&ScriptedModel::hashed(vocab as usize), settings.clone()).unwrap();
                let sequences = &output.prompts[0].sequences;
                assert_eq!(sequences.len(), 6);
                assert!(!sequences[0].ids.is_empty(), "{settings:?}");
                for sequence in sequences {
                    assert!(sequence.ids.len() <= 3 && sequence.ids.iter().all(|id| *id < vocab), "{sequence:?}");
                    assert_eq!(sequence.beam_indices.as_ref().unwrap().len(), sequence.ids.len());
                    assert_eq!(sequence.logprobs.as_ref().unwrap().len(), sequence.ids.len());
                }
            }
        }
    }
}

#[test]
fn nothing_left_to_choose_and_numbers_that_are_none() {
    for score in [f32::NEG_INFINITY, f32::NAN, f32::INFINITY] {
        for one in [false, true] {
            let model = ScriptedModel::from_fn(5, move |ids| {
                let usual = |id: u32| if one && id > 0 { 0.1 * id as f32 } else { score };
                (0..5).map(|id| if ids.len() < 3 { id as f32 } else { usual(id) }).collect()
            });
            for mut settings in kinds(4, 5) {
                settings.eos_token_id = vec![2];
                let drawn = settings.do_sample;
                match run(&model, settings) {
                    Ok(output) => {
                        assert!(!score.is_nan());
                        assert_eq!(output.prompts[0].sequences.len(), 4);
                    }
                    Err(error) if score.is_nan() => assert!(error.message().contains("no numbers (NaN)"), "{error}"),
                    Err(error) => {
                        assert!(drawn && error.message().contains("drawn"), "{error}");
                        assert_eq!(error.place(), Some("new token 2"));
                    }
                }
            }
        }
    }
    for settings in kinds(4, 5) {
        let drawn = settings.do_sample;
        let rules = Rules { suppress_tokens: (0..5).collect(), ..Rules::default() };
        let found = run(&ScriptedModel::hashed(5), Settings { rules, ..settings });
        assert_eq!(found.is_err(), drawn, "{found:?}");
    }
}

#[test]
fn settings_that_contradict_each_other() {
    let refused = |change: fn(&mut Settings)| {
        let mut settings = settings(4, 3);
        change(&mut settings);
        let model = ScriptedModel::hashed(5);
        let error = run(&model, settings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(model.log().calls().is_empty(), "nothing is opened or run");
        error.to_string()
    };
    assert!(refused(|settings| settings.num_return_sequences = 5).contains("at most num_beams=4"));
    assert!(refused(|settings| settings.beams.num_beams = usize::MAX).contains("num_beams"));
    assert!(refused(|settings| settings.beams.num_beam_groups = 0).contains("a divisor of num_beams=4"));
    assert!(refused(|settings| settings.beams.num_beam_groups = 8).contains("a divisor of num_beams=4"));
    let outside = refused(|settings| {
        (settings.beams.num_beam_groups, settings.pad_token_id) = (2, Some(5));
    });
    assert!(outside.contains("pad_token_id is 5"), "{outside}");
    assert!(refused(|settings| settings.beams.constraints = vec![Constraint::Phrasal(vec![7])]).contains("vocabulary"));
    assert!(
        refused(|settings| settings.beams.constraints = vec![Constraint::Phrasal(vec![])]).contains("at least one")
    );
    let both = refused(|settings| {
        (settings.beams.num_beam_groups, settings.beams.constraints) = (2, vec![Constraint::Phrasal(vec![1])]);
    });
    assert!(both.contains("exclude each other"), "{both}");
}

#[test]
fn failures_midway_come_out_with_their_place() {
    for settings in kinds(4, 6) {
        let rule = |row: &Row<'_>, _: &mut [f32]| match row.ids.len() {
            3 => Err(Error::invalid_input("the rule gave up")),
            _ => Ok(()),
        };
        let model = ScriptedModel::hashed(9);
        let request = Request::new(vec![vec![0], vec![1]], settings.clone()).own(Own::new().processor(rule));
        let error = generate(&model, request).unwrap_err().to_string();
        assert_eq!(error, "prompt 0, beam 0, new token 2: the rule gave up");

        let criterion = |row: &Row<'_>, _: &[f32]| match row.ids.len() {
            3 => Err(Error::invalid_input("the criterion gave up")),
            _ => Ok(None),
        };
        let request = Request::new(vec![vec![0]], settings.clone()).own(Own::new().criterion(criterion));
        let error = generate(&model, request).unwrap_err().to_string();
        assert_eq!(error, "the criterion gave up", "one prompt has no number");

        for step in 0..3 {
            let error = run(&ScriptedModel::hashed(9).failing_at(step), settings.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Engine);
        }
    }
}

#[test]
fn only_allowed_tokens_come_from_every_beam() {
    let model = ScriptedModel::hashed(9);
    for settings in kinds(4, 5) {
        let constrained = !settings.beams.constraints.is_empty();
        let own =
            Own::new().prefix_allowed_tokens_fn(
                |prompt, ids| {
                    if prompt == 0 { vec![2, 4, 6] } else { vec![ids.len() as TokenId] }
                },
            );
        let request = Request::new(vec![vec![0], vec![3]], settings).own(own);
        let output = generate(&model, request).unwrap();
        let best = |prompt: usize| &output.prompts[prompt].sequences[0];
        if !constrained {
            assert!(best(0).ids.iter().all(|id| [2, 4, 6].contains(id)), "{:?}", best(0));
            assert_eq!(best(1).ids, [1, 2, 3, 4, 5]);
        }
    }
}

#[test]
fn guidance_leads_every_beam() {
    let model = ScriptedModel::hashed(9);
    let rules = Rules { guidance_scale: Some(1.5), ..Rules::default() };
    for settings in kinds(4, 5) {
        let guided = Settings { rules: rules.clone(), eos_token_id: vec![3], ..settings };
        let request = Request::new(vec![vec![0, 4], vec![1]], guided.clone());
        let together = generate(&model, request.negative_prompts(vec![vec![7], vec![8, 8]])).unwrap();
        let request = Request::new(vec![vec![1]], guided).first_row(1);
        let alone = generate(&model, request.negative_prompts(vec![vec![8, 8]])).unwrap();
        assert_eq!(alone.prompts[0], together.prompts[1]);
    }
}

/// Each id is one letter.
struct Letters;

impl Vocabulary for Letters {
    fn size(&self) -> usize {
        5
    }

    fn continuation(&self, id: TokenId) -> Option<Cow<'_, [u8]>> {
        b"abcde".get(id as usize).map(|letter| Cow::Owned(vec![*letter]))
    }

    fn unit(&self) -> TextUnit {
        TextUnit::Bytes
    }
}

#[test]
fn stop_strings_end_beams() {
    let settings = Settings { stop_strings: vec!["de".to_owned()], ..settings(3, 6) };
    let request = Request::new(vec![vec![1]], settings).vocabulary(Arc::new(Letters));
    let output = generate(&ScriptedModel::table(&tables::T5), request).unwrap();
    let stopped: Vec<_> = output.prompts[0].sequences.iter().filter(|found| found.ids.ends_with(&[3, 4])).collect();
    assert!(!stopped.is_empty(), "{output:?}");
    assert!(stopped.iter().all(|found| found.finish == FinishReason::StopString), "{stopped:?}");
}

struct Stops {
    polls: usize,
    ended: usize,
}

impl TokenSink for Stops {
    fn put(&mut self, _: &TokenEvent) -> Flow {
        Flow::Continue
    }

    fn poll(&mut self) -> Flow {
        self.polls = self.polls.saturating_sub(1);
        if self.polls == 0 { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, _: usize, reason: &FinishReason) {
        self.ended += usize::from(*reason == FinishReason::Cancelled);
    }
}

#[test]
fn a_sink_stops_a_search_before_anything_is_final() {
    for settings in kinds(4, 8) {
        for polls in 1..4 {
            let mut sink = Stops { polls, ended: 0 };
            let request = Request::new(vec![vec![0]], settings.clone()).sink(&mut sink);
            let output = generate(&ScriptedModel::hashed(9), request).unwrap();
            let sequences = &output.prompts[0].sequences;
            assert_eq!((sequences.len(), sink.ended), (4, 4));
            assert!(sequences.iter().all(|found| found.ids.len() == polls), "{sequences:?}");
        }
    }
}
