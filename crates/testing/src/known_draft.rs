//! A draft that knows the answer.

use unspool_core::draft::{Ask, Drafted};
use unspool_core::rng::Rng;
use unspool_core::{Draft, Result, TokenId};

/// Proposes what plain decoding wrote, each token made wrong with a probability.
#[derive(Clone, Debug)]
pub struct KnownDraft {
    answers: Vec<Vec<TokenId>>,
    wrong: f64,
    most: usize,
    vocab: usize,
    rng: Rng,
}

impl KnownDraft {
    /// `answers` are the new tokens of every row; at most `most` are proposed at a time, and a wrong one is any of `vocab`.
    pub fn new(answers: Vec<Vec<TokenId>>, wrong: f64, most: usize, vocab: usize, rng: Rng) -> Self {
        KnownDraft { answers, wrong, most, vocab, rng }
    }
}

impl Draft for KnownDraft {
    fn draft(&mut self, ask: &Ask<'_>) -> Result<Drafted> {
        let rest = self.answers[ask.index].get(ask.row.new_tokens().len()..).unwrap_or_default();
        let mut tokens = rest[..rest.len().min(self.most)].to_vec();
        for token in &mut tokens {
            if self.rng.uniform() < self.wrong {
                *token = (self.rng.next_u64() % self.vocab as u64) as TokenId;
            }
        }
        Ok(Drafted::tokens(tokens))
    }
}
