//! The end-of-sequence tokens.

use crate::error::Result;
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};
use crate::token::TokenId;

/// Ends a row when its newest token is one of the end-of-sequence tokens; Python's `EosTokenCriteria`.
///
/// The token stays in the row. A prompt that ends with such a token does not end its row: criteria are asked after a
/// new token only.
#[doc(alias = "EosTokenCriteria")]
#[derive(Clone, Debug)]
pub struct Eos {
    ids: Vec<TokenId>,
}

impl Eos {
    /// Ends rows at any of `ids`.
    pub fn new(ids: Vec<TokenId>) -> Self {
        Eos { ids }
    }
}

impl Criterion for Eos {
    fn check(&mut self, row: &Row<'_>, _scores: &[f32]) -> Result<Option<FinishReason>> {
        Ok(row.ids.last().filter(|id| self.ids.contains(id)).map(|_| FinishReason::Eos))
    }
}
