//! Merge, checks, lengths and modes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{Error, ErrorKind};

const FACTS: ModelFacts = ModelFacts { vocab_size: 130_000, max_positions: None };

fn config(json: Value) -> GenerationConfig {
    GenerationConfig::from_json(&json).unwrap()
}

fn merged(model: Value, call: Value) -> Resolved {
    Layers::new(config(model)).with_call(config(call))
}

fn settings(model: Value, call: Value) -> Settings {
    Settings::resolve(&merged(model, call), &FACTS).unwrap().0
}

fn error(model: Value, call: Value) -> Error {
    let model_text = model.to_string();
    let call_text = call.to_string();
    match Settings::resolve(&merged(model, call), &FACTS) {
        Ok(_) => panic!("accepted: model {model_text}, call {call_text}"),
        Err(error) => error,
    }
}

fn warnings(model: Value, call: Value) -> Vec<String> {
    let all = Settings::resolve(&merged(model, call), &FACTS).unwrap().1;
    all.into_iter().filter(|warning| !warning.starts_with("no length")).collect()
}

#[test]
fn the_call_beats_the_model_file_and_the_model_file_the_default() {
    let model = json!({"do_sample": true, "repetition_penalty": 3.0, "top_k": null, "temperature": 0.5});
    let fields = merged(model.clone(), json!({"do_sample": false, "repetition_penalty": 1.0}));
    assert_eq!((fields.bool("do_sample"), fields.source("do_sample")), (Some(false), Some(Source::Call)));
    assert_eq!(fields.float("repetition_penalty"), Some(1.0));
    assert_eq!((fields.float("temperature"), fields.source("temperature")), (Some(0.5), Some(Source::ModelFile)));
    assert_eq!((fields.int("top_k"), fields.source("top_k")), (Some(50), Some(Source::Default)));
    assert_eq!((fields.value("min_p"), fields.source("min_p")), (None, None));
    let got = settings(model, json!({}));
    assert_eq!((got.do_sample, got.repetition_penalty, got.temperature), (true, Some(3.0), Some(0.5)));
}

#[test]
fn a_null_of_the_call_switches_a_default_off() {
    let got = settings(json!({"eos_token_id": 2, "do_sample": true}), json!({"top_k": null, "eos_token_id": null}));
    assert_eq!(got.top_k, None);
    assert!(got.eos_token_id.is_empty());
    assert!(!settings(json!({"do_sample": true}), json!({"do_sample": null})).do_sample);
}

#[test]
fn nothing_set_gives_the_documented_defaults() {
    assert_eq!(settings(json!({}), json!({})), Settings { top_k: None, ..Settings::default() });
    let sampling = settings(json!({}), json!({"do_sample": true}));
    assert_eq!(sampling, Settings { do_sample: true, ..Settings::default() });
    assert_eq!(sampling.top_k, Some(50));
}

#[test]
fn neutral_values_switch_rules_off() {
    let call = json!({"do_sample": true, "temperature": 1, "top_k": 0, "top_p": 1.0, "repetition_penalty": 1});
    let got = settings(json!({}), call);
    assert_eq!((got.temperature, got.top_k, got.top_p, got.repetition_penalty), (None, None, None, None));
}

#[test]
fn lengths_follow_the_table() {
    let cases = [
        (json!({}), json!({}), None, 3, Some(23)),
        (json!({}), json!({}), Some(10), 3, Some(10)),
        (json!({}), json!({}), Some(3), 3, None),
        (json!({}), json!({"max_length": 20}), None, 3, Some(20)),
        (json!({"max_length": 20}), json!({}), None, 3, Some(20)),
        (json!({"max_length": 8}), json!({}), None, 3, Some(8)),
        (json!({"max_length": 8}), json!({}), Some(5), 3, Some(8)),
        (json!({"max_length": 8}), json!({"max_new_tokens": 2}), None, 3, Some(5)),
        (json!({"max_new_tokens": 4}), json!({"max_length": 5}), None, 3, Some(7)),
        (json!({}), json!({"max_length": 3}), None, 3, None),
        (json!({}), json!({"max_new_tokens": 5}), Some(6), 3, Some(8)),
        (json!({}), json!({"max_new_tokens": u64::MAX}), None, 3, Some(usize::MAX)),
        (json!({}), json!({"max_new_tokens": 5}), None, 600, Some(605)),
    ];
    for (model, call, max_positions, prompt_len, expected) in cases {
        let facts = ModelFacts { max_positions, ..FACTS };
        let (got, _) = Settings::resolve(&merged(model.clone(), call.clone()), &facts).unwrap();
        let length = got.max_length_for(prompt_len);
        assert_eq!(length.as_ref().ok(), expected.as_ref(), "{model} {call} {length:?}");
    }
}

