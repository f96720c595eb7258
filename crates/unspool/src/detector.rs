//! A folder with SynthID's trained detector.

use std::fs;
use std::path::Path;

use serde_json::Value;
use unspool_core::processor::{BayesianDetector, SynthIdConfig, SynthIdDetector, SynthIdWatermark, WatermarkingConfig};
use unspool_core::{Error, Result};
use unspool_import::quant::dequantize;
use unspool_import::safetensors::SafetensorsFile;

/// Most layers of a detector; a watermark has as many keys at most.
const MAX_DEPTH: usize = 1024;

/// The largest `config.json` that is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Opens what Python's `BayesianDetectorModel.save_pretrained` writes: `model.safetensors` and `config.json`.
///
/// The detector looks for the watermark that its `config.json` names; `watermark` stands in for one that it does not name.
///
/// # Errors
///
/// When a file is missing or broken, the parameters do not have the shapes of a detector, or no watermark is named, or two
/// different ones.
///
/// ```no_run
/// let detector = unspool::open_synth_id_detector("path/to/detector", None)?.eos(vec![2]);
/// let posterior = detector.detect(&[5, 17, 3, 9, 41, 8])?;
/// # Ok::<(), unspool::Error>(())
/// ```
#[doc(alias = "BayesianDetectorModel")]
pub fn open_synth_id_detector(folder: impl AsRef<Path>, watermark: Option<SynthIdConfig>) -> Result<SynthIdDetector> {
    let folder = folder.as_ref();
    let at = |error: Error| error.at(folder.display());
    let own = watermark_of(&config(&folder.join("config.json"))?).map_err(at)?;
    let watermark = match (own, watermark) {
        (Some(own), Some(given)) if own != given => {
            return Err(at(Error::invalid_config(
                "the detector was trained on another watermarking_config than the one given; leave it out",
            )));
        }
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => {
            return Err(at(Error::invalid_config(
                "the detector's config.json names no watermarking_config; give the one it was trained on",
            )));
        }
    };
    let model = parameters(&folder.join("model.safetensors"))?;
    SynthIdDetector::new(SynthIdWatermark::new(watermark).map_err(at)?, model).map_err(at)
}

fn config(path: &Path) -> Result<Value> {
    let at = |error: Error| error.at(path.display());
    let unread = |error| at(Error::io("this file of the detector could not be read").because(error));
    let size = fs::metadata(path).map_err(unread)?.len();
    if size > MAX_CONFIG_BYTES {
        return Err(at(Error::invalid_model(format!(
            "this file has {size} bytes, expected at most {MAX_CONFIG_BYTES}"
        ))));
    }
    let text = fs::read_to_string(path).map_err(unread)?;
    serde_json::from_str(&text).map_err(|error| at(Error::invalid_model("this file is no JSON").because(error)))
}

fn watermark_of(config: &Value) -> Result<Option<SynthIdConfig>> {
    let Some(object) = config.get("watermarking_config").filter(|value| !value.is_null()) else { return Ok(None) };
    let object = object.as_object().ok_or_else(|| Error::invalid_model("watermarking_config is no object"))?;
    match WatermarkingConfig::from_json(object)? {
        WatermarkingConfig::SynthId(config) => Ok(Some(config)),
        WatermarkingConfig::GreenList(_) => Err(Error::invalid_model(
            "watermarking_config is that of green lists; a trained detector is for SynthID, which has ngram_len and keys",
        )),
    }
}

/// Python's names and shapes: `[1, 1, depth]`, `[1, 1, depth, depth]` and `[1]`.
fn parameters(path: &Path) -> Result<BayesianDetector> {
    let file = SafetensorsFile::open(path)?;
    let at = |error: Error| error.at(path.display());
    let read = |name: &str| -> Result<(Vec<usize>, Vec<f32>)> {
        let missing = || Error::invalid_model(format!("there is no {name:?}; expected a saved BayesianDetectorModel"));
        let tensor = file.tensor(name)?.ok_or_else(missing)?;
        let count = tensor.shape.iter().product::<usize>();
        if count > MAX_DEPTH * MAX_DEPTH {
            return Err(Error::invalid_model(format!(
                "{name:?} has {count} numbers, a detector at most {MAX_DEPTH} layers"
            )));
        }
        let mut numbers = vec![0.0; count];
        dequantize(tensor.ggml_type, tensor.data, &mut numbers)?;
        Ok((tensor.shape.to_vec(), numbers))
    };
    let shaped = |name: &str, expected: &[usize]| -> Result<Vec<f32>> {
        let (shape, numbers) = read(name).map_err(at)?;
        if shape == expected {
            return Ok(numbers);
        }
        Err(at(Error::invalid_model(format!("{name:?} has the shape {shape:?}, expected {expected:?}"))))
    };
    let (shape, beta) = read("likelihood_model_watermarked.beta").map_err(at)?;
    let &[1, 1, depth] = &shape[..] else {
        return Err(at(Error::invalid_model(format!(
            "\"likelihood_model_watermarked.beta\" has the shape {shape:?}, expected [1, 1, layers]"
        ))));
    };
    let delta = shaped("likelihood_model_watermarked.delta", &[1, 1, depth, depth])?;
    let prior = shaped("prior", &[1])?;
    BayesianDetector::new(beta, delta, prior.first().copied().unwrap_or(f32::NAN)).map_err(at)
}
