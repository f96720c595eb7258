//! Assisted decoding writes what plain decoding writes: the same tokens, numbers, reasons and calls, whatever is drafted.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use unspool_core::config::{AssistedSettings, MaxLength, Rules, Schedule};
use unspool_core::draft::{Ask, Assist, Assistant, Draft, Drafted, Start};
use unspool_core::rng::Rng;
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, TokenEvent, TokenSink};
use unspool_core::{
    Error, ErrorKind, KeptSession, Output, Own, Request, Row, Settings, TextUnit, TokenId, Vocabulary, generate,
    generate_kept,
};
use unspool_testing::tables::{ASSISTANT, MAIN};
use unspool_testing::{Call, KnownDraft, ScriptedModel};

const VOCAB: usize = 12;

fn known(answers: Vec<Vec<TokenId>>, wrong: f64, most: usize) -> KnownDraft {
    KnownDraft::new(answers, wrong, most, VOCAB, Rng::for_row(99, 0, 0))
}

/// What a caller's own rule, criterion and sink saw.
type Seen = Arc<Mutex<Vec<String>>>;

struct Listener(Seen, Option<usize>);

impl TokenSink for Listener {
    fn put(&mut self, event: &TokenEvent) -> Flow {
        let mut seen = self.0.lock().unwrap();
        seen.push(format!("sink {event:?}"));
        if self.1.is_some_and(|most| seen.iter().filter(|line| line.starts_with("sink")).count() >= most) {
            Flow::Stop
        } else {
            Flow::Continue
        }
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        self.0.lock().unwrap().push(format!("end {row} {reason:?}"));
    }
}

/// Each token reads as one letter.
struct Letters;

impl Vocabulary for Letters {
    fn size(&self) -> usize {
        VOCAB
    }

    fn continuation(&self, id: TokenId) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Owned(vec![b'a' + id as u8]))
    }

    fn unit(&self) -> TextUnit {
        TextUnit::Bytes
    }
}

fn prompts() -> impl Strategy<Value = Vec<Vec<TokenId>>> {
    prop::collection::vec(prop::collection::vec(0..VOCAB as TokenId, 1..20), 1..4)
}

fn settings(do_sample: bool, sequences: usize, rules: bool) -> Settings {
    let rules = if rules {
        Rules {
            guidance_scale: Some(1.7),
            no_repeat_ngram_size: 2,
            bad_words_ids: vec![vec![3], vec![4, 6]],
            sequence_bias: vec![(vec![1, 7], 2.0)],
            min_new_tokens: Some(3),
            forced_eos_token_id: vec![5],
            exponential_decay_length_penalty: Some((4, 1.5)),
            ..Rules::default()
        }
    } else {
        Rules::default()
    };
    Settings {
        do_sample,
        num_return_sequences: sequences,
        eos_token_id: vec![5],
        max_length: MaxLength::New(24),
        output_scores: true,
        output_logits: true,
        repetition_penalty: Some(1.3),
        temperature: do_sample.then_some(0.7),
        stop_strings: vec!["bc".into(), "hij".into()],
        rules,
        ..Settings::default()
    }
}

fn asked<'a>(prompts: &[Vec<TokenId>], settings: &Settings) -> Request<'a> {
    Request::new(prompts.to_vec(), settings.clone()).seed(3).logprobs(true).vocabulary(Arc::new(Letters))
}

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

/// Everything that was written, without the counts of drafts.
fn written(mut output: Output) -> Vec<unspool_core::PromptOutput> {
    for sequence in output.prompts.iter_mut().flat_map(|prompt| &mut prompt.sequences) {
        sequence.drafts = None;
    }
    output.prompts
}

