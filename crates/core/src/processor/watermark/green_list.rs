//! Green lists. Kirchenbauer et al., <https://arxiv.org/abs/2301.10226> and <https://arxiv.org/abs/2306.04634>.

use std::sync::OnceLock;

use super::config::{SeedingScheme, WatermarkConfig};
use super::mersenne::Mersenne;
use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::row::Row;
use crate::token::TokenId;

/// Entries of the table that hashes tokens in `selfhash`.
const TABLE: u32 = 1_000_003;
/// Candidates that `selfhash` looks at.
const CANDIDATES: usize = 40;

/// Adds a bias to the green tokens; Python's `WatermarkLogitsProcessor`. A row shorter than the context is left alone.
#[doc(alias = "WatermarkLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct GreenListWatermark {
    config: WatermarkConfig,
    vocab: u32,
    table: OnceLock<Vec<u32>>,
}

impl GreenListWatermark {
    /// The watermark over a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    ///
    /// A ratio outside `0..1`, a context of 0 tokens, or for `selfhash` fewer than 40 tokens.
    pub fn new(config: WatermarkConfig, vocab: usize) -> Result<Self> {
        config.check()?;
        if config.seeding_scheme == SeedingScheme::SelfHash && vocab < CANDIDATES {
            return Err(Error::invalid_config(format!(
                "seeding_scheme selfhash needs a vocabulary of at least {CANDIDATES} tokens, got {vocab}"
            )));
        }
        let vocab = u32::try_from(vocab).map_err(|_| Error::invalid_config("the vocabulary is too large"))?;
        Ok(GreenListWatermark { config, vocab, table: OnceLock::new() })
    }

    /// Tokens that a window of the detector has: the context, and the judged token where the scheme does not hash it.
    pub(super) fn window(&self) -> usize {
        self.config.context_width.saturating_add(usize::from(self.config.seeding_scheme == SeedingScheme::LeftHash))
    }

    /// Share of green tokens.
    pub(super) fn ratio(&self) -> f64 {
        self.config.greenlist_ratio
    }

    /// Whether the last token of a window is green after the others.
    pub(super) fn is_green(&self, window: &[TokenId]) -> bool {
        let Some((last, before)) = window.split_last() else { return false };
        match self.config.seeding_scheme {
            SeedingScheme::LeftHash => self.has(self.left_seed(before), *last),
            SeedingScheme::SelfHash => self.has(self.self_seed(window, *last), *last),
        }
    }

    /// Python's integers do not overflow here; in `selfhash` they are 64-bit tensors and do.
    fn left_seed(&self, context: &[TokenId]) -> i128 {
        i128::from(self.config.hashing_key) * i128::from(context.last().copied().unwrap_or(0))
    }

    fn self_seed(&self, context: &[TokenId], candidate: TokenId) -> i128 {
        let table = self.table.get_or_init(|| Mersenne::new(self.config.hashing_key as u64).permutation(TABLE, TABLE));
        let hash = |id: TokenId| i64::from(table.get((id % TABLE) as usize).copied().unwrap_or(0)) + 1;
        let seed = |id: &TokenId| self.config.hashing_key.wrapping_mul(hash(*id)).wrapping_mul(hash(candidate));
        context.iter().map(seed).min().unwrap_or(0).into()
    }

    fn green(&self, seed: i128) -> Vec<TokenId> {
        random(seed).permutation(self.vocab, self.count())
    }

    /// Whether a token is in that list.
    fn has(&self, seed: i128, id: TokenId) -> bool {
        random(seed).permutation_has(self.vocab, self.count(), id)
    }

    /// Tokens of a list.
    fn count(&self) -> u32 {
        (f64::from(self.vocab) * self.config.greenlist_ratio) as u32
    }
}

fn random(seed: i128) -> Mersenne {
    Mersenne::new(seed.rem_euclid(i128::from(u64::MAX)) as u64)
}

impl Processor for GreenListWatermark {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        if row.ids.len() < self.config.context_width {
            return Ok(());
        }
        let green = match self.config.seeding_scheme {
            SeedingScheme::LeftHash => self.green(self.left_seed(row.ids)),
            SeedingScheme::SelfHash => {
                let mut order: Vec<u32> = (0..scores.len() as u32).collect();
                let best = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
                if order.len() > CANDIDATES {
                    order.select_nth_unstable_by(CANDIDATES, best);
                    order.truncate(CANDIDATES);
                }
                let start = row.ids.len() + 1 - self.config.context_width;
                let mut window = row.ids.get(start..).unwrap_or_default().to_vec();
                order.retain(|candidate| {
                    window.push(*candidate);
                    let green = self.is_green(&window);
                    window.pop();
                    green
                });
                order
            }
        };
        for id in green {
            if let Some(score) = scores.get_mut(id as usize) {
                *score += self.config.bias as f32;
            }
        }
        Ok(())
    }
}
