//! The face of the crate: a model and a request become tokens; Python's `generate()`.
//!
//! [`generate`] goes the data's way in numbered stages; each names the folder to open next.

use std::sync::Arc;
use std::time::Duration;

use crate::build;
use crate::config::Settings;
use crate::decode::{self, Assisted, Chooser, Clock, Guidance, KeptSession, Prompt, Single, Writing};
use crate::draft::{Assist, Draft, PromptLookup};
use crate::error::{Error, Result};
use crate::model::{Model, SessionOptions, Together};
use crate::output::{Output, PromptOutput};
use crate::processor::{PrefixConstrained, Processor};
use crate::rng::Rng;
use crate::stop::{AnyOf, Criterion};
use crate::stream::TokenSink;
use crate::token::TokenId;
use crate::vocabulary::Vocabulary;

/// Room that is asked for at once when neither the settings nor the model bound a row; caches grow beyond it.
const OPEN_END: usize = 32_768;

/// What is to be generated. Fields may be set one by one after [`Request::new`], or by the methods that return the
/// request.
///
/// ```no_run
/// use unspool_core::{Model, Request, Settings, generate};
///
/// fn continue_it(model: &dyn Model) -> unspool_core::Result<Vec<u32>> {
///     let request = Request::new(vec![vec![1, 2, 3]], Settings { do_sample: true, ..Settings::default() }).seed(7);
///     let output = generate(model, request)?;
///     Ok(output.prompts[0].sequences[0].ids.clone())
/// }
/// ```
pub struct Request<'a> {
    /// Token ids, one list per prompt, of any lengths. An empty one becomes the beginning-of-sequence token.
    pub prompts: Vec<Vec<TokenId>>,
    /// Checked settings.
    pub settings: Settings,
    /// Seed of the draws; 0 unless set. The same seed gives the same tokens.
    pub seed: u64,
    /// Index of the first prompt in the whole of which these prompts are a part: a caller who runs many prompts in several
    /// requests counts on here, and each prompt keeps the draws it would have had in one request. It changes nothing else.
    pub first_row: usize,
    /// Whether to give the log-probability of every token.
    pub logprobs: bool,
    /// Prompts that `guidance_scale` leads away from, one for each prompt; none: each prompt's last token alone.
    pub negative_prompts: Vec<Vec<TokenId>>,
    /// The caller's own rules, run after the penalties and bans and before the filters of sampling, as in Python. One of a
    /// kind that the settings ask for too takes that one's place, and the output's warnings say so.
    pub processors: Vec<Box<dyn Processor>>,
    /// What a function of the caller's allows (see [`prefix_allowed_tokens_fn`](Request::prefix_allowed_tokens_fn)).
    pub prefix: Option<PrefixConstrained>,
    /// The caller's own criteria, asked after the built ones.
    pub criteria: Vec<Box<dyn Criterion>>,
    /// Texts of the tokens; needed by `stop_strings`.
    pub vocabulary: Option<Arc<dyn Vocabulary>>,
    /// Is told every token when it is final.
    pub sink: Option<&'a mut dyn TokenSink>,
    /// Who drafts tokens for the model to verify; prompt lookup is asked for in the settings.
    pub assist: Assist<'a>,
}

impl<'a> Request<'a> {
    /// A request with seed 0 and nothing of the caller's own.
    pub fn new(prompts: Vec<Vec<TokenId>>, settings: Settings) -> Self {
        Request {
            prompts,
            settings,
            seed: 0,
            first_row: 0,
            logprobs: false,
            negative_prompts: Vec::new(),
            processors: Vec::new(),
            prefix: None,
            criteria: Vec::new(),
            vocabulary: None,
            sink: None,
            assist: Assist::default(),
        }
    }

    /// Sets [`seed`](Request::seed).
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets [`first_row`](Request::first_row).
    #[must_use]
    pub fn first_row(mut self, first_row: usize) -> Self {
        self.first_row = first_row;
        self
    }

    /// Sets [`logprobs`](Request::logprobs).
    #[must_use]
    pub fn logprobs(mut self, logprobs: bool) -> Self {
        self.logprobs = logprobs;
        self
    }

    /// Sets [`negative_prompts`](Request::negative_prompts).
    #[must_use]
    #[doc(alias = "negative_prompt_ids")]
    pub fn negative_prompts(mut self, negative_prompts: Vec<Vec<TokenId>>) -> Self {
        self.negative_prompts = negative_prompts;
        self
    }