/// Runs with a caller's rule, criterion and sink that see everything.
fn run(
    prompts: &[Vec<TokenId>],
    settings: &Settings,
    assist: Assist<'_>,
    stop: Option<usize>,
) -> (Output, Vec<String>) {
    let seen = Seen::default();
    let (of_rule, of_criterion) = (seen.clone(), seen.clone());
    let mut calls = 0;
    let mut sink = Listener(seen.clone(), stop);
    let own = Own::new()
        .processor(move |row: &Row<'_>, scores: &mut [f32]| {
            // A rule with a memory of its own: it would notice a call too many.
            calls += 1;
            scores[calls % VOCAB] += 0.5;
            of_rule.lock().unwrap().push(format!("rule {:?}", row.ids));
            Ok(())
        })
        .criterion(move |row: &Row<'_>, scores: &[f32]| {
            of_criterion.lock().unwrap().push(format!("criterion {:?} {}", row.ids, scores[0]));
            Ok((row.ids.ends_with(&[7, 7])).then(|| FinishReason::Custom("sevens".into())))
        });
    let request = Request::new(prompts.to_vec(), settings.clone())
        .seed(11)
        .logprobs(true)
        .vocabulary(Arc::new(Letters))
        .own(own)
        .sink(&mut sink)
        .assist(assist);
    let output = generate(&ScriptedModel::hashed(VOCAB), request).unwrap();
    let seen = seen.lock().unwrap().clone();
    (output, seen)
}

/// What is seen of a single row is the same call for call; rows of a batch take turns differently.
fn same(
    prompts: &[Vec<TokenId>],
    settings: &Settings,
    assist: Assist<'_>,
    stop: Option<usize>,
) -> Result<(), TestCaseError> {
    let (plain, plainly_seen) = run(prompts, settings, Assist::default(), stop);
    let (assisted, seen) = run(prompts, settings, assist, stop);
    prop_assert_eq!(written(assisted), written(plain));
    prop_assert_eq!(seen, plainly_seen);
    Ok(())
}

proptest! {
    #[test]
    fn drafts_good_bad_and_random_change_nothing_of_a_row(
        prompts in prompts(), do_sample: bool, rules: bool, always: bool, wrong in 0u8..=10, most in 0usize..9,
        stop in prop::option::of(1usize..12),
    ) {
        let settings = settings(do_sample, 1, rules);
        let prompt = &prompts[..1];
        let answers = ids(&run(prompt, &settings, Assist::default(), None).0);
        let mut known = known(answers, f64::from(wrong) / 10.0, most);
        same(prompt, &settings, Assist::new(&mut known).always(always), stop)?;
    }

    #[test]
    fn prompt_lookup_changes_nothing_of_a_row(
        prompts in prompts(), do_sample: bool, rules: bool, tokens in 1usize..6, ngram in 1usize..4,
    ) {
        let plain = settings(do_sample, 1, rules);
        let mut lookup = plain.clone();
        lookup.assisted.prompt_lookup_num_tokens = Some(tokens);
        lookup.assisted.max_matching_ngram_size = ngram;
        let (expected, plainly_seen) = run(&prompts[..1], &plain, Assist::default(), None);
        let (got, seen) = run(&prompts[..1], &lookup, Assist::default(), None);
        prop_assert_eq!(written(got), written(expected));
        prop_assert_eq!(seen, plainly_seen);
    }

    #[test]
    fn rows_of_a_batch_accept_different_numbers_and_write_the_same(
        prompts in prompts(), do_sample: bool, guided: bool, always: bool, wrong in 0u8..=10, sequences in 1usize..4,
    ) {
        let sequences = if do_sample { sequences } else { 1 };
        let mut settings = settings(do_sample, sequences, false);
        settings.rules.guidance_scale = guided.then_some(1.7);
        let plain = generate(&ScriptedModel::hashed(VOCAB), asked(&prompts, &settings)).unwrap();
        let mut known = known(ids(&plain), f64::from(wrong) / 10.0, 4);
        let assist = Assist::new(&mut known).always(always);
        let assisted = generate(&ScriptedModel::hashed(VOCAB), asked(&prompts, &settings).assist(assist)).unwrap();
        prop_assert_eq!(written(assisted), written(plain));
    }

    #[test]
    fn an_assistant_changes_no_token_of_a_batch(
        prompts in prompts(), rules: bool, apart: bool, tokens in 0usize..6, threshold in 0u8..10, heuristic: bool,
    ) {
        let settings = settings(false, 1, rules);
        let plain = generate(&ScriptedModel::hashed(VOCAB), asked(&prompts, &settings)).unwrap();
        // The model itself is right every time; another of another vocabulary hardly ever.
        let small = if apart { ScriptedModel::hashed(VOCAB - 2) } else { ScriptedModel::hashed(VOCAB) };
        let how = AssistedSettings {
            num_assistant_tokens: tokens,
            num_assistant_tokens_schedule: if heuristic { Schedule::Heuristic } else { Schedule::Constant },
            assistant_confidence_threshold: f64::from(threshold) / 20.0,
            ..AssistedSettings::default()
        };
        let mut assistant = Assistant::new(Arc::new(small), how);
        for _ in 0..2 {
            let assist = Assist::new(&mut assistant).always(true);
            let assisted = generate(&ScriptedModel::hashed(VOCAB), asked(&prompts, &settings).assist(assist)).unwrap();
            prop_assert_eq!(written(assisted), written(plain.clone()));
        }
    }

    #[test]
    fn a_row_of_a_batch_draws_with_an_assistant_as_alone(prompts in prompts(), sequences in 1usize..3) {
        let mut settings = settings(true, sequences, false);
        settings.stop_strings.clear();
        let assisted = |prompts: Vec<Vec<TokenId>>, first: usize| {
            let mut assistant = Assistant::new(Arc::new(blurred()), AssistedSettings::default());
            let request = Request::new(prompts, settings.clone()).seed(5).first_row(first);
            generate(&ScriptedModel::hashed(VOCAB), request.assist(Assist::new(&mut assistant))).unwrap().prompts
        };
        for (index, together) in assisted(prompts.clone(), 0).into_iter().enumerate() {
            let alone = assisted(vec![prompts[index].clone()], index);
            prop_assert_eq!(&together, &alone[0]);
        }
    }
}

