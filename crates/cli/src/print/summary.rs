//! What a run did: tokens, seconds, seed and engine.

use std::time::{Duration, Instant};

use unspool::{Answers, Pipeline, Timing};

/// Adds up the answers of a run.
#[derive(Debug)]
pub struct Summary {
    begin: Instant,
    prompts: usize,
    sequences: usize,
    timing: Timing,
    first_token: Option<Duration>,
    seed: Option<u64>,
    drafts: Option<(usize, usize)>,
}

impl Summary {
    /// Begins now.
    pub fn begin() -> Self {
        Summary {
            begin: Instant::now(),
            prompts: 0,
            sequences: 0,
            timing: Timing::default(),
            first_token: None,
            seed: None,
            drafts: None,
        }
    }

    /// Adds the answers of a batch, whose first token came at `first_token`.
    pub fn add(&mut self, answers: &Answers, first_token: Option<Instant>) {
        let began = self.begin;
        self.first_token = self.first_token.or(first_token.map(|at| at.saturating_duration_since(began)));
        self.prompts += answers.answers.len();
        self.sequences += answers.answers.iter().map(|answer| answer.output.sequences.len()).sum::<usize>();
        self.timing.prompt_tokens += answers.timing.prompt_tokens;
        self.timing.prompt_s += answers.timing.prompt_s;
        self.timing.new_tokens += answers.timing.new_tokens;
        self.timing.decode_s += answers.timing.decode_s;
        self.seed = answers.seed.or(self.seed);
        if let Some(counts) = &answers.drafts {
            let (drafted, accepted) = self.drafts.unwrap_or_default();
            self.drafts = Some((drafted + counts.drafted, accepted + counts.accepted));
        }
    }

    /// One line about all prompts.
    pub fn line(&self) -> String {
        let seconds = self.begin.elapsed().as_secs_f64();
        let prompts = counted(self.prompts, "prompt");
        let tokens = counted(self.timing.new_tokens, "new token");
        format!("{prompts}, {tokens} in {seconds:.1} s ({})", rate(self.timing.new_tokens, seconds))
    }

    /// The lines of `--verbose`.
    pub fn details(&self, pipeline: &Pipeline) -> Vec<String> {
        let Timing { prompt_tokens, prompt_s, new_tokens, decode_s, .. } = self.timing;
        let read =
            format!("{} in {prompt_s:.2} s ({})", counted(prompt_tokens, "token"), rate(prompt_tokens, prompt_s));
        // The first token of each sequence comes out of the prompt's last step.
        let decoded = new_tokens.saturating_sub(self.sequences);
        let written = format!("{} in {decode_s:.2} s ({})", counted(new_tokens, "token"), rate(decoded, decode_s));
        let mut lines = vec![format!("prompt: {read}"), format!("answer: {written}")];
        if let Some(first) = self.first_token {
            lines.push(format!("first token: after {:.2} s", first.as_secs_f64()));
        }
        if let Some((drafted, accepted)) = self.drafts {
            lines.push(format!("drafts: {accepted} of {} accepted", counted(drafted, "drafted token")));
        }
        if let Some(seed) = self.seed {
            lines.push(format!("seed: {seed}"));
        }
        lines.extend(engine(pipeline).map(|engine| format!("engine: {engine}")));
        lines
    }
}

/// The engine of a model, its version and its threads.
pub fn engine(pipeline: &Pipeline) -> Option<String> {
    let description = pipeline.description()?;
    let threads = counted(description.threads, "thread");
    Some(format!("{} {}, {threads}", description.engine, description.engine_version))
}

/// A number of things.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Tokens a second.
pub fn rate(tokens: usize, seconds: f64) -> String {
    let rate = if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
    format!("{rate:.1} tokens/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_rates_are_words() {
        assert_eq!(counted(1, "prompt"), "1 prompt");
        assert_eq!(counted(0, "prompt"), "0 prompts");
        assert_eq!(rate(30, 2.0), "15.0 tokens/s");
        assert_eq!(rate(3, 0.0), "0.0 tokens/s");
    }
}
