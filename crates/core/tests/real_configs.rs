//! Files published with well-known models: nothing in them is lost, and what they ask for resolves or is refused by name.
//!
//! The files follow what the models publish; tables of languages keep three entries.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use unspool_core::config::{
    Field, GenerationConfig, Layers, MaxLength, ModelFacts, Resolved, Source, from_folder_json,
};
use unspool_core::{Result, Settings, build};

/// Keys that are no generation settings. A setting that the table of fields lacks would hide among the extra keys.
const EXTRA: [&str; 11] = [
    "_from_model_config",
    "alignment_heads",
    "forced_decoder_ids",
    "is_multilingual",
    "lang_to_id",
    "max_initial_timestamp_index",
    "no_timestamps_token_id",
    "prev_sot_token_id",
    "return_timestamps",
    "task_to_id",
    "transformers_version",
];

/// Without a `generation_config.json`; its settings are in the `text_config` of this `config.json`.
const ONLY_CONFIG: &str = "blip-image-captioning-base.config";

/// Name of the file, entries of the model's vocabulary, beams the file asks for, and what must come out.
type Case = (&'static str, usize, i64, fn(&Settings));

#[rustfmt::skip]
const CASES: [Case; 25] = [
    ("llama-2-7b-chat", 32_000, 1, |got| {
        sampled(got, &[2], Some(0.6), None, Some(0.9));
        assert_eq!((got.max_length, got.pad_token_id), (MaxLength::Total(4096), Some(0)));
    }),
    ("llama-3.1-8b-instruct", 128_256, 1, |got| {
        sampled(got, &[128_001, 128_008, 128_009], Some(0.6), None, Some(0.9));
        assert_eq!((got.bos_token_id, got.pad_token_id), (Some(128_000), Some(128_001)));
    }),
    ("llama-3.2-1b", 128_256, 1, |got| sampled(got, &[128_001], Some(0.6), None, Some(0.9))),
    ("qwen2.5-1.5b-instruct", 151_936, 1, |got| {
        sampled(got, &[151_645, 151_643], Some(0.7), Some(20), Some(0.8));
        assert_eq!((got.repetition_penalty, got.pad_token_id), (Some(1.1), Some(151_643)));
    }),
    ("qwen2.5-7b-instruct", 152_064, 1, |got| {
        sampled(got, &[151_645, 151_643], Some(0.7), Some(20), Some(0.8));
        assert_eq!(got.repetition_penalty, Some(1.05));
    }),
    ("qwen3-8b", 151_936, 1, |got| {
        sampled(got, &[151_645, 151_643], Some(0.6), Some(20), Some(0.95));
        assert_eq!(got.repetition_penalty, None);
    }),
    ("qwen2-vl-7b-instruct", 152_064, 1, |got| {
        sampled(got, &[151_645, 151_643], Some(0.01), Some(1), Some(0.001));
    }),
    ("deepseek-r1-distill-qwen-7b", 152_064, 1, |got| {
        sampled(got, &[151_643], Some(0.6), None, Some(0.95));
        assert_eq!((got.bos_token_id, got.pad_token_id), (Some(151_646), Some(151_643)));
    }),
    ("gemma-3-4b-it", 262_208, 1, |got| {
        sampled(got, &[1, 106], None, Some(64), Some(0.95));
        assert_eq!((got.bos_token_id, got.pad_token_id), (Some(2), Some(0)));
    }),
    ("phi-3-mini-4k-instruct", 32_064, 1, |got| {
        greedy(got, &[32_000, 32_001, 32_007]);
        assert_eq!(got.pad_token_id, Some(32_000));
    }),
    ("phi-4", 100_352, 1, |got| {
        greedy(got, &[100_257, 100_265]);
        assert_eq!((got.bos_token_id, got.pad_token_id), (Some(100_257), Some(100_349)));
    }),
    ("mistral-7b-instruct-v0.2", 32_000, 1, |got| greedy(got, &[2])),
    ("mistral-7b-instruct-v0.3", 32_768, 1, |got| {
        greedy(got, &[2]);
        assert_eq!((got.bos_token_id, got.pad_token_id), (Some(1), Some(2)));
    }),
    ("smollm2-1.7b-instruct", 49_152, 1, |got| greedy(got, &[2])),
    ("smollm3-3b", 128_256, 1, |got| {
        sampled(got, &[128_012], Some(0.6), None, Some(0.95));
        assert_eq!(got.pad_token_id, Some(128_004));
    }),
    ("smolvlm-instruct", 49_155, 1, |got| greedy(got, &[49_154])),
    ("gpt2", 50_257, 1, |got| {
        greedy(got, &[50_256]);
        assert_eq!((got.max_length, got.pad_token_id), (MaxLength::Default, Some(50_256)));
    }),
    ("whisper-tiny", 51_865, 1, |got| whisper(got, 50_257, 88, 50_362)),
    ("whisper-tiny.en", 51_864, 1, |got| whisper(got, 50_256, 90, 50_361)),
    ("whisper-large-v3", 51_866, 1, |got| whisper(got, 50_257, 88, 50_363)),
    ("opus-mt-en-de", 58_101, 6, |got| {
        greedy(got, &[0]);
        assert_eq!((got.max_length, got.pad_token_id), (MaxLength::Total(512), Some(58_100)));
        assert_eq!((&got.rules.bad_words_ids, &got.rules.forced_eos_token_id), (&vec![vec![58_100]], &vec![0]));
        assert!(got.rules.renormalize_logits);
    }),
    ("t5-small", 32_128, 1, |got| {
        greedy(got, &[1]);
        assert_eq!((got.bos_token_id, got.pad_token_id), (None, Some(0)));
    }),
    ("bart-large-cnn", 50_264, 4, |got| {
        greedy(got, &[2]);
        assert_eq!((got.max_length, got.rules.min_length), (MaxLength::Total(142), 56));
        assert_eq!((got.rules.forced_bos_token_id, &got.rules.forced_eos_token_id), (Some(0), &vec![2]));
        assert_eq!(got.rules.no_repeat_ngram_size, 3);
    }),
    ("m2m100_418m", 128_112, 5, |got| {
        greedy(got, &[2]);
        assert_eq!((got.max_length, got.pad_token_id), (MaxLength::Total(200), Some(1)));
    }),
    ("trocr-base-printed", 50_265, 1, |got| greedy(got, &[2])),
];

/// Without a `top_k` in the file the default of 50 is in force.
fn sampled(got: &Settings, eos: &[u32], temperature: Option<f64>, top_k: Option<usize>, top_p: Option<f64>) {
    assert!(got.do_sample);
    assert_eq!(got.eos_token_id, eos);
    assert_eq!((got.temperature, got.top_k, got.top_p), (temperature, top_k.or(Some(50)), top_p));
}

fn greedy(got: &Settings, eos: &[u32]) {
    assert_eq!((got.do_sample, got.eos_token_id.as_slice()), (false, eos));
}

fn whisper(got: &Settings, eos: u32, suppressed: usize, last: u32) {
    greedy(got, &[eos]);
    assert_eq!((got.max_length, got.pad_token_id), (MaxLength::Total(448), Some(eos)));
    assert_eq!((got.rules.suppress_tokens.len(), got.rules.suppress_tokens.last()), (suppressed, Some(&last)));
    assert_eq!(got.rules.begin_suppress_tokens, [220, eos]);
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/real_configs")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn layers(name: &str) -> Layers {
    Layers::new(from_folder_json(Some(&text(name)), None).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn merged(layers: &Layers, call: &Value) -> Resolved {
    layers.with_call(GenerationConfig::from_json(call).unwrap())
}

fn resolve(fields: &Resolved, vocab: usize) -> Result<(Settings, Vec<String>)> {
    Settings::resolve(fields, &ModelFacts { vocab_size: vocab, max_positions: Some(8192) })
}

/// The settings of a call, whose rules can be built too.
fn built(name: &str, layers: &Layers, vocab: usize, call: &Value) -> Settings {
    let (settings, warnings) =
        resolve(&merged(layers, call), vocab).unwrap_or_else(|error| panic!("{name} {call}: {error}"));
    assert!(!settings.eos_token_id.is_empty(), "{name} {call}");
    assert!(!warnings.iter().any(|warning| warning.contains("outside the vocabulary")), "{name} {call}: {warnings:?}");
    let rules = build::processors(&settings, vocab, None, Vec::new());
    assert!(rules.is_ok_and(|(_, warnings)| warnings.is_empty()), "{name} {call}");
    settings
}

#[test]
fn every_file_has_a_case() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let found: BTreeSet<String> = files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let listed = CASES.iter().map(|case| case.0).chain([ONLY_CONFIG]).map(str::to_owned).collect();
    assert_eq!(found, listed);
}

#[test]
fn no_key_is_lost() {
    for (name, ..) in CASES {
        let json: Map<String, Value> = serde_json::from_str(&text(name)).unwrap();
        let config = GenerationConfig::from_json_str(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(config.to_json(), Value::Object(json.clone()), "{name}");
        let fields = layers(name).with_call(GenerationConfig::new());
        for (key, value) in &json {
            if Field::named(key).is_some() {
                assert_eq!(
                    (fields.value(key), fields.source(key)),
                    (Some(value), Some(Source::ModelFile)),
                    "{name} {key}"
                );
            } else {
                assert!(EXTRA.contains(&key.as_str()), "{name}: {key} is neither a field nor known as something else");
                assert_eq!(fields.extra().get(key), Some(value), "{name} {key}");
            }
        }
    }
}

#[test]
fn settings_resolve_with_the_beams_of_the_file() {
    for (name, vocab, beams, check) in CASES {
        let layers = layers(name);
        let mut base = json!({});
        if beams > 1 {
            let (settings, _) = resolve(&merged(&layers, &base), vocab).unwrap();
            assert_eq!(settings.beams.num_beams as i64, beams, "{name}");
            base["num_beams"] = json!(1);
        }
        // A failed comparison tells values only; the last name printed is the one it belongs to.
        println!("{name}");
        check(&built(name, &layers, vocab, &base));
        for sample in [false, true] {
            let mut call = base.clone();
            call["do_sample"] = json!(sample);
            call["max_new_tokens"] = json!(64);
            let got = built(name, &layers, vocab, &call);
            assert_eq!((got.do_sample, got.max_length), (sample, MaxLength::New(64)), "{name}");
        }
    }
}

#[test]
fn a_model_without_the_file_is_read_from_its_config() {
    let name = ONLY_CONFIG;
    let text = text(name);
    let json: Value = serde_json::from_str(&text).unwrap();
    let config = from_folder_json(None, Some(&text)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(config.extra().is_empty(), "the rest of a config.json is about the model");
    for (key, value) in json["text_config"].as_object().unwrap() {
        let expected = Some(value).filter(|value| Field::named(key).is_some() && !value.is_null());
        assert_eq!(config.value(key), expected, "{key}");
    }
    let got = built(name, &Layers::new(config), 30_524, &json!({}));
    greedy(&got, &[2]);
    assert_eq!((got.bos_token_id, got.pad_token_id), (Some(30_522), Some(0)));
}
