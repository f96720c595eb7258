//! Contrastive search, DoLa and returned hidden states on the scripted model.

use unspool_core::config::{Contrastive, DolaLayers, MaxLength, Rules};
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_core::{ErrorKind, HiddenShape, KeptSession, Output, Request, Settings, TokenId, generate, generate_kept};
use unspool_testing::{Call, ScriptedModel, tables};

const VOCAB: usize = 12;

/// Numbers that depend on every token of the row and on the state's number.
fn states(state: usize, ids: &[TokenId]) -> Vec<f32> {
    let hash =
        ids.iter().fold(state as u64 + 17, |hash, id| (hash ^ u64::from(*id)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..3).map(|place| ((hash >> (20 + 8 * place)) & 0xff) as f32 / 128.0 - 1.0).collect()
}

fn model() -> ScriptedModel {
    ScriptedModel::hashed(VOCAB)
        .with_hidden(HiddenShape { last: 4, width: 3, tied: false }, states)
        .with_head(|state| (0..VOCAB).map(|id| state[id % 3] * (id as f32 - 5.0)).collect())
}

fn contrastive(top_k: usize, penalty_alpha: f64, low_memory: bool) -> Settings {
    Settings {
        contrastive: Some(Contrastive { top_k, penalty_alpha, low_memory }),
        max_length: MaxLength::New(6),
        ..Settings::default()
    }
}

fn dola(layers: DolaLayers) -> Settings {
    Settings { dola_layers: Some(layers), max_length: MaxLength::New(6), ..Settings::default() }
}

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

fn prompts() -> Vec<Vec<TokenId>> {
    vec![vec![1, 2, 3], vec![4], vec![5, 6, 7, 8, 9, 10, 11]]
}

/// Every way to decode with hidden states.
fn ways() -> Vec<Settings> {
    let plain = Settings { output_hidden_states: true, max_length: MaxLength::New(6), ..Settings::default() };
    let sampled = Settings { do_sample: true, num_return_sequences: 2, ..plain.clone() };
    let mut ways = vec![
        contrastive(3, 0.6, false),
        contrastive(3, 0.6, true),
        dola(DolaLayers::Low),
        dola(DolaLayers::Listed(vec![1, 3])),
        Settings { output_hidden_states: true, ..contrastive(2, 0.3, false) },
        Settings { output_hidden_states: true, ..contrastive(2, 0.3, true) },
        Settings { output_hidden_states: true, output_scores: true, output_logits: true, ..dola(DolaLayers::High) },
        Settings { do_sample: true, num_return_sequences: 3, ..dola(DolaLayers::High) },
        plain,
        sampled,
    ];
    for way in &mut ways {
        way.eos_token_id = vec![2];
    }
    ways
}

#[test]
fn a_row_is_written_as_if_its_prompt_were_alone() {
    for settings in ways() {
        let together = generate(&model(), Request::new(prompts(), settings.clone()).seed(5).logprobs(true)).unwrap();
        for (index, prompt) in prompts().into_iter().enumerate() {
            let request = Request::new(vec![prompt], settings.clone()).seed(5).first_row(index).logprobs(true);
            let alone = generate(&model(), request).unwrap();
            assert_eq!(together.prompts[index], alone.prompts[0], "{settings:?}");
        }
    }
}

#[test]
fn chunks_of_the_prompt_change_nothing() {
    for settings in ways() {
        let whole = generate(&model(), Request::new(prompts(), settings.clone())).unwrap();
        let chunked = Settings { prefill_chunk_size: 2, ..settings.clone() };
        assert_eq!(
            generate(&model(), Request::new(prompts(), chunked)).unwrap().prompts,
            whole.prompts,
            "{settings:?}"
        );
    }
}

#[test]
fn low_memory_writes_the_same_and_runs_a_candidate_at_a_time() {
    let together = generate(&model(), Request::new(prompts(), contrastive(4, 0.5, false))).unwrap();
    let model = model();
    let one_by_one = generate(&model, Request::new(prompts(), contrastive(4, 0.5, true))).unwrap();
    assert_eq!(ids(&one_by_one), ids(&together));
    assert!(model.log().reorders().is_empty(), "no row is repeated");
    let error =
        generate(&self::model().without_crop(), Request::new(prompts(), contrastive(4, 0.5, true))).unwrap_err();
    assert!(error.to_string().contains("low_memory"), "{error}");
}

/// The worked example of the specification: p = (.6, .4), H = [(1,0), (0,1)], h = [(1,0), (1,1)].
#[test]
fn the_candidate_that_says_something_new_wins() {
    let shape = HiddenShape { last: 1, width: 2, tied: false };
    let hidden = |_: usize, ids: &[TokenId]| match ids {
        [0] => vec![1.0, 0.0],
        [0, 1] => vec![0.0, 1.0],
        [0, 1, 2] => vec![1.0, 0.0],
        _ => vec![1.0, 1.0],
    };
    let scores = |_: &[TokenId]| [0.0f32, 0.0, 0.6, 0.4].map(f32::ln).to_vec();
    let write = |alpha| {
        let model = ScriptedModel::from_fn(4, scores).with_hidden(shape, hidden);
        let settings = Settings { max_length: MaxLength::New(1), ..contrastive(2, alpha, false) };
        ids(&generate(&model, Request::new(vec![vec![0, 1]], settings)).unwrap())
    };
    assert_eq!(write(0.6), [[3]], "penalties 1 and .70711, scores -.36 and -.26426");
    assert_eq!(write(0.1), [[2]], "scores .44 and .28929");
}

#[test]
fn forbidden_tokens_are_no_candidates() {
    let rules = Rules { suppress_tokens: (0..10).collect(), ..Rules::default() };
    let settings = Settings { rules, ..contrastive(6, 0.9, false) };
    let output = generate(&model(), Request::new(prompts(), settings)).unwrap();
    assert!(ids(&output).iter().flatten().all(|id| *id >= 10), "{:?}", ids(&output));
}

/// Reads every row, and of row 1 only two tokens.
struct Reader {
    told: Vec<Vec<TokenId>>,
}

impl TokenSink for Reader {
    fn put(&mut self, event: &TokenEvent) -> Flow {
        self.told[event.row].push(event.token);
        if event.row == 1 && self.told[1].len() == 2 { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, _row: usize, _reason: &FinishReason) {}
}

#[test]
fn tokens_are_told_and_a_reader_may_stop_a_row() {
    for settings in [contrastive(3, 0.6, false), dola(DolaLayers::High)] {
        let expected = ids(&generate(&model(), Request::new(prompts(), settings.clone())).unwrap());
        let mut reader = Reader { told: vec![Vec::new(); 3] };
        let output = generate(&model(), Request::new(prompts(), settings).sink(&mut reader)).unwrap();
        let told = reader.told;
        assert_eq!(told, ids(&output));
        assert_eq!((&told[0], &told[1][..], &told[2]), (&expected[0], &expected[1][..2], &expected[2]));
    }
}

#[test]
fn returned_states_are_those_of_every_token_but_the_last() {
    for settings in ways().into_iter().filter(|settings| settings.output_hidden_states) {
        let output = generate(&model(), Request::new(prompts(), settings.clone()).seed(3)).unwrap();
        for (prompt, written) in prompts().iter().zip(&output.prompts) {
            for sequence in &written.sequences {
                let steps = sequence.hidden_states.as_ref().unwrap();
                assert_eq!(steps.len(), sequence.ids.len());
                let row: Vec<TokenId> = prompt.iter().chain(&sequence.ids).copied().collect();
                let mut length = 0;
                for step in steps {
                    assert_eq!((step.width, step.states.len()), (3, 5));
                    let positions = step.states[0].len() / 3;
                    for (number, state) in step.states.iter().enumerate() {
                        let expected: Vec<f32> =
                            (1..=positions).flat_map(|new| states(number, &row[..length + new])).collect();
                        assert_eq!(*state, expected, "{settings:?}");
                    }
                    length += positions;
                }
                assert_eq!(length, row.len() - 1);
            }
        }
    }
    let nobody_asked = generate(&model(), Request::new(prompts(), Settings::default())).unwrap();
    assert!(nobody_asked.prompts[0].sequences[0].hidden_states.is_none());
}

#[test]
fn dola_keeps_the_last_layers_own_scores_as_logits() {
    let settings = Settings { output_logits: true, output_scores: true, ..dola(DolaLayers::Listed(vec![2])) };
    let output = generate(&model(), Request::new(vec![vec![1, 2]], settings)).unwrap();
    let sequence = &output.prompts[0].sequences[0];
    let plain = Settings { output_logits: true, ..Settings::default() };
    let greedy = generate(&model(), Request::new(vec![vec![1, 2]], plain)).unwrap();
    assert_eq!(sequence.logits.as_ref().unwrap()[0], greedy.prompts[0].sequences[0].logits.as_ref().unwrap()[0]);
    let scores = &sequence.scores.as_ref().unwrap()[0];
    assert!(scores.contains(&f32::NEG_INFINITY), "unlikely tokens are left out");
    assert_ne!(scores, &sequence.logits.as_ref().unwrap()[0]);
}

#[test]
fn guidance_works_with_contrastive_search() {
    let guided = |scale| {
        let rules = Rules { guidance_scale: Some(scale), ..Rules::default() };
        let settings = Settings { rules, ..contrastive(3, 0.6, false) };
        let request = Request::new(prompts(), settings).negative_prompts(vec![vec![1], vec![2, 3], vec![4]]);
        ids(&generate(&model(), request).unwrap())
    };
    assert_ne!(guided(3.0), guided(1.5));
    let rules = Rules { guidance_scale: Some(3.0), ..Rules::default() };
    let request = Request::new(vec![vec![4]], Settings { rules, ..contrastive(3, 0.6, false) });
    let alone = ids(&generate(&model(), request.negative_prompts(vec![vec![2, 3]])).unwrap());
    assert_eq!(alone[0], guided(3.0)[1]);
}

#[test]
fn models_without_hidden_states_are_refused_by_name_before_anything_runs() {
    let plain = ScriptedModel::table(&tables::C);
    for settings in ways() {
        let error = generate(&plain, Request::new(vec![vec![0]], settings.clone())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{settings:?}");
        assert!(error.to_string().contains("import --hidden-states"), "{error}");
    }
    let last_only = ScriptedModel::hashed(4).with_hidden(HiddenShape { last: 0, width: 3, tied: false }, states);
    for settings in [dola(DolaLayers::Low), Settings { output_hidden_states: true, ..Settings::default() }] {
        let error = generate(&last_only, Request::new(vec![vec![0]], settings)).unwrap_err().to_string();
        assert!(error.contains("the last hidden state only"), "{error}");
    }
    assert!(generate(&last_only, Request::new(vec![vec![0]], contrastive(2, 0.5, false))).is_ok());
    let headless = ScriptedModel::hashed(4).with_hidden(HiddenShape { last: 4, width: 3, tied: false }, states);
    assert!(generate(&headless, Request::new(vec![vec![0]], dola(DolaLayers::Low))).is_err());
    let ran = |model: &ScriptedModel| model.log().calls().iter().any(|call| matches!(call, Call::Step { .. }));
    assert!(!ran(&plain) && !ran(&headless));
}

#[test]
fn wrong_contrastive_searches_are_refused() {
    let error = generate(&model(), Request::new(prompts(), contrastive(13, 0.5, false))).unwrap_err();
    assert!(error.to_string().contains("top_k=13"), "{error}");
    let short = model().with_max_positions(3);
    let error = generate(&short, Request::new(vec![vec![1, 2, 3]], contrastive(2, 0.5, false))).unwrap_err();
    assert!(error.place().is_none() && error.to_string().contains("positions"), "{error}");
    let output = generate(&short, Request::new(vec![vec![1, 2]], contrastive(2, 0.5, false))).unwrap();
    assert_eq!(ids(&output)[0].len(), 1, "the token at the last position is run too");
}

#[test]
fn a_kept_session_is_not_used_where_its_hidden_states_are_needed() {
    let write = |kept: &mut Option<KeptSession>, settings: &Settings| {
        let model = model();
        let request = Request::new(vec![vec![1, 2, 3, 4]], settings.clone());
        (generate_kept(&model, kept, request).unwrap().prompts, model.log().steps())
    };
    for settings in [contrastive(2, 0.5, false), Settings { output_hidden_states: true, ..Settings::default() }] {
        let mut kept = None;
        let fresh = write(&mut kept, &settings);
        assert!(kept.is_some());
        let again = write(&mut kept, &settings);
        assert_eq!(again, fresh);
    }
    // DoLa looks at new tokens only: of the prompt just the last one runs again.
    let mut kept = None;
    let model = model();
    let settings = dola(DolaLayers::Low);
    let request = || Request::new(vec![vec![1, 2, 3, 4]], settings.clone());
    let fresh = generate_kept(&model, &mut kept, request()).unwrap().prompts;
    let steps = model.log().steps().len();
    assert_eq!(generate_kept(&model, &mut kept, request()).unwrap().prompts, fresh);
    assert_eq!(model.log().steps()[steps], [[4]]);
}
