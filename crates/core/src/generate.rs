//! The face of the crate: a model and a request become tokens; Python's `generate()`.
//!
//! [`generate`] goes the data's way in numbered stages; each names the folder to open next.

use std::sync::Arc;
use std::time::Duration;

use crate::build;
use crate::config::Settings;
use crate::decode::{
    self, Assisted, AttentionMask, Beams, Chooser, Clock, Contrastive, Guidance, KeptSession, Lens, Prepared, Prompt,
    Single, Writing,
};
use crate::draft::{self, Assist, Draft};
use crate::error::{Error, Result};
use crate::memory::Need;
use crate::model::{Model, SessionOptions, Together};
use crate::output::{Output, PromptOutput};
use crate::own::{Extensions, Own};
use crate::rng::Rng;
use crate::stop::AnyOf;
use crate::stream::TokenSink;
use crate::token::TokenId;
use crate::vocabulary::Vocabulary;

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
    /// Which tokens of each prompt the model reads; of prompts beyond the end of this list it is inferred.
    pub attention_mask: Vec<AttentionMask>,
    /// Checked settings.
    pub settings: Settings,
    /// Seed of the draws; 0 unless set. The same seed gives the same tokens.
    pub seed: u64,
    /// Index of the first prompt in the whole of which these prompts are a part: a caller who runs many prompts in several
    /// requests counts on here, and each prompt keeps the draws and the `beam_indices` it would have had in one request. It
    /// changes nothing else.
    pub first_row: usize,
    /// Whether to give the log-probability of every token.
    pub logprobs: bool,
    /// Prompts that `guidance_scale` leads away from, one for each prompt; none: each prompt's last token alone.
    pub negative_prompts: Vec<Vec<TokenId>>,
    /// Caller-supplied processors, criteria and the rest.
    pub own: Own,
    /// Texts of the tokens; needed by `stop_strings`.
    pub vocabulary: Option<Arc<dyn Vocabulary>>,
    /// Is told every token when it is final.
    pub sink: Option<&'a mut dyn TokenSink>,
    /// Who drafts tokens for the model to verify; prompt lookup and an early exit are asked for in the settings.
    pub assist: Assist<'a>,
}

impl<'a> Request<'a> {
    /// A request with seed 0 and no extensions.
    pub fn new(prompts: Vec<Vec<TokenId>>, settings: Settings) -> Self {
        Request {
            prompts,
            attention_mask: Vec::new(),
            settings,
            seed: 0,
            first_row: 0,
            logprobs: false,
            negative_prompts: Vec::new(),
            own: Own::default(),
            vocabulary: None,
            sink: None,
            assist: Assist::default(),
        }
    }

