//! Prompt lookup: what followed the row's last tokens before. <https://github.com/apoorvumang/prompt-lookup-decoding>.

use super::contract::{Ask, Draft, Drafted, Start};
use crate::build;
use crate::config::{AssistedSettings, Settings};
use crate::error::{Error, Result};
use crate::processor::{Chain, Processor};
use crate::row::Row;
use crate::token::TokenId;

/// Proposes what follows an earlier occurrence of the row's last tokens; Python's `PromptLookupCandidateGenerator`.
///
/// Runs of `max_matching_ngram_size` tokens are looked up first, then shorter ones; of several places the leftmost counts.
/// What the generation's bans forbid is not proposed, nor is an end token. The filters of sampling are not asked: they judge
/// by scores, and a lookup has none.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::draft::{Ask, Draft, PromptLookup};
///
/// let mut lookup = PromptLookup::new(3, 2)?;
/// let row = Row { ids: &[1, 2, 3, 4, 1, 2], prompt_len: 6, prompt: 0 };
/// assert_eq!(lookup.draft(&Ask { index: 0, row, most: 10 })?.tokens, [3, 4, 1]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "PromptLookupCandidateGenerator")]
#[doc(alias = "prompt_lookup_num_tokens")]
#[derive(Debug)]
pub struct PromptLookup {
    tokens: usize,
    ngram: usize,
    eos: Vec<TokenId>,
    bans: Chain,
    /// `[vocab]`, empty without bans.
    scores: Vec<f32>,
    /// The row with the tokens tried so far.
    tried: Vec<TokenId>,
}

impl PromptLookup {
    /// Proposes up to `tokens` tokens after runs of up to `ngram`.
    ///
    /// # Errors
    ///
    /// When one of them is 0.
    pub fn new(tokens: usize, ngram: usize) -> Result<Self> {
        for (name, size) in [("prompt_lookup_num_tokens", tokens), ("max_matching_ngram_size", ngram)] {
            if size == 0 {
                return Err(Error::invalid_config(format!("{name} is 0, expected at least 1")));
            }
        }
        let (eos, bans, scores, tried) = (Vec::new(), Chain::default(), Vec::new(), Vec::new());
        Ok(PromptLookup { tokens, ngram, eos, bans, scores, tried })
    }

    /// How many of the tokens from `start` on the bans allow after the row.
    fn allowed(&mut self, row: &Row<'_>, candidate: std::ops::Range<usize>) -> usize {
        if self.bans.is_empty() {
            return candidate.len();
        }
        self.tried.clear();
        self.tried.extend_from_slice(row.ids);
        for (count, place) in candidate.clone().enumerate() {
            let token = row.ids[place];
            self.scores.fill(1.0);
            let view = Row { ids: &self.tried, ..*row };
            let score = match self.bans.apply(&view, &mut self.scores) {
                Ok(()) => self.scores.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY),
                // The row itself may never get here.
                Err(_) => f32::NEG_INFINITY,
            };
            if score == f32::NEG_INFINITY || score == f32::MIN {
                return count;
            }
            self.tried.push(token);
        }
        candidate.len()
    }
}

impl Draft for PromptLookup {
    fn begin(&mut self, start: &Start<'_>) -> Result<()> {
        let settings = Settings { do_sample: false, ..start.settings.clone() };
        self.bans = build::processors(&settings, start.vocab, None, Vec::new())?.0;
        self.scores = if self.bans.is_empty() { Vec::new() } else { vec![1.0; start.vocab] };
        self.eos.clone_from(&settings.eos_token_id);
        Ok(())
    }