    /// Adds a rule of the caller's own.
    #[must_use]
    #[doc(alias = "logits_processor")]
    pub fn processor(mut self, processor: impl Processor + 'static) -> Self {
        self.processors.push(Box::new(processor));
        self
    }

    /// Allows only the tokens that a function of the prompt's index and the row's ids returns.
    ///
    /// ```
    /// # use unspool_core::{Request, config::Settings};
    /// let request = Request::new(vec![vec![1]], Settings::default())
    ///     .prefix_allowed_tokens_fn(|_prompt, ids| if ids.len() < 3 { vec![5, 6] } else { vec![2] });
    /// ```
    #[must_use]
    pub fn prefix_allowed_tokens_fn(
        mut self,
        allowed: impl FnMut(usize, &[TokenId]) -> Vec<TokenId> + Send + 'static,
    ) -> Self {
        self.prefix = Some(PrefixConstrained::new(allowed));
        self
    }

    /// Adds a criterion of the caller's own.
    #[must_use]
    #[doc(alias = "stopping_criteria")]
    pub fn criterion(mut self, criterion: impl Criterion + 'static) -> Self {
        self.criteria.push(Box::new(criterion));
        self
    }

    /// Sets [`vocabulary`](Request::vocabulary).
    #[must_use]
    pub fn vocabulary(mut self, vocabulary: Arc<dyn Vocabulary>) -> Self {
        self.vocabulary = Some(vocabulary);
        self
    }