    /// Sets [`attention_mask`](Request::attention_mask).
    #[must_use]
    pub fn attention_mask(mut self, attention_mask: Vec<AttentionMask>) -> Self {
        self.attention_mask = attention_mask;
        self
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

    /// Sets [`own`](Request::own).
    #[must_use]
    pub fn own(mut self, own: Own) -> Self {
        self.own = own;
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
    let mut clock = Clock::start(request.own.open_peers());
    let output = written(model, kept, request, &mut clock);
    // Also after an error: the other processes wait for this one's steps.
    clock.wait_for_peers(model)?;
    output
}

fn written(
    model: &dyn Model,
    kept: Option<&mut Option<KeptSession>>,
    request: Request<'_>,
    clock: &mut Clock,
) -> Result<Output> {
    let Request {
        prompts,
        attention_mask,
        settings,
        seed,
        first_row,
        logprobs,
        negative_prompts,
        own,
        vocabulary,
        mut sink,
        assist,
    } = request;
    let Extensions { processors, prefix, criteria, custom_generate, draft: mut own_draft } = own.open();

    if assist.draft.is_some() || own_draft.is_some() {
        refuse_beside_drafts(&settings, custom_generate.is_some())?;
    }

    // 1. Prompts, and the memory they may need: checked before anything is opened. (decode/prompts.rs, memory.rs)
    let prompts = decode::check(&prompts, &attention_mask, &settings, model)?;
    Need::generation(model, &prompts, &settings, capacity(&prompts)).check()?;

    let built = custom_generate.is_none();
    let one_row = settings.beams.num_beams == 1;
    if own_draft.is_none() && built && one_row && settings.contrastive.is_none() {
        // Before time is measured: an early exit may have to be loaded. (draft/choice.rs)
        own_draft = draft::from_settings(model, &settings.assisted)?;
    }

    // 2. Rules that change scores and criteria that end rows, in Python's order. (build/, processor/, stop/)
    let (mut rules, mut warnings) = build::processors(&settings, model.vocab_size(), prefix, processors)?;
    let masks = attention_mask.iter().copied().chain(std::iter::repeat(AttentionMask::default()));
    let padded = prompts.iter().zip(masks).filter(|(prompt, _)| prompt.hidden() > 0);
    warnings.extend(padded.filter_map(|(prompt, mask)| mask.warning(&prompt.ids, &settings)).take(1));
    let mut in_order = build::criteria(&settings, vocabulary)?;
    in_order.extend(criteria);
    let mut criteria = AnyOf::new(in_order);

    // 3. A session with one row per prompt, kept or fresh, one of guidance, and a lens on hidden states. (model.rs,
    // decode/resume.rs, decode/guidance.rs, decode/lens.rs)
    let lens = if built { Lens::open(model, &settings)? } else { None };
    let searches = settings.contrastive.filter(|_| built);
    let states = searches.map(|_| decode::contrastive_states(model, &settings)).transpose()?;
    let guidance = Guidance::open(model, &settings, &prompts, negative_prompts)?;
    clock.restart();
    clock.refuse_nan(!settings.rules.remove_invalid_values);
    let (before, slot) = kept.map(|slot| (slot.take(), slot)).unzip();
    // What a kept session holds was run without a look at its hidden states.
    let before = before.filter(|_| states.is_none() && !settings.output_hidden_states);
    let options = SessionOptions { rows: prompts.len(), capacity: capacity(&prompts) };
    let (mut session, held) = decode::resume(model, before.flatten(), &prompts, &options)?;

    // 4. Steps in chunks give the first scores (decode/prefill.rs); then, per row and token (decode/single.rs, or
    // decode/beam/ with beams):
    // 5. scores are guided (decode/guidance.rs) and changed by the rules (processor/), 6. one token is selected (select/, rng.rs), 7. criteria may end the
    // row (stop/), 8. the sink is told (stream/).
    let rng = |prompt, sequence| Rng::for_row(seed, first_row.wrapping_add(prompt), sequence);
    let vocab = model.vocab_size();
    let (settings, rules, criteria) = (&settings, &mut rules, &mut criteria);
    if let Some(sink) = &mut sink {
        for (row, prompt) in
            prompts.iter().flat_map(|p| std::iter::repeat_n(p, settings.num_return_sequences)).enumerate()
        {
            sink.begin(row, &prompt.ids);
        }
    }
    let Assist { draft, always, elapsed } = assist;
    let own_draft = own_draft.as_mut().map(|draft| &mut **draft as &mut dyn Draft);
    let mut draft = draft.or(own_draft);
    if draft.is_some() && session.together() == Together::Differ {
        let why = "this engine rounds single tokens of these weights in another way than several at once";
        warnings.push(if always {
            format!("{why}: near ties may fall differently than in plain decoding")
        } else {
            format!("nothing is drafted: {why}, so drafts could change tokens; draft always (--always-draft) to accept that, or import f32 weights (--weights f32)")
        });
        draft = draft.filter(|_| always);
    }
    // What a caller's loop left in the session is unknown.
    let slot = slot.filter(|_| built);
    let written = if let Some(mut custom) = custom_generate {
        let (session, kept, rng) = (session.as_mut(), held, &rng);
        let hidden = prompts.iter().map(Prompt::hidden).collect();
        let mut prepared = Prepared {
            settings,
            session,
            prompts: &prompts,
            kept,
            rules,
            criteria,
            sink,
            guidance,
            clock,
            vocab,
            hidden,
            rng,
        };
        let outputs = custom.generate(&mut prepared)?;
        if outputs.len() != prompts.len() {
            return Err(Error::invalid_input(format!(
                "custom_generate returned {} outputs for {} prompts; return one for each",
                outputs.len(),
                prompts.len()
            )));
        }
        outputs
    } else if settings.beams.num_beams > 1 {
        let mut decoding = Beams { settings, rules, criteria, sink, guidance, vocab, logprobs, first_row };
        decoding.run(session.as_mut(), &prompts, held, |prompt| rng(prompt, 0), clock)?
    } else if let (Some(choice), Some(states)) = (searches, states) {
        // Contrastive search (decode/contrastive.rs) selects by hidden states.
        let rows = rows(&prompts, settings, logprobs, rng);
        let mut decoding = Contrastive { settings, choice, rules, criteria, sink, guidance, vocab, states };
        let written = decoding.run(session.as_mut(), &prompts, model.max_positions(), rows, clock)?;
        by_prompt(written, prompts.len())
    } else {
        let rows = rows(&prompts, settings, logprobs, rng);
        let lens = lens.as_ref();
        let chooser = Chooser::default();
        let mut decoding = Single { settings, rules, criteria, sink, guidance, lens, vocab, chooser };
        let written = match (draft, lens) {
            // Drafted tokens are verified several at a time (draft/, decode/assisted.rs).
            (Some(draft), _) => {
                Assisted::new(decoding, draft, always, elapsed).run(session.as_mut(), &prompts, held, rows, clock)?
            }
            // DoLa changes scores by hidden states before the rules do (decode/lens.rs, decode/dola.rs).
            (None, Some(lens)) => decoding.run(&mut lens.before(session.as_mut()), &prompts, held, rows, clock)?,
            (None, None) => decoding.run(session.as_mut(), &prompts, held, rows, clock)?,
        };
        by_prompt(written, prompts.len())
    };

    // 9. What was written, per prompt. (output.rs)
    let sequences = || written.iter().flat_map(|prompt| &prompt.sequences);
    let timing = clock.timing(sequences().map(|sequence| sequence.ids.len()).sum());
    if let (Some(slot), Some(prompt), Some(sequence)) = (slot, prompts.first(), sequences().next()) {
        *slot = decode::keep(session, &prompt.read, &sequence.ids, one_row)?;
    }
    Ok(Output { prompts: written, timing, warnings })
}

/// Drafts of an assistant are verified by greedy decoding and sampling only; what the settings draft is checked with them.
fn refuse_beside_drafts(settings: &Settings, custom_generate: bool) -> Result<()> {
    let other = [
        ("prompt_lookup_num_tokens", settings.assisted.prompt_lookup_num_tokens.is_some()),
        ("assistant_early_exit", settings.assisted.assistant_early_exit.is_some()),
        ("custom_generate", custom_generate),
        ("num_beams", settings.beams.num_beams > 1),
        ("penalty_alpha", settings.contrastive.is_some()),
        ("dola_layers", settings.dola_layers.is_some()),
        ("output_hidden_states", settings.output_hidden_states),
    ];
    match other.iter().find(|(_, set)| *set) {
        Some((name, _)) => Err(Error::unsupported(format!(
            "{name} is set and there is an assistant too, which serves greedy decoding and sampling; leave one of them out"
        ))),
        None => Ok(()),
    }
}

/// Tokens that the longest row may reach, for the size of the caches: the last token of a row is never run.
fn capacity(prompts: &[Prompt<'_>]) -> usize {
    let bounded = |prompt: &Prompt<'_>| {
        (prompt.max_length - 1 - prompt.hidden()).min(prompt.read.len().saturating_add(decode::OPEN_END))
    };
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
