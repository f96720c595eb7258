//! Watermarks written into the choice of tokens, and their detectors.

mod bayesian;
mod config;
mod detector;
mod green_list;
mod mersenne;
mod synth_id;

pub use bayesian::{BayesianDetector, SynthIdDetector};
pub use config::{SeedingScheme, SynthIdConfig, WatermarkConfig, WatermarkingConfig};
pub use detector::{WatermarkDetection, WatermarkDetector};
pub use green_list::GreenListWatermark;
pub use synth_id::SynthIdWatermark;

#[cfg(test)]
mod tests;
