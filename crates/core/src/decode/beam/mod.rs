//! Beam search: several sequences per prompt are followed side by side; Python's `_beam_search` and the searches that
//! Python 5 moved out of its library.
//!
//! The loop here knows the session and the stream; what becomes of the beams of a prompt is decided by its [`Search`]. A
//! prompt runs once, as one row; its beams are rows of their own from the first token on. Prompts do not wait for each
//! other: one whose search is over leaves the session at once, so that a prompt of a batch is searched exactly as if it
//! were alone.

mod constrained;
mod constraint_state;
mod contract;
mod groups;
mod hypotheses;
mod lane;
mod search;

use contract::{Place, Search, Step};
use groups::GroupSearch;
use lane::Trace;
use search::BeamSearch;

use super::clock::Clock;
use super::guidance::Guidance;
use super::prefill::prefill;
use super::prompts::Prompt;
use crate::config::Settings;
use crate::error::Result;
use crate::model::{Keep, RowInput, Session};
use crate::output::PromptOutput;
use crate::processor::Processor;
use crate::rng::Rng;
use crate::stop::{Criterion, FinishReason};
use crate::stream::{Flow, TokenEvent, TokenSink};

/// The parts of one generation with beams.
pub(crate) struct Beams<'r, 's> {
    /// The search, and what to keep.
    pub settings: &'r Settings,
    /// Changes log-probabilities.
    pub rules: &'r mut dyn Processor,
    /// Ends beams.
    pub criteria: &'r mut dyn Criterion,
    /// Is told tokens when all beams agree on them.
    pub sink: Option<&'s mut dyn TokenSink>,
    /// Guides log-probabilities before the rules do.
    pub guidance: Option<Guidance>,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// Whether to return log-probabilities.
    pub logprobs: bool,
    /// Index of the first prompt in the whole that these prompts are a part of; `beam_indices` count from there.
    pub first_row: usize,
}

/// A prompt that is being searched.
struct Searching {
    /// Its index in the request.
    prompt: usize,
    search: Box<dyn Search>,
    trace: Trace,
    /// New tokens that were told.
    told: usize,
    /// Whether the sink asked to stop.
    cancelled: bool,
}

