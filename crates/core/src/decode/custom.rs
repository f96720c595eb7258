//! A caller's own decoding loop in the place of the built ones; Python's `custom_generate`.

use super::clock::Clock;
use super::guidance::Guidance;
use super::prefill::prefill;
use super::prompts::Prompt;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::logits::Logits;
use crate::model::{RowInput, Session};
use crate::output::PromptOutput;
use crate::processor::Processor;
use crate::rng::Rng;
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};
use crate::stream::{Flow, TokenEvent, TokenSink};
use crate::token::TokenId;

/// A decoding loop. Everything is prepared as for the built loops: checked prompts, the session, the rules and criteria in
/// Python's order, the stream.
///
/// A closure is a loop:
///
/// ```
/// use unspool_core::config::{MaxLength, Settings};
/// use unspool_core::decode::Prepared;
/// use unspool_core::select::argmax;
/// use unspool_core::{Keep, Own, PromptOutput, Request, Row, RowInput, Sequence, generate};
/// use unspool_testing::{ScriptedModel, tables};
///
/// // Greedy decoding of the first prompt, but every second token is written twice.
/// let stutter = |prepared: &mut Prepared<'_, '_>| {
///     let (prompt, max_length) = prepared.prompt(0);
///     let (mut ids, prompt_len) = (prompt.to_vec(), prompt.len());
///     let mut scores = prepared.prefill()?;
///     let finish = loop {
///         prepared.process(&Row { ids: &ids, prompt_len, prompt: 0 }, 0, &mut scores)?;
///         ids.push(argmax(&scores));
///         if ids.len() % 2 == 0 && ids.len() < max_length {
///             ids.push(ids[ids.len() - 1]);
///         }
///         if let Some(reason) = prepared.check(&Row { ids: &ids, prompt_len, prompt: 0 }, &scores)? {
///             break reason;
///         }
///         let new = prepared.held(0);
///         let logits = prepared.step(&[RowInput { tokens: &ids[new..], keep: Keep::Last }])?;
///         scores.copy_from_slice(logits.row(0));
///     };
///     Ok(vec![PromptOutput { sequences: vec![Sequence::new(ids.split_off(prompt_len), finish)] }])
/// };
/// let settings = Settings { max_length: MaxLength::New(5), ..Settings::default() };
/// let request = Request::new(vec![vec![0]], settings).own(Own::new().custom_generate(stutter));
/// let output = generate(&ScriptedModel::table(&tables::C), request)?;
/// assert_eq!(output.prompts[0].sequences[0].ids, [1, 1, 2, 2, 3]);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "custom_generate")]
pub trait CustomGenerate: Send {
    /// Writes the sequences of every prompt.
    ///
    /// # Errors
    ///
    /// Those of `prepared` and the loop's own.
    fn generate(&mut self, prepared: &mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>>;
}

impl<F> CustomGenerate for F
where
    F: FnMut(&mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>> + Send,
{
    fn generate(&mut self, prepared: &mut Prepared<'_, '_>) -> Result<Vec<PromptOutput>> {
        self(prepared)
    }
}

/// What a decoding loop works with.
///
/// The session begins with one row per prompt; [`prefill`](Prepared::prefill) runs the prompts.
pub struct Prepared<'r, 's> {
    pub(crate) settings: &'r Settings,
    pub(crate) session: &'r mut dyn Session,
    pub(crate) prompts: &'r [Prompt<'r>],
    /// Tokens of the prompt that the session held before.
    pub(crate) kept: usize,
    pub(crate) rules: &'r mut dyn Processor,
    pub(crate) criteria: &'r mut dyn Criterion,
    pub(crate) sink: Option<&'s mut dyn TokenSink>,
    pub(crate) guidance: Option<Guidance>,
    pub(crate) clock: &'r mut Clock,
    pub(crate) vocab: usize,
    /// Tokens of each row's prompt that the model does not read.
    pub(crate) hidden: Vec<usize>,
    pub(crate) rng: &'r dyn Fn(usize, usize) -> Rng,
}

impl<'r> Prepared<'r, '_> {
    /// The settings of the call.
    pub fn settings(&self) -> &'r Settings {
        self.settings
    }

    /// Number of prompts.
    pub fn prompts(&self) -> usize {
        self.prompts.len()
    }

    /// The tokens of a prompt, and the length, prompt included, at which its rows end.
    ///
    /// # Panics
    ///
    /// When there is no such prompt.
    pub fn prompt(&self, index: usize) -> (&'r [TokenId], usize) {
        let Prompt { ids, max_length, .. } = &self.prompts[index];
        (ids, *max_length)
    }

    /// Entries of the vocabulary.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The random numbers of one sequence of a prompt: the same for the same seed, whatever the batch.
    pub fn rng(&self, prompt: usize, sequence: usize) -> Rng {
        (self.rng)(prompt, sequence)
    }

    /// Runs the prompts in chunks; the scores after each, `[prompts, vocab] f32`. To be called once, first of all.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub fn prefill(&mut self) -> Result<Vec<f32>> {
        let left: Vec<_> = self.prompts.iter().map(|prompt| prompt.read.get(self.kept..).unwrap_or(&[])).collect();
        let chunk = self.settings.prefill_chunk_size;
        let scores = prefill(self.session, &left, chunk, self.vocab, self.clock, &mut self.sink)?;
        self.clock.prompts_done();
        if let Some(guidance) = &mut self.guidance {
            let rows: Vec<_> = (0..self.prompts.len()).collect();
            guidance.start(&rows, chunk, self.clock)?;
        }
        Ok(scores)
    }

    /// Rows of the session.
    pub fn rows(&self) -> usize {
        self.session.rows()
    }

    /// Tokens that a row of the session holds, with those of its prompt that are padding and not read.
    pub fn held(&self, row: usize) -> usize {
        self.session.len(row) + self.hidden[row]
    }

    /// Appends tokens to the rows; see [`Session::step`]. With `guidance_scale` every row brings one token.
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        if let Some(guidance) = &mut self.guidance {
            if rows.iter().any(|row| row.tokens.len() != 1) {
                return Err(Error::invalid_config(
                    "guidance_scale is set, and this decoding loop takes other than one token a row and step; leave \
                     guidance_scale out",
                ));
            }
            guidance.step(rows, self.clock)?;
        }
        self.clock.step(self.session, rows, self.vocab)
    }

    /// New row `i` continues old row `from[i]`; see [`Session::reorder`].
    ///
    /// # Errors
    ///
    /// Those of the session.
    pub fn reorder(&mut self, from: &[usize]) -> Result<()> {
        if let Some(guidance) = &mut self.guidance {
            guidance.keep(from)?;
        }
        self.session.reorder(from)?;
        self.hidden = from.iter().map(|&row| self.hidden[row]).collect();
        Ok(())
    }

    /// Whether rows can be cropped: the session can, and no guidance runs beside it.
    pub fn can_crop(&self) -> bool {
        self.guidance.is_none() && self.session.can_crop()
    }

    /// A row forgets its tokens after the first `len`; see [`Session::crop`].
    ///
    /// # Errors
    ///
    /// When the rows cannot be cropped.
    pub fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        if self.guidance.is_some() {
            return Err(Error::invalid_config(
                "guidance_scale is set, and this decoding loop takes tokens back; leave guidance_scale out",
            ));
        }
        let hidden = self.hidden.get(row).copied().unwrap_or(0);
        self.session.crop(row, len.saturating_sub(hidden))
    }

    /// Changes the scores of one row by guidance and the rules; `place` is the row's place in the last step.
    ///
    /// # Errors
    ///
    /// Those of the rules.
    pub fn process(&mut self, row: &Row<'_>, place: usize, scores: &mut [f32]) -> Result<()> {
        if let Some(guidance) = &self.guidance {
            guidance.apply(place, scores);
        }
        self.rules.apply(row, scores)
    }

    /// Why a row ends with its newest token, if it does; `scores` are those that the token was picked from.
    ///
    /// # Errors
    ///
    /// Those of the criteria.
    pub fn check(&mut self, row: &Row<'_>, scores: &[f32]) -> Result<Option<FinishReason>> {
        let reason = self.criteria.check(row, scores)?;
        let max_length = self.prompts.get(row.prompt).map_or(usize::MAX, |prompt| prompt.max_length);
        Ok(reason.or_else(|| (row.ids.len() >= max_length).then_some(FinishReason::Length)))
    }

    /// Tells the stream a final token; [`Flow::Stop`] asks to end its row.
    pub fn put(&mut self, event: &TokenEvent) -> Flow {
        self.sink.as_mut().map_or(Flow::Continue, |sink| sink.put(event))
    }

    /// Tells the stream that a row has ended.
    pub fn end(&mut self, row: usize, reason: &FinishReason) {
        if let Some(sink) = &mut self.sink {
            sink.end(row, reason);
        }
    }
}
