//! SynthID's trained detector: Bayes' rule over the bits of a text. <https://doi.org/10.1038/s41586-024-08025-4>.

use super::synth_id::SynthIdWatermark;
use crate::error::{Error, Result};
use crate::token::TokenId;

/// Smallest likelihood that is told from none.
const LEAST: f64 = 1e-30;

/// A likelihood without the mark: each bit is a coin.
const UNMARKED: f64 = 0.5;

/// How far the prior stays away from certainty.
const CERTAIN: f64 = 1e-5;

/// How likely a text's bits are with the mark and without it; Python's `BayesianDetectorModel`.
///
/// Layer `k` of a token's tournament was played between two different tokens with a probability of
/// `sigmoid(beta[k] + sum of delta[k][l] * bit[l] for l < k)`; then the bit is 1 three times out of four, else every other
/// time.
#[doc(alias = "BayesianDetectorModel")]
#[doc(alias = "BayesianDetectorWatermarkedLikelihood")]
#[derive(Clone, Debug, PartialEq)]
pub struct BayesianDetector {
    beta: Vec<f32>,
    delta: Vec<f32>,
    prior: f32,
}

impl BayesianDetector {
    /// A detector of trained parameters: `beta`, `[depth]`, `delta`, `[depth, depth]`, and the `prior` probability of a
    /// mark.
    ///
    /// # Errors
    ///
    /// No layers, another number of `delta` than layers squared, or a number that is not finite.
    pub fn new(beta: Vec<f32>, delta: Vec<f32>, prior: f32) -> Result<Self> {
        let depth = beta.len();
        if depth == 0 || Some(delta.len()) != depth.checked_mul(depth) {
            return Err(Error::invalid_model(format!(
                "the detector has {depth} beta and {} delta, expected at least one layer, and a delta for each pair of layers",
                delta.len()
            )));
        }
        if beta.iter().chain(&delta).chain([&prior]).any(|number| !number.is_finite()) {
            return Err(Error::invalid_model("the detector has a parameter that is no finite number; train it again"));
        }
        Ok(BayesianDetector { beta, delta, prior })
    }

    /// Layers of the tournament: bits of a token.
    pub fn depth(&self) -> usize {
        self.beta.len()
    }

    /// The probability that a text has the mark, given the bits of each token that is judged, `[tokens][depth]`, 0 or 1.
    ///
    /// Without a token it is the prior.
    ///
    /// # Errors
    ///
    /// A token with another number of bits than layers.
    pub fn posterior<'a>(&self, g_values: impl IntoIterator<Item = &'a [u8]>) -> Result<f64> {
        let prior = f64::from(self.prior).clamp(CERTAIN, 1.0 - CERTAIN);
        let mut log_odds = (prior / (1.0 - prior)).ln();
        for bits in g_values {
            if bits.len() != self.depth() {
                return Err(Error::invalid_input(format!(
                    "a token has {} bits, the detector {} layers; use the watermark that it was trained on",
                    bits.len(),
                    self.depth()
                )));
            }
            log_odds += self.evidence(bits);
        }
        Ok(sigmoid(log_odds))
    }

    /// The log-odds of one token's bits.
    fn evidence(&self, bits: &[u8]) -> f64 {
        let layers = bits.iter().zip(&self.beta).zip(self.delta.chunks_exact(self.depth()));
        let layer = |(layer, ((bit, beta), delta)): (usize, ((&u8, &f32), &[f32]))| {
            let before = bits.iter().zip(delta).take(layer);
            let weight: f64 = before.map(|(bit, delta)| f64::from(*bit) * f64::from(*delta)).sum();
            let two = sigmoid(f64::from(*beta) + weight);
            let likelihood = 0.5 * ((f64::from(*bit) + 0.5) * two + (1.0 - two));
            (likelihood.max(LEAST) / UNMARKED).ln()
        };
        layers.enumerate().map(layer).sum()
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Was a text written with SynthID's mark? Python's `SynthIDTextWatermarkDetector`.
///
/// ```
/// use unspool_core::processor::{BayesianDetector, SynthIdConfig, SynthIdDetector, SynthIdWatermark};
///
/// let config = SynthIdConfig::new(3, vec![11, 22]);
/// let model = BayesianDetector::new(vec![-2.5, -2.5], vec![0.0; 4], 0.5)?;
/// let detector = SynthIdDetector::new(SynthIdWatermark::new(config)?, model)?;
/// let posterior = detector.detect(&[1, 2, 3, 4, 5])?;
/// assert!(posterior > 0.0 && posterior < 1.0);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "SynthIDTextWatermarkDetector")]
#[derive(Clone, Debug)]
pub struct SynthIdDetector {
    watermark: SynthIdWatermark,
    model: BayesianDetector,
    eos: Vec<TokenId>,
}

impl SynthIdDetector {
    /// A detector of `watermark` by a model that was trained on it.
    ///
    /// # Errors
    ///
    /// A model with another number of layers than the watermark has keys.
    pub fn new(watermark: SynthIdWatermark, model: BayesianDetector) -> Result<Self> {
        let keys = watermark.config().keys.len();
        if keys != model.depth() {
            return Err(Error::invalid_config(format!(
                "the watermark has {keys} keys, the detector {} layers; use the watermark that it was trained on",
                model.depth()
            )));
        }
        Ok(SynthIdDetector { watermark, model, eos: Vec::new() })
    }

    /// Tokens that end a text: from the first of them on nothing is judged.
    #[must_use]
    pub fn eos(mut self, eos: Vec<TokenId>) -> Self {
        self.eos = eos;
        self
    }

    /// The watermark that is looked for.
    pub fn watermark(&self) -> &SynthIdWatermark {
        &self.watermark
    }

    /// The probability that the text has the mark. Tokens after a context that came before are not judged.
    ///
    /// # Errors
    ///
    /// A text shorter than an n-gram.
    pub fn detect(&self, ids: &[TokenId]) -> Result<f64> {
        let length = self.watermark.config().ngram_len;
        if ids.len() < length {
            return Err(Error::invalid_input(format!(
                "the text has {} tokens, a watermark is looked for in at least {length}",
                ids.len()
            )));
        }
        let end = ids.iter().position(|id| self.eos.contains(id)).unwrap_or(ids.len());
        let judged = self.watermark.judged(ids.get(..end).unwrap_or_default());
        let g_values: Vec<Vec<u8>> = judged.map(|ngram| self.watermark.g_values(ngram)).collect();
        self.model.posterior(g_values.iter().map(Vec::as_slice))
    }
}
