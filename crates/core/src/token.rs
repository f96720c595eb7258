//! The leaf word of everything: a token id.

use crate::error::{Error, Result};

/// One entry of a model's vocabulary.
pub type TokenId = u32;

/// Whether every id lies inside a vocabulary of `vocab` entries: what every door asks of ids from outside.
///
/// # Errors
///
/// The first id that does not; the message names it, its position and the vocabulary.
///
/// ```
/// let error = unspool_core::check_ids(&[1, 10], 10).unwrap_err();
/// assert!(error.message().starts_with("id 10 at position 1 is outside the vocabulary of 10 entries"));
/// ```
pub fn check_ids(ids: &[TokenId], vocab: usize) -> Result<()> {
    let outside = |id: &TokenId| usize::try_from(*id).map_or(true, |id| id >= vocab);
    match ids.iter().enumerate().find(|(_, id)| outside(id)) {
        None => Ok(()),
        Some((position, id)) => Err(Error::invalid_input(format!(
            "id {id} at position {position} is outside the vocabulary of {vocab} entries; give ids below {vocab} (is this \
             the tokenizer of another model?)"
        ))),
    }
}
