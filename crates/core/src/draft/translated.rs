//! An assistant with another tokenizer: its drafts are translated. <https://arxiv.org/abs/2502.05202>.

use std::sync::Arc;

use super::align::{align, extend};
use super::assistant::Plan;
use super::confidence::Confidence;
use super::contract::{Ask, Draft, Drafted, Start, StartRow};
use super::drafter::{Drafter, Job, Manner};
use crate::build;
use crate::config::{AssistedSettings, Rules, Schedule, Settings};
use crate::error::Result;
use crate::model::Model;
use crate::processor::{Chain, Processor};
use crate::row::Row;
use crate::token::TokenId;

/// Two tokenizers, the model's and the assistant's, as drafts need them.
pub trait Translation: Send + Sync {
    /// The text of the model's ids without special tokens, as the assistant's ids; with its special tokens when `special`.
    ///
    /// # Errors
    ///
    /// When the text cannot be encoded.
    fn to_assistant(&self, ids: &[TokenId], special: bool) -> Result<Vec<TokenId>>;

    /// The text of the assistant's ids without special tokens, as the model's ids with its special tokens.
    ///
    /// # Errors
    ///
    /// When the text cannot be encoded.
    fn to_target(&self, ids: &[TokenId]) -> Result<Vec<TokenId>>;

    /// For each of the assistant's ids the model's id of the same text, where there is one.
    fn partners(&self) -> &[Option<TokenId>];
}

/// A smaller model with another tokenizer that drafts; Python's universal assisted decoding
/// (`AssistedCandidateGeneratorDifferentTokenizers`) in greedy decoding, and its `UniversalSpeculativeDecodingGenerator`
/// where tokens are drawn.
///
/// Greedy drafts are written out as text and read again by the other tokenizer: `target_lookbehind` and
/// `assistant_lookbehind` tokens before the new ones are read again, since tokens at the seam may join differently. Where
/// tokens are drawn, the assistant draws among the tokens that both vocabularies have, so that its probabilities are the
/// model's tokens' too.
///
/// Rules that name tokens are not asked about drafts: their ids are the model's.
#[doc(alias = "AssistedCandidateGeneratorDifferentTokenizers")]
#[doc(alias = "UniversalSpeculativeDecodingGenerator")]
pub struct TranslatedAssistant {
    drafter: Drafter,
    settings: AssistedSettings,
    translation: Arc<dyn Translation>,
    rows: Vec<Translated>,
    filters: Chain,
    /// The assistant's ids of the tokens that end a row.
    eos: Vec<TokenId>,
    sample: bool,
    vocab: usize,
}

/// A row in both languages.
struct Translated {
    plan: Plan,
    /// The model's tokens when a draft was last made; 0 before that.
    target: usize,
    /// The assistant's ids: of the row, where tokens are drawn; with the last draft after them in greedy decoding.
    ids: Vec<TokenId>,
    /// The last draft, where tokens are drawn: the assistant's ids and the model's.
    drafted: Vec<(TokenId, TokenId)>,
}

impl TranslatedAssistant {
    /// Drafts with `model` by `settings` (in Python: of the assistant's own generation config).
    pub fn new(model: Arc<dyn Model>, settings: AssistedSettings, translation: Arc<dyn Translation>) -> Self {
        TranslatedAssistant {
            drafter: Drafter::new(model),
            settings,
            translation,
            rows: Vec::new(),
            filters: Chain::default(),
            eos: Vec::new(),
            sample: false,
            vocab: 0,
        }
    }

    /// Tokens drafted at a time when the next call begins; the schedule `heuristic` moves it.
    pub fn num_assistant_tokens(&self) -> usize {
        self.settings.num_assistant_tokens
    }

    fn row(&mut self, index: usize) -> Option<&mut Translated> {
        self.rows.iter_mut().find(|row| row.plan.index == index)
    }

