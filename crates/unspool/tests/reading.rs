//! Scores and vectors through the face, over a scripted model and a real tokenizer.

use std::path::Path;
use std::sync::Arc;

use unspool::{EmbedOptions, GenerationConfig, Pipeline, Pooling, Prompt, Scorable, ScoreOptions, Tokenizer};
use unspool_core::HiddenShape;
use unspool_testing::ScriptedModel;

fn pipeline(defaults: &str) -> Pipeline {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/gpt2");
    let shape = HiddenShape { last: 1, width: 2, tied: false };
    let model = ScriptedModel::hashed(300).with_hidden(shape, |_, ids| vec![ids.len() as f32, 0.0]);
    let defaults = GenerationConfig::from_json_str(defaults).unwrap();
    Pipeline::from_parts(Arc::new(model), Some(Tokenizer::from_folder(&folder).unwrap()), defaults)
}

fn whole(text: &str) -> Scorable {
    Scorable::Whole(Prompt::Text(text.to_owned()))
}

#[test]
fn a_continuation_is_scored_as_the_end_of_the_whole_text() {
    let pipeline = pipeline("{}");
    let pair = Scorable::Pair { prompt: "the river ".into(), continuation: "runs".into() };
    let scores = pipeline.score(&[whole("the river runs"), pair.clone()], &ScoreOptions::default()).unwrap();
    let parts = pipeline.scorable(&pair, &ScoreOptions::default()).unwrap();
    let end = scores[0].logprobs.len() - parts.continuation.len();
    assert!(end > 0);
    assert_eq!(scores[1].logprobs, scores[0].logprobs[end..]);
}

#[test]
fn the_first_token_is_the_models_bos_or_its_eos() {
    let begun = ScoreOptions { add_bos: true, ..ScoreOptions::default() };
    for (defaults, expected) in [(r#"{"bos_token_id": 5, "eos_token_id": 7}"#, 5), (r#"{"eos_token_id": [7, 8]}"#, 7)] {
        let pipeline = pipeline(defaults);
        assert_eq!(pipeline.scorable(&whole("the river"), &begun).unwrap().context, [expected]);
        let empty = Scorable::Pair { prompt: String::new(), continuation: "the river".into() };
        assert_eq!(pipeline.scorable(&empty, &ScoreOptions::default()).unwrap().context, [expected]);
        let ids = Scorable::PairIds { prompt: vec![expected, 1], continuation: vec![2] };
        assert_eq!(pipeline.scorable(&ids, &begun).unwrap().context, [expected, 1], "it begins so already");
    }
    let error = pipeline("{}").score(&[whole("a river"), whole("")], &begun).unwrap_err().to_string();
    assert!(error.contains("text 0") && error.contains("bos_token_id"), "{error}");
    let error = pipeline("{}").score(&[whole("a river"), whole("")], &ScoreOptions::default()).unwrap_err().to_string();
    assert!(error.contains("text 1"), "{error}");
}

#[test]
fn texts_become_vectors() {
    let pipeline = pipeline("{}");
    let options = EmbedOptions { pooling: Pooling::Last, normalize: false, batch: 2 };
    let tokens = pipeline.encode(&"the river".into()).unwrap().len() as f32;
    let vectors = pipeline.embed(["the river", "a", "the river"], &options).unwrap();
    assert_eq!((vectors.len(), &vectors[0], &vectors[2]), (3, &vec![tokens, 0.0], &vec![tokens, 0.0]));
    let error = pipeline.embed(["a", ""], &options).unwrap_err().to_string();
    assert!(error.contains("text 1"), "{error}");
}
