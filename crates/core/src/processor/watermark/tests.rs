use serde_json::json;

use super::mersenne::Mersenne;
use super::*;
use crate::processor::Processor;
use crate::row::Row;

fn apply(rule: &mut impl Processor, prompt: usize, ids: &[u32], vocab: usize) -> Vec<f32> {
    let mut scores = vec![0.0; vocab];
    rule.apply(&Row { ids, prompt_len: prompt, prompt: 0 }, &mut scores).unwrap();
    scores
}

fn read(value: serde_json::Value) -> crate::error::Result<WatermarkingConfig> {
    WatermarkingConfig::from_json(value.as_object().unwrap())
}

#[test]
fn permutations_are_those_of_the_reference() {
    assert_eq!(Mersenne::new(0).permutation(5, 5), [4, 0, 1, 3, 2]);
    assert_eq!(Mersenne::new(42).permutation(8, 8), [6, 3, 0, 7, 2, 1, 4, 5]);
    assert_eq!(Mersenne::new(15_485_863).permutation(1_000_003, 4), [138_280, 994_103, 467_886, 915_329]);
    let mut random = Mersenne::new(0);
    let bits: Vec<u32> = (0..16).map(|_| random.next() % 2).collect();
    assert_eq!(bits, [0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0]);
}

#[test]
fn a_permutation_has_what_it_lists() {
    for (size, count) in [(1, 0), (1, 1), (2, 1), (10, 3), (10, 10), (64, 16), (300, 299)] {
        for seed in 0..20 {
            let listed = Mersenne::new(seed).permutation(size, count);
            for item in 0..size + 2 {
                let got = Mersenne::new(seed).permutation_has(size, count, item);
                assert_eq!(got, listed.contains(&item), "{item} of {count} of {size}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_green_list_follows_the_last_token() {
    let mut rule = GreenListWatermark::new(WatermarkConfig::default(), 10).unwrap();
    let green = |scores: Vec<f32>| (0..10).filter(|&id| scores[id] == 2.0).collect::<Vec<_>>();
    assert_eq!(green(apply(&mut rule, 1, &[7], 10)), [0, 9]);
    assert_eq!(green(apply(&mut rule, 1, &[0], 10)), [1, 4]);
    assert!(green(apply(&mut rule, 0, &[], 10)).is_empty());
}

#[test]
fn synth_id_has_the_reference_s_numbers() {
    let config = json!({"ngram_len": 3, "keys": [11, 22], "sampling_table_size": 64, "context_history_size": 4});
    let WatermarkingConfig::SynthId(config) = read(config).unwrap() else { panic!("not SynthID") };
    let mut rule = SynthIdWatermark::new(config).unwrap();
    let near = |got: Vec<f32>, expected: [f32; 4]| {
        assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-4), "{got:?}");
    };
    near(apply(&mut rule, 2, &[1, 2], 4), [-2.50065, -2.32630, -0.89122, -0.89122]);
    near(apply(&mut rule, 2, &[1, 2, 3], 4), [-0.86305, -4.15888, -1.96166, -0.86305]);
    let repeated = apply(&mut rule, 2, &[1, 2, 0, 0], 4);
    assert_eq!(repeated, [0.0; 4], "the context of zeros was there at the first call");
}

#[test]
fn marked_texts_are_found_and_others_are_not() {
    for scheme in ["lefthash", "selfhash"] {
        let width = if scheme == "selfhash" { 3 } else { 1 };
        let config = read(json!({"seeding_scheme": scheme, "context_width": width, "bias": 50.0})).unwrap();
        let WatermarkingConfig::GreenList(config) = config else { panic!("not a green list") };
        let mut rule = GreenListWatermark::new(config.clone(), 64).unwrap();
        let detector = WatermarkDetector::new(config, 64).unwrap().ignore_repeated_ngrams();
        let (mut marked, mut plain) = (vec![1, 2, 3], vec![1, 2, 3]);
        for index in 0..60u32 {
            let mut scores: Vec<f32> = (0..64u32).map(|id| ((id * 29 + index * 13) % 61) as f32).collect();
            let best = |scores: &[f32]| (0..64u32).max_by(|a, b| scores[*a as usize].total_cmp(&scores[*b as usize]));
            plain.push(best(&scores).unwrap());
            rule.apply(&Row { ids: &marked, prompt_len: 3, prompt: 0 }, &mut scores).unwrap();
            marked.push(best(&scores).unwrap());
        }
        assert!(detector.detect(&marked).unwrap().is_marked(3.0), "{scheme}");
        assert!(!detector.detect(&plain).unwrap().is_marked(3.0), "{scheme}");
    }
    let detector = WatermarkDetector::new(WatermarkConfig::default(), 10).unwrap().skip_bos(1);
    assert!(detector.detect(&[1, 2]).unwrap_err().to_string().contains("at least 2"));
}

#[test]
fn wrong_values_are_named() {
    for (config, expected) in [
        (json!({"greenlist_ratio": 1.0}), "greenlist_ratio is 1, expected a number between 0 and 1"),
        (json!({"seeding_scheme": "x"}), "seeding_scheme is x"),
        (json!({"context_width": 0}), "context_width is 0"),
        (json!({"colour": 1}), "unknown \"colour\""),
        (json!({"ngram_len": 5}), "has no keys"),
        (json!({"keys": [1]}), "has no ngram_len"),
        (json!({"ngram_len": 5, "keys": [1], "sampling_table_size": 1u64 << 60}), "sampling_table_size"),
        (json!({"ngram_len": 129, "keys": [1]}), "ngram_len is 129, expected an integer from 2 to 128"),
        (json!({"ngram_len": 1, "keys": [1]}), "ngram_len is 1, expected"),
        (json!({"ngram_len": 5, "keys": []}), "keys is 0 keys, expected 1 to 1024 keys"),
        (json!({"ngram_len": 5, "keys": [1], "context_history_size": 0}), "context_history_size is 0"),
    ] {
        let error = read(config).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(
        GreenListWatermark::new(WatermarkConfig { seeding_scheme: SeedingScheme::SelfHash, ..Default::default() }, 39)
            .is_err()
    );
    let read_keys = json!({"ngram_len": 2, "keys": [1]});
    let WatermarkingConfig::SynthId(config) = read(read_keys).unwrap() else { panic!("not SynthID") };
    for config in [SynthIdConfig { ngram_len: 0, ..config.clone() }, SynthIdConfig { sampling_table_size: 0, ..config }]
    {
        assert!(SynthIdWatermark::new(config).is_err());
    }
}

#[test]
fn a_trained_detector_is_bayes_rule_over_the_bits() {
    // Bits of the layers before count for a layer, its own and later ones do not.
    let model = BayesianDetector::new(vec![0.0, -1.0], vec![9.0, 9.0, 2.0, 9.0], 0.2).unwrap();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let odds = |bit: f64, two: f64| ((bit + 0.5) * two + 1.0 - two).ln();
    let expected =
        (0.2f64 / 0.8).ln() + odds(1.0, 0.5) + odds(0.0, sigmoid(1.0)) + odds(0.0, 0.5) + odds(1.0, sigmoid(-1.0));
    let got = model.posterior([&[1u8, 0][..], &[0, 1]]).unwrap();
    assert!((got - sigmoid(expected)).abs() < 1e-7, "{got}, expected {}", sigmoid(expected));
    assert!((model.posterior([]).unwrap() - 0.2).abs() < 1e-7, "nothing to judge leaves the prior");
    let certain = BayesianDetector::new(vec![0.0], vec![0.0], 1.0).unwrap();
    assert!((certain.posterior([]).unwrap() - (1.0 - 1e-5)).abs() < 1e-9, "no prior is certain");
    let error = model.posterior([&[1u8][..]]).unwrap_err();
    assert!(error.message().starts_with("a token has 1 bits, the detector 2 layers"), "{error}");
}

#[test]
fn a_broken_detector_is_refused() {
    for (beta, delta, prior) in [
        (vec![], vec![], 0.5),
        (vec![0.0; 2], vec![0.0; 3], 0.5),
        (vec![f32::NAN], vec![0.0], 0.5),
        (vec![0.0], vec![f32::INFINITY], 0.5),
        (vec![0.0], vec![0.0], f32::NAN),
    ] {
        assert!(BayesianDetector::new(beta, delta, prior).is_err());
    }
    let model = BayesianDetector::new(vec![0.0; 2], vec![0.0; 4], 0.5).unwrap();
    let watermark = |keys| SynthIdWatermark::new(SynthIdConfig::new(3, keys)).unwrap();
    let error = SynthIdDetector::new(watermark(vec![1]), model.clone()).unwrap_err();
    assert!(error.message().starts_with("the watermark has 1 keys, the detector 2 layers"), "{error}");
    let detector = SynthIdDetector::new(watermark(vec![1, 2]), model).unwrap().eos(vec![9]);
    assert!(detector.detect(&[1, 2]).unwrap_err().message().contains("at least 3"));
    assert_eq!(detector.detect(&[9, 1, 2, 3, 4]).unwrap(), 0.5, "nothing is judged from the end token on");
    assert_eq!(detector.detect(&[1, 2, 3, 9, 4, 5]).unwrap(), detector.detect(&[1, 2, 3]).unwrap());
}

#[test]
fn a_context_is_judged_again_once_the_history_has_forgotten_it() {
    let judged = |size, ids: &[u32]| {
        let config = SynthIdConfig { context_history_size: size, ..SynthIdConfig::new(2, vec![1]) };
        SynthIdWatermark::new(config).unwrap().judged(ids).count()
    };
    // Contexts 1, 2, 3, 1: the last one is three back.
    assert_eq!(judged(3, &[1, 2, 3, 1, 5]), 3);
    assert_eq!(judged(2, &[1, 2, 3, 1, 5]), 4);
    assert_eq!(judged(1, &[1, 1, 1, 1]), 1);
    assert_eq!(judged(1, &[1]), 0);
}
