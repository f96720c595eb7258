//! How well a model foresees a page of text, to hold one import of a checkpoint against another.

use unspool_core::{Error, Keep, Model, Result, RowInput, SessionOptions, TokenId};

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
    if ids.len() < 2 {
        return Err(Error::invalid_input(format!("perplexity needs at least 2 tokens, got {}", ids.len())));
    }
    let mut session = model.open(&SessionOptions { rows: 1, capacity: ids.len() })?;
    let mut loss = 0.0;
    for (index, chunk) in ids.chunks(step.max(1)).enumerate() {
        let scores = session.step(&[RowInput { tokens: chunk, keep: Keep::All }])?;
        let followers = ids.iter().skip(index * step.max(1) + 1);
        for (position, follower) in (0..scores.kept()).zip(followers) {
            loss -= log_probability(scores.row(position), *follower)?;
        }
    }
    Ok((loss / (ids.len() - 1) as f64).exp())
}

fn log_probability(scores: &[f32], id: TokenId) -> Result<f64> {
    let score = scores
        .get(id as usize)
        .ok_or_else(|| Error::invalid_input(format!("token {id} is outside the vocabulary of {}", scores.len())))?;
    let peak = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = scores.iter().map(|score| f64::from(score - peak).exp()).sum();
    Ok(f64::from(score - peak) - sum.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_scores_give_one_over_the_vocabulary() {
        let log_probability = log_probability(&[3.0; 4], 2).unwrap();
        assert!((log_probability - 0.25_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn an_id_outside_the_vocabulary_is_an_error() {
        assert!(log_probability(&[0.0; 4], 4).is_err());
    }

    #[test]
    fn the_page_is_about_seven_hundred_words() {
        let words = PAGE.split_whitespace().count();
        assert!((600..900).contains(&words), "{words}");
    }
}