#[test]
fn a_pipelines_default_stands_below_the_file_and_back_from_any_max_length() {
    let config = |json| GenerationConfig::from_json(&json).unwrap();
    let cases = [
        (json!({}), json!({}), MaxLength::New(256), Some(Source::Pipeline)),
        (json!({"max_length": 20}), json!({}), MaxLength::Total(20), None),
        (json!({"max_length": null}), json!({}), MaxLength::New(256), Some(Source::Pipeline)),
        (json!({"max_new_tokens": 7}), json!({}), MaxLength::New(7), Some(Source::ModelFile)),
        (json!({}), json!({"max_length": 40}), MaxLength::Total(40), None),
        (json!({"max_length": 50}), json!({"max_new_tokens": 4}), MaxLength::New(4), Some(Source::Call)),
        (json!({}), json!({"max_new_tokens": null}), MaxLength::Default, Some(Source::Call)),
    ];
    for (model, call, expected, source) in cases {
        let layers = Layers::new(config(model.clone())).with_defaults(config(json!({"max_new_tokens": 256})));
        let fields = layers.with_call(config(call.clone()));
        let (got, warnings) = Settings::resolve(&fields, &FACTS).unwrap();
        assert_eq!((got.max_length, fields.source("max_new_tokens")), (expected, source), "{model} {call}");
        assert_eq!(warnings.iter().any(|line| line.starts_with("no length")), expected == MaxLength::Default, "{call}");
    }
}

#[test]
fn a_prompt_without_room_names_both_lengths() {
    let message = settings(json!({}), json!({"max_length": 3})).max_length_for(5).unwrap_err().to_string();
    assert!(message.contains("5 tokens") && message.contains("max_length allows 3"), "{message}");
}

#[test]
fn wrong_values_name_the_field_and_the_value() {
    let cases = [
        ("temperature", json!(0.0), "0.0"),
        ("temperature", json!(-1), "-1"),
        ("temperature", json!(1e-60), "1e-60"),
        ("temperature", json!(1e300), "1e+300"),
        ("top_p", json!(-0.1), "-0.1"),
        ("top_p", json!(1.5), "1.5"),
        ("top_k", json!(-1), "-1"),
        ("min_p", json!(1.01), "1.01"),
        ("repetition_penalty", json!(0), "0"),
        ("repetition_penalty", json!(-2.0), "-2.0"),
        ("max_new_tokens", json!(0), "0"),
        ("max_new_tokens", json!(-7), "-7"),
        ("max_length", json!(-7), "-7"),
        ("max_length", json!(null), "null"),
        ("max_time", json!(-1), "-1"),
        ("num_beams", json!(0), "0"),
        ("num_return_sequences", json!(0), "0"),
        ("prefill_chunk_size", json!(0), "0"),
        ("early_stopping", json!("sometimes"), "\"sometimes\""),
        ("cache_implementation", json!("fast"), "\"fast\""),
        ("assistant_ensemble_weight", json!(1.0), "1.0"),
        ("bos_token_id", json!(1u64 << 40), "1099511627776"),
    ];
    for (name, value, shown) in cases {
        let error = error(json!({}), json!({"do_sample": true, name: value}));
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{error}");
        assert!(error.message().starts_with(&format!("{name} is {shown}, expected ")), "{error}");
    }
}

#[test]
fn wrong_combinations_are_refused() {
    let several = error(json!({}), json!({"num_return_sequences": 2}));
    assert!(several.message().starts_with("num_return_sequences is 2"), "{several}");
    let forced = error(json!({}), json!({"forced_eos_token_id": [1, 2], "suppress_tokens": [2, 1]}));
    assert!(forced.message().starts_with("forced_eos_token_id"), "{forced}");
}

