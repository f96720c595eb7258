//! Drafts pause while they do not pay, on a clock of the test's own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use unspool_core::config::MaxLength;
use unspool_core::draft::Assist;
use unspool_core::rng::Rng;
use unspool_core::{
    Logits, Model, Output, Request, Result, RowInput, Session, SessionOptions, Settings, TokenId, generate,
};
use unspool_testing::{KnownDraft, ScriptedModel};

const VOCAB: usize = 12;

fn asked<'a>(prompts: &[Vec<TokenId>], settings: &Settings) -> Request<'a> {
    Request::new(prompts.to_vec(), settings.clone())
}

fn ids(output: &Output) -> Vec<Vec<TokenId>> {
    output.prompts.iter().flat_map(|prompt| &prompt.sequences).map(|sequence| sequence.ids.clone()).collect()
}

/// A model whose steps take time on a clock of their own: one token 10 ms, each further one `extra` ms.
fn timed(model: &ScriptedModel, clock: &Arc<Mutex<Duration>>, extra: u64) -> Timed {
    Timed { model: model.clone(), clock: clock.clone(), extra }
}

struct Timed {
    model: ScriptedModel,
    clock: Arc<Mutex<Duration>>,
    extra: u64,
}

impl Model for Timed {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }
    fn max_positions(&self) -> Option<usize> {
        None
    }
    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        let (inner, clock, extra) = (self.model.open(options)?, self.clock.clone(), self.extra);
        Ok(Box::new(TimedSession { inner, clock, extra }))
    }
}

struct TimedSession {
    inner: Box<dyn Session>,
    clock: Arc<Mutex<Duration>>,
    extra: u64,
}

impl Session for TimedSession {
    fn rows(&self) -> usize {
        self.inner.rows()
    }
    fn len(&self, row: usize) -> usize {
        self.inner.len(row)
    }
    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        let tokens = rows.iter().map(|row| row.tokens.len()).max().unwrap_or(0) as u64;
        *self.clock.lock().unwrap() += Duration::from_millis(10 + self.extra * tokens.saturating_sub(1));
        self.inner.step(rows)
    }
    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        self.inner.reorder(from)
    }
    fn can_crop(&self) -> bool {
        true
    }
    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        self.inner.crop(row, len)
    }
}

#[test]
fn assistance_costs_a_twentieth_at_most_where_drafts_fail_and_halves_the_time_where_they_do_not() {
    let settings = Settings { max_length: MaxLength::New(300), ..Settings::default() };
    let prompts = [vec![1, 2, 3]];
    let model = ScriptedModel::hashed(VOCAB);
    let plain = ids(&generate(&model, asked(&prompts, &settings)).unwrap());
    let seconds = |wrong: f64, extra: u64| {
        let clock = Arc::new(Mutex::new(Duration::ZERO));
        let mut known = KnownDraft::new(plain.clone(), wrong, 8, VOCAB, Rng::for_row(99, 0, 0));
        let now = clock.clone();
        let assist = Assist::new(&mut known).elapsed(move || *now.lock().unwrap());
        assert_eq!(
            ids(&generate(&timed(&model, &clock, extra), asked(&prompts, &settings).assist(assist)).unwrap()),
            plain
        );
        clock.lock().unwrap().as_secs_f64()
    };
    let plainly = 300.0 * 0.010;
    for extra in [0, 1, 4, 10] {
        assert!(seconds(1.0, extra) < plainly / 0.95, "{extra} ms a token: {}", seconds(1.0, extra));
    }
    assert!(seconds(0.0, 1) < plainly / 4.0, "{}", seconds(0.0, 1));
    assert!(seconds(0.05, 2) < plainly / 1.8, "{}", seconds(0.05, 2));
}
