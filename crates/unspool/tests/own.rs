//! Rules of the caller's own on a call, for every way to use it; and conversations and answers in a program of one's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use unspool::{
    Answers, Call, ChatTemplate, Conversation, FinishReason, GenerationConfig, Pipeline, Row, TextEvent, TokenId,
    Tokenizer, WriterSink,
};
use unspool_testing::ScriptedModel;

const VOCAB: usize = 300;

fn pipeline() -> Pipeline {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/models/gpt2");
    let template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}";
    Pipeline::from_parts(
        Arc::new(ScriptedModel::hashed(VOCAB)),
        Some(Tokenizer::from_folder(folder.as_ref()).unwrap()),
        GenerationConfig::new(),
    )
    .with_chat_template(ChatTemplate::new(template).unwrap())
}

/// Counts the tokens that it sees by itself, and ends the row at the third.
#[derive(Clone, Default)]
struct Third {
    seen: usize,
    all: Arc<AtomicUsize>,
}

impl unspool::stop::Criterion for Third {
    fn check(&mut self, _row: &Row<'_>, _scores: &[f32]) -> unspool::Result<Option<FinishReason>> {
        self.seen += 1;
        self.all.fetch_add(1, Ordering::Relaxed);
        Ok((self.seen == 3).then(|| FinishReason::Custom("third".into())))
    }
}

/// Allows one token.
fn only(id: TokenId) -> impl FnMut(&Row<'_>, &mut [f32]) -> unspool::Result<()> + Clone + Send + Sync + 'static {
    move |_: &Row<'_>, scores: &mut [f32]| {
        scores
            .iter_mut()
            .enumerate()
            .for_each(|(at, score)| *score = if at == id as usize { 0.0 } else { f32::NEG_INFINITY });
        Ok(())
    }
}

#[test]
fn a_call_carries_rules_to_every_way_of_generating() {
    let (pipeline, third) = (pipeline(), Third::default());
    let call = Call::new().processor(only(9)).criterion(third.clone()).max_new_tokens(8);
    let ended = |answers: &Answers| {
        assert_eq!(answers.ids(), [9; 3]);
        assert_eq!(answers[0].sequences().next().unwrap().finish, FinishReason::Custom("third".into()));
    };
    // The same call serves all: every generation has a criterion that has seen nothing.
    ended(&pipeline.generate("the river", &call).unwrap());
    let mut sink = WriterSink::new(Vec::new());
    let answers = pipeline.stream("the river", &call, &mut sink).unwrap();
    ended(&answers);
    assert_eq!(String::from_utf8(sink.into_inner()).unwrap(), format!("{answers}\n"));
    let mut events = pipeline.text_events("the river", &call).unwrap();
    assert!(events.any(|event| matches!(event, Ok(TextEvent::End { reason: FinishReason::Custom(_), .. }))));
    ended(&events.answers().unwrap());
    ended(&pipeline.generate_ids(vec![vec![1]], &call, None).unwrap());
    let mut conversation = pipeline.conversation(call.clone());
    for _ in 0..2 {
        let turn = conversation.say("the river", &mut WriterSink::new(Vec::new())).unwrap();
        assert_eq!(turn.sequence.ids, [9; 3]);
    }
    assert_eq!(third.all.load(Ordering::Relaxed), 6 * 3);
}

#[test]
fn allowed_tokens_hold_for_texts() {
    let call = Call::new().prefix_allowed_tokens_fn(|prompt, _ids| vec![10 + prompt as TokenId]).max_new_tokens(2);
    let answers = pipeline().generate(["a", "b"], &call).unwrap();
    let ids: Vec<&[TokenId]> = answers.iter().map(|answer| answer.ids()).collect();
    assert_eq!(ids, [[10, 10], [11, 11]]);
    assert_eq!((answers.len(), answers.texts().count(), answers.sequences().count()), (2, 2, 2));
}

#[test]
fn answers_have_short_ways() {
    let call = Call::new().max_new_tokens(3).logprobs(true).do_sample(true).num_return_sequences(2).seed(1);
    let answers = pipeline().generate(["the river", "a key"], &call).unwrap();
    assert_eq!((answers.len(), answers.texts().count()), (2, 4));
    assert_eq!(answers.text(), answers[0].text());
    assert_eq!(answers[1].logprobs().len(), answers[1].ids().len());
    assert_eq!(answers.to_string(), answers.texts().collect::<Vec<_>>().join("\n"));
    assert_eq!((&answers).into_iter().count(), answers.into_iter().count());
}

#[test]
fn a_conversation_lives_in_a_struct_and_on_any_thread() {
    struct Talk {
        conversation: Conversation,
    }
    let mut talk = Talk { conversation: pipeline().conversation(Call::new().max_new_tokens(3)) };
    let text =
        std::thread::spawn(move || talk.conversation.say("hello", &mut WriterSink::new(Vec::new())).unwrap().text);
    let expected = pipeline().conversation(Call::new().max_new_tokens(3)).say("hello", &mut unspool::stdout()).unwrap();
    assert_eq!(text.join().unwrap(), expected.text);
}

#[test]
fn a_typed_setting_that_is_no_number_fails_with_its_name() {
    let error = pipeline().generate("a", &Call::new().temperature(f64::NAN).do_sample(true)).unwrap_err();
    assert!(error.message().starts_with("temperature is \"NaN\", expected a number"), "{error}");
    let error = pipeline().generate("a", &Call::new().temperature(-1.0).do_sample(true)).unwrap_err();
    assert!(error.message().contains("temperature"), "{error}");
}

#[test]
fn rows_are_written_one_after_the_other() {
    let mut sink = WriterSink::new(Vec::new());
    let call = Call::new().max_new_tokens(5);
    let answers = pipeline().stream(["the river", "a key", "once"], &call, &mut sink).unwrap();
    // A sink serves the next stream too.
    let again = pipeline().stream("a key", &call, &mut sink).unwrap();
    assert_eq!(String::from_utf8(sink.into_inner()).unwrap(), format!("{answers}\n{again}\n"));
}