#[test]
fn wrong_types_name_field_got_and_expected() {
    for (name, value, expected) in [
        ("temperature", json!("hot"), "temperature is \"hot\", expected a number"),
        ("top_k", json!(5.5), "top_k is 5.5, expected an integer"),
        ("do_sample", json!(2), "do_sample is 2, expected true or false"),
        ("eos_token_id", json!([1, "2"]), "eos_token_id is [1,\"2\"], expected an integer or a list of integers"),
        ("bad_words_ids", json!([1]), "bad_words_ids is [1], expected a list of lists of integers"),
        ("stop_strings", json!({}), "stop_strings is an object, expected a text or a list of texts"),
    ] {
        let error = GenerationConfig::new().set(name, value).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidConfig, expected));
    }
}

#[test]
fn integers_may_be_floats_and_booleans_numbers() {
    let config = json!({"max_length": 12.0, "eos_token_id": [257.0, 3], "do_sample": 1, "use_cache": 0.0,
        "sequence_bias": [[[1.0, 2], -3]], "temperature": 2, "early_stopping": 1});
    let read = GenerationConfig::from_json(&config).unwrap().to_json();
    let expected = json!({"max_length": 12, "eos_token_id": [257, 3], "do_sample": true, "use_cache": false,
        "sequence_bias": [[[1, 2], -3]], "temperature": 2, "early_stopping": true});
    assert_eq!(read, expected);
}

#[test]
fn a_misspelt_setting_of_the_call_is_refused_and_one_of_the_model_file_is_kept() {
    let error = error(json!({}), json!({"temprature": 0.5}));
    assert_eq!(error.to_string(), "\"temprature\" is not a generation setting; did you mean temperature?");
    let fields = merged(json!({"lang_to_id": {"<|de|>": 133}}), json!({}));
    assert!(fields.extra().contains_key("lang_to_id"));
    assert!(Settings::resolve(&fields, &FACTS).is_ok());
    // Whisper's files still have these; only Whisper's own generate() reads them.
    let fields = merged(json!({"forced_decoder_ids": [[1, null], [2, 50359]]}), json!({}));
    assert!(fields.extra().contains_key("forced_decoder_ids"));
    assert!(Settings::resolve(&fields, &FACTS).is_ok());
    let error = self::error(json!({}), json!({"forced_decoder_ids": [[1, 5]]}));
    assert!(error.message().starts_with("\"forced_decoder_ids\" is not a generation setting"), "{error}");
    assert!(error.message().contains("forced_bos_token_id"), "{error}");
    assert!(
        GenerationConfig::from_json(&json!({"streamer": 1})).unwrap_err().message().contains("argument of the call")
    );
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let cases = [("use_mtp", json!(true)), ("output_attentions", json!(true))];
    for (name, value) in cases {
        for in_model in [false, true] {
            let base = json!({"do_sample": true, "eos_token_id": 1});
            let mut changed = base.clone();
            changed[name] = value.clone();
            let error = if in_model { error(changed, json!({})) } else { error(base, changed) };
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.message().starts_with(&format!("{name}={value}").replace("{}", "an object")), "{error}");
            assert_eq!(error.place().is_some(), in_model, "{error}");
        }
    }
}

#[test]
fn the_confidence_of_an_assistant_counts_where_there_is_one() {
    let threshold = |model, call| settings(model, call).assistant_confidence_threshold;
    assert_eq!(threshold(json!({}), json!({})), None);
    assert_eq!(threshold(json!({}), json!({"assistant_confidence_threshold": 0.7})), None);
    assert_eq!(threshold(json!({"is_assistant": true}), json!({})), Some(0.4));
    assert_eq!(threshold(json!({"is_assistant": true}), json!({"assistant_confidence_threshold": 0.7})), Some(0.7));
    assert_eq!(threshold(json!({"assistant_confidence_threshold": 0.0}), json!({"is_assistant": true})), None);
    assert_eq!(threshold(json!({}), json!({"is_assistant": false, "assistant_confidence_threshold": 1})), None);
}