    /// The row in the assistant's ids.
    fn prepare(&mut self, ask: &Ask<'_>) -> Result<Vec<TokenId>> {
        let (sample, lookbehind) = (self.sample, self.settings.target_lookbehind);
        let translation = self.translation.clone();
        let ids = ask.row.ids;
        let Some(row) = self.row(ask.index) else { return Ok(Vec::new()) };
        if sample {
            row.follow(ids, &*translation)?;
        } else if row.target > lookbehind {
            let new = translation.to_assistant(&ids[(row.target - lookbehind).min(ids.len())..], true)?;
            extend(&mut row.ids, new.len(), &new);
        } else {
            row.ids = translation.to_assistant(ids, true)?;
        }
        row.target = ids.len();
        Ok(row.ids.clone())
    }

    /// A greedy draft in the model's ids.
    fn read(&mut self, ask: &Ask<'_>, job: &Job) -> Result<Drafted> {
        let before = job.ids.len() - job.drafted;
        let window = &job.ids[before.saturating_sub(self.settings.assistant_lookbehind)..];
        let new = self.translation.to_target(window)?;
        if let Some(row) = self.row(ask.index) {
            row.ids.clone_from(&job.ids);
        }
        let tail = &ask.row.ids[ask.row.ids.len().saturating_sub(new.len())..];
        let added = match align(tail, &new) {
            Some(aligned) if aligned.replaced == 0 => aligned.added,
            // The row itself reads otherwise: what follows then says nothing about what follows it.
            Some(_) => &[],
            None => &new,
        };
        Ok(Drafted::tokens(added.iter().copied().take_while(|id| (*id as usize) < self.vocab).collect()))
    }

    /// A drawn draft in the model's ids, with the distributions over them.
    fn map(&mut self, ask: &Ask<'_>, job: &Job) -> Drafted {
        let (vocab, translation) = (self.vocab, self.translation.clone());
        let partners = translation.partners();
        let partner = |id: usize| partners.get(id).copied().flatten().filter(|id| (*id as usize) < vocab);
        let pairs: Vec<_> = job.tokens().iter().filter_map(|id| Some((*id, partner(*id as usize)?))).collect();
        let mut probabilities = vec![0.0; pairs.len() * vocab];
        let width = job.distributions.len().checked_div(job.drafted).unwrap_or(0).max(1);
        for (to, from) in probabilities.chunks_exact_mut(vocab).zip(job.distributions.chunks_exact(width)) {
            for (id, share) in from.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                if let Some(partner) = partner(id) {
                    to[partner as usize] += share;
                }
            }
        }
        let tokens = pairs.iter().map(|(_, own)| *own).collect();
        if let Some(row) = self.row(ask.index) {
            row.drafted = pairs;
        }
        Drafted { tokens, probabilities }
    }
}

impl Translated {
    /// Brings the assistant's ids up to the model's `ids`: accepted drafts as they were drafted, the model's own tokens by
    /// their partners, or as text where one has none.
    fn follow(&mut self, ids: &[TokenId], translation: &dyn Translation) -> Result<()> {
        if self.target == 0 {
            self.ids = translation.to_assistant(ids, false)?;
            return Ok(());
        }
        let new = ids.get(self.target..).unwrap_or_default();
        let accepted = new.iter().zip(&self.drafted).take_while(|(own, (_, drafted))| *own == drafted).count();
        self.ids.extend(self.drafted[..accepted].iter().map(|(theirs, _)| *theirs));
        self.drafted.clear();
        let rest = &new[accepted..];
        let partners = translation.partners();
        let theirs = |own: &TokenId| partners.iter().position(|partner| *partner == Some(*own)).map(|id| id as TokenId);
        match rest.iter().map(theirs).collect::<Option<Vec<_>>>() {
            Some(rest) => self.ids.extend(rest),
            None => self.ids.extend(translation.to_assistant(rest, false)?),
        }
        Ok(())
    }
}