impl Beams<'_, '_> {
    /// Searches every prompt and returns its `num_return_sequences` best sequences, best first.
    ///
    /// `session` has one row per prompt, which holds the prompt's first `held` tokens. Afterwards it holds beams.
    ///
    /// # Errors
    ///
    /// Those of the session, the rules and the criteria; draws that have no token left.
    pub(crate) fn run(
        &mut self,
        session: &mut dyn Session,
        prompts: &[Prompt<'_>],
        held: usize,
        rng: impl Fn(usize) -> Rng,
        clock: &mut Clock,
    ) -> Result<Vec<PromptOutput>> {
        let lanes = self.settings.beams.num_beams;
        let mut outputs = vec![PromptOutput::default(); prompts.len()];

        let left: Vec<_> = prompts.iter().map(|prompt| prompt.read.get(held..).unwrap_or(&[])).collect();
        let first = prefill(session, &left, self.settings.prefill_chunk_size, self.vocab, clock, &mut self.sink)?;
        clock.prompts_done();
        if let Some(guidance) = &mut self.guidance {
            let rows: Vec<_> = (0..prompts.len()).collect();
            guidance.start(&rows, self.settings.prefill_chunk_size, clock)?;
        }
        let mut open = Vec::with_capacity(prompts.len());
        let mut scores = Vec::new();
        for (index, (prompt, row)) in prompts.iter().zip(first.chunks_exact(self.vocab)).enumerate() {
            let mut searching = self.open(index, prompt, rng(index));
            scores.clear();
            (0..lanes).for_each(|_| scores.extend_from_slice(row));
            let advanced = self.advance(&mut searching, index, true, &mut scores);
            advanced.map_err(|error| error.within_one_of("prompt", index, prompts.len()))?;
            open.push((index, searching));
        }
        drop((first, scores));

        // From here on lane `l` of the prompt at `at` is row `at * lanes + l`; before, each prompt was one row.
        let (mut rows_each, mut from) = (1, Vec::new());
        loop {
            from.clear();
            for (at, searching) in &mut open {
                if self.tell(searching) {
                    outputs[searching.prompt] = self.close(searching);
                    searching.trace = Trace::default();
                } else {
                    let origins = searching.search.running().iter().map(|beam| beam.from());
                    from.extend(origins.map(|lane| *at * rows_each + if rows_each == 1 { 0 } else { lane }));
                }
            }
            open.retain(|(_, searching)| !searching.over());
            if open.is_empty() {
                return Ok(outputs);
            }
            let rows = session.rows();
            if from.len() != rows || from.iter().enumerate().any(|(row, from)| row != *from) {
                session.reorder(&from)?;
                if let Some(guidance) = &mut self.guidance {
                    guidance.keep(&from)?;
                }
            }
            rows_each = lanes;
            let beams = open.iter().flat_map(|(_, searching)| searching.search.running());
            let inputs: Vec<_> = beams
                .map(|beam| RowInput { tokens: beam.ids.last().map_or(&[], std::slice::from_ref), keep: Keep::Last })
                .collect();
            if let Some(guidance) = &mut self.guidance {
                guidance.step(&inputs, clock)?;
            }
            let mut logits = clock.step(session, &inputs, self.vocab)?;
            for (place, (at, searching)) in open.iter_mut().enumerate() {
                *at = place;
                let advanced = self.advance(searching, place * lanes, false, logits.rows_mut(place * lanes, lanes));
                advanced.map_err(|error| error.within_one_of("prompt", searching.prompt, prompts.len()))?;
            }
        }
    }

    /// The search that the settings ask for.
    fn open(&self, index: usize, prompt: &Prompt<'_>, rng: Rng) -> Searching {
        let at = Place::new(index, prompt);
        let beams = &self.settings.beams;
        let search: Box<dyn Search> = if beams.num_beam_groups > 1 || !beams.constraints.is_empty() {
            Box::new(GroupSearch::new(at, &prompt.ids, self.settings))
        } else {
            Box::new(BeamSearch::new(at, &prompt.ids, self.settings, rng))
        };
        Searching { prompt: index, search, trace: Trace::new(self.settings), told: 0, cancelled: false }
    }

    fn advance(&mut self, searching: &mut Searching, place: usize, first: bool, scores: &mut [f32]) -> Result<()> {
        let guidance = self.guidance.as_ref();
        let mut step = Step { rules: self.rules, criteria: self.criteria, guidance, vocab: self.vocab, place, first };
        searching.search.advance(&mut step, scores, &mut searching.trace)
    }

    /// Tells the tokens that all beams have come to agree on; whatever is returned begins with them. Returns whether the
    /// search is over.
    fn tell(&mut self, searching: &mut Searching) -> bool {
        if let (Some(sink), false) = (&mut self.sink, searching.search.done()) {
            searching.cancelled |= sink.poll() == Flow::Stop;
            let agreed = searching.agreed();
            let beam = &searching.search.running()[0];
            let sequences = self.settings.num_return_sequences;
            let new = &beam.ids[beam.ids.len() - beam.path.len()..];
            for (&token, logprob) in new[..agreed].iter().zip(&beam.logprobs).skip(searching.told) {
                for sequence in 0..sequences {
                    let row = searching.prompt * sequences + sequence;
                    let event = TokenEvent { row, token, logprob: self.logprobs.then_some(*logprob) };
                    searching.cancelled |= sink.put(&event) == Flow::Stop;
                }
            }
            searching.told = agreed.max(searching.told);
        }
        searching.over()
    }

    /// Ends a search: its best sequences, and the rest of their tokens to the sink.
    fn close(&mut self, searching: &mut Searching) -> PromptOutput {
        let (sequences, lanes) = (self.settings.num_return_sequences, self.settings.beams.num_beams);
        let cut = (searching.cancelled && !searching.search.done()).then_some(FinishReason::Cancelled);
        let mut output = PromptOutput::default();
        for (sequence, mut hypothesis) in searching.search.finish(sequences, cut).into_iter().enumerate() {
            let row = searching.prompt * sequences + sequence;
            if let Some(sink) = &mut self.sink {
                for (&token, logprob) in hypothesis.ids.iter().zip(&hypothesis.logprobs).skip(searching.told) {
                    let event = TokenEvent { row, token, logprob: self.logprobs.then_some(*logprob) };
                    if sink.put(&event) == Flow::Stop {
                        hypothesis.reason = FinishReason::Cancelled;
                        break;
                    }
                }
                sink.end(row, &hypothesis.reason);
            }
            let first = self.first_row.wrapping_add(searching.prompt).wrapping_mul(lanes);
            output.sequences.push(searching.trace.sequence(hypothesis, first, self.logprobs, self.vocab));
        }
        output
    }
}

impl Searching {
    fn over(&self) -> bool {
        self.cancelled || self.search.done()
    }

    /// How many first new tokens all running beams and finished sequences share.
    fn agreed(&self) -> usize {
        let running = self.search.running();
        let Some(first) = running.first() else { return 0 };
        let new = &first.ids[first.ids.len() - first.path.len()..];
        let shared = |other: &[crate::TokenId]| new.iter().zip(other).take_while(|(a, b)| a == b).count();
        let others = running.iter().map(|beam| shared(&beam.ids[beam.ids.len() - beam.path.len()..]));
        let finished = self.search.finished().into_iter().map(|hypothesis| shared(&hypothesis.ids)).collect::<Vec<_>>();
        others.chain(finished).min().unwrap_or(0)
    }
}
