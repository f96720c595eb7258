//! Whether there is anything to draw.

use super::peak::peak;
use crate::error::{Error, Result};

/// The largest of `scores` that tokens are to be drawn from.
///
/// # Errors
///
/// When every score is minus infinity, or one is NaN or plus infinity.
pub(super) fn drawable(scores: &[f32]) -> Result<f32> {
    let best = peak(scores);
    if best.nan || best.max == f32::INFINITY {
        return Err(Error::engine(
            "the scores hold NaN or infinity, so no token can be drawn; set remove_invalid_values, or check the model's \
             weights and custom rules",
        ));
    }
    if best.max == f32::NEG_INFINITY {
        return Err(Error::invalid_config(
            "no token is left to draw from: the rules forbid the whole vocabulary; relax the rules that forbid tokens",
        ));
    }
    Ok(best.max)
}
