//! What a caller brings of his own to a generation.

use crate::decode::{CustomGenerate, Prepared};
use crate::draft::Draft;
use crate::error::Result;
use crate::output::PromptOutput;
use crate::processor::{PrefixConstrained, Processor};
use crate::stop::Criterion;
use crate::sync::Peers;
use crate::token::TokenId;

/// The caller's own rules, criteria and the rest.
///
/// ```
/// use unspool_core::config::Settings;
/// use unspool_core::{Own, Request};
///
/// let own = Own::new().prefix_allowed_tokens_fn(|_prompt, ids| if ids.len() < 3 { vec![5, 6] } else { vec![2] });
/// let request = Request::new(vec![vec![1]], Settings::default()).own(own);
/// ```
#[derive(Default)]
pub struct Own {
    /// Rules over scores, run after the penalties and bans and before the filters of sampling, as in Python. One of a kind
    /// that the settings ask for too takes that one's place, and the output's warnings say so.
    pub processors: Vec<Box<dyn Processor>>,
    /// What a function of the prompt's index and the row's ids allows.
    pub prefix: Option<PrefixConstrained>,
    /// Criteria that end rows, asked after the built ones.
    pub criteria: Vec<Box<dyn Criterion>>,
    /// A decoding loop in the place of the one that the settings choose.
    pub custom_generate: Option<Box<dyn CustomGenerate>>,
    /// Other processes that step together with this one (Python's `synced_gpus`).
    pub peers: Option<Box<dyn Peers>>,
    /// Proposes tokens for the model to verify, where no assistant is lent ([`Request::assist`](crate::Request::assist)).
    pub draft: Option<Box<dyn Draft>>,
}

impl Own {
    /// Nothing of one's own.
    pub fn new() -> Self {
        Own::default()
    }

    /// Adds a rule.
    #[must_use]
    #[doc(alias = "logits_processor")]
    pub fn processor(mut self, processor: impl Processor + 'static) -> Self {
        self.processors.push(Box::new(processor));
        self
    }

    /// Allows only the tokens that a function of the prompt's index and the row's ids returns.
    #[must_use]
    pub fn prefix_allowed_tokens_fn(
        mut self,
        allowed: impl FnMut(usize, &[TokenId]) -> Vec<TokenId> + Send + 'static,
    ) -> Self {
        self.prefix = Some(PrefixConstrained::new(allowed));
        self
    }

    /// Adds a criterion.
    #[must_use]
    #[doc(alias = "stopping_criteria")]
    pub fn criterion(mut self, criterion: impl Criterion + 'static) -> Self {
        self.criteria.push(Box::new(criterion));
        self
    }

    /// Decodes with the caller's own loop; see [`CustomGenerate`].
    #[must_use]
    pub fn custom_generate(
        mut self,
        decoding: impl FnMut(&mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>> + Send + 'static,
    ) -> Self {
        self.custom_generate = Some(Box::new(decoding));
        self
    }

    /// Steps together with other processes; see [`Peers`].
    #[must_use]
    #[doc(alias = "synced_gpus")]
    pub fn peers(mut self, peers: impl Peers + 'static) -> Self {
        self.peers = Some(Box::new(peers));
        self
    }

    /// Sets [`draft`](Own::draft).
    #[must_use]
    pub fn draft(mut self, draft: impl Draft + 'static) -> Self {
        self.draft = Some(Box::new(draft));
        self
    }
}
