//! An assistant: a smaller model with the same tokenizer writes on, and the model verifies.

use std::sync::Arc;

use super::confidence::Confidence;
use super::contract::{Ask, Draft, Drafted, Start};
use super::drafter::{Drafter, Job, Manner};
use crate::build;
use crate::config::{AssistedSettings, Schedule};
use crate::error::Result;
use crate::model::Model;
use crate::processor::{Chain, Processor};
use crate::row::Row;
use crate::token::TokenId;

/// A smaller model that drafts; Python's `AssistedCandidateGenerator`.
///
/// It writes by the generation's settings (greedy or drawing, with the same rules) up to `num_assistant_tokens` tokens, and
/// stops at an end token or when it is not sure. The rules of the caller's own are not asked about drafts, so that they see
/// every token once. Python applies the filters of sampling twice while drafting; here once, which draws nearer to the
/// model.
///
/// It may be kept from call to call: one row goes on with its cache, and the `heuristic` schedule with its number.
///
/// ```no_run
/// use std::sync::Arc;
/// use unspool_core::config::AssistedSettings;
/// use unspool_core::draft::{Assist, Assistant};
/// use unspool_core::{Model, Request, Settings, generate};
///
/// fn faster(model: &dyn Model, small: Arc<dyn Model>) -> unspool_core::Result<Vec<u32>> {
///     let mut assistant = Assistant::new(small, AssistedSettings::default());
///     let request = Request::new(vec![vec![1, 2, 3]], Settings::default()).assist(Assist::new(&mut assistant));
///     Ok(generate(model, request)?.prompts[0].sequences[0].ids.clone())
/// }
/// ```
#[doc(alias = "AssistedCandidateGenerator")]
#[doc(alias = "assistant_model")]
#[derive(Debug)]
pub struct Assistant {
    drafter: Drafter,
    settings: AssistedSettings,
    adapts: bool,
    rows: Vec<Plan>,
    rules: Chain,
    eos: Vec<TokenId>,
    sample: bool,
    distributions: bool,
    vocab: usize,
}

/// How much is drafted for one row.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub index: usize,
    pub tokens: usize,
    pub confidence: Confidence,
}

impl Plan {
    /// A round of `drafted` tokens gave `written`.
    pub(super) fn verified(&mut self, schedule: Schedule, drafted: usize, written: usize) {
        let accepted = written.saturating_sub(1);
        if schedule != Schedule::Constant {
            self.tokens = if accepted == drafted { self.tokens + 2 } else { self.tokens.saturating_sub(1).max(1) };
        }
        self.confidence.verified(accepted);
    }
}

impl Assistant {
    /// Drafts with `model` by `settings` (in Python: of the assistant's own generation config).
    pub fn new(model: Arc<dyn Model>, settings: AssistedSettings) -> Self {
        Assistant {
            drafter: Drafter::new(model),
            settings,
            adapts: true,
            rows: Vec::new(),
            rules: Chain::default(),
            eos: Vec::new(),
            sample: false,
            distributions: false,
            vocab: 0,
        }
    }

    /// Whether `assistant_confidence_threshold` follows what is accepted, as in Python where scikit-learn is installed; it does
    /// by default.
    #[must_use]
    pub fn adapts(mut self, adapts: bool) -> Self {
        self.adapts = adapts;
        self
    }

    /// Tokens drafted at a time when the next call begins; the schedule `heuristic` moves it.
    pub fn num_assistant_tokens(&self) -> usize {
        self.settings.num_assistant_tokens
    }
}

impl Draft for Assistant {
    fn begin(&mut self, start: &Start<'_>) -> Result<()> {
        let settings = start.settings;
        self.rules = build::processors(settings, start.vocab, None, Vec::new())?.0;
        self.eos.clone_from(&settings.eos_token_id);
        self.sample = settings.do_sample;
        self.distributions = settings.do_sample || settings.assisted.assistant_ensemble_weight.is_some();
        self.vocab = start.vocab;
        let confidence = Confidence::new(self.settings.assistant_confidence_threshold, self.adapts);
        let plan = |index| Plan { index, tokens: self.settings.num_assistant_tokens, confidence: confidence.clone() };
        self.rows = start.rows.iter().map(|row| plan(row.index)).collect();
        self.drafter.begin(start);
        Ok(())
    }

    fn draft(&mut self, ask: &Ask<'_>) -> Result<Drafted> {
        Ok(self.draft_all(std::slice::from_ref(ask))?.pop().unwrap_or_default())
    }

    fn draft_all(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Drafted>> {
        let mut jobs: Vec<Job> = Vec::with_capacity(asks.len());
        for ask in asks {
            let Some(plan) = self.rows.iter().find(|plan| plan.index == ask.index) else {
                jobs.push(Job::default());
                continue;
            };
            let most = plan.tokens.min(ask.most);
            let ids = if most == 0 { Vec::new() } else { ask.row.ids.to_vec() };
            let threshold = plan.confidence.threshold();
            jobs.push(Job { index: ask.index, ids, most, threshold, ..Job::default() });
        }
        let (rules, vocab) = (&mut self.rules, self.vocab);
        let mut shape = |index: usize, ids: &[TokenId], logits: &[f32], scores: &mut Vec<f32>| {
            // Vocabularies of one tokenizer may be filled up to different sizes.
            scores.clear();
            scores.extend(logits.iter().take(vocab));
            scores.resize(vocab, f32::NEG_INFINITY);
            let Some(ask) = asks.iter().find(|ask| ask.index == index) else { return Ok(()) };
            rules.apply(&Row { ids, ..ask.row }, scores)
        };
        let (sample, distributions) = (self.sample, self.distributions);
        self.drafter.write(&mut jobs, &mut Manner { sample, distributions, eos: &self.eos, shape: &mut shape })?;
        for job in &jobs {
            if let Some(plan) = self.rows.iter_mut().find(|plan| plan.index == job.index) {
                plan.confidence.drafted(&job.confidences);
            }
        }
        let drafted =
            jobs.into_iter().map(|job| Drafted { tokens: job.tokens().to_vec(), probabilities: job.distributions });
        Ok(drafted.collect())
    }

    fn gives_probabilities(&self) -> bool {
        self.distributions
    }

    fn verified(&mut self, index: usize, drafted: usize, written: usize) {
        if let Some(plan) = self.rows.iter_mut().find(|plan| plan.index == index) {
            plan.verified(self.settings.num_assistant_tokens_schedule, drafted, written);
        }
    }

    fn ended(&mut self, index: usize) {
        self.drafter.ended(index);
        if let (Schedule::Heuristic, Some(plan)) =
            (self.settings.num_assistant_tokens_schedule, self.rows.iter().find(|plan| plan.index == index))
        {
            self.settings.num_assistant_tokens = plan.tokens;
        }
    }
}
