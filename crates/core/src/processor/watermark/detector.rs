//! Was a text written with a green list?

use std::collections::HashSet;

use super::config::WatermarkConfig;
use super::green_list::GreenListWatermark;
use crate::error::{Error, Result};
use crate::token::TokenId;

/// Counts green tokens; Python's `WatermarkDetector`.
///
/// ```
/// use unspool_core::processor::{WatermarkConfig, WatermarkDetector};
///
/// let detector = WatermarkDetector::new(WatermarkConfig::default(), 100)?;
/// let found = detector.detect(&[1, 2, 3, 4, 5])?;
/// assert_eq!(found.tokens_scored, 4);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WatermarkDetector {
    watermark: GreenListWatermark,
    bos: Option<TokenId>,
    unique: bool,
}

/// What a detector found in one text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatermarkDetection {
    /// Windows judged.
    pub tokens_scored: usize,
    /// Green tokens among them.
    pub green_tokens: usize,
    /// Their share.
    pub green_fraction: f64,
    /// Standard deviations above what a text without watermark has.
    pub z_score: f64,
    /// Probability of so many green tokens without a watermark: the normal distribution's upper tail, as in transformers 5
    /// (4.x had an approximation).
    pub p_value: f64,
}

impl WatermarkDetection {
    /// Whether the text counts as marked, above `z_threshold` (Python's default is 3).
    pub fn is_marked(&self, z_threshold: f64) -> bool {
        self.z_score > z_threshold
    }
}

impl WatermarkDetector {
    /// A detector of the watermark that this configuration writes.
    ///
    /// # Errors
    ///
    /// As [`GreenListWatermark::new`].
    pub fn new(config: WatermarkConfig, vocab: usize) -> Result<Self> {
        Ok(WatermarkDetector { watermark: GreenListWatermark::new(config, vocab)?, bos: None, unique: false })
    }

    /// A first token that is not judged.
    #[must_use]
    pub fn skip_bos(mut self, bos: TokenId) -> Self {
        self.bos = Some(bos);
        self
    }

    /// Judges equal windows once (`ignore_repeated_ngrams`).
    #[must_use]
    pub fn ignore_repeated_ngrams(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Judges one text.
    ///
    /// # Errors
    ///
    /// A text shorter than one window.
    pub fn detect(&self, ids: &[TokenId]) -> Result<WatermarkDetection> {
        let ids = match ids.split_first() {
            Some((first, rest)) if self.bos == Some(*first) => rest,
            _ => ids,
        };
        let mut seen = HashSet::new();
        let windows = ids.windows(self.watermark.window()).filter(|window| !self.unique || seen.insert(*window));
        let (mut scored, mut green) = (0usize, 0usize);
        for window in windows {
            scored += 1;
            green += usize::from(self.watermark.is_green(window));
        }
        if scored == 0 {
            return Err(Error::invalid_input(format!(
                "the text has {} tokens, a watermark is looked for in at least {}",
                ids.len(),
                self.watermark.window()
            )));
        }
        let (count, ratio) = (scored as f64, self.watermark.ratio());
        let z_score = (green as f64 - ratio * count) / (count * ratio * (1.0 - ratio)).sqrt();
        Ok(WatermarkDetection {
            tokens_scored: scored,
            green_tokens: green,
            green_fraction: green as f64 / count,
            z_score,
            p_value: 0.5 * libm::erfc(z_score / std::f64::consts::SQRT_2),
        })
    }
}
