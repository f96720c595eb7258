//! SynthID-Text: a tournament of hashed bits. <https://doi.org/10.1038/s41586-024-08025-4>.

use std::collections::HashMap;

use super::config::SynthIdConfig;
use super::mersenne::Mersenne;
use crate::error::Result;
use crate::processor::Processor;
use crate::processor::softmax::softmax;
use crate::row::Row;
use crate::token::TokenId;

/// Marks the distribution by the tokens before; Python's `SynthIDTextWatermarkLogitsProcessor`.
///
/// The context is made of new tokens only, with zeros before the first. A context that was marked before in the row is
/// left alone. Cost: one hash per token of the vocabulary and key.
#[doc(alias = "SynthIDTextWatermarkLogitsProcessor")]
#[derive(Clone, Debug)]
pub struct SynthIdWatermark {
    config: SynthIdConfig,
    table: Vec<u8>,
    probabilities: Vec<f32>,
    bits: Vec<u8>,
}

impl SynthIdWatermark {
    /// The watermark of a configuration.
    ///
    /// # Errors
    ///
    /// N-grams of fewer than 2 or more than 128 tokens, no key or more than 1024, an empty table or history, or one above
    /// 2^24.
    pub fn new(config: SynthIdConfig) -> Result<Self> {
        config.check()?;
        let mut random = Mersenne::new(config.sampling_table_seed);
        let table = (0..config.sampling_table_size).map(|_| (random.next() % 2) as u8).collect();
        Ok(SynthIdWatermark { config, table, probabilities: Vec::new(), bits: Vec::new() })
    }

    /// The bits of the last token of an n-gram, one per key: what a detector averages over a text.
    #[doc(alias = "compute_g_values")]
    pub fn g_values(&self, ngram: &[TokenId]) -> Vec<u8> {
        let hash = ngram.iter().fold(1, |hash, id| step(hash, i64::from(*id)));
        self.config.keys.iter().map(|key| bit(&self.table, step(hash, *key))).collect()
    }

    /// The mean of the bits of every n-gram of `ids` whose context is new: about 0.5 in text without the mark, above it
    /// with the mark; `None` when the text is shorter than an n-gram.
    pub fn mean_score(&self, ids: &[TokenId]) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0.0);
        for bit in self.judged(ids).flat_map(|ngram| self.g_values(ngram)) {
            sum += f64::from(bit);
            count += 1.0;
        }
        (count > 0.0).then(|| sum / count)
    }

    /// The n-grams of a text whose context was not among the remembered ones before: those that could be marked.
    #[doc(alias = "compute_context_repetition_mask")]
    pub(super) fn judged<'a>(&self, ids: &'a [TokenId]) -> impl Iterator<Item = &'a [TokenId]> {
        let size = self.config.context_history_size;
        let mut last = HashMap::new();
        ids.windows(self.config.ngram_len).enumerate().filter_map(move |(place, ngram)| {
            let (_, context) = ngram.split_last()?;
            let hash = context.iter().fold(1, |hash, id| step(hash, i64::from(*id)));
            let before = last.insert(hash, place);
            // The history begins with zeros.
            let repeated = before.is_some_and(|before| place - before <= size) || (hash == 0 && place < size);
            (!repeated).then_some(ngram)
        })
    }

    /// What it was made of.
    pub fn config(&self) -> &SynthIdConfig {
        &self.config
    }

    /// Hash of the `ngram_len - 1` tokens before new token `call`.
    fn context_hash(&self, new: &[TokenId], call: usize) -> i64 {
        let width = self.config.ngram_len - 1;
        let zeros = width.saturating_sub(call);
        let ids = &new[call.saturating_sub(width)..call];
        let start = (0..zeros).fold(1, |hash, _| step(hash, 0));
        ids.iter().fold(start, |hash, id| step(hash, i64::from(*id)))
    }
}

fn bit(table: &[u8], hash: i64) -> u8 {
    // The low bits are the same remainder where the size is a power of two, and it usually is.
    let size = table.len();
    let place =
        if size.is_power_of_two() { hash as usize & (size - 1) } else { hash.rem_euclid(size.max(1) as i64) as usize };
    table.get(place).copied().unwrap_or(0)
}

fn step(hash: i64, item: i64) -> i64 {
    hash.wrapping_add(item).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)
}

impl Processor for SynthIdWatermark {
    fn apply(&mut self, row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let new = row.new_tokens();
        let call = new.len();
        if self.config.debug_mode {
            scores.fill(1.0);
        }
        let first = if self.config.skip_first_ngram_calls { self.config.ngram_len - 1 } else { 0 };
        if call < first {
            return Ok(());
        }
        let context = self.context_hash(new, call);
        let size = self.config.context_history_size;
        let mut remembered = call.saturating_sub(size).max(first)..call;
        // The history begins with zeros.
        let zeros = remembered.len() < size && context == 0;
        if zeros || remembered.any(|before| self.context_hash(new, before) == context) {
            return Ok(());
        }
        if softmax(scores, &mut self.probabilities).is_none() {
            scores.fill(f32::MIN);
            return Ok(());
        }
        for key in &self.config.keys {
            self.bits.clear();
            let hashes = (0..scores.len()).map(|id| step(step(context, id as i64), *key));
            self.bits.extend(hashes.map(|hash| bit(&self.table, hash)));
            let marked = self.bits.iter().zip(&self.probabilities).filter(|(bit, _)| **bit == 1);
            let mass = marked.map(|(_, probability)| f64::from(*probability)).sum::<f64>() as f32;
            for (probability, bit) in self.probabilities.iter_mut().zip(&self.bits) {
                *probability *= 1.0 + f32::from(*bit) - mass;
            }
        }
        for (score, probability) in scores.iter_mut().zip(&self.probabilities) {
            let log = probability.ln();
            *score = if log.is_finite() { log } else { f32::MIN };
        }
        Ok(())
    }
}
