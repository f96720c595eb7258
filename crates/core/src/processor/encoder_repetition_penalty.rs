//! Tokens of the source become more likely, against hallucination.

use crate::error::{Error, Result};
use crate::processor::{Processor, RepetitionPenalty};
use crate::row::Row;

/// Above 1, raises every token of the source: the encoder's input, or the prompt of a decoder-only model; Python's
/// `EncoderRepetitionPenaltyLogitsProcessor`. It is a repetition penalty of `1 / penalty` over the source.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{EncoderRepetitionPenalty, Processor};
///
/// let mut scores = [2.0, -2.0, 1.0, 1.0];
/// let row = Row { ids: &[0, 1, 2], prompt_len: 2, prompt: 0 };
/// EncoderRepetitionPenalty::new(2.0)?.apply(&row, &mut scores)?;
/// assert_eq!(scores, [4.0, -1.0, 1.0, 1.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "EncoderRepetitionPenaltyLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct EncoderRepetitionPenalty {
    penalty: RepetitionPenalty,
}

impl EncoderRepetitionPenalty {
    /// A penalty above 0.
    ///
    /// # Errors
    ///
    /// Anything but a finite number above 0 (also as `f32`).
    pub fn new(penalty: f64) -> Result<Self> {
        let penalty = RepetitionPenalty::new(1.0 / penalty).map_err(|_| {
            Error::invalid_config(format!(
                "encoder_repetition_penalty is {penalty}, expected a number above 0 (1.0 switches it off)"
            ))
        })?;
        Ok(EncoderRepetitionPenalty { penalty })
    }
}

impl Processor for EncoderRepetitionPenalty {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        self.penalty.apply(&Row { ids: row.prompt(), ..*row }, scores)
    }
}
