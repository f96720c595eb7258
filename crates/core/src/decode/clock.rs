//! One step of a session, timed and held against what the port promises.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::hidden::{HiddenAsk, HiddenStates};
use crate::logits::Logits;
use crate::model::{Keep, Model, RowInput, Session};
use crate::output::Timing;
use crate::sync::{Peers, wait_for};

/// Counts where the time goes, and keeps step with other processes.
pub(crate) struct Clock {
    start: Instant,
    prompt: Option<Duration>,
    model: Duration,
    prompt_tokens: usize,
    peers: Option<Box<dyn Peers>>,
    /// Whether scores that are no numbers are an error.
    refuses_nan: bool,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start(peers: Option<Box<dyn Peers>>) -> Self {
        Clock {
            start: Instant::now(),
            prompt: None,
            model: Duration::ZERO,
            prompt_tokens: 0,
            peers,
            refuses_nan: false,
        }
    }

    /// Makes scores that are no numbers an error, or lets them pass: the rules then do something about them.
    pub(crate) fn refuse_nan(&mut self, refuses: bool) {
        self.refuses_nan = refuses;
    }

    /// Starts anew: what was before is not counted.
    pub(crate) fn restart(&mut self) {
        self.start = Instant::now();
    }

    /// Keeps stepping until the other processes are done too.
    ///
    /// # Errors
    ///
    /// Those of the model and of the other processes.
    pub(crate) fn wait_for_peers(&mut self, model: &dyn Model) -> Result<()> {
        self.peers.as_deref_mut().map_or(Ok(()), |peers| wait_for(peers, model))
    }

    /// Runs one step, `[kept, vocab] f32`.
    ///
    /// # Errors
    ///
    /// The session's own; and when it returns other scores than were asked for.
    pub(crate) fn step<'s>(
        &mut self,
        session: &'s mut dyn Session,
        rows: &[RowInput<'_>],
        vocab: usize,
    ) -> Result<Logits<'s>> {
        if let Some(peers) = &mut self.peers {
            peers.any_running(true)?;
        }
        let begin = Instant::now();
        let logits = session.step(rows)?;
        self.ran(begin, rows);
        let logits = check(logits, rows, vocab)?;
        if self.refuses_nan {
            check_numbers(&logits, rows)?;
        }
        Ok(logits)
    }

    /// The same with the hidden states that `ask` names.
    ///
    /// # Errors
    ///
    /// As [`step`](Clock::step).
    pub(crate) fn step_hidden<'s>(
        &mut self,
        session: &'s mut dyn Session,
        rows: &[RowInput<'_>],
        ask: &HiddenAsk<'_>,
        vocab: usize,
    ) -> Result<(Logits<'s>, HiddenStates<'s>)> {
        if let Some(peers) = &mut self.peers {
            peers.any_running(true)?;
        }
        let begin = Instant::now();
        let (logits, hidden) = session.step_hidden(rows, ask)?;
        self.ran(begin, rows);
        let logits = check(logits, rows, vocab)?;
        if self.refuses_nan {
            check_numbers(&logits, rows)?;
        }
        Ok((logits, hidden))
    }

    fn ran(&mut self, begin: Instant, rows: &[RowInput<'_>]) {
        self.model += begin.elapsed();
        if self.prompt.is_none() {
            self.prompt_tokens += rows.iter().map(|row| row.tokens.len()).sum::<usize>();
        }
    }

    /// Prompt tokens that run together with drafts.
    pub(crate) fn prompt_tokens_later(&mut self, tokens: usize) {
        self.prompt_tokens += tokens;
    }

    /// The prompts have been run: what follows is writing.
    pub(crate) fn prompts_done(&mut self) {
        self.prompt = Some(self.start.elapsed());
    }

    /// The times so far.
    pub(crate) fn timing(&self, new_tokens: usize) -> Timing {
        let total = self.start.elapsed();
        let prompt = self.prompt.unwrap_or(total);
        Timing {
            prompt_tokens: self.prompt_tokens,
            prompt_s: prompt.as_secs_f64(),
            new_tokens,
            decode_s: total.saturating_sub(prompt).as_secs_f64(),
            model_s: self.model.as_secs_f64(),
        }
    }
}

/// Refuses scores that are no numbers: whatever is chosen by them is noise.
///
/// # Errors
///
/// When there is a NaN among the scores; the message names the row.
pub(crate) fn check_numbers(logits: &Logits<'_>, rows: &[RowInput<'_>]) -> Result<()> {
    let positions = rows.iter().enumerate().flat_map(|(row, input)| {
        let count = match input.keep {
            Keep::None => 0,
            Keep::Last => input.tokens.len().min(1),
            Keep::All => input.tokens.len(),
        };
        std::iter::repeat_n(row, count)
    });
    for (kept, row) in (0..logits.kept()).zip(positions) {
        // Without an early end inside a piece, so that the compiler looks at many numbers at once.
        let pieces = &mut logits.row(kept).chunks(4096);
        if pieces.any(|piece| piece.iter().fold(false, |found, score| found | score.is_nan())) {
            return Err(Error::invalid_model(format!(
                "the model returned scores that are no numbers (NaN) for row {row} of {}: its weights are damaged, or overflow \
                 their type; download it again or take other weights (--dtype, --weights), or set remove_invalid_values to go on \
                 regardless",
                rows.len()
            )));
        }
    }
    Ok(())
}

/// Holds the scores of a step against what was asked for.
fn check<'s>(logits: Logits<'s>, rows: &[RowInput<'_>], vocab: usize) -> Result<Logits<'s>> {
    let asked: usize = rows
        .iter()
        .map(|row| match row.keep {
            Keep::None => 0,
            Keep::Last => row.tokens.len().min(1),
            Keep::All => row.tokens.len(),
        })
        .sum();
    if logits.kept() != asked || logits.vocab() != vocab {
        return Err(Error::engine(format!(
            "the model returned scores [{}, {}], expected [{asked}, {vocab}]; its graph does not fit its declared \
                 vocabulary",
            logits.kept(),
            logits.vocab()
        )));
    }
    Ok(logits)
}
