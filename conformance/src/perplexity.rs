//! How well a model foresees a page of text, to hold one import of a checkpoint against another.

use unspool_core::score::{ScoredText, score};
use unspool_core::{Error, Model, Result, TokenId};

/// The opening of "Alice's Adventures in Wonderland" (1865, public domain).
pub const PAGE: &str = include_str!("../data/page.txt");

/// Tokens of one step when the page runs as a prompt.
pub const PROMPT_STEP: usize = 128;

/// The perplexity of `ids` under `model`: the exponential of the mean negative log-probability of every token but the
/// first, given those before it.
///
/// # Errors
///
/// When there are fewer than two ids, or the model fails.
pub fn perplexity(model: &dyn Model, ids: &[TokenId], step: usize) -> Result<f64> {
    let (first, rest) = ids
        .split_first()
        .filter(|(_, rest)| !rest.is_empty())
        .ok_or_else(|| Error::invalid_input(format!("perplexity needs at least 2 tokens, got {}", ids.len())))?;
    let text = ScoredText { context: vec![*first], continuation: rest.to_vec() };
    let scores = score(model, &[text], 1, Some(step))?;
    Ok(scores.first().map_or(f64::NAN, |score| score.perplexity()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_about_seven_hundred_words() {
        let words = PAGE.split_whitespace().count();
        assert!((600..900).contains(&words), "{words}");
    }
}