/// Like the model, but less sure.
fn blurred() -> ScriptedModel {
    let sharp = ScriptedModel::hashed(VOCAB);
    ScriptedModel::from_fn(VOCAB, move |ids| sharp.scores(ids).into_iter().map(|score| score * 0.7).collect())
}

fn other() -> ScriptedModel {
    ScriptedModel::table(&ASSISTANT)
}

/// New tokens, the model's runs, and the number of drafted tokens afterwards.
fn with_assistant(
    small: ScriptedModel,
    how: AssistedSettings,
    settings: Settings,
) -> (Vec<TokenId>, Vec<Vec<TokenId>>, usize) {
    let model = ScriptedModel::table(&MAIN);
    let mut assistant = Assistant::new(Arc::new(small), how);
    let request = Request::new(vec![vec![1]], settings).assist(Assist::new(&mut assistant).always(true));
    let output = generate(&model, request).unwrap();
    let runs: Vec<_> = model.log().steps().into_iter().map(|rows| rows[0].clone()).collect();
    assert_eq!(output.drafts().unwrap().target_runs, runs.len());
    (output.prompts[0].sequences[0].ids.clone(), runs, assistant.num_assistant_tokens())
}

fn how(tokens: usize, schedule: Schedule, threshold: f64) -> AssistedSettings {
    AssistedSettings {
        num_assistant_tokens: tokens,
        num_assistant_tokens_schedule: schedule,
        assistant_confidence_threshold: threshold,
        ..AssistedSettings::default()
    }
}

#[test]
fn the_model_runs_what_it_runs_in_python() {
    let six = || Settings { max_length: MaxLength::New(6), ..Settings::default() };
    let expected = vec![2, 3, 0, 3, 0, 3];
    let (ids, runs, tokens) = with_assistant(other(), how(3, Schedule::Constant, 0.0), six());
    assert_eq!((ids, runs, tokens), (expected.clone(), vec![vec![1, 2, 0, 3], vec![3, 0, 3, 0]], 3));
    let heuristic = vec![vec![1, 2, 0, 3], vec![3, 0, 3], vec![0]];
    let (ids, runs, tokens) = with_assistant(other(), how(3, Schedule::Heuristic, 0.0), six());
    assert_eq!((ids, runs, tokens), (expected.clone(), heuristic.clone(), 6));
    let (_, runs, tokens) = with_assistant(other(), how(3, Schedule::HeuristicTransient, 0.0), six());
    assert_eq!((runs, tokens), (heuristic, 3), "a transient schedule begins anew");
    let (ids, runs, _) = with_assistant(other(), how(3, Schedule::Constant, 0.65), six());
    assert_eq!((ids, runs), (expected, vec![vec![1, 2, 0, 3], vec![3, 0], vec![3, 0]]));
    let (ids, runs, _) =
        with_assistant(other(), how(3, Schedule::Constant, 0.0), Settings { eos_token_id: vec![3], ..six() });
    assert_eq!((ids, runs), (vec![2, 3], vec![vec![1, 2, 0, 3]]));
    let itself = ScriptedModel::table(&MAIN);
    let (ids, runs, _) =
        with_assistant(itself, how(2, Schedule::Constant, 0.0), Settings { eos_token_id: vec![3], ..six() });
    assert_eq!((ids, runs), (vec![2, 3], vec![vec![1, 2, 3]]));
}

