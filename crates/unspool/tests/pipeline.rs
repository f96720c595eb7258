//! The face over a scripted model and a real tokenizer.

use std::path::Path;
use std::sync::Arc;

use unspool::{
    Call, Chat, ChatOptions, ChatTemplate, Context, EngineChoice, ErrorKind, FinishReason, Flow, GenerationConfig,
    Message, OpenOptions, Pipeline, Prompt, Row, Shown, StreamBy, Streaming, TextSink, TextStreamer, TokenId,
    Tokenizer,
};
use unspool_testing::ScriptedModel;

/// The vocabulary of the tokenizer below.
const VOCAB: usize = 300;

fn tokenizer() -> Tokenizer {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/gpt2");
    Tokenizer::from_folder(&folder).unwrap()
}

fn pipeline(model: ScriptedModel) -> Pipeline {
    let template = "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}\
                    {% if add_generation_prompt %}<assistant>{% endif %}";
    let defaults = GenerationConfig::from_json_str(r#"{"max_new_tokens": 6}"#).unwrap();
    Pipeline::from_parts(Arc::new(model), Some(tokenizer()), defaults)
        .with_chat_template(ChatTemplate::new(template).unwrap())
}

fn hashed() -> Pipeline {
    pipeline(ScriptedModel::hashed(VOCAB))
}

#[derive(Default)]
struct Told {
    texts: Vec<String>,
    ends: Vec<(usize, FinishReason)>,
}

impl TextSink for Told {
    fn text(&mut self, row: usize, piece: &str) -> Flow {
        self.texts.resize(self.texts.len().max(row + 1), String::new());
        self.texts[row].push_str(piece);
        Flow::Continue
    }

    fn end(&mut self, row: usize, reason: &FinishReason) {
        self.ends.push((row, reason.clone()));
    }
}

#[test]
fn streams_the_text_that_is_returned() {
    let mut told = Told::default();
    let call = Call::new().set("do_sample", true).unwrap().set("num_return_sequences", 2).unwrap().seed(3);
    let answers = hashed().stream(["the river", "she read the old letter"], &call, &mut told).unwrap();
    let texts: Vec<String> = answers.answers.iter().flat_map(|answer| answer.texts.clone()).collect();
    assert_eq!(texts.len(), 4);
    assert_eq!(told.texts, texts);
    assert_eq!(told.ends.len(), 4);
    assert_eq!(answers.seed, Some(3));
}

#[test]
fn a_prompt_has_the_same_draws_in_one_call_and_in_several() {
    let call = Call::new().set("do_sample", true).unwrap().seed(5);
    let prompts = vec![vec![1, 2], vec![3], vec![4, 5, 6]];
    let whole = hashed().generate(prompts.clone(), &call).unwrap();
    for (index, prompt) in prompts.into_iter().enumerate() {
        let part = Call { first_prompt: index, ..call.clone() };
        let alone = hashed().generate(Prompt::Ids(prompt), &part).unwrap();
        assert_eq!(alone.answers[0].output, whole.answers[index].output);
    }
}

#[test]
fn sampling_without_a_seed_tells_the_seed_it_took() {
    let call = Call::new().set("do_sample", true).unwrap();
    let first = hashed().generate("the river", &call).unwrap();
    let again = hashed().generate("the river", &call.clone().seed(first.seed.unwrap())).unwrap();
    assert_eq!(first.text(), again.text());
    assert_eq!(hashed().generate("the river", &Call::new()).unwrap().seed, None);
}

#[test]
fn a_rule_of_the_callers_own_has_its_effect() {
    let only_seven = |_: &Row<'_>, scores: &mut [f32]| -> unspool::Result<()> {
        scores.iter_mut().enumerate().for_each(|(id, score)| *score = if id == 7 { 0.0 } else { f32::NEG_INFINITY });
        Ok(())
    };
    let answers = hashed().generate_ids(vec![vec![1]], &Call::new().processor(only_seven), None).unwrap();
    assert_eq!(answers.answers[0].output.sequences[0].ids, [7; 6]);
}

