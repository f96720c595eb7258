//! What one call asks for beside its prompts.

use serde_json::Value;
use unspool_core::config::GenerationConfig;
use unspool_core::decode::Prepared;
use unspool_core::draft::Draft;
use unspool_core::processor::Processor;
use unspool_core::stop::Criterion;
use unspool_core::{AttentionMask, Own, Peers, PromptOutput, Result, TokenId};
use unspool_tasks::Shown;

use crate::text::Streaming;

/// New tokens of Python's text pipelines when nobody says a length.
const PIPELINE_NEW_TOKENS: usize = 256;

/// The settings of a call, and the caller's own rules. They take precedence over the model's own and the defaults.
///
/// ```
/// use unspool::Call;
///
/// let call = Call::new().max_new_tokens(40).do_sample(true).temperature(0.7).seed(1);
/// assert_eq!(call.config.int("max_new_tokens"), Some(40));
///
/// // By names that are known only at run time:
/// assert_eq!(Call::new().set("top_k", 5)?.config.int("top_k"), Some(5));
/// assert!(Call::new().set("temprature", 0.7).is_err());
/// # Ok::<(), unspool::Error>(())
/// ```
///
/// A call is cheap to clone, and one call serves any number of generations, also at the same time: each uses its own clone
/// of the processors, criteria and the rest that it carries. State that generations share goes behind an `Arc`:
///
/// ```
/// use unspool::{Call, FinishReason, Row};
///
/// let ban = |_row: &Row<'_>, scores: &mut [f32]| {
///     scores[13] = f32::NEG_INFINITY;
///     Ok(())
/// };
/// let long_enough = |row: &Row<'_>, _scores: &[f32]| {
///     Ok((row.new_tokens().len() >= 9).then(|| FinishReason::Custom("long enough".into())))
/// };
/// let call = Call::new().processor(ban).criterion(long_enough);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Generation fields by their Python names.
    pub config: GenerationConfig,
    /// Why the first typed setting that could not be set was refused; the call then fails with it.
    pub refused: Option<String>,
    /// Caller-supplied processors, criteria, a draft, ...
    pub own: Own,
    /// Seed of the draws; without one a sampling call takes a random one and tells it in
    /// [`Answers::seed`](crate::Answers::seed).
    pub seed: Option<u64>,
    /// Whether to give the log-probability of every new token.
    pub logprobs: bool,
    /// Index of the first prompt in a larger whole, when many prompts are run in several calls: each then has the draws
    /// it would have in one call.
    pub first_prompt: usize,
    /// Token ids that `guidance_scale` leads away from, one list per prompt; none: each prompt's last token alone.
    pub negative_prompts: Vec<Vec<TokenId>>,
    /// Which tokens of each prompt the model reads; of prompts beyond the end of this list it is inferred, as Python does for
    /// ids without a mask. Calls that take [`Prompts`](crate::Prompts) set it by themselves: texts are read whole.
    pub attention_mask: Vec<AttentionMask>,
    /// Draft in every round, as Python does, also while drafts do not pay.
    pub always_draft: bool,
    /// Whether texts show the stop string that ended them; Python does.
    pub shown: Shown,
    /// What a text stream shows, and in which pieces.
    pub streaming: Streaming,
    /// How long answers become when nobody says a length.
    pub default_length: DefaultLength,
}

/// How many tokens are written when neither the call nor the model's file sets `max_new_tokens` or `max_length`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultLength {
    /// 20, as in Python's `generate()`; calls that take token ids.
    #[default]
    Generate,
    /// 256, as in Python's `pipeline("text-generation")`; calls that take texts or messages always take this one.
    Pipeline,
}

impl DefaultLength {
    /// The fields that stand below the model's file.
    pub(crate) fn defaults(self) -> GenerationConfig {
        let mut defaults = GenerationConfig::new();
        if self == DefaultLength::Pipeline {
            // The field exists and takes an integer, so this cannot fail.
            let _ = defaults.set("max_new_tokens", PIPELINE_NEW_TOKENS.into());
        }
        defaults
    }
}

impl Call {
    /// Nothing set: the model's own settings and the defaults.
    pub fn new() -> Self {
        Call::default()
    }

    /// The fields of a JSON object.
    ///
    /// # Errors
    ///
    /// When it is no object, or a field has the wrong type.
    pub fn from_json(json: &Value) -> Result<Self> {
        Ok(Call { config: GenerationConfig::from_json(json)?, ..Call::default() })
    }

