//! Numbers added to the scores of token sequences.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// Adds each sequence's bias to the score of its last token when the row ends with the tokens before it; Python's
/// `SequenceBiasLogitsProcessor`. All that match add up. As in transformers 5, the row may be one token shorter than the
/// sequence.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, SequenceBias};
///
/// let biases = vec![(vec![1], 1.5), (vec![2, 3], 10.0), (vec![1, 2, 3], -4.0)];
/// let mut scores = [0.0; 5];
/// SequenceBias::new(biases)?.apply(&Row { ids: &[0, 1, 2], prompt_len: 3, prompt: 0 }, &mut scores)?;
/// assert_eq!(scores, [0.0, 1.5, 0.0, 6.0, 0.0]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "SequenceBiasLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct SequenceBias {
    /// Sequences of one token first; each split before its last token.
    biases: Vec<(Vec<TokenId>, TokenId, f32)>,
    /// The sums of this call.
    sums: HashMap<TokenId, f32>,
}

impl SequenceBias {
    /// Sequences with their biases; of equal sequences the last one counts.
    ///
    /// # Errors
    ///
    /// No sequence at all, an empty sequence, or a bias that is not a number.
    pub fn new(biases: Vec<(Vec<TokenId>, f32)>) -> Result<Self> {
        if biases.is_empty() {
            return Err(Error::invalid_config("sequence_bias is empty, expected at least one [[ids], bias] pair"));
        }
        let mut rule = SequenceBias { biases: Vec::new(), sums: HashMap::new() };
        let mut places: HashMap<Vec<TokenId>, usize> = HashMap::new();
        for (ids, bias) in biases {
            let Some((last, before)) = ids.split_last() else {
                return Err(Error::invalid_config("sequence_bias has an empty sequence, expected token ids"));
            };
            if bias.is_nan() {
                return Err(Error::invalid_config(format!("sequence_bias of {ids:?} is {bias}, expected a number")));
            }
            match places.get(&ids).and_then(|place| rule.biases.get_mut(*place)) {
                Some((.., known)) => *known = bias,
                None => {
                    rule.biases.push((before.to_vec(), *last, bias));
                    places.insert(ids, rule.biases.len() - 1);
                }
            }
        }
        rule.biases.sort_by_key(|(before, ..)| !before.is_empty());
        Ok(rule)
    }
}

impl Processor for SequenceBias {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        self.sums.clear();
        for (before, last, bias) in &self.biases {
            if row.ids.ends_with(before) {
                *self.sums.entry(*last).or_default() += bias;
            }
        }
        for (id, sum) in &self.sums {
            let vocab = scores.len();
            let score = scores.get_mut(*id as usize).ok_or_else(|| {
                Error::invalid_input(format!("sequence_bias names token {id}, the vocabulary has {vocab} tokens"))
            })?;
            *score += sum;
        }
        Ok(())
    }
}
