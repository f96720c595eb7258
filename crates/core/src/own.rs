//! Caller-supplied extensions of a generation: processors, criteria and the rest.

use std::fmt;
use std::sync::Arc;

use crate::decode::{CustomGenerate, Prepared};
use crate::draft::Draft;
use crate::error::Result;
use crate::output::PromptOutput;
use crate::processor::{PrefixConstrained, Processor};
use crate::stop::Criterion;
use crate::sync::Peers;
use crate::token::TokenId;

/// Makes the value that one generation uses.
type Make<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// Caller-supplied processors, criteria and the rest.
///
/// Each generation uses its own clone of what is given here, so the same extensions serve many generations, also at the same
/// time, and none sees what another one left. State that generations share goes behind an `Arc`.
///
/// ```
/// use unspool_core::config::Settings;
/// use unspool_core::{Own, Request};
///
/// let own = Own::new().prefix_allowed_tokens_fn(|_prompt, ids| if ids.len() < 3 { vec![5, 6] } else { vec![2] });
/// let request = Request::new(vec![vec![1]], Settings::default()).own(own);
/// ```
#[derive(Clone, Default)]
pub struct Own {
    processors: Vec<Make<Box<dyn Processor>>>,
    prefix: Option<Make<PrefixConstrained>>,
    criteria: Vec<Make<Box<dyn Criterion>>>,
    custom_generate: Option<Make<Box<dyn CustomGenerate>>>,
    peers: Option<Make<Box<dyn Peers>>>,
    draft: Option<Make<Box<dyn Draft>>>,
}

/// The extensions of one generation.
pub(crate) struct Extensions {
    pub(crate) processors: Vec<Box<dyn Processor>>,
    pub(crate) prefix: Option<PrefixConstrained>,
    pub(crate) criteria: Vec<Box<dyn Criterion>>,
    pub(crate) custom_generate: Option<Box<dyn CustomGenerate>>,
    pub(crate) draft: Option<Box<dyn Draft>>,
}

impl Own {
    /// No extensions.
    pub fn new() -> Self {
        Own::default()
    }

    /// Adds a processor, which runs after the penalties and bans of the settings and before the filters of sampling, as in
    /// Python. It replaces one of the same kind that the settings ask for, and the output's warnings say so.
    #[must_use]
    #[doc(alias = "logits_processor")]
    pub fn processor(mut self, processor: impl Processor + Clone + Sync + 'static) -> Self {
        self.processors.push(Arc::new(move || Box::new(processor.clone())));
        self
    }

    /// Allows only the tokens that a function of the prompt's index and the row's ids returns.
    #[must_use]
    pub fn prefix_allowed_tokens_fn(
        mut self,
        allowed: impl FnMut(usize, &[TokenId]) -> Vec<TokenId> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.prefix = Some(Arc::new(move || PrefixConstrained::new(allowed.clone())));
        self
    }

    /// Adds a criterion, which is checked after those of the settings.
    #[must_use]
    #[doc(alias = "stopping_criteria")]
    pub fn criterion(mut self, criterion: impl Criterion + Clone + Sync + 'static) -> Self {
        self.criteria.push(Arc::new(move || Box::new(criterion.clone())));
        self
    }

    /// Decodes with the caller's own loop instead of the one that the settings choose; see [`CustomGenerate`].
    #[must_use]
    pub fn custom_generate(
        mut self,
        decoding: impl FnMut(&mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.custom_generate = Some(Arc::new(move || Box::new(decoding.clone())));
        self
    }

    /// Steps together with other processes; see [`Peers`].
    #[must_use]
    #[doc(alias = "synced_gpus")]
    pub fn peers(mut self, peers: impl Peers + Clone + Sync + 'static) -> Self {
        self.peers = Some(Arc::new(move || Box::new(peers.clone())));
        self
    }

    /// Proposes tokens for the model to verify, where no assistant is given ([`Request::assist`](crate::Request::assist)).
    #[must_use]
    pub fn draft(mut self, draft: impl Draft + Clone + Sync + 'static) -> Self {
        self.draft = Some(Arc::new(move || Box::new(draft.clone())));
        self
    }

    /// Whether a [`draft`](Own::draft) is set.
    pub fn has_draft(&self) -> bool {
        self.draft.is_some()
    }

    /// The processes that one generation steps with.
    pub(crate) fn open_peers(&self) -> Option<Box<dyn Peers>> {
        self.peers.as_ref().map(|make| make())
    }

    /// Everything else that one generation uses.
    pub(crate) fn open(&self) -> Extensions {
        Extensions {
            processors: self.processors.iter().map(|make| make()).collect(),
            prefix: self.prefix.as_ref().map(|make| make()),
            criteria: self.criteria.iter().map(|make| make()).collect(),
            custom_generate: self.custom_generate.as_ref().map(|make| make()),
            draft: self.draft.as_ref().map(|make| make()),
        }
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own")
            .field("processors", &self.processors.len())
            .field("prefix_allowed_tokens_fn", &self.prefix.is_some())
            .field("criteria", &self.criteria.len())
            .field("custom_generate", &self.custom_generate.is_some())
            .field("peers", &self.peers.is_some())
            .field("draft", &self.draft.is_some())
            .finish()
    }
}