#[test]
fn prompts_are_checked_before_anything_runs() {
    let pipeline = hashed();
    let (settings, _) = pipeline.settings(&Call::new()).unwrap();
    assert_eq!(pipeline.check(vec![2], &settings).unwrap(), [2]);
    for bad in [vec![], vec![VOCAB as TokenId]] {
        assert_eq!(pipeline.check(bad, &settings).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let short = self::pipeline(ScriptedModel::hashed(VOCAB).with_max_positions(4));
    assert!(short.check(vec![1; 5], &settings).unwrap_err().to_string().contains("4 positions"));
}

#[test]
fn a_pipeline_without_a_tokenizer_takes_ids_and_refuses_texts() {
    let pipeline = Pipeline::from_parts(Arc::new(ScriptedModel::hashed(VOCAB)), None, GenerationConfig::default());
    let answers = pipeline.generate(Prompt::Ids(vec![1]), &Call::new()).unwrap();
    assert!(answers.answers[0].texts.is_empty());
    assert!(pipeline.generate("text", &Call::new()).is_err());
}

#[test]
fn a_turn_runs_only_what_is_new() {
    let model = ScriptedModel::hashed(VOCAB);
    let log = model.log().clone();
    let pipeline = pipeline(model);
    let mut conversation = pipeline.conversation(Call::new());
    conversation.set_system(Some("be brief"));
    let mut lengths = Vec::new();
    for text in ["the river runs to the sea", "she read the old letter", "where is the key?"] {
        let turn = conversation.say(text, &mut Told::default()).unwrap();
        lengths.push(turn.timing.prompt_tokens);
    }
    // Every token of the conversation ran once, but for the last one of the last answer.
    let run: usize = log.steps().iter().flatten().map(Vec::len).sum();
    assert_eq!(run, lengths.iter().sum::<usize>() + 3 * 5);
    assert_eq!(conversation.messages().len(), 7);
    let whole = pipeline.encode(&conversation.messages().to_vec().into()).unwrap().len();
    assert!(
        lengths[1] < lengths[0] + 6 && lengths[2] < lengths[0] + 6 && whole > 2 * lengths[0],
        "{lengths:?} {whole}"
    );
}

#[test]
fn the_token_that_ended_an_answer_is_no_part_of_its_text() {
    let tokenizer = tokenizer();
    let free = hashed().generate("the river", &Call::new()).unwrap();
    let ids = &free.answers[0].output.sequences[0].ids;
    // An end token that the tokenizer does not call special.
    let at = (2..ids.len()).find(|at| !ids[..*at].contains(&ids[*at]) && !tokenizer.is_special(ids[*at])).unwrap();
    let call = Call::new().set("eos_token_id", ids[at]).unwrap();
    let expected = tokenizer.decode(&ids[..at], true);
    assert!(tokenizer.decode(&ids[..=at], true).len() > expected.len(), "the token has a text");
    for streaming in [Streaming::default(), Streaming { by: StreamBy::Word, ..Streaming::default() }] {
        let mut told = Told::default();
        let answers = hashed().stream("the river", &call.clone().streaming(streaming), &mut told).unwrap();
        assert_eq!(answers.answers[0].output.sequences[0].ids, ids[..=at], "the token is one of the ids");
        assert_eq!(answers.answers[0].output.sequences[0].finish, FinishReason::Eos);
        assert_eq!((answers.text(), &told.texts), (expected.as_str(), &vec![expected.clone()]));
    }
    let all = Streaming { skip_special_tokens: false, ..Streaming::default() };
    let mut told = Told::default();
    hashed().stream("the river", &call.clone().streaming(all), &mut told).unwrap();
    assert_eq!(told.texts, [tokenizer.decode(&ids[..=at], false)], "who asks for special tokens gets them");

    // An end token that did not end the row is text: a criterion of the settings comes first, or the call has no end.
    let call = call.set("eos_token_id", serde_json::Value::Null).unwrap();
    assert_eq!(hashed().generate("the river", &call).unwrap().text(), free.text());

    let pipeline = hashed();
    let mut conversation = pipeline.conversation(Call::new());
    let turn = conversation.say("the river", &mut Told::default()).unwrap();
    conversation.reset();
    conversation.set("eos_token_id", turn.sequence.ids[5].into()).unwrap();
    let again = conversation.say("the river", &mut Told::default()).unwrap();
    let ended = &again.sequence.ids[..again.sequence.ids.len() - 1];
    assert_eq!(again.finish, FinishReason::Eos);
    assert_eq!(again.text, tokenizer.decode(ended, true));
    assert_eq!(conversation.messages()[1].content, again.text.as_str());
}

#[test]
fn a_conversation_gives_tools_and_variables_to_its_template() {
    let template = "{{ tools | length }}{{ enable_thinking }}{% for m in messages %}{{ m.content }}{% endfor %}";
    let pipeline = hashed().with_chat_template(ChatTemplate::new(template).unwrap());
    let mut options = ChatOptions { tools: Some(vec![serde_json::json!({})]), ..ChatOptions::default() };
    options.template_args.insert("enable_thinking".into(), false.into());
    let expected = pipeline.encode(&Prompt::Raw("1Falsehi".into())).unwrap().len();
    let mut chat = Chat::from(vec![Message::user("hi")]);
    chat.options = options.clone();
    assert_eq!(pipeline.encode(&chat.into()).unwrap().len(), expected);
    let mut conversation = pipeline.conversation(Call::new());
    conversation.set_options(options);
    assert_eq!(conversation.say("hi", &mut Told::default()).unwrap().timing.prompt_tokens, expected);
}

#[test]
fn a_text_that_cannot_fit_is_refused_by_its_bytes() {
    let pipeline = pipeline(ScriptedModel::hashed(VOCAB).with_max_positions(20));
    let started = std::time::Instant::now();
    let error = pipeline.encode(&"x".repeat(200 << 20).into()).unwrap_err();
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    assert_eq!(error.kind(), ErrorKind::TooLong);
    assert!(error.to_string().contains("209715200 bytes and the model takes at most 20 positions"), "{error}");
    // Every text that fits is read: the longest tokens one after the other.
    let tokenizer = tokenizer();
    let (longest, text) = tokenizer.tokens().max_by_key(|(_, token)| token.len()).unwrap();
    let text = tokenizer.decode(&[longest; 20], false) + if tokenizer.is_special(longest) { text } else { "" };
    assert!(text.len() <= tokenizer.max_bytes(Some(21)), "{text}");
}

#[test]
fn a_model_without_a_template_takes_a_given_one() {
    let pipeline =
        Pipeline::from_parts(Arc::new(ScriptedModel::hashed(VOCAB)), Some(tokenizer()), GenerationConfig::default());
    let given = |text: &str| ChatOptions { chat_template: Some(text.into()), ..ChatOptions::default() };
    assert_eq!(pipeline.render(&[Message::user("hi")], &given("[{{ messages[0].content }}]")).unwrap(), "[hi]");
    assert!(pipeline.render(&[Message::user("hi")], &given("rag")).is_err());
}

#[test]
fn a_turn_that_fails_leaves_the_conversation_as_it_was() {
    let pipeline = pipeline(ScriptedModel::hashed(VOCAB).with_max_positions(20));
    let mut conversation = pipeline.conversation(Call::new());
    assert!(conversation.say(&"very long ".repeat(100), &mut Told::default()).is_err());
    assert!(conversation.messages().is_empty());
    assert!(conversation.set("use_mtp", true.into()).is_err());
    assert!(conversation.set("temprature", 4.into()).is_err());
    conversation.set("top_k", 4.into()).unwrap();
    assert_eq!(conversation.call().config.int("top_k"), Some(4));
}

#[test]
fn a_full_conversation_is_refused_or_loses_its_oldest_turns() {
    let pipeline = pipeline(ScriptedModel::hashed(VOCAB).with_max_positions(60));
    let mut conversation = pipeline.conversation(Call::new());
    conversation.set_system(Some("be brief"));
    let turns: Vec<_> = (0..5).map_while(|_| conversation.say("the river", &mut Told::default()).ok()).collect();
    let said = turns.len();
    assert!((1..5).contains(&said), "{said}");
    let messages = conversation.messages().to_vec();
    let error = conversation.say("the river", &mut Told::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
    assert_eq!(conversation.messages(), messages, "a refused turn changes nothing");

    conversation.set_context(Context::KeepFirst);
    let turn = conversation.say("the river", &mut Told::default()).unwrap();
    assert!(turn.dropped > 0 && turn.dropped.is_multiple_of(2) && !turn.context_full, "{turn:?}");
    // All messages are there still, and the model read those that remain: what a fresh conversation of them says.
    assert_eq!(conversation.messages().len(), 1 + 2 * said + 2);
    let kept: Vec<_> = messages[..1].iter().chain(&messages[1 + turn.dropped..]).cloned().collect();
    let prompt = Prompt::from(kept.into_iter().chain([unspool::Message::user("the river")]).collect::<Vec<_>>());
    assert_eq!(turn.text, pipeline.generate(prompt, &Call::new()).unwrap().text());
    assert_eq!(conversation.system(), Some("be brief"));
    let error = conversation.say(&"long ".repeat(100), &mut Told::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLong, "{error}");
}

#[test]
fn an_answer_that_fills_the_context_says_so() {
    let pipeline = pipeline(ScriptedModel::hashed(VOCAB).with_max_positions(24));
    let call = Call::new().set("max_new_tokens", 100).unwrap();
    let turn = pipeline.conversation(call).say("the river", &mut Told::default()).unwrap();
    assert!(turn.context_full && turn.finish == FinishReason::Length, "{turn:?}");
}

#[test]
fn texts_have_the_length_of_pipelines_and_ids_that_of_generate() {
    let model = Arc::new(ScriptedModel::hashed(VOCAB));
    let pipeline = Pipeline::from_parts(model.clone(), Some(tokenizer()), GenerationConfig::default());
    let written = |answers: unspool::Answers| answers.answers[0].output.sequences[0].ids.len();
    assert_eq!(written(pipeline.generate("the river", &Call::new()).unwrap()), 256);
    assert_eq!(written(pipeline.stream("the river", &Call::new(), &mut Told::default()).unwrap()), 256);
    assert_eq!(written(pipeline.generate_ids(vec![vec![1]], &Call::new(), None).unwrap()), 20);
    let call = Call::new().for_texts();
    assert_eq!(written(pipeline.stream_ids(vec![vec![1]], &call, &mut Told::default()).unwrap()), 256);

    // The model's file and the call win; a length that counts the prompt too.
    let defaults = GenerationConfig::from_json_str(r#"{"max_length": 30}"#).unwrap();
    let pipeline = Pipeline::from_parts(model, Some(tokenizer()), defaults);
    let answers = pipeline.generate("the river", &Call::new()).unwrap();
    assert_eq!(answers.answers[0].prompt_ids.len() + written(answers), 30);
    let call = Call::new().set("max_new_tokens", 3).unwrap();
    assert_eq!(written(pipeline.generate("the river", &call).unwrap()), 3);
}

/// The pieces that one row is told.
#[derive(Default)]
struct OneRow(Vec<String>);

impl TextSink for OneRow {
    fn text(&mut self, _row: usize, piece: &str) -> Flow {
        self.0.push(piece.to_owned());
        Flow::Continue
    }
}

#[test]
fn a_stream_by_words_has_the_pieces_of_python_and_may_show_prompt_and_special_tokens() {
    let pieces = |streaming| {
        let mut told = OneRow::default();
        let answers = hashed().stream("she said: no", &Call::new().streaming(streaming), &mut told).unwrap();
        (told.0, answers.answers[0].output.sequences[0].ids.clone())
    };
    let (told, ids) = pieces(Streaming::text_streamer());
    let tokenizer = tokenizer();
    let mut streamer = TextStreamer::new(&tokenizer);
    let prompt = tokenizer.encode("she said: no", true).unwrap();
    let mut expected = vec![streamer.put(&prompt).unwrap()];
    expected.extend(ids.iter().map(|&id| streamer.put(&[id]).unwrap()));
    expected.push(streamer.end());
    expected.retain({
        let mut left = expected.len();
        move |piece| {
            left -= 1;
            left > 0 || !piece.is_empty()
        }
    });
    assert_eq!(told, expected);
    assert_eq!(told[0], "she said: ", "up to the last space before the end of a text with a symbol");

    let shown = Streaming { skip_prompt: false, ..Streaming::default() };
    assert_eq!(pieces(shown).0[0], "she said: no");
    let plain = pieces(Streaming::default()).0.concat();
    assert_eq!(pieces(shown).0.concat(), format!("she said: no{plain}"));
    let words = Streaming { by: StreamBy::Word, ..Streaming::default() };
    assert_eq!(pieces(words).0.concat(), plain);
}

/// Writes the tokens of a text, then the special token.
fn writes(text: &str) -> Pipeline {
    let ids = tokenizer().encode(text, false).unwrap();
    let prompt = tokenizer().encode("a", true).unwrap().len();
    pipeline(ScriptedModel::from_fn(VOCAB, move |row| {
        let next = ids.get(row.len() - prompt).copied().unwrap_or(299);
        (0..VOCAB as TokenId).map(|id| f32::from(id == next)).collect()
    }))
}

#[test]
fn a_stop_string_is_held_back_by_token_always_and_by_word_when_it_is_cut() {
    let call = Call::new().set("stop_strings", "stop").unwrap().set("max_new_tokens", 30).unwrap();
    let told = |by, shown| {
        let mut told = OneRow::default();
        let streaming = Streaming { by, ..Streaming::default() };
        let call = Call { shown, ..call.clone() }.streaming(streaming);
        writes("no stop here").stream("a", &call, &mut told).unwrap();
        told.0
    };
    for by in [StreamBy::Token, StreamBy::Word] {
        assert_eq!(told(by, Shown::Keep).concat(), "no stop");
        assert_eq!(told(by, Shown::Cut).concat(), "no ");
    }
    let half = |pieces: &[String]| {
        (1..pieces.len()).map(|end| pieces[..end].concat()).any(|told| told.len() > 3 && told.len() < 7)
    };
    assert!(!half(&told(StreamBy::Token, Shown::Keep)) && half(&told(StreamBy::Word, Shown::Keep)));
}

#[test]
fn token_healing_is_for_prompts_and_not_for_conversations() {
    let healing = Call::new().set("token_healing", true).unwrap();
    let mut conversation = hashed().conversation(healing.clone()).say("hello", &mut Told::default()).unwrap_err();
    assert!(conversation.to_string().contains("token_healing"), "{conversation}");
    conversation = hashed().generate("hello", &healing).unwrap_err();
    assert!(conversation.to_string().contains("pad_token"), "{conversation}");
}

#[test]
fn an_assistant_writes_the_same_and_is_counted() {
    let plain = hashed().generate(["the river", "she read"], &Call::new()).unwrap();
    let assisted = hashed().with_assistant(&hashed()).unwrap();
    let call = Call { always_draft: true, ..Call::new() };
    let answers = assisted.generate(["the river", "she read"], &call).unwrap();
    assert_eq!(answers.text(), plain.text());
    let counts = answers.drafts.unwrap();
    assert!(counts.accepted == counts.drafted && counts.target_runs < 12, "{counts:?}");
    assert_eq!(plain.drafts, None);
    let beams = call.set("num_beams", 2).unwrap();
    assert!(assisted.generate("the river", &beams).is_err());
}

#[test]
fn an_assistants_own_file_says_how_it_drafts_and_a_heuristic_goes_on_from_call_to_call() {
    let json = r#"{"num_assistant_tokens": 1, "num_assistant_tokens_schedule": "heuristic",
        "assistant_confidence_threshold": 0}"#;
    let defaults = GenerationConfig::from_json_str(json).unwrap();
    let small = Pipeline::from_parts(Arc::new(ScriptedModel::hashed(VOCAB)), Some(tokenizer()), defaults);
    let assisted = hashed().with_assistant(&small).unwrap();
    let call = Call { always_draft: true, ..Call::new() };
    let drafted = |call: &Call| assisted.generate(Prompt::Ids(vec![1]), call).unwrap().drafts.unwrap();
    // One, then three; the second call begins with what the first ended with.
    assert_eq!(drafted(&call).target_runs, 2);
    assert_eq!(drafted(&call).target_runs, 1);
    let own = call.set("num_assistant_tokens_schedule", "constant").unwrap();
    assert_eq!(drafted(&own).target_runs, 1);
}

#[test]
fn an_assistant_of_another_vocabulary_needs_tokenizers() {
    let small = Pipeline::from_parts(Arc::new(ScriptedModel::hashed(VOCAB - 1)), None, GenerationConfig::default());
    assert!(hashed().with_assistant(&small).unwrap_err().to_string().contains("tokenizers"));
}

#[test]
fn a_draft_of_the_callers_own_is_asked() {
    #[derive(Clone)]
    struct Sevens;
    impl unspool::Draft for Sevens {
        fn draft(&mut self, ask: &unspool::draft::Ask<'_>) -> unspool::Result<unspool::draft::Drafted> {
            Ok(unspool::draft::Drafted::tokens(vec![7; ask.most.min(2)]))
        }
    }
    let call = Call::new().always_draft(true).draft(Sevens);
    let answers = hashed().generate_ids(vec![vec![1]], &call, None).unwrap();
    let plain = hashed().generate(Prompt::Ids(vec![1]), &Call::new()).unwrap();
    assert_eq!(answers.answers[0].output.sequences[0].ids, plain.answers[0].output.sequences[0].ids);
    assert!(answers.drafts.unwrap().drafted >= 8);
}

#[test]
fn a_conversation_with_an_assistant_says_the_same() {
    let pipeline = hashed();
    let assisted = hashed().with_assistant(&hashed()).unwrap();
    let (mut plainly, mut with_drafts) = (pipeline.conversation(Call::new()), assisted.conversation(Call::new()));
    for text in ["the river runs", "she read the letter", "where is the key?"] {
        let expected = plainly.say(text, &mut Told::default()).unwrap();
        let turn = with_drafts.say(text, &mut Told::default()).unwrap();
        assert_eq!((turn.text, turn.timing.prompt_tokens), (expected.text, expected.timing.prompt_tokens));
        assert!(turn.sequence.drafts.is_some());
    }
}

#[test]
fn an_import_that_is_stopped_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let checkpoint = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/llama/model.safetensors");
    let options = OpenOptions {
        engine: EngineChoice::Rten,
        cache: Some(cache.path().to_owned()),
        interrupted: Some(|| true),
        ..OpenOptions::default()
    };
    let error = Pipeline::open(&checkpoint, &options).unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    assert_eq!(std::fs::read_dir(cache.path().join("imports")).unwrap().count(), 0);
    assert!(Pipeline::open(&checkpoint, &OpenOptions { interrupted: Some(|| false), ..options }).is_ok());
}