    /// Sets one generation field by its Python name.
    ///
    /// # Errors
    ///
    /// When there is no such field, or the value has the wrong type.
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Result<Self> {
        self.config.set(name, value.into())?;
        Ok(self)
    }

    /// As [`set`](Call::set); an error waits for the use of the call.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        if let Err(error) = self.config.set(name, value) {
            self.refused.get_or_insert(error.message().to_owned());
        }
        self
    }

    /// Adds a processor: a closure or type that changes the scores of a row before its next token is chosen. It runs after
    /// the penalties and bans of the settings and before the filters of sampling, as in Python, and replaces a built one of
    /// its own kind ([`Answers::warnings`](crate::Answers::warnings) says so).
    #[must_use]
    #[doc(alias = "logits_processor")]
    pub fn processor(mut self, processor: impl Processor + Clone + Sync + 'static) -> Self {
        self.own = self.own.processor(processor);
        self
    }

    /// Adds a criterion: a closure or type that may end a row after each token. It is checked after those of the settings.
    #[must_use]
    #[doc(alias = "stopping_criteria")]
    pub fn criterion(mut self, criterion: impl Criterion + Clone + Sync + 'static) -> Self {
        self.own = self.own.criterion(criterion);
        self
    }

    /// Allows only the tokens that a function of the prompt's index and the row's ids, prompt included, returns.
    #[must_use]
    pub fn prefix_allowed_tokens_fn(
        mut self,
        allowed: impl FnMut(usize, &[TokenId]) -> Vec<TokenId> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.own = self.own.prefix_allowed_tokens_fn(allowed);
        self
    }

    /// Takes a draft, which proposes tokens for the model to verify, instead of an assistant.
    #[must_use]
    pub fn draft(mut self, draft: impl Draft + Clone + Sync + 'static) -> Self {
        self.own = self.own.draft(draft);
        self
    }

    /// Decodes with the caller's own loop; see [`CustomGenerate`](crate::CustomGenerate).
    #[must_use]
    pub fn custom_generate(
        mut self,
        decoding: impl FnMut(&mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.own = self.own.custom_generate(decoding);
        self
    }

    /// Steps together with other processes; see [`Peers`].
    #[must_use]
    #[doc(alias = "synced_gpus")]
    pub fn peers(mut self, peers: impl Peers + Clone + Sync + 'static) -> Self {
        self.own = self.own.peers(peers);
        self
    }

    /// Sets [`always_draft`](Call::always_draft).
    #[must_use]
    pub fn always_draft(mut self, always_draft: bool) -> Self {
        self.always_draft = always_draft;
        self
    }

    /// Sets [`shown`](Call::shown).
    #[must_use]
    pub fn shown(mut self, shown: Shown) -> Self {
        self.shown = shown;
        self
    }

    /// Sets [`seed`](Call::seed).
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets [`negative_prompts`](Call::negative_prompts).
    #[must_use]
    #[doc(alias = "negative_prompt_ids")]
    pub fn negative_prompts(mut self, negative_prompts: Vec<Vec<TokenId>>) -> Self {
        self.negative_prompts = negative_prompts;
        self
    }

    /// Sets [`attention_mask`](Call::attention_mask).
    #[must_use]
    pub fn attention_mask(mut self, attention_mask: Vec<AttentionMask>) -> Self {
        self.attention_mask = attention_mask;
        self
    }

    /// Sets [`default_length`](Call::default_length) as the calls that take texts do: to ask
    /// [`settings`](crate::Pipeline::settings) or [`resolve`](crate::Pipeline::resolve) about such a call, or to have its
    /// length with token ids.
    #[must_use]
    pub fn for_texts(mut self) -> Self {
        self.default_length = DefaultLength::Pipeline;
        self
    }

    /// Sets [`streaming`](Call::streaming).
    #[must_use]
    pub fn streaming(mut self, streaming: Streaming) -> Self {
        self.streaming = streaming;
        self
    }

    /// Sets [`logprobs`](Call::logprobs).
    #[must_use]
    pub fn logprobs(mut self, logprobs: bool) -> Self {
        self.logprobs = logprobs;
        self
    }
}

/// A seed that nobody chose.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // JSON readers keep integers exactly up to 2^53.
    RandomState::new().hash_one(std::time::SystemTime::now()) >> 11
}
