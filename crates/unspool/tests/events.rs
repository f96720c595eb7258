//! Events of a generation on another thread: an iterator and a stream.

use std::path::Path;
use std::pin::pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures_core::Stream;
use unspool::{
    Answers, Call, ErrorKind, FinishReason, GenerationConfig, Model, Pipeline, TextEvent, TextStream, TokenId,
    Tokenizer,
};
use unspool_testing::ScriptedModel;

const VOCAB: usize = 300;
/// The only special token of the tokenizer below.
const SPECIAL: TokenId = 299;

fn pipeline(model: &Arc<ScriptedModel>) -> Pipeline {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/gpt2");
    let model: Arc<dyn Model> = model.clone();
    Pipeline::from_parts(model, Some(Tokenizer::from_folder(&folder).unwrap()), GenerationConfig::default())
}

fn hashed() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::hashed(VOCAB))
}

/// A model that writes a token when it is told which.
fn told(tokens: Receiver<TokenId>) -> Arc<ScriptedModel> {
    let tokens = Mutex::new(tokens);
    Arc::new(ScriptedModel::from_fn(VOCAB, move |_| {
        let token = tokens.lock().unwrap().recv().unwrap_or(0);
        (0..VOCAB as TokenId).map(|id| if id == token { 1.0 } else { 0.0 }).collect()
    }))
}

fn short() -> Call {
    Call::new().set("max_new_tokens", 6).unwrap()
}

/// The texts of all rows put together and their ends, `[prompt][sequence]`.
fn gathered(events: Vec<TextEvent>) -> (Vec<Vec<String>>, usize) {
    let (mut texts, mut ends) = (vec![vec![String::new(); 2]; 2], 0);
    let mut ended = [[false; 2]; 2];
    for event in events {
        match event {
            TextEvent::Text { prompt, sequence, text } => {
                assert!(!text.is_empty() && !ended[prompt][sequence]);
                texts[prompt][sequence].push_str(&text);
            }
            TextEvent::End { prompt, sequence, reason } => {
                assert_eq!(reason, FinishReason::Length);
                assert!(!std::mem::replace(&mut ended[prompt][sequence], true));
                ends += 1;
            }
        }
    }
    (texts, ends)
}

fn texts(answers: &Answers) -> Vec<Vec<String>> {
    answers.answers.iter().map(|answer| answer.texts.clone()).collect()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What a runtime does: polls, and sleeps until it is woken.
fn collect(stream: &mut TextStream) -> Vec<unspool::Result<TextEvent>> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut stream = pin!(stream);
    let mut events = Vec::new();
    loop {
        match stream.as_mut().poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(Some(event)) => events.push(event),
            Poll::Ready(None) => return events,
            Poll::Pending => thread::park(),
        }
    }
}

/// Waits until only the test and the pipeline hold the model: the writing thread is gone.
fn wait_for_the_end(model: &Arc<ScriptedModel>) {
    let started = Instant::now();
    while Arc::strong_count(model) > 2 {
        assert!(started.elapsed() < Duration::from_secs(60), "the generation goes on without a reader");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_iterator_has_the_texts_of_all_rows_and_the_answers() {
    let call = short().set("do_sample", true).unwrap().set("num_return_sequences", 2).unwrap().seed(3);
    let prompts = ["the river", "she read the old letter"];
    let mut events = pipeline(&hashed()).text_events(prompts, &call).unwrap();
    let (told, ends) = gathered(events.by_ref().map(Result::unwrap).collect());
    assert!(events.next().is_none(), "it stays at its end");
    let answers = events.answers().unwrap();
    assert_eq!((told, ends), (texts(&answers), 4));
    assert_eq!(texts(&pipeline(&hashed()).generate(prompts, &call).unwrap()), texts(&answers));
}

#[test]
fn a_stream_has_the_same_and_wakes_its_task() {
    let call = short().set("do_sample", true).unwrap().set("num_return_sequences", 2).unwrap().seed(3);
    let mut stream = pipeline(&hashed()).text_stream(["the river", "she read the old letter"], &call).unwrap();
    let (told, ends) = gathered(collect(&mut stream).into_iter().map(Result::unwrap).collect());
    assert_eq!((told, ends), (texts(stream.answers().unwrap()), 4));
    assert!(collect(&mut stream).is_empty(), "it stays at its end");
}

#[test]
fn an_error_is_the_last_event() {
    let failing = Arc::new(ScriptedModel::hashed(VOCAB).failing_at(3));
    let mut events = pipeline(&failing).text_events("the river", &short()).unwrap();
    let all: Vec<_> = events.by_ref().collect();
    assert_eq!(all.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::Engine);
    assert!(all[..all.len() - 1].iter().all(Result::is_ok) && events.next().is_none());
    assert!(events.answers().is_err());

    let failing = Arc::new(ScriptedModel::hashed(VOCAB).failing_at(3));
    let mut stream = pipeline(&failing).text_stream("the river", &short()).unwrap();
    assert!(collect(&mut stream).last().unwrap().is_err() && stream.answers().is_none());
    assert!(pipeline(&failing).text_events("the river", &Call::new().set("num_beams", 0).unwrap()).is_err());
}

#[test]
fn a_panic_of_the_model_is_an_error_too() {
    let broken = Arc::new(ScriptedModel::from_fn(VOCAB, |_| Vec::new()));
    let all: Vec<_> = pipeline(&broken).text_events("the river", &short()).unwrap().collect();
    assert!(all.len() == 1 && all[0].is_err());
}

#[test]
fn a_slow_reader_holds_nothing_up() {
    let model = hashed();
    let pipeline = pipeline(&model);
    let events = pipeline.text_events(["the river", "she"], &short()).unwrap();
    wait_for_the_end(&model);
    assert_eq!(gathered(events.map(Result::unwrap).collect()).1, 2);
}

#[test]
fn a_reader_who_left_ends_the_generation_even_when_nothing_is_shown() {
    let call = Call::new().set("max_new_tokens", 1_000_000_000).unwrap();
    let silent = ScriptedModel::from_fn(VOCAB, |_| (0..VOCAB as TokenId).map(|id| f32::from(id == SPECIAL)).collect());
    for model in [hashed(), Arc::new(silent)] {
        let pipeline = pipeline(&model);
        drop(pipeline.text_events(["the river", "she"], &call).unwrap());
        wait_for_the_end(&model);
        drop(pipeline.text_stream(["the river", "she"], &call).unwrap());
        wait_for_the_end(&model);
    }
}

#[test]
fn waiting_has_a_limit() {
    let (tell, tokens) = channel();
    let mut events = pipeline(&told(tokens)).text_events("a", &short()).unwrap();
    assert!(events.next_timeout(Duration::from_millis(5)).is_err());
    tell.send(84).unwrap();
    let first = events.next_timeout(Duration::from_secs(60)).unwrap().unwrap().unwrap();
    assert_eq!(first, TextEvent::Text { prompt: 0, sequence: 0, text: "u".to_owned() });
    drop(tell);
    while let Some(event) = events.next_timeout(Duration::from_secs(60)).unwrap() {
        event.unwrap();
    }
    assert!(events.next_timeout(Duration::from_millis(5)).unwrap().is_none());
}
