//! A sink is told every token of every row in order, and each row's end once.

use unspool_core::config::{AssistedSettings, Beams, MaxLength};
use unspool_core::stop::FinishReason;
use unspool_core::stream::{Flow, StreamEvent, TokenEvent, TokenSink, channel};
use unspool_core::{Request, Settings, TokenId, generate};
use unspool_testing::{ScriptedModel, tables};

fn settings(count: usize) -> Settings {
    Settings { max_length: MaxLength::New(count), eos_token_id: vec![3], ..Settings::default() }
}

/// Writes down what it is told, and stops `stop.0` after `stop.1` tokens.
#[derive(Default)]
struct Diary {
    begun: Vec<(usize, Vec<TokenId>)>,
    told: Vec<(usize, Result<TokenId, FinishReason>)>,
    logprobs: Vec<Option<f32>>,
    stop: Option<(usize, usize)>,
    read: Vec<(usize, usize)>,
}

impl TokenSink for Diary {
    fn begin(&mut self, row: usize, prompt: &[TokenId]) {
        assert!(self.told.is_empty(), "prompts come first");
        self.begun.push((row, prompt.to_vec()));
    }

    fn prefill(&mut self, done: usize, total: usize) {
        assert!(self.told.is_empty(), "prompts run before the first token");
        self.read.push((done, total));
    }

    fn put(&mut self, event: &TokenEvent) -> Flow {
        self.told.push((event.row, Ok(event.token)));
        self.logprobs.push(event.logprob);
        match &mut self.stop {
            Some((row, left)) if *row == event.row => {
                *left -= 1;
                if *left == 0 { Flow::Stop } else { Flow::Continue }
            }
            _ => Flow::Continue,
        }
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        self.told.push((row, Err(reason.clone())));
    }
}

#[test]
fn tokens_come_in_order_and_every_end_once() {
    let model = ScriptedModel::table(&tables::C);
    let mut diary = Diary::default();
    generate(&model, Request::new(vec![vec![1], vec![0]], settings(3)).sink(&mut diary)).unwrap();
    let eos = || Err(FinishReason::Eos);
    let expected = [(0, Ok(2)), (1, Ok(1)), (0, Ok(3)), (0, eos()), (1, Ok(2)), (1, Ok(3)), (1, eos())];
    assert_eq!(diary.told, expected);
    assert!(diary.logprobs.iter().all(Option::is_none));
}

#[test]
fn a_sink_hears_how_far_the_prompts_are() {
    let chunked = Settings { prefill_chunk_size: 4, ..settings(2) };
    let beams = Settings { beams: Beams { num_beams: 2, ..Default::default() }, ..chunked.clone() };
    let lookup = AssistedSettings { prompt_lookup_num_tokens: Some(2), ..Default::default() };
    for settings in [chunked.clone(), beams, Settings { assisted: lookup, ..chunked }] {
        let mut diary = Diary::default();
        let model = ScriptedModel::hashed(9);
        let prompts = vec![vec![1, 2, 3, 4, 5, 6, 7, 8], vec![8, 7]];
        generate(&model, Request::new(prompts, settings.clone()).sink(&mut diary)).unwrap();
        assert_eq!(diary.read, [(0, 10), (6, 10), (10, 10)], "{settings:?}");
    }
}

#[test]
fn rows_are_numbered_by_prompt_and_sequence() {
    let model = ScriptedModel::table(&tables::C);
    let mut diary = Diary::default();
    let settings = Settings { num_return_sequences: 2, ..settings(1) };
    generate(&model, Request::new(vec![vec![0], vec![1]], settings).logprobs(true).sink(&mut diary)).unwrap();
    let tokens: Vec<_> = diary.told.iter().filter(|(_, what)| what.is_ok()).map(|(row, _)| *row).collect();
    assert_eq!(tokens, [0, 1, 2, 3]);
    assert_eq!(diary.begun, [(0, vec![0]), (1, vec![0]), (2, vec![1]), (3, vec![1])]);
    assert!(diary.logprobs.iter().all(|logprob| (logprob.unwrap() - 0.7f32.ln()).abs() < 1e-6));
}

#[test]
fn a_stop_ends_its_row_and_no_other() {
    let model = ScriptedModel::table(&tables::C);
    let mut diary = Diary { stop: Some((0, 2)), ..Diary::default() };
    let settings = Settings { eos_token_id: Vec::new(), ..settings(5) };
    let output = generate(&model, Request::new(vec![vec![0], vec![0]], settings).sink(&mut diary)).unwrap();
    let sequences: Vec<_> = output.prompts.iter().map(|prompt| &prompt.sequences[0]).collect();
    assert_eq!((sequences[0].ids.len(), &sequences[0].finish), (2, &FinishReason::Cancelled));
    assert_eq!((sequences[1].ids.len(), &sequences[1].finish), (5, &FinishReason::Length));
    assert_eq!(model.log().reorders(), [[1]]);
    assert_eq!(diary.told.iter().filter(|(_, what)| what.is_err()).count(), 2);
}

#[test]
fn a_row_that_ends_by_itself_is_not_called_cancelled() {
    let model = ScriptedModel::table(&tables::C);
    let mut diary = Diary { stop: Some((0, 1)), ..Diary::default() };
    let output = generate(&model, Request::new(vec![vec![2]], settings(5)).sink(&mut diary)).unwrap();
    assert_eq!(output.prompts[0].sequences[0].finish, FinishReason::Eos);
}

#[test]
fn a_reader_on_another_thread_gets_every_event() {
    let (mut sink, stream) = channel();
    let writer = std::thread::spawn(move || {
        let model = ScriptedModel::table(&tables::C);
        generate(&model, Request::new(vec![vec![0]], settings(9)).sink(&mut sink)).unwrap()
    });
    let events: Vec<_> = stream.collect();
    let token = |token| StreamEvent::Token(TokenEvent { row: 0, token, logprob: None });
    let end = StreamEvent::End { row: 0, reason: FinishReason::Eos };
    assert_eq!(events, [token(1), token(2), token(3), end]);
    assert_eq!(writer.join().unwrap().prompts[0].sequences[0].ids, [1, 2, 3]);
}

#[test]
fn a_reader_who_left_ends_the_generation() {
    let (mut sink, stream) = channel();
    drop(stream);
    let model = ScriptedModel::table(&tables::C);
    let settings = Settings { eos_token_id: Vec::new(), ..settings(1_000_000) };
    let output = generate(&model, Request::new(vec![vec![0], vec![1]], settings).sink(&mut sink)).unwrap();
    assert!(output.prompts.iter().all(|prompt| prompt.sequences[0].finish == FinishReason::Cancelled));
    assert_eq!(model.log().steps().len(), 1);
}
