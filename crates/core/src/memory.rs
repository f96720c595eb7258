//! The memory that a request may need, compared with what the machine has before anything is allocated.

use crate::config::Settings;
use crate::decode::Prompt;
use crate::error::{Error, Result};
use crate::model::Model;

/// What is not worth a question to the system.
const SMALL: u64 = 128 << 20;

/// The limit where the system does not say what it has.
const UNKNOWN: u64 = 64 << 30;

/// Bytes of a row beside its caches and scores: its draws, criteria and results.
const ROW: u64 = 2048;

/// The bytes that a request may need at most, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    rows: u64,
    caches: u64,
    scores: u64,
    outputs: u64,
}

impl Need {
    /// Of `rows` rows that reach `tokens` tokens and keep nothing but their caches.
    pub fn rows(model: &dyn Model, rows: usize, tokens: usize) -> Self {
        let (rows, tokens) = (count(rows), count(tokens));
        // Caches of several rows are copied when rows come or go.
        let copies = if rows > 1 { 2 } else { 1 };
        let row = tokens.saturating_mul(count(model.cache_bytes_per_token())).saturating_mul(copies);
        // The model's scores, and those that rules have changed.
        let scores = count(model.vocab_size()).saturating_mul(2 * 4);
        Need {
            rows,
            caches: rows.saturating_mul(row),
            scores: rows.saturating_mul(scores),
            outputs: rows.saturating_mul(ROW),
        }
    }

    /// Of a generation whose longest row has `capacity` tokens.
    pub fn generation(model: &dyn Model, prompts: &[Prompt<'_>], settings: &Settings, capacity: usize) -> Self {
        let candidates = settings.contrastive.map_or(1, |search| if search.low_memory { 1 } else { search.top_k });
        let sequences = settings.num_return_sequences.max(settings.beams.num_beams).max(1);
        let rows = prompts.len().saturating_mul(sequences).saturating_mul(candidates.max(1));
        let mut need = Need::rows(model, rows, capacity);
        if settings.rules.guidance_scale.is_some() {
            need.caches = need.caches.saturating_mul(2);
        }
        let scores = u64::from(settings.output_scores) + u64::from(settings.output_logits);
        let scores = scores.saturating_mul(count(model.vocab_size()).saturating_mul(4));
        let states = model.hidden().filter(|_| settings.output_hidden_states);
        let states = states.map_or(0, |shape| count(shape.last + 1).saturating_mul(count(shape.width) * 4));
        for prompt in prompts {
            let new = count(prompt.max_length.saturating_sub(prompt.ids.len()));
            let kept = new.saturating_mul(scores).saturating_add(count(prompt.max_length).saturating_mul(states));
            need.outputs = need.outputs.saturating_add(kept.saturating_mul(count(sequences)));
        }
        need
    }

    /// Refuses what the machine cannot give.
    ///
    /// # Errors
    ///
    /// When more bytes may be needed than are available; the message names both.
    pub fn check(&self) -> Result<()> {
        if self.total() <= SMALL { Ok(()) } else { self.check_against(available()) }
    }

    fn total(&self) -> u64 {
        self.caches.saturating_add(self.scores).saturating_add(self.outputs)
    }

    fn check_against(&self, available: u64) -> Result<()> {
        if self.total() <= available {
            return Ok(());
        }
        Err(Error::invalid_input(format!(
            "this may need {} of memory ({} rows: caches {}, scores {}, results {}), and {} are available; give fewer prompts at \
             once, fewer sequences or beams or a lower max_new_tokens, or do not ask for scores, logits or hidden states",
            shown(self.total()),
            self.rows,
            shown(self.caches),
            shown(self.scores),
            shown(self.outputs),
            shown(available)
        )))
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn shown(bytes: u64) -> String {
    match bytes >> 20 {
        mib @ 0..10_240 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib >> 10),
    }
}

/// Bytes that the system can still give this process: memory and swap that are free or can be freed, within the limit of
/// its control group. Linux says so; elsewhere it is a fixed number.
fn available() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let Some(free) = read("/proc/meminfo").and_then(|text| of_meminfo(&text)) else { return UNKNOWN };
    let group = read("/proc/self/cgroup");
    let group = group.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("0::"))).unwrap_or("/");
    // Inside a container the group of the process is the root of what is seen.
    let limits = [format!("/sys/fs/cgroup{group}/memory.max"), "/sys/fs/cgroup/memory.max".to_owned()];
    let limit = limits.iter().filter_map(|path| read(path)?.trim().parse::<u64>().ok()).min();
    free.min(limit.unwrap_or(u64::MAX))
}

fn of_meminfo(text: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some(field("MemAvailable")?.saturating_add(field("SwapFree").unwrap_or(0)).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::model::{Session, SessionOptions};

    struct Sized;

    impl Model for Sized {
        fn vocab_size(&self) -> usize {
            100
        }

        fn max_positions(&self) -> Option<usize> {
            None
        }

        fn cache_bytes_per_token(&self) -> usize {
            64
        }

        fn open(&self, _options: &SessionOptions) -> Result<Box<dyn Session>> {
            Err(Error::engine("it is never opened"))
        }
    }

    fn prompt(ids: &[u32], max_length: usize) -> Prompt<'_> {
        Prompt { ids: Cow::Borrowed(ids), read: Cow::Borrowed(ids), max_length }
    }

    #[test]
    fn what_is_needed_grows_with_rows_tokens_and_outputs() {
        let model = Sized;
        let prompts: Vec<Prompt<'_>> = (0..3).map(|_| prompt(&[1, 2], 12)).collect();
        let plain = Settings::default();
        let need = Need::generation(&model, &prompts, &plain, 11);
        assert_eq!(need, Need { rows: 3, caches: 3 * 11 * 64 * 2, scores: 3 * 100 * 8, outputs: 3 * ROW });
        let four = Settings { num_return_sequences: 4, output_scores: true, output_logits: true, ..plain.clone() };
        let need = Need::generation(&model, &prompts, &four, 11);
        assert_eq!(need.rows, 12);
        assert_eq!(need.outputs, 12 * ROW + 12 * 10 * 2 * 100 * 4);
        let endless = [prompt(&[1], usize::MAX)];
        assert_eq!(Need::generation(&model, &endless, &four, usize::MAX).total(), u64::MAX);
    }

    #[test]
    fn more_than_there_is_is_refused_and_both_are_named() {
        let need = Need { rows: 7, caches: 20 << 30, scores: 1 << 20, outputs: 0 };
        assert!(need.check_against(21 << 30).is_ok());
        let error = need.check_against(5 << 30).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "this may need 20 GiB of memory (7 rows: caches 20 GiB, scores 1 MiB, results 0 MiB), and 5120 MiB are"
            ),
            "{error}"
        );
    }

    #[test]
    fn linux_says_what_it_has() {
        let text = "MemTotal:       16 kB\nMemAvailable:    8 kB\nSwapFree:   2 kB\n";
        assert_eq!(of_meminfo(text), Some(10 * 1024));
        assert_eq!(of_meminfo("MemFree: 3 kB\n"), None);
        assert!(available() > SMALL);
    }
}