#[test]
fn every_default_and_every_neutral_value_is_accepted() {
    let call = json!({
        "do_sample": true, "eos_token_id": 1, "num_beams": 1, "no_repeat_ngram_size": 0, "guidance_scale": 1, "typical_p": 1.0,
        "epsilon_cutoff": 0.0, "eta_cutoff": 1.0, "min_length": 0, "min_new_tokens": 0, "suppress_tokens": [],
        "begin_suppress_tokens": [], "renormalize_logits": false, "remove_invalid_values": false, "token_healing": false,
        "is_assistant": false, "use_mtp": false, "length_penalty": 2.0, "early_stopping": "never", "num_beam_groups": 2,
        "use_cache": false, "cache_implementation": "static", "bad_words_ids": null, "decoder_start_token_id": 3,
        "encoder_repetition_penalty": 1, "return_dict_in_generate": true, "num_assistant_tokens": 5
    });
    settings(json!({}), call);
    // These act on draws only.
    settings(json!({"top_h": 0.5, "typical_p": 0.5, "epsilon_cutoff": 0.1, "eta_cutoff": 0.1}), json!({}));
    // Without an end token there is nothing to hold back.
    settings(json!({}), json!({"min_length": 5}));
    for field in FIELDS {
        let mut call = json!({"max_length": 20});
        call[field.name] = field.fill.value().unwrap_or(Value::Null);
        settings(json!({}), call);
    }
}

