//! Every score rule on random rows, held against what Python's rule made of them (`data/processors.json`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use unspool_core::config::MaxLength;
use unspool_core::processor::{
    EncoderNoRepeatNGram, EncoderRepetitionPenalty, Epsilon, Eta, ExponentialDecay, ForcedBos, ForcedEos,
    GreenListWatermark, InfNanRemove, LogitNormalization, MinLength, MinNewTokens, MinP, NoBadWords, NoRepeatNGram,
    PrefixConstrained, Processor, RepetitionPenalty, SequenceBias, SuppressTokens, SuppressTokensAtBegin,
    SynthIdWatermark, Temperature, TopH, TopK, TopP, Typical, WatermarkConfig, WatermarkDetector, WatermarkingConfig,
};
use unspool_core::{Row, TokenId};

/// Cases that are expected of each rule.
const CASES: usize = 20;

const RULES: [&str; 26] = [
    "min_length",
    "min_new_tokens",
    "top_h",
    "top_k",
    "top_p",
    "min_p",
    "typical",
    "epsilon",
    "eta",
    "temperature",
    "repetition_penalty",
    "encoder_repetition_penalty",
    "no_repeat_ngram",
    "encoder_no_repeat_ngram",
    "sequence_bias",
    "no_bad_words",
    "prefix_constrained",
    "forced_bos",
    "forced_eos",
    "inf_nan_remove",
    "exponential_decay",
    "suppress_tokens",
    "suppress_tokens_at_begin",
    "logit_normalization",
    "left_hash",
    "self_hash",
];

#[derive(Deserialize)]
struct Recorded {
    rules: BTreeMap<String, Vec<Case>>,
    synth_id: Vec<Conversation>,
    detector: Vec<Detection>,
}

/// One call of a rule.
#[derive(Deserialize)]
struct Case {
    ids: Vec<TokenId>,
    prompt: usize,
    args: Value,
    #[serde(flatten)]
    call: Call,
}

/// A rule over the tokens of one row.
#[derive(Deserialize)]
struct Conversation {
    ids: Vec<TokenId>,
    prompt: usize,
    args: Value,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    scores: Vec<Score>,
    forbidden: Vec<usize>,
    set: Vec<(usize, Score)>,
}

#[derive(Deserialize)]
struct Detection {
    ids: Vec<TokenId>,
    vocab: usize,
    args: Value,
    bos: Option<TokenId>,
    unique: bool,
    scored: usize,
    green: usize,
    z_score: f64,
    p_value: f64,
}

/// A number; null is minus infinity.
#[derive(Deserialize)]
#[serde(untagged)]
enum Score {
    Number(f32),
    Text(String),
    Forbidden(()),
}

impl Score {
    fn value(&self) -> f32 {
        match self {
            Score::Number(number) => *number,
            Score::Text(text) => text.parse().unwrap(),
            Score::Forbidden(()) => f32::NEG_INFINITY,
        }
    }
}

impl Call {
    fn scores(&self) -> Vec<f32> {
        self.scores.iter().map(Score::value).collect()
    }

    fn expected(&self) -> Vec<f32> {
        let mut expected = self.scores();
        for &id in &self.forbidden {
            expected[id] = f32::NEG_INFINITY;
        }
        for (id, score) in &self.set {
            expected[*id] = score.value();
        }
        expected
    }

    /// What the rule does differently, if anything.
    fn difference(&self, rule: &mut dyn Processor, row: &Row<'_>, tolerance: f32) -> Option<String> {
        let (mut got, expected) = (self.scores(), self.expected());
        if let Err(error) = rule.apply(row, &mut got) {
            return Some(error.to_string());
        }
        let wrong = got.iter().zip(&expected).position(|(got, expected)| !same(*got, *expected, tolerance))?;
        let before = self.scores[wrong].value();
        Some(format!("score {wrong} was {before} and became {}, in Python {}", got[wrong], expected[wrong]))
    }
}

/// Infinities and NaN exactly; of numbers below 1 the absolute difference counts.
fn same(got: f32, expected: f32, tolerance: f32) -> bool {
    if !got.is_finite() || !expected.is_finite() {
        return got == expected || (got.is_nan() && expected.is_nan());
    }
    (f64::from(got) - f64::from(expected)).abs() <= f64::from(tolerance) * f64::from(expected.abs().max(1.0))
}

