//! Only the tokens that a function allows. <https://arxiv.org/abs/2010.00904>.

use std::fmt;

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// The allowed tokens after a row: `(prompt, ids) -> ids`.
pub type AllowedTokens = dyn FnMut(usize, &[TokenId]) -> Vec<TokenId> + Send;

/// Forbids every token that a function does not allow; Python's `PrefixConstrainedLogitsProcessor`
/// (`prefix_allowed_tokens_fn`). As in transformers 5, where every allowed token is forbidden already, the allowed ones
/// become 0.
#[doc(alias = "PrefixConstrainedLogitsProcessor")]
#[doc(alias = "prefix_allowed_tokens_fn")]
pub struct PrefixConstrained {
    allowed: Box<AllowedTokens>,
    kept: Vec<(TokenId, f32)>,
}

impl PrefixConstrained {
    /// A function of the index of the prompt and of the row's ids, prompt included.
    ///
    /// ```
    /// use unspool_core::Row;
    /// use unspool_core::processor::{PrefixConstrained, Processor};
    ///
    /// let mut rule = PrefixConstrained::new(|_, ids| if ids.len() < 2 { vec![1, 2] } else { vec![0] });
    /// let mut scores = [4.0, 3.0, 2.0];
    /// rule.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
    /// assert_eq!(scores, [f32::NEG_INFINITY, 3.0, 2.0]);
    /// # Ok::<(), unspool_core::Error>(())
    /// ```
    pub fn new(allowed: impl FnMut(usize, &[TokenId]) -> Vec<TokenId> + Send + 'static) -> Self {
        PrefixConstrained { allowed: Box::new(allowed), kept: Vec::new() }
    }
}

impl Processor for PrefixConstrained {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let allowed = (self.allowed)(row.prompt, row.ids);
        if allowed.is_empty() {
            return Err(Error::invalid_input(format!(
                "prefix_allowed_tokens_fn allows no token after {} tokens; return at least one id",
                row.ids.len()
            )));
        }
        self.kept.clear();
        for id in allowed {
            let vocab = scores.len();
            let score = scores.get(id as usize).ok_or_else(|| {
                Error::invalid_input(format!(
                    "prefix_allowed_tokens_fn allows token {id}, the vocabulary has {vocab} tokens"
                ))
            })?;
            self.kept.push((id, *score));
        }
        let hopeless = self.kept.iter().all(|(_, score)| *score == f32::NEG_INFINITY);
        scores.fill(f32::NEG_INFINITY);
        for (id, score) in &self.kept {
            scores[*id as usize] = if hopeless { 0.0 } else { *score };
        }
        Ok(())
    }
}

impl fmt::Debug for PrefixConstrained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefixConstrained").finish_non_exhaustive()
    }
}
