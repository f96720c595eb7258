//! Temperature: divides every score, so that draws become bolder (above 1) or safer (below 1).

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;

/// Divides all scores by the temperature; Python's `TemperatureLogitsWarper`. Sampling only.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, Temperature};
///
/// let mut scores = [1.0, 2.0, -3.0];
/// Temperature::new(0.5)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [2.0, 4.0, -6.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "TemperatureLogitsWarper")]
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    temperature: f32,
}

impl Temperature {
    /// A temperature above 0.
    ///
    /// # Errors
    ///
    /// Anything but a finite number above 0 (also as `f32`, in which scores are divided).
    pub fn new(temperature: f64) -> Result<Self> {
        let divisor = temperature as f32;
        if !(divisor > 0.0 && divisor.is_finite()) {
            return Err(Error::invalid_config(format!(
                "temperature is {temperature}, expected a number above 0; for the best token every time set do_sample=false"
            )));
        }
        Ok(Temperature { temperature: divisor })
    }
}

impl Processor for Temperature {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        for score in scores {
            *score /= self.temperature;
        }
        Ok(())
    }
}