#[test]
fn beams_are_read_and_checked_as_in_python() {
    let got = settings(
        json!({"num_beams": 4, "length_penalty": 0.8}),
        json!({"early_stopping": "never", "num_beam_groups": 2, "diversity_penalty": 0.5, "num_return_sequences": 4}),
    );
    let expected = Beams {
        num_beams: 4,
        num_beam_groups: 2,
        diversity_penalty: 0.5,
        length_penalty: 0.8,
        early_stopping: EarlyStopping::Never,
        constraints: Vec::new(),
    };
    assert_eq!(got.beams, expected);
    let got = settings(
        json!({}),
        json!({"num_beams": 2, "force_words_ids": [[3, 2], [[0], [3, 3]]],
            "constraints": [{"token_ids": [1]}, {"nested_token_ids": [[1, 2], [4]]}]}),
    );
    use Constraint::{Disjunctive, Phrasal};
    let words = [vec![vec![1, 2], vec![4]], vec![vec![0], vec![3, 3]]].map(Disjunctive);
    let [nested, word] = words;
    assert_eq!(got.beams.constraints, [Phrasal(vec![1]), nested, Phrasal(vec![3, 2]), word]);
    for (call, field) in [
        (json!({"num_beams": 100_000}), "num_beams"),
        (json!({"num_beams": 2, "num_return_sequences": 3}), "num_return_sequences"),
        (json!({"num_beams": 2, "low_memory": true}), "low_memory"),
        (json!({"num_beams": 3, "num_beam_groups": 2, "diversity_penalty": 0.5}), "num_beam_groups"),
        (json!({"num_beams": 4, "num_beam_groups": 2}), "diversity_penalty"),
        (json!({"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0, "do_sample": true}), "num_beam_groups"),
        (json!({"force_words_ids": [[1]]}), "force_words_ids"),
        (json!({"force_words_ids": [[1]], "num_beams": 2, "do_sample": true}), "force_words_ids"),
        (json!({"force_words_ids": [], "num_beams": 2}), "force_words_ids"),
        (json!({"force_words_ids": [[]], "num_beams": 2}), "force_words_ids"),
        (json!({"force_words_ids": [[1_000_000]], "num_beams": 2}), "force_words_ids"),
        (json!({"force_words_ids": [[[1], [1, 2]]], "num_beams": 2}), "force_words_ids"),
        (json!({"constraints": [1], "num_beams": 2}), "constraints"),
        (json!({"constraints": [{"token_ids": [1], "nested_token_ids": [[1]]}], "num_beams": 2}), "constraints"),
    ] {
        let error = error(json!({}), call);
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{error}");
        assert!(error.message().starts_with(field), "{error}");
    }
    for drafts in ["prompt_lookup_num_tokens", "assistant_early_exit"] {
        let error = error(json!({}), json!({drafts: 3, "dola_layers": "low"}));
        assert!(error.message().starts_with(&format!("{drafts}=3 does not work with DoLa")), "{error}");
    }
    for (call, named) in [
        (json!({"force_words_ids": [[1_000_000]], "num_beams": 2}), "1000000 is not"),
        (json!({"constraints": [{"words": [1]}], "num_beams": 2}), "\"words\" is not known"),
    ] {
        let error = error(json!({}), call);
        assert!(error.message().ends_with(named), "{error}");
    }
}

#[test]
fn a_rule_of_the_model_file_can_be_switched_off_by_the_call() {
    let model = json!({"no_repeat_ngram_size": 3, "num_beams": 4});
    let got = settings(model, json!({"no_repeat_ngram_size": null, "num_beams": null}));
    assert_eq!(got.rules.no_repeat_ngram_size, 0);
}

#[test]
fn modes_follow_the_table() {
    use GenerationMode::*;
    for (call, expected) in [
        (json!({}), Greedy),
        (json!({"do_sample": null, "num_beams": null}), Greedy),
        (json!({"do_sample": true}), Sample),
        (json!({"penalty_alpha": 0.6}), ContrastiveSearch),
        (json!({"penalty_alpha": 0.6, "top_k": 1}), Greedy),
        (json!({"penalty_alpha": 0.6, "top_k": null}), Greedy),
        (json!({"penalty_alpha": 0.6, "do_sample": true}), Sample),
        (json!({"num_beams": 2}), BeamSearch),
        (json!({"num_beams": 2, "do_sample": true}), BeamSample),
        (json!({"num_beams": 2, "num_beam_groups": 2}), GroupBeamSearch),
        (json!({"num_beam_groups": 2}), Greedy),
        (json!({"constraints": [1]}), ConstrainedBeamSearch),
        (json!({"force_words_ids": [[1]], "num_beams": 3}), ConstrainedBeamSearch),
        (json!({"prompt_lookup_num_tokens": 3}), Assisted),
        (json!({"assistant_early_exit": 3}), Assisted),
        (json!({"assistant_early_exit": 3, "do_sample": true}), Assisted),
        (json!({"use_mtp": true}), Assisted),
        (json!({"use_mtp": false}), Greedy),
        (json!({"dola_layers": "low"}), Dola),
    ] {
        assert_eq!(GenerationMode::of(&merged(json!({}), call.clone()), false), (expected, vec![]), "{call}");
    }
    assert_eq!(GenerationMode::of(&merged(json!({}), json!({})), true).0, Assisted);
    let (mode, told) = GenerationMode::of(&merged(json!({}), json!({"num_beams": 2, "dola_layers": [1]})), true);
    assert_eq!((mode, told.len()), (BeamSearch, 2));
}

#[test]
fn settings_without_effect_are_told() {
    let told = |model, call| {
        let all = warnings(model, call);
        all.iter().map(|warning| warning.split('=').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let filters = json!({"temperature": 0.5, "top_p": 0.5, "min_p": 0.1, "top_k": 5, "typical_p": 0.5});
    assert_eq!(told(json!({}), filters.clone()), ["temperature", "top_p", "typical_p", "top_k", "min_p"]);
    assert_eq!(told(filters.clone(), json!({})).len(), 5);
    // The call chose greedy decoding, so what the model file says about draws is no news.
    assert!(told(filters, json!({"do_sample": false})).is_empty());
    assert_eq!(
        told(json!({}), json!({"early_stopping": true, "length_penalty": 2})),
        ["early_stopping", "length_penalty"]
    );
    assert_eq!(told(json!({"pad_token_id": -1}), json!({})), ["pad_token_id"]);
    assert_eq!(warnings(json!({"eos_token_id": [2, -1]}), json!({})).len(), 1);
    assert_eq!(warnings(json!({"max_length": 9}), json!({"max_new_tokens": 1})).len(), 1);
    let (_, all) = Settings::resolve(&merged(json!({}), json!({})), &FACTS).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn special_tokens_are_lists_and_padding_falls_back_to_the_first_end_token() {
    let got = settings(json!({"eos_token_id": [7, 5, 7, -1]}), json!({}));
    assert_eq!((got.eos_token_id, got.pad_token_id, got.bos_token_id), (vec![7, 5], Some(7), None));
    let got = settings(json!({"eos_token_id": 2, "pad_token_id": 0, "bos_token_id": 1}), json!({}));
    assert_eq!((got.eos_token_id, got.pad_token_id, got.bos_token_id), (vec![2], Some(0), Some(1)));
    // An embedding may be padded beyond the vocabulary, an end token beyond it never comes.
    let facts = ModelFacts { vocab_size: 5, max_positions: None };
    let (got, told) = Settings::resolve(&merged(json!({"eos_token_id": [4, 5]}), json!({})), &facts).unwrap();
    assert_eq!(got.eos_token_id, [4]);
    assert!(told[told.len() - 1].contains("[\"5\"]"), "{told:?}");
}

#[test]
fn a_single_stop_string_is_a_list_of_one() {
    assert_eq!(settings(json!({}), json!({"stop_strings": "a"})).stop_strings, ["a"]);
    assert_eq!(settings(json!({}), json!({"stop_strings": ["a", "b"]})).stop_strings, ["a", "b"]);
}

#[test]
fn generation_config_json_is_taken_alone() {
    let got = from_folder_json(Some(r#"{"top_k": 3}"#), Some(r#"{"temperature": 0.5}"#)).unwrap();
    assert_eq!(got.to_json(), json!({"top_k": 3}));
    assert_eq!(from_folder_json(None, None).unwrap(), GenerationConfig::new());
}

#[test]
fn old_models_keep_fields_in_config_json() {
    let text = r#"{"model_type": "x", "eos_token_id": 2, "max_length": null, "top_k": 7, "output_scores": true,
        "force_bos_token_to_be_generated": true, "decoder": null,
        "text_config": {"eos_token_id": 9, "bos_token_id": 1, "top_k": 1, "hidden_size": 5}}"#;
    let got = from_folder_json(None, Some(text)).unwrap();
    assert_eq!((got.int("eos_token_id"), got.int("top_k"), got.int("bos_token_id")), (Some(2), Some(7), Some(1)));
    assert_eq!((got.value("max_length"), got.int("forced_bos_token_id")), (None, Some(1)));
    assert_eq!(got.bool("return_dict_in_generate"), Some(true));
    assert!(got.extra().is_empty());
    let error = from_folder_json(None, Some(r#"{"top_k": "all"}"#)).unwrap_err();
    assert_eq!(error.place(), Some("config.json"));
}

#[test]
fn hostile_json_gives_errors() {
    let deep = "[".repeat(1_000_000);
    let deep_value = format!("{{\"cache_config\": {}}}", "{\"a\":".repeat(1_000_000));
    let huge = format!("{{\"x\": \"{}\"}}", "y".repeat(17 << 20));
    for text in [
        "",
        "{",
        "[]",
        "null",
        "5",
        "\"x\"",
        "{\"top_p\": NaN}",
        "{\"top_p\": 1e999}",
        "{\"top_k\": [[]]}",
        "{\"eos_token_id\": {\"a\": 1}}",
        "{\"sequence_bias\": [[1]]}",
        "{\"exponential_decay_length_penalty\": [1]}",
        deep.as_str(),
        deep_value.as_str(),
        huge.as_str(),
    ] {
        let error = GenerationConfig::from_json_str(text).unwrap_err();
        assert!(error.to_string().len() < 400, "{error}");
    }
    let many = json!({"temperature": vec![0; 100_000]});
    let error = GenerationConfig::from_json(&many).unwrap_err();
    assert_eq!(error.to_string(), "temperature is a list of 100000 items, expected a number");
    let name = "z".repeat(1 << 20);
    assert!(GenerationConfig::new().set(&name, Value::Null).unwrap_err().to_string().len() < 200);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2.0..2.0f64).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,4}", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics_on_any_values(
        entries in prop::collection::vec((0..FIELDS.len() + 1, any_json()), 0..6),
        in_model in any::<bool>(),
        vocab_size in 0usize..100,
        max_positions in proptest::option::of(any::<usize>()),
        prompt_len in any::<usize>(),
    ) {
        let name = |index: usize| FIELDS.get(index).map_or("unknown", |field| field.name).to_owned();
        let json: Value = entries.into_iter().map(|(index, value)| (name(index), value)).collect();
        if let Ok(config) = GenerationConfig::from_json(&json) {
            prop_assert_eq!(GenerationConfig::from_json(&config.to_json()).unwrap(), config.clone());
            let (model, call) = if in_model { (config, GenerationConfig::new()) } else { (GenerationConfig::new(), config) };
            let fields = Layers::new(model).with_call(call);
            if let Ok((settings, _)) = Settings::resolve(&fields, &ModelFacts { vocab_size, max_positions }) {
                let _ = settings.max_length_for(prompt_len);
                prop_assert!(crate::build::processors(&settings, vocab_size, None, Vec::new()).is_ok());
            }
        }
        let _ = from_folder_json(None, Some(&json.to_string()));
    }
}

#[test]
fn the_compatibility_page_says_of_every_field_what_the_table_says() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    // A published package has no pages.
    let Ok(page) = std::fs::read_to_string(path) else { return };
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: Vec<(&str, &str)> = rows.filter_map(|(name, rest)| Some((name, rest.split_once(" | ")?.0))).collect();
    for field in FIELDS {
        let words = match field.status {
            Status::Supported => &["same", "differs"][..],
            Status::NoEffect | Status::NotYet(Neutral::Always) => &["no effect"],
            Status::NotYet(_) => &["refused"],
        };
        let found: Vec<&str> = rows.iter().filter(|row| row.0 == field.name).map(|row| row.1).collect();
        assert!(found.len() == 1 && words.contains(&found[0]), "{}: {found:?}, expected {words:?}", field.name);
    }
    for (name, _) in rows {
        assert!(Field::named(name).is_some(), "{name} is no field");
    }
}

#[test]
fn rules_are_read_and_wrong_ones_name_the_field() {
    let call = json!({
        "eos_token_id": 1, "sequence_bias": [[[2, 3], 1.5]], "bad_words_ids": [[4], [5, 6]], "min_length": 7,
        "min_new_tokens": 3, "forced_eos_token_id": 2, "exponential_decay_length_penalty": [5, 1.1],
        "suppress_tokens": [-1, 3], "watermarking_config": {"bias": 1.0}, "typical_p": 0.5, "eta_cutoff": 0.1
    });
    let rules = settings(json!({}), call.clone()).rules;
    assert_eq!(rules.sequence_bias, [(vec![2, 3], 1.5)]);
    assert_eq!(rules.bad_words_ids, [vec![4], vec![5, 6]]);
    assert_eq!((rules.min_length, rules.min_new_tokens), (7, Some(3)));
    assert_eq!((rules.forced_eos_token_id, rules.suppress_tokens), (vec![2], vec![3]));
    assert_eq!(rules.exponential_decay_length_penalty, Some((5, 1.1)));
    assert!(rules.watermarking_config.is_some());
    assert_eq!((rules.typical_p, rules.eta_cutoff), (None, None), "filters of sampling");
    let mut sampled = call;
    sampled["do_sample"] = json!(true);
    let rules = settings(json!({}), sampled).rules;
    assert_eq!((rules.typical_p, rules.eta_cutoff), (Some(0.5), Some(0.1)));
    for (field, value) in [
        ("sequence_bias", json!([])),
        ("sequence_bias", json!([[[], 1.0]])),
        ("sequence_bias", json!([[[1_000_000], 1.0]])),
        ("bad_words_ids", json!([])),
        ("bad_words_ids", json!([[1_000_000]])),
        ("bad_words_ids", json!([[-1]])),
        ("forced_bos_token_id", json!(1_000_000)),
        ("forced_eos_token_id", json!([-2])),
        ("exponential_decay_length_penalty", json!([5, 1.1])),
        ("encoder_repetition_penalty", json!(0)),
        ("watermarking_config", json!({"greenlist_ratio": 2})),
        ("typical_p", json!(-0.5)),
        ("top_h", json!(1.5)),
    ] {
        let mut call = json!({"do_sample": true});
        call[field] = value;
        let message = error(json!({}), call).to_string();
        assert!(message.contains(field), "{message}");
    }
}