    /// Sets [`sink`](Request::sink).
    #[must_use]
    #[doc(alias = "streamer")]
    pub fn sink(mut self, sink: &'a mut dyn TokenSink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Sets [`assist`](Request::assist).
    #[must_use]
    #[doc(alias = "assistant_model")]
    pub fn assist<'b: 'a>(mut self, assist: Assist<'b>) -> Self {
        let Assist { draft, always, elapsed } = assist;
        // What lives longer is lent for the request's time.
        let draft = draft.map(|draft| draft as &mut dyn Draft);
        self.assist = Assist { draft, always, elapsed: elapsed.map(|elapsed| elapsed as Box<dyn Fn() -> Duration>) };
        self
    }
}

/// Writes every prompt's sequences.
///
/// # Errors
///
/// Before any work: no prompts, an empty prompt without a `bos_token_id`, an id outside the vocabulary, a prompt above
/// the model's positions or `max_length`, a rule or criterion that cannot be built. Later: a failure of the engine or of
/// a caller's rule or criterion.
pub fn generate(model: &dyn Model, request: Request<'_>) -> Result<Output> {
    run(model, None, request)
}

/// Writes one sequence for one prompt on a session that is kept between calls: of a prompt that begins like what `kept`
/// holds, only the rest is run.
///
/// Afterwards `kept` holds the session, also when the sink stopped the row. An error of the generation leaves `None`, and
/// the next call starts afresh. `kept` must come from the same model.
///
/// # Errors
///
/// As [`generate`]; and when the request asks for more than one row.
pub fn generate_kept(model: &dyn Model, kept: &mut Option<KeptSession>, request: Request<'_>) -> Result<Output> {
    if request.prompts.len() > 1 || request.settings.num_return_sequences > 1 {
        return Err(Error::invalid_input(format!(
            "a kept session writes one row, got {} prompts with num_return_sequences {}; use one prompt and one sequence, \
             or generate without keeping the session",
            request.prompts.len(),
            request.settings.num_return_sequences
        )));
    }
    run(model, Some(kept), request)
}

fn run(model: &dyn Model, kept: Option<&mut Option<KeptSession>>, request: Request<'_>) -> Result<Output> {
    let Request {
        prompts,
        settings,
        seed,
        first_row,
        logprobs,
        negative_prompts,
        processors,
        prefix,
        criteria,
        vocabulary,
        sink,
        assist,
    } = request;

    if assist.draft.is_some() && settings.assisted.prompt_lookup_num_tokens.is_some() {
        return Err(Error::invalid_config(
            "prompt_lookup_num_tokens is set and there is an assistant too; leave one of them out",
        ));
    }

    // 1. Prompts: checked before anything is opened. (decode/prompts.rs)
    let prompts = decode::check(&prompts, &settings, model)?;

    // 2. Rules that change scores and criteria that end rows, in Python's order. (build/, processor/, stop/)
    let (mut rules, mut warnings) = build::processors(&settings, model.vocab_size(), prefix, processors)?;
    let mut in_order = build::criteria(&settings, vocabulary)?;
    in_order.extend(criteria);
    let mut criteria = AnyOf::new(in_order);

    // 3. A session with one row per prompt, kept or fresh, and one of guidance. (model.rs, decode/resume.rs,
    // decode/guidance.rs)
    let guidance = Guidance::open(model, &settings, &prompts, negative_prompts)?;
    let mut clock = Clock::start();
    let (before, slot) = kept.map(|slot| (slot.take(), slot)).unzip();
    let options = SessionOptions { rows: prompts.len(), capacity: capacity(&prompts) };
    let (mut session, held) = decode::resume(model, before.flatten(), &prompts, &options)?;

    // 4. Steps in chunks give the first scores (decode/prefill.rs); then, per row and token (decode/single.rs):
    // 5. scores are guided (decode/guidance.rs) and changed by the rules (processor/), 6. one token is selected (select/, rng.rs), 7. criteria may end the
    // row (stop/), 8. the sink is told (stream/).
    let rows = rows(&prompts, &settings, logprobs, |prompt, sequence| {
        Rng::for_row(seed, first_row.wrapping_add(prompt), sequence)
    });
    let mut decoding = Single {
        settings: &settings,
        rules: &mut rules,
        criteria: &mut criteria,
        sink,
        guidance,
        vocab: model.vocab_size(),
        chooser: Chooser::default(),
    };
    // Drafted tokens are verified several at a time (draft/, decode/assisted.rs).
    let Assist { draft, always, elapsed } = assist;
    let mut lookup = PromptLookup::from_settings(&settings.assisted)?;
    let mut draft = draft.or(lookup.as_mut().map(|lookup| lookup as &mut dyn Draft));
    if draft.is_some() && session.together() == Together::Differ {
        let why = "this engine rounds single tokens of these weights in another way than several at once";
        warnings.push(if always {
            format!("{why}: near ties may fall differently than in plain decoding")
        } else {
            format!("nothing is drafted: {why}, so drafts could change tokens; draft always to accept that, or use f32 weights")
        });
        draft = draft.filter(|_| always);
    }
    let written = match draft {
        None => decoding.run(session.as_mut(), &prompts, held, rows, &mut clock)?,
        Some(draft) => {
            Assisted::new(decoding, draft, always, elapsed).run(session.as_mut(), &prompts, held, rows, &mut clock)?
        }
    };

    // 9. What was written, per prompt. (output.rs)
    let timing = clock.timing(written.iter().map(Writing::new_tokens).sum());
    if let (Some(slot), Some(row)) = (slot, written.first()) {
        *slot = Some(KeptSession::new(session, row.ids.clone()));
    }
    Ok(Output { prompts: by_prompt(written, prompts.len()), timing, warnings })
}

/// Tokens that the longest row may reach, for the size of the caches: the last token of a row is never run.
fn capacity(prompts: &[Prompt<'_>]) -> usize {
    let bounded = |prompt: &Prompt<'_>| (prompt.max_length - 1).min(prompt.ids.len().saturating_add(OPEN_END));
    prompts.iter().map(bounded).max().unwrap_or(0)
}

/// The rows to be written, in the order of their prompts.
fn rows(
    prompts: &[Prompt<'_>],
    settings: &Settings,
    logprobs: bool,
    rng: impl Fn(usize, usize) -> Rng,
) -> Vec<Writing> {
    let sequences = |(index, prompt)| {
        let row = |sequence| Writing::new(prompt, index, sequence, rng(index, sequence), settings, logprobs);
        (0..settings.num_return_sequences).map(row).collect::<Vec<_>>()
    };
    prompts.iter().enumerate().flat_map(sequences).collect()
}

/// The sequences in the order of their rows become those of each prompt.
fn by_prompt(written: Vec<Writing>, prompts: usize) -> Vec<PromptOutput> {
    let mut outputs = vec![PromptOutput::default(); prompts];
    for row in written {
        if let Some(output) = outputs.get_mut(row.prompt) {
            output.sequences.push(row.into_sequence());
        }
    }
    outputs
}