impl Draft for TranslatedAssistant {
    fn begin(&mut self, start: &Start<'_>) -> Result<()> {
        let settings = start.settings;
        // What is left are the filters of sampling.
        let filters = Settings { rules: Rules::default(), repetition_penalty: None, ..settings.clone() };
        let assistant_vocab = self.translation.partners().len();
        self.filters = build::processors(&filters, assistant_vocab, None, Vec::new())?.0;
        let ends = |partner: &Option<TokenId>| partner.is_some_and(|own| settings.eos_token_id.contains(&own));
        let partners = self.translation.partners().iter().zip(0..);
        self.eos = partners.filter(|(partner, _)| ends(partner)).map(|(_, id)| id).collect();
        (self.sample, self.vocab) = (settings.do_sample, start.vocab);
        let confidence = Confidence::new(self.settings.assistant_confidence_threshold, false);
        let plan = |index| Plan { index, tokens: self.settings.num_assistant_tokens, confidence: confidence.clone() };
        let row = |index| Translated { plan: plan(index), target: 0, ids: Vec::new(), drafted: Vec::new() };
        self.rows = start.rows.iter().map(|start| row(start.index)).collect();
        // The assistant reads a translation, from which padding is gone with the other special tokens.
        let rows: Vec<StartRow<'_>> = start.rows.iter().map(|row| StartRow { read: row.ids, ..*row }).collect();
        self.drafter.begin(&Start { rows: &rows, ..*start });
        Ok(())
    }

    fn draft(&mut self, ask: &Ask<'_>) -> Result<Drafted> {
        Ok(self.draft_all(std::slice::from_ref(ask))?.pop().unwrap_or_default())
    }

    fn draft_all(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Drafted>> {
        let mut jobs = Vec::with_capacity(asks.len());
        for ask in asks {
            let plan = self.row(ask.index).map(|row| (row.plan.tokens, row.plan.confidence.threshold()));
            let (tokens, threshold) = plan.unwrap_or_default();
            let most = if self.sample || ask.most == 0 { tokens.min(ask.most) } else { tokens };
            let ids = if most == 0 { Vec::new() } else { self.prepare(ask)? };
            jobs.push(Job { index: ask.index, ids, most, threshold, ..Job::default() });
        }
        let (filters, sample, partners) = (&mut self.filters, self.sample, self.translation.partners());
        let mut shape = |index: usize, ids: &[TokenId], logits: &[f32], scores: &mut Vec<f32>| {
            scores.clear();
            scores.extend_from_slice(logits);
            if sample {
                let alone = |id: usize| partners.get(id).copied().flatten().is_none();
                scores.iter_mut().enumerate().filter(|(id, _)| alone(*id)).for_each(|(_, score)| {
                    *score = f32::NEG_INFINITY;
                });
            }
            let Some(ask) = asks.iter().find(|ask| ask.index == index) else { return Ok(()) };
            filters.apply(&Row { ids, prompt_len: ids.len(), prompt: ask.row.prompt }, scores)
        };
        self.drafter
            .write(&mut jobs, &mut Manner { sample, distributions: sample, eos: &self.eos, shape: &mut shape })?;
        let mut drafted = Vec::with_capacity(asks.len());
        for (ask, job) in asks.iter().zip(&jobs) {
            drafted.push(match job.drafted {
                0 => Drafted::default(),
                _ if self.sample => self.map(ask, job),
                _ => self.read(ask, job)?,
            });
        }
        Ok(drafted)
    }

    fn gives_probabilities(&self) -> bool {
        self.sample
    }

    fn verified(&mut self, index: usize, drafted: usize, written: usize) {
        let schedule = self.settings.num_assistant_tokens_schedule;
        if let Some(row) = self.row(index) {
            row.plan.verified(schedule, drafted, written);
        }
    }

    fn ended(&mut self, index: usize) {
        self.drafter.ended(index);
        if let (Schedule::Heuristic, Some(tokens)) =
            (self.settings.num_assistant_tokens_schedule, self.row(index).map(|row| row.plan.tokens))
        {
            self.settings.num_assistant_tokens = tokens;
        }
    }
}

impl std::fmt::Debug for TranslatedAssistant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TranslatedAssistant").field("settings", &self.settings).finish_non_exhaustive()
    }
}
