//! Token sequences that may not be written.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::min_length::forbid;
use crate::row::Row;
use crate::token::TokenId;

/// Forbids the last token of each sequence when the row ends with the tokens before it; Python's
/// `NoBadWordsLogitsProcessor`. As in transformers 5, the row may be one token shorter than the sequence.
///
/// Cost: the single tokens, and the sequences that begin with a token at hand; not the length of the whole list.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{NoBadWords, Processor};
///
/// let mut scores = [0.0; 4];
/// let row = Row { ids: &[0, 1], prompt_len: 2, prompt: 0 };
/// NoBadWords::new(vec![vec![3], vec![1, 2]], &[3])?.apply(&row, &mut scores)?;
/// assert_eq!(scores, [0.0, 0.0, f32::NEG_INFINITY, 0.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "NoBadWordsLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct NoBadWords {
    single: Vec<TokenId>,
    /// By the token before the last: the tokens before both, and the last.
    several: HashMap<TokenId, Vec<(Vec<TokenId>, TokenId)>>,
}

impl NoBadWords {
    /// Sequences of ids. A sequence of one end token is left out, an empty one is ignored.
    ///
    /// # Errors
    ///
    /// No sequence at all.
    pub fn new(words: Vec<Vec<TokenId>>, eos: &[TokenId]) -> Result<Self> {
        if words.is_empty() {
            return Err(Error::invalid_config("bad_words_ids is empty, expected at least one list of token ids"));
        }
        let mut rule = NoBadWords { single: Vec::new(), several: HashMap::new() };
        for word in words.into_iter().collect::<HashSet<_>>() {
            match word.as_slice() {
                [] => {}
                [id] if eos.contains(id) => {}
                [id] => rule.single.push(*id),
                [before @ .., key, last] => rule.several.entry(*key).or_default().push((before.to_vec(), *last)),
            }
        }
        Ok(rule)
    }
}

impl Processor for NoBadWords {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        forbid(scores, &self.single);
        let Some((key, before)) = row.ids.split_last() else { return Ok(()) };
        for (start, last) in self.several.get(key).into_iter().flatten() {
            if before.ends_with(start) {
                forbid(scores, &[*last]);
            }
        }
        Ok(())
    }
}
