//! One step of a session, timed and held against what the port promises.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::logits::Logits;
use crate::model::{Keep, RowInput, Session};
use crate::output::Timing;

/// Counts where the time goes.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    prompt: Option<Duration>,
    model: Duration,
    prompt_tokens: usize,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Clock { start: Instant::now(), prompt: None, model: Duration::ZERO, prompt_tokens: 0 }
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
        let begin = Instant::now();
        let logits = session.step(rows)?;
        self.model += begin.elapsed();
        if self.prompt.is_none() {
            self.prompt_tokens += rows.iter().map(|row| row.tokens.len()).sum::<usize>();
        }
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
