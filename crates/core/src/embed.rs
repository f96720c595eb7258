//! One vector for a text: what a decoder knows of it at the end, or on average.

use crate::decode::feed;
use crate::error::{Error, Result};
use crate::hidden::HiddenAsk;
use crate::memory::Need;
use crate::model::{Keep, Model, SessionOptions};
use crate::token::{TokenId, check_ids};

/// Tokens in one step.
const CHUNK: usize = 128;

/// How the last hidden states of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// That of the last token, which has seen all others.
    #[default]
    Last,
    /// The mean over all tokens.
    Mean,
}

/// The embedding of each of `texts`, `[width] f32`: its last hidden states (after the final norm), pooled; with `normalize`
/// of length 1, as `torch.nn.functional.normalize` makes it. At most `batch` texts run together, each from an empty cache
/// and position 0; the results are in the order of the texts and do not depend on `batch`.
///
/// # Errors
///
/// An empty text, an id outside the vocabulary, a text beyond the model's positions (the place is the text's index); a model
/// whose graph gives no hidden states. And those of the model.
///
/// ```no_run
/// # fn sample(model: &dyn unspool_core::Model) -> unspool_core::Result<()> {
/// use unspool_core::embed::{Pooling, embed};
///
/// let vectors = embed(model, &[vec![1, 2, 3], vec![4]], Pooling::Mean, true, 8)?;
/// assert_eq!(vectors.len(), 2);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "last_hidden_state")]
pub fn embed(
    model: &dyn Model,
    texts: &[Vec<TokenId>],
    pooling: Pooling,
    normalize: bool,
    batch: usize,
) -> Result<Vec<Vec<f32>>> {
    for (index, ids) in texts.iter().enumerate() {
        check(model, ids).map_err(|error| error.at_one_of("text", index, texts.len()))?;
    }
    let mut vectors = Vec::with_capacity(texts.len());
    for part in texts.chunks(batch.max(1)) {
        vectors.extend(embed_together(model, part, pooling)?);
    }
    if normalize {
        vectors.iter_mut().for_each(|vector| to_length_one(vector));
    }
    Ok(vectors)
}

/// Refuses a text that cannot be embedded, and a model that cannot embed.
///
/// # Errors
///
/// As [`embed`], without the place.
pub fn check(model: &dyn Model, ids: &[TokenId]) -> Result<()> {
    if model.hidden().is_none() {
        return Err(HiddenAsk { states: &[], keep: Keep::Last }.refused(None));
    }
    if ids.is_empty() {
        return Err(Error::invalid_input("the text has no tokens; give at least one"));
    }
    check_ids(ids, model.vocab_size())?;
    match model.max_positions() {
        Some(positions) if ids.len() > positions => Err(Error::invalid_input(format!(
            "the text has {} tokens and the model takes at most {positions} positions; shorten it or split it",
            ids.len()
        ))),
        _ => Ok(()),
    }
}

fn embed_together(model: &dyn Model, texts: &[Vec<TokenId>], pooling: Pooling) -> Result<Vec<Vec<f32>>> {
    let shape = HiddenAsk { states: &[], keep: Keep::Last }.check(model.hidden())?;
    let keep = match pooling {
        Pooling::Last => Keep::Last,
        Pooling::Mean => Keep::All,
    };
    let ask = HiddenAsk { states: &[shape.last], keep };
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    Need::rows(model, texts.len(), longest).check()?;
    let mut session = model.open(&SessionOptions { rows: texts.len(), capacity: longest })?;
    let mut sums = vec![vec![0.0f64; shape.width]; texts.len()];
    let rows: Vec<&[TokenId]> = texts.iter().map(Vec::as_slice).collect();
    for inputs in feed(&rows, CHUNK, Keep::None) {
        let (_, hidden) = session.step_hidden(&inputs, &ask)?;
        let mut position = 0;
        for (sum, input) in sums.iter_mut().zip(&inputs) {
            let count = ask.positions_of(input);
            if pooling == Pooling::Last && count > 0 {
                // What an earlier chunk ended with is no end.
                sum.fill(0.0);
            }
            for position in position..position + count {
                for (sum, value) in sum.iter_mut().zip(hidden.at(0, position)) {
                    *sum += f64::from(*value);
                }
            }
            position += count;
        }
    }
    let vectors = sums.into_iter().zip(texts).map(|(sum, text)| {
        let count = if pooling == Pooling::Mean { text.len() as f64 } else { 1.0 };
        sum.into_iter().map(|value| (value / count) as f32).collect()
    });
    Ok(vectors.collect())
}

/// Divides by the length, or by 1e-12 where that is more.
fn to_length_one(vector: &mut [f32]) {
    let square: f64 = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    let length = square.sqrt().max(1e-12);
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_of_nothing_stays_so() {
        let mut nothing = [0.0; 3];
        to_length_one(&mut nothing);
        assert_eq!(nothing, [0.0; 3]);
        let mut vector = [3.0, -4.0];
        to_length_one(&mut vector);
        assert_eq!(vector, [0.6, -0.8]);
    }
}