#[test]
fn prompt_lookup_stays_within_the_length() {
    let cycle = ScriptedModel::table(&unspool_testing::tables::C);
    let mut settings = Settings { max_length: MaxLength::New(2), eos_token_id: vec![9], ..Settings::default() };
    settings.assisted.prompt_lookup_num_tokens = Some(3);
    let output = generate(&cycle, Request::new(vec![vec![0, 1, 2, 3, 0, 1]], settings)).unwrap();
    assert_eq!(ids(&output), [[2, 3]]);
    assert_eq!(cycle.log().steps(), [[vec![0, 1, 2, 3, 0]], [vec![1, 2]]]);
    assert_eq!(output.timing.prompt_tokens, 6);
    let counts = output.drafts().unwrap();
    assert_eq!((counts.drafted, counts.accepted, counts.target_runs), (1, 1, 1));
}

#[test]
fn the_first_layers_draft_for_the_whole() {
    let plain =
        ids(&generate(&ScriptedModel::table(&MAIN), asked(&[vec![1], vec![2, 0]], &Settings::default())).unwrap());
    let small = other();
    let model = ScriptedModel::table(&MAIN).with_early_exit(2, small.clone());
    let mut settings = Settings { assisted: how(3, Schedule::Constant, 0.0), ..Settings::default() };
    settings.assisted.assistant_early_exit = Some(2);
    let always = Assist { always: true, ..Assist::default() };
    let output = generate(&model, asked(&[vec![1], vec![2, 0]], &settings).assist(always)).unwrap();
    assert_eq!(ids(&output), plain);
    assert!(output.drafts().unwrap().drafted > 0 && !small.log().steps().is_empty());

    // Who drafts is said once, a model without that exit is refused, and loops that take no drafts do not ask for it.
    let mut known = known(vec![vec![1]], 0.0, 1);
    let error = generate(&model, asked(&[vec![1]], &settings).assist(Assist::new(&mut known))).unwrap_err();
    assert!(error.message().starts_with("assistant_early_exit is set and there is an assistant too"), "{error}");
    for missing in [ScriptedModel::table(&MAIN), ScriptedModel::table(&MAIN).with_early_exit(1, small)] {
        assert_eq!(generate(&missing, asked(&[vec![1]], &settings)).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(missing.log().steps().is_empty(), "refused before anything runs");
    }
}

#[test]
fn a_long_copy_takes_few_runs() {
    let cycle = ScriptedModel::table(&unspool_testing::tables::C);
    let mut settings = Settings { max_length: MaxLength::New(100), ..Settings::default() };
    settings.assisted.prompt_lookup_num_tokens = Some(20);
    let prompt: Vec<TokenId> = (0..40).map(|id| id % 4).collect();
    let assist = Assist { always: true, ..Assist::default() };
    let output = generate(&cycle, Request::new(vec![prompt], settings).assist(assist)).unwrap();
    let counts = output.drafts().unwrap();
    assert!(counts.target_runs <= 6 && counts.accepted == counts.drafted, "{counts:?}");
}

#[test]
fn refused_tokens_are_taken_back_from_both_caches() {
    let model = ScriptedModel::table(&MAIN);
    let small = other();
    let mut assistant = Assistant::new(Arc::new(small.clone()), how(3, Schedule::Constant, 0.0));
    let settings = Settings { max_length: MaxLength::New(6), ..Settings::default() };
    let request = Request::new(vec![vec![1]], settings).assist(Assist::new(&mut assistant).always(true));
    generate(&model, request).unwrap();
    let crops = |log: &unspool_testing::CallLog| -> Vec<usize> {
        let len = |call| if let Call::Crop { len, .. } = call { Some(len) } else { None };
        log.calls().into_iter().filter_map(len).collect()
    };
    // After the first round the row is [1, 2, 3], of which the last token has not been run.
    assert_eq!(crops(model.log())[0], 2);
    assert!(crops(small.log()).contains(&2), "{:?}", small.log().calls());
}

#[test]
fn siblings_share_the_assistants_run_of_the_prompt() {
    let small = blurred();
    let mut assistant = Assistant::new(Arc::new(small.clone()), AssistedSettings::default());
    let settings = Settings { do_sample: true, num_return_sequences: 3, ..Settings::default() };
    let prompt = vec![1, 2, 3, 4, 5, 6, 7, 8];
    let request = Request::new(vec![prompt.clone()], settings).assist(Assist::new(&mut assistant));
    generate(&ScriptedModel::hashed(VOCAB), request).unwrap();
    let of_prompt = small.log().steps().iter().flatten().filter(|tokens| tokens.len() > 4).count();
    assert_eq!(of_prompt, 1, "{:?}", small.log().steps());
}

#[test]
fn the_next_turn_goes_on_with_both_caches() {
    let (model, small) = (ScriptedModel::hashed(VOCAB), ScriptedModel::hashed(VOCAB));
    let mut assistant = Assistant::new(Arc::new(small.clone()), how(3, Schedule::Constant, 0.0));
    let (mut kept, mut plainly): (Option<KeptSession>, Option<KeptSession>) = (None, None);
    let mut talk: Vec<TokenId> = vec![1, 2, 3];
    for turn in 0..5 {
        let (prompts, settings) = ([talk.clone()], Settings { max_length: MaxLength::New(7), ..Settings::default() });
        let plain = ids(&generate_kept(&model, &mut plainly, asked(&prompts, &settings)).unwrap());
        model.log().take();
        small.log().take();
        let assist = Assist::new(&mut assistant).always(true);
        let assisted = ids(&generate_kept(&model, &mut kept, asked(&prompts, &settings).assist(assist)).unwrap());
        assert_eq!(assisted, plain);
        assert_eq!(kept.as_ref().unwrap().tokens(), plainly.as_ref().unwrap().tokens());
        let opens = |log: &unspool_testing::CallLog| {
            log.calls().iter().filter(|call| matches!(call, Call::Open { .. })).count()
        };
        assert_eq!((opens(model.log()), opens(small.log())), if turn == 0 { (1, 1) } else { (0, 0) });
        talk.extend(&assisted[0]);
        talk.extend([turn, 4]);
    }
}

#[test]
fn a_draft_that_breaks_its_promise_is_named() {
    struct Broken(Drafted, bool);
    impl Draft for Broken {
        fn draft(&mut self, _ask: &Ask<'_>) -> unspool_core::Result<Drafted> {
            Ok(self.0.clone())
        }
        fn gives_probabilities(&self) -> bool {
            self.1
        }
    }
    for (drafted, gives, told) in [
        (Drafted::tokens(vec![1, 99]), false, "token 99"),
        (Drafted { tokens: vec![1], probabilities: vec![0.5; 3] }, true, "3 probabilities"),
        (Drafted { tokens: vec![1], probabilities: vec![0.5; VOCAB] }, false, "said that it gives none"),
    ] {
        let mut broken = Broken(drafted, gives);
        let request = Request::new(vec![vec![1, 2]], Settings::default()).assist(Assist::new(&mut broken));
        let error = generate(&ScriptedModel::hashed(VOCAB), request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Callback);
        assert!(error.message().contains(told), "{error}");
        assert_eq!(error.place(), Some("row 0"));
    }
    struct Failing;
    impl Draft for Failing {
        fn draft(&mut self, _ask: &Ask<'_>) -> unspool_core::Result<Drafted> {
            Err(Error::callback("no more"))
        }
    }
    let mut failing = Failing;
    let request = Request::new(vec![vec![1, 2]], Settings::default()).assist(Assist::new(&mut failing));
    assert_eq!(generate(&ScriptedModel::hashed(VOCAB), request).unwrap_err().message(), "no more");
}

#[test]
fn what_cannot_be_assisted_is_refused_by_name() {
    let mut known = known(vec![vec![1]], 0.0, 1);
    let request = Request::new(vec![vec![1]], Settings::default()).assist(Assist::new(&mut known));
    let error = generate(&ScriptedModel::hashed(VOCAB).without_crop(), request).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let mut settings = Settings::default();
    settings.assisted.prompt_lookup_num_tokens = Some(3);
    let request = Request::new(vec![vec![1]], settings.clone()).assist(Assist::new(&mut known));
    let error = generate(&ScriptedModel::hashed(VOCAB), request).unwrap_err();
    assert!(error.message().contains("prompt_lookup_num_tokens"), "{error}");
    let small = Arc::new(ScriptedModel::hashed(VOCAB).without_crop());
    let mut assistant = Assistant::new(small, AssistedSettings::default());
    let request = Request::new(vec![vec![1]], Settings::default()).assist(Assist::new(&mut assistant));
    let error = generate(&ScriptedModel::hashed(VOCAB), request).unwrap_err();
    assert!(error.message().contains("assistant's cache"), "{error}");
}

#[test]
fn an_assistant_out_of_positions_or_words_leaves_the_model_to_itself() {
    let settings = Settings { max_length: MaxLength::New(12), ..Settings::default() };
    let prompts = [vec![1, 2, 3]];
    let plain = ids(&generate(&ScriptedModel::hashed(VOCAB), asked(&prompts, &settings)).unwrap());
    for small in [ScriptedModel::hashed(VOCAB).with_max_positions(8), ScriptedModel::hashed(3)] {
        let mut assistant = Assistant::new(Arc::new(small), how(4, Schedule::Constant, 0.0));
        let assist = Assist::new(&mut assistant).always(true);
        assert_eq!(
            ids(&generate(&ScriptedModel::hashed(VOCAB), asked(&prompts, &settings).assist(assist)).unwrap()),
            plain
        );
    }
}

#[test]
fn a_draft_is_told_what_became_of_its_tokens() {
    #[derive(Default)]
    struct Told(Vec<String>);
    impl Draft for Told {
        fn begin(&mut self, start: &Start<'_>) -> unspool_core::Result<()> {
            self.0.push(format!("begin {}", start.rows.len()));
            Ok(())
        }
        fn draft(&mut self, ask: &Ask<'_>) -> unspool_core::Result<Drafted> {
            let next = ask.row.ids.last().map_or(0, |last| (last + 1) % 4);
            Ok(Drafted::tokens(vec![next, 3][..2.min(ask.most)].to_vec()))
        }
        fn verified(&mut self, index: usize, drafted: usize, written: usize) {
            self.0.push(format!("{index}: {written} of {drafted}"));
        }
        fn ended(&mut self, index: usize) {
            self.0.push(format!("end {index}"));
        }
    }
    let mut told = Told::default();
    let settings = Settings { max_length: MaxLength::New(5), ..Settings::default() };
    let request = Request::new(vec![vec![0]], settings).assist(Assist::new(&mut told).always(true));
    let output = generate(&ScriptedModel::table(&unspool_testing::tables::C), request).unwrap();
    assert_eq!(ids(&output), [[1, 2, 3, 0, 1]]);
    assert_eq!(told.0, ["begin 1", "0: 2 of 2", "0: 2 of 2", "0: 1 of 0", "end 0"]);
}

#[test]
fn an_ensemble_takes_the_best_of_both() {
    let mut settings = Settings { max_length: MaxLength::New(4), ..Settings::default() };
    // After 2 the model writes 3 (0.7 against 0.1) and the assistant 0 (0.7 against 0.1).
    for (weight, second) in [(0.6, 3), (0.4, 0)] {
        settings.assisted.assistant_ensemble_weight = Some(weight);
        let (ids, ..) = with_assistant(other(), how(3, Schedule::Constant, 0.0), settings.clone());
        assert_eq!(ids[..2], [2, second], "{weight}");
    }
}
