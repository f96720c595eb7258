//! `unspool detect`: was a text written with a watermark?

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use serde_json::{Value, json};
use unspool::config::{Field, Resolved};
use unspool::processor::{SynthIdDetector, SynthIdWatermark, WatermarkDetector, WatermarkingConfig};
use unspool::{Call, Error, GenerationConfig, TokenId, check_ids, open_synth_id_detector};

use super::notice;
use crate::args::fields;
use crate::args::model::ModelArgs;
use crate::args::texts::WhichTexts;
use crate::batch::read;
use crate::batch::row::Keys;
use crate::failure::Failure;
use crate::print::out;

/// Runs the command.
///
/// # Errors
///
/// When an argument, a text, the detector or the model is not usable, or no watermark is named.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    let model = ModelArgs::from_arg_matches(matches).map_err(usage)?;
    let which = WhichTexts::from_arg_matches(matches).map_err(usage)?;
    let mut call = Call::new();
    if let Some(text) = matches.get_one::<String>("watermarking_config") {
        let field = Field::named("watermarking_config").ok_or_else(|| Error::engine("there is no such field"))?;
        let value = fields::value(field, &[text]).map_err(Failure::Usage)?;
        call.config = GenerationConfig::from_json(&json!({"watermarking_config": value}))?;
    }
    let texts = which.read(|source| read::text_lines(source, &KEYS))?;
    let pipeline = notice::open(&model.path()?, &model.options())?;
    let detector = Detector::of(matches, &pipeline.resolve(&call), pipeline.model().vocab_size())?;
    // All texts are checked before anything is told.
    let check = |text: unspool::Prompt| {
        let ids = pipeline.encode(&text)?;
        check_ids(&ids, pipeline.model().vocab_size()).map(|()| ids)
    };
    let texts = texts.into_iter().map(|placed| placed.make(check)).collect::<Result<Vec<_>, _>>()?;
    for (index, placed) in texts.into_iter().enumerate() {
        let found = placed.make(|ids| detector.judge(&ids))?;
        out::line(&line(index, &found.keys, &found.item))?;
    }
    Ok(())
}

/// The keys of a line, of all kinds of watermarks.
const KEYS: [&str; 11] = [
    "index",
    "kind",
    "num_tokens_scored",
    "num_green_tokens",
    "green_fraction",
    "z_score",
    "p_value",
    "prediction",
    "confidence",
    "mean_score",
    "bayesian_score",
];

/// One line: what was found in a text.
#[derive(Serialize)]
struct Line<'a> {
    index: usize,
    #[serde(flatten)]
    keys: &'a Keys,
    #[serde(flatten)]
    found: &'a Value,
}

fn line(index: usize, keys: &Keys, found: &Value) -> String {
    // A line holds only numbers and texts, which JSON can always say.
    serde_json::to_string(&Line { index, keys, found }).unwrap_or_default()
}

enum Detector {
    GreenList { detector: WatermarkDetector, z_threshold: f64 },
    Mean(SynthIdWatermark),
    Trained(SynthIdDetector),
}

impl Detector {
    /// The detector of the watermark in force; what else the model's file asks for does not matter here.
    fn of(matches: &ArgMatches, fields: &Resolved, vocab: usize) -> Result<Detector, Failure> {
        let watermark = fields.value("watermarking_config").and_then(Value::as_object);
        let watermark = watermark.map(WatermarkingConfig::from_json).transpose()?;
        let unique = matches.get_flag("ignore-repeated-ngrams");
        let threshold = matches.value_source("z-threshold") == Some(ValueSource::CommandLine);
        let trained = matches.get_one::<PathBuf>("detector").is_some();
        let synth_id = trained || matches!(watermark, Some(WatermarkingConfig::SynthId(_)));
        let wrong = [("--z-threshold", threshold), ("--ignore-repeated-ngrams", unique)];
        if let (true, Some((flag, _))) = (synth_id, wrong.iter().find(|(_, given)| *given)) {
            return Err(Failure::usage(format!(
                "{flag} is for green lists, and the watermark to look for is SynthID; leave it out"
            )));
        }
        if let Some(folder) = matches.get_one::<PathBuf>("detector") {
            let watermark = match watermark {
                Some(WatermarkingConfig::GreenList(_)) => {
                    return Err(Failure::usage("--detector is for SynthID; the watermark to look for is a green list"));
                }
                Some(WatermarkingConfig::SynthId(config)) => Some(config),
                None => None,
            };
            let detector = open_synth_id_detector(folder, watermark)?;
            return Ok(Detector::Trained(detector.eos(ids(fields.value("eos_token_id")))));
        }
        match watermark {
            Some(WatermarkingConfig::GreenList(config)) => {
                let mut detector = WatermarkDetector::new(config, vocab)?;
                if let [bos] = ids(fields.value("bos_token_id"))[..] {
                    detector = detector.skip_bos(bos);
                }
                if unique {
                    detector = detector.ignore_repeated_ngrams();
                }
                let z_threshold = matches.get_one::<f64>("z-threshold").copied().unwrap_or(3.0);
                Ok(Detector::GreenList { detector, z_threshold })
            }
            Some(WatermarkingConfig::SynthId(config)) => Ok(Detector::Mean(SynthIdWatermark::new(config)?)),
            None => Err(Failure::usage(
                "no watermark is named: give --watermarking-config, for example '{}' for green lists as by default",
            )),
        }
    }

    /// What is found in a text; one kind of JSON object per kind of watermark.
    fn judge(&self, ids: &[TokenId]) -> unspool::Result<Value> {
        Ok(match self {
            Detector::GreenList { detector, z_threshold } => {
                let found = detector.detect(ids)?;
                json!({
                    "kind": "green_list",
                    "num_tokens_scored": found.tokens_scored,
                    "num_green_tokens": found.green_tokens,
                    "green_fraction": found.green_fraction,
                    "z_score": found.z_score,
                    "p_value": found.p_value,
                    "prediction": found.is_marked(*z_threshold),
                    "confidence": 1.0 - found.p_value,
                })
            }
            Detector::Mean(watermark) => synth_id(watermark, None, ids),
            Detector::Trained(detector) => synth_id(detector.watermark(), Some(detector.detect(ids)?), ids),
        })
    }
}

/// The ids of a field that holds one or several.
fn ids(value: Option<&Value>) -> Vec<TokenId> {
    let all = match value {
        Some(Value::Array(all)) => all.as_slice(),
        one => one.map_or(&[][..], std::slice::from_ref),
    };
    all.iter().filter_map(Value::as_u64).filter_map(|id| TokenId::try_from(id).ok()).collect()
}

fn synth_id(watermark: &SynthIdWatermark, posterior: Option<f64>, ids: &[TokenId]) -> Value {
    json!({"kind": "synth_id", "mean_score": watermark.mean_score(ids), "bayesian_score": posterior})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_line_is_among_its_keys() {
        let Ok(WatermarkingConfig::GreenList(config)) = WatermarkingConfig::from_json(&Default::default()) else {
            panic!("green lists are the default")
        };
        let detector = WatermarkDetector::new(config, 300).unwrap();
        let green = Detector::GreenList { detector, z_threshold: 3.0 }.judge(&[1, 2, 3, 4]).unwrap();
        let synth = json!({"kind": "synth_id", "mean_score": 0.5, "bayesian_score": null});
        for found in [green, synth] {
            let line: Value = serde_json::from_str(&line(0, &Keys::default(), &found)).unwrap();
            for key in line.as_object().unwrap().keys() {
                assert!(KEYS.contains(&key.as_str()), "{key}");
            }
        }
    }
}