    fn draft(&mut self, ask: &Ask<'_>) -> Result<Drafted> {
        let ids = ask.row.ids;
        let most = self.tokens.min(ask.most);
        if most == 0 {
            return Ok(Drafted::default());
        }
        for ngram in (1..=self.ngram.min(ids.len().saturating_sub(1))).rev() {
            let wanted = &ids[ids.len() - ngram..];
            // The last place is the run itself, which nothing follows.
            let places = (0..ids.len() - ngram).filter(|place| ids[*place..].starts_with(wanted));
            for place in places {
                let start = place + ngram;
                let allowed = self.allowed(&ask.row, start..ids.len().min(start + most));
                if allowed > 0 {
                    let found = ids[start..start + allowed].iter().copied();
                    return Ok(Drafted::tokens(found.take_while(|token| !self.eos.contains(token)).collect()));
                }
            }
        }
        Ok(Drafted::default())
    }
}

impl PromptLookup {
    /// The lookup that the settings ask for.
    ///
    /// # Errors
    ///
    /// As [`new`](PromptLookup::new).
    pub fn from_settings(settings: &AssistedSettings) -> Result<Option<Self>> {
        let lookup = |tokens| PromptLookup::new(tokens, settings.max_matching_ngram_size);
        settings.prompt_lookup_num_tokens.map(lookup).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rules;

    fn look(settings: &Settings, tokens: usize, ngram: usize, ids: &[TokenId], most: usize) -> Vec<TokenId> {
        let mut lookup = PromptLookup::new(tokens, ngram).unwrap();
        lookup.begin(&Start { settings, vocab: 10, rows: &[] }).unwrap();
        let row = Row { ids, prompt_len: ids.len(), prompt: 0 };
        lookup.draft(&Ask { index: 0, row, most }).unwrap().tokens
    }

    #[test]
    fn finds_what_python_finds() {
        let eos = Settings { eos_token_id: vec![9], ..Settings::default() };
        let cases: [(&[TokenId], &[TokenId]); 8] = [
            (&[1, 2, 3, 4, 1, 2], &[3, 4, 1]),
            (&[1, 2, 3, 1, 2, 4, 1, 2], &[3, 1, 2]),
            (&[5, 2, 3, 4, 7, 2], &[3, 4, 7]),
            (&[1, 2, 1, 2], &[1, 2]),
            (&[1, 1, 1], &[1]),
            (&[1, 2, 3], &[]),
            (&[1, 2, 3, 9, 4, 1, 2], &[3]),
            (&[1, 2, 9, 4, 1, 2], &[]),
        ];
        for (ids, expected) in cases {
            assert_eq!(look(&eos, 3, 2, ids, 100), expected, "{ids:?}");
        }
        assert!(look(&eos, 3, 2, &[4], 100).is_empty());
    }

    #[test]
    fn one_place_is_left_for_the_models_own_token() {
        assert!(look(&Settings::default(), 3, 2, &[1, 2, 3, 4, 1, 2], 0).is_empty());
        assert_eq!(look(&Settings::default(), 3, 2, &[1, 2, 3, 4, 1, 2], 2), [3, 4]);
    }

    #[test]
    fn a_forbidden_token_cuts_the_proposal_or_sends_on_to_the_next_place() {
        let rules = Rules { suppress_tokens: vec![3], ..Rules::default() };
        let settings = Settings { rules, eos_token_id: vec![9], ..Settings::default() };
        assert_eq!(look(&settings, 3, 2, &[1, 2, 3, 5, 1, 2, 4, 1, 2], 100), [4, 1, 2]);
        assert_eq!(look(&settings, 3, 2, &[1, 2, 4, 3, 1, 2], 100), [4]);
    }

    #[test]
    fn the_filters_of_sampling_do_not_forbid() {
        let settings = Settings { do_sample: true, top_p: Some(0.1), top_k: Some(1), ..Settings::default() };
        assert_eq!(look(&settings, 3, 2, &[1, 2, 3, 4, 1, 2], 100), [3, 4, 1]);
    }

    #[test]
    fn sizes_of_nothing_are_refused_by_name() {
        assert!(PromptLookup::new(0, 2).unwrap_err().message().contains("prompt_lookup_num_tokens"));
        assert!(PromptLookup::new(3, 0).unwrap_err().message().contains("max_matching_ngram_size"));
    }
}