fn recorded() -> Recorded {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/processors.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn read<T: DeserializeOwned>(args: &Value, name: &str) -> T {
    serde_json::from_value(args[name].clone()).unwrap_or_else(|error| panic!("{name} of {args}: {error}"))
}

fn watermark(args: &Value) -> WatermarkingConfig {
    let args: Map<String, Value> = serde_json::from_value(args.clone()).unwrap();
    WatermarkingConfig::from_json(&args).unwrap()
}

fn green_list(args: &Value) -> WatermarkConfig {
    match watermark(args) {
        WatermarkingConfig::GreenList(config) => config,
        WatermarkingConfig::SynthId(_) => panic!("{args} is no green list"),
    }
}

fn rule(name: &str, args: &Value, vocab: usize) -> unspool_core::Result<Box<dyn Processor>> {
    let number = |name| read::<f64>(args, name);
    let size = |name| read::<usize>(args, name);
    let ids = |name| read::<Vec<TokenId>>(args, name);
    let keep = || size("min_tokens_to_keep");
    Ok(match name {
        "min_length" => Box::new(MinLength::new(size("min_length"), ids("eos"))),
        "min_new_tokens" => Box::new(MinNewTokens::new(size("min_new_tokens"), ids("eos"))),
        "top_h" => Box::new(TopH::new(number("top_h"))?),
        "top_k" => Box::new(TopK::new(size("top_k"), keep())?),
        "top_p" => Box::new(TopP::new(number("top_p"), keep())?),
        "min_p" => Box::new(MinP::new(number("min_p"), keep())?),
        "typical" => Box::new(Typical::new(number("mass"), keep())?),
        "epsilon" => Box::new(Epsilon::new(number("epsilon"), keep())?),
        "eta" => Box::new(Eta::new(number("epsilon"), keep())?),
        "temperature" => Box::new(Temperature::new(number("temperature"))?),
        "repetition_penalty" => Box::new(RepetitionPenalty::new(number("penalty"))?),
        "encoder_repetition_penalty" => Box::new(EncoderRepetitionPenalty::new(number("penalty"))?),
        "no_repeat_ngram" => Box::new(NoRepeatNGram::new(read(args, "ngram_size"))),
        "encoder_no_repeat_ngram" => Box::new(EncoderNoRepeatNGram::new(read(args, "ngram_size"))),
        "sequence_bias" => {
            let biases = read::<Vec<(Vec<TokenId>, Score)>>(args, name);
            Box::new(SequenceBias::new(biases.into_iter().map(|(ids, bias)| (ids, bias.value())).collect())?)
        }
        "no_bad_words" => Box::new(NoBadWords::new(read(args, "bad_words_ids"), &ids("eos"))?),
        "prefix_constrained" => {
            let allowed = ids("allowed");
            Box::new(PrefixConstrained::new(move |_, _| allowed.clone()))
        }
        "forced_bos" => Box::new(ForcedBos::new(read(args, "bos_token_id"))),
        "forced_eos" => Box::new(ForcedEos::new(ids("eos_token_id"), MaxLength::Total(size("max_length")), None)),
        "inf_nan_remove" => Box::new(InfNanRemove),
        "exponential_decay" => Box::new(ExponentialDecay::new(read(args, "start"), number("factor"), ids("eos"))?),
        "suppress_tokens" => Box::new(SuppressTokens::new(ids("ids"))),
        "suppress_tokens_at_begin" => Box::new(SuppressTokensAtBegin::new(ids("ids"), read(args, "forced_bos"))),
        "logit_normalization" => Box::new(LogitNormalization),
        "left_hash" | "self_hash" => Box::new(GreenListWatermark::new(green_list(args), vocab)?),
        _ => panic!("no rule {name}"),
    })
}

#[test]
fn rules_do_what_python_s_do() {
    let rules = recorded().rules;
    for name in RULES {
        let count = rules.get(name).map_or(0, Vec::len);
        assert!(count >= CASES, "{name} has {count} cases, expected at least {CASES}");
    }
    let mut wrong = Vec::new();
    for (name, cases) in &rules {
        for (index, case) in cases.iter().enumerate() {
            let row = Row { ids: &case.ids, prompt_len: case.prompt, prompt: 0 };
            let difference = match rule(name, &case.args, case.call.scores.len()) {
                Ok(mut rule) => case.call.difference(&mut *rule, &row, 2e-6),
                Err(error) => Some(error.to_string()),
            };
            if let Some(difference) = difference {
                wrong.push(format!("{name} {index}, {}: {difference}", case.args));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn synth_id_marks_a_row_as_python_does() {
    let rows = recorded().synth_id;
    assert!(rows.len() >= CASES, "{} rows, expected at least {CASES}", rows.len());
    let mut wrong = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let WatermarkingConfig::SynthId(config) = watermark(&row.args) else { panic!("{} is no SynthID", row.args) };
        let mut rule = SynthIdWatermark::new(config).unwrap();
        assert_eq!(row.calls.len(), row.ids.len() - row.prompt + 1);
        for (call, length) in row.calls.iter().zip(row.prompt..) {
            let seen = Row { ids: &row.ids[..length], prompt_len: row.prompt, prompt: 0 };
            if let Some(difference) = call.difference(&mut rule, &seen, 1e-4) {
                wrong.push(format!("row {index}, {}, after {:?}: {difference}", row.args, seen.ids));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn detectors_find_what_python_s_find() {
    let texts = recorded().detector;
    assert!(texts.len() >= CASES, "{} texts, expected at least {CASES}", texts.len());
    let mut wrong = Vec::new();
    for text in texts {
        let mut detector = WatermarkDetector::new(green_list(&text.args), text.vocab).unwrap();
        if let Some(bos) = text.bos {
            detector = detector.skip_bos(bos);
        }
        if text.unique {
            detector = detector.ignore_repeated_ngrams();
        }
        let found = detector.detect(&text.ids).unwrap();
        let near = |got: f64, expected: f64| (got - expected).abs() < 1e-9;
        if (found.tokens_scored, found.green_tokens) != (text.scored, text.green)
            || !near(found.z_score, text.z_score)
            || !near(found.p_value, text.p_value)
        {
            let expected = (text.scored, text.green, text.z_score, text.p_value);
            wrong.push(format!("{:?}, {}: {found:?}, in Python {expected:?}", text.ids, text.args));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
