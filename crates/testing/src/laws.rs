//! The three laws of the port as checks of any model.
//!
//! Each check runs random rows from a seed and compares with a fresh session of one row that is fed the same tokens in one
//! step. A violation is an `Err` that tells the seed, the row, the token and both scores.

use std::fmt;

use unspool_core::rng::Rng;
use unspool_core::{Keep, Model, RowInput, Session, SessionOptions, TokenId};

/// How far two scores that should be equal may lie apart, and why they may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Largest absolute difference.
    pub absolute: f32,
    /// What makes the difference: the reason for the number.
    pub reason: &'static str,
}

impl Tolerance {
    /// Not a bit may differ.
    pub const EXACT: Tolerance = Tolerance { absolute: 0.0, reason: "the same arithmetic in the same order" };

    /// A difference of at most `absolute`, because of `reason`.
    pub const fn new(absolute: f32, reason: &'static str) -> Self {
        Tolerance { absolute, reason }
    }

    /// Whether the scores agree, `[vocab]` each.
    ///
    /// # Errors
    ///
    /// A message naming the token with the largest difference.
    pub fn check(&self, got: &[f32], expected: &[f32]) -> Result<(), String> {
        if got.len() != expected.len() {
            return Err(format!("{} scores, expected {}", got.len(), expected.len()));
        }
        let apart = |(a, b): (&f32, &f32)| match a == b || (a.is_nan() && b.is_nan()) {
            true => 0.0,
            false if (a - b).is_nan() => f32::INFINITY,
            false => (a - b).abs(),
        };
        let all = got.iter().zip(expected).map(apart).enumerate();
        match all.max_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((token, apart)) if apart > self.absolute => {
                let (got, expected) = (got[token], expected[token]);
                Err(format!("token {token} has score {got}, expected {expected}: {apart} apart, allowed {self}"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.absolute, self.reason)
    }
}

/// `count` prompts of 1 to `max_len` random ids below `vocab`.
pub fn random_prompts(seed: u64, count: usize, max_len: usize, vocab: usize) -> Vec<Vec<TokenId>> {
    let prompt = |index| {
        let mut rng = Rng::for_row(seed, index, 0);
        let len = 1 + below(&mut rng, max_len.max(1));
        tokens(&mut rng, len, vocab)
    };
    (0..count).map(prompt).collect()
}

/// Law 1: a row's scores do not depend on the rows beside it.
///
/// All prompts run as one batch of rows of different lengths; then every row brings one more token, and in a third step
/// only every other row does.
///
/// # Errors
///
/// Where a row differs from its prompt alone, or the model fails.
pub fn check_batch_law(model: &dyn Model, prompts: &[Vec<TokenId>], tolerance: Tolerance) -> Result<(), String> {
    let mut session = open(model, prompts.len())?;
    let mut rows = prompts.to_vec();
    let mut expect = |rows: &[Vec<TokenId>], inputs: &[Vec<TokenId>]| -> Result<(), String> {
        let got = step(&mut *session, &inputs.iter().map(|tokens| (&tokens[..], Keep::Last)).collect::<Vec<_>>())?;
        let ran = rows.iter().zip(inputs).enumerate().filter(|(_, (_, tokens))| !tokens.is_empty());
        if got.len() != ran.clone().count() {
            return Err(format!("batch law: {} rows of scores, expected {}", got.len(), ran.count()));
        }
        for (scores, (index, (row, _))) in got.iter().zip(ran) {
            let alone = fresh(model, row)?;
            tolerance
                .check(scores, &alone)
                .map_err(|what| format!("batch law: row {index} of {} ({row:?}): {what}", rows.len()))?;
        }
        Ok(())
    };
    expect(&rows, prompts)?;
    for every in [1, 2] {
        let next = |(index, row): (usize, &Vec<TokenId>)| if index % every == 0 { vec![row[0]] } else { Vec::new() };
        let inputs: Vec<_> = rows.iter().enumerate().map(next).collect();
        rows.iter_mut().zip(&inputs).for_each(|(row, tokens)| row.extend(tokens));
        expect(&rows, &inputs)?;
    }
    Ok(())
}

/// Law 2: a prompt in one step, in chunks of random sizes from `seed`, or token by token gives the same scores.
///
/// Every position's scores are compared in the first and last way, the last position's in the second.
///
/// # Errors
///
/// Where the scores differ, or the model fails.
pub fn check_step_law(
    model: &dyn Model,
    prompts: &[Vec<TokenId>],
    seed: u64,
    tolerance: Tolerance,
) -> Result<(), String> {
    for (index, prompt) in prompts.iter().enumerate() {
        let whole = step(&mut *open(model, 1)?, &[(prompt, Keep::All)])?;
        if whole.len() != prompt.len() {
            return Err(format!("step law: {} positions were kept, expected {}", whole.len(), prompt.len()));
        }
        let mut session = open(model, 1)?;
        for (position, token) in prompt.iter().enumerate() {
            let one = step(&mut *session, &[(&[*token], Keep::Last)])?;
            let what =
                |what| format!("step law: prompt {index} ({prompt:?}) token by token, position {position}: {what}");
            tolerance.check(one.first().map_or(&[], Vec::as_slice), &whole[position]).map_err(what)?;
        }
        let (mut session, mut rng, mut left, mut sizes) =
            (open(model, 1)?, Rng::for_row(seed, index, 0), &prompt[..], Vec::new());
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(1 + below(&mut rng, left.len()));
            sizes.push(chunk.len());
            left = rest;
            let keep = if rest.is_empty() { Keep::Last } else { Keep::None };
            let got = step(&mut *session, &[(chunk, keep)])?;
            if let (true, Some(expected)) = (rest.is_empty(), whole.last()) {
                let what =
                    |what| format!("step law: prompt {index} ({prompt:?}) in chunks {sizes:?} of seed {seed}: {what}");
                tolerance.check(got.first().map_or(&[], Vec::as_slice), expected).map_err(what)?;
            }
        }
    }
    Ok(())
}

/// Law 3: after any walk of step, reorder and crop the next scores equal those of a fresh session fed the same tokens.
///
/// The walk comes from `seed` and makes `moves` moves over up to 5 rows of up to `max_len` tokens; it crops only where the
/// session can. After every step each row that brought tokens is compared.
///
/// # Errors
///
/// Where the scores or a row's length differ, or the model fails.
pub fn check_cache_law(
    model: &dyn Model,
    seed: u64,
    moves: usize,
    max_len: usize,
    tolerance: Tolerance,
) -> Result<(), String> {
    let mut rng = Rng::for_row(seed, 0, 0);
    let count = 1 + below(&mut rng, 4);
    let mut walk = Walk { session: open(model, count)?, rows: vec![Vec::new(); count], told: Vec::new() };
    for _ in 0..moves {
        walk.step_or_move(model, &mut rng, max_len, tolerance)
            .map_err(|what| format!("cache law: seed {seed} after {}: {what}", walk.told.join(", ")))?;
    }
    Ok(())
}

/// A session, the tokens its rows should hold, and the moves so far in words.
struct Walk {
    session: Box<dyn Session>,
    rows: Vec<Vec<TokenId>>,
    told: Vec<String>,
}

impl Walk {
    fn step_or_move(
        &mut self,
        model: &dyn Model,
        rng: &mut Rng,
        max_len: usize,
        tolerance: Tolerance,
    ) -> Result<(), String> {
        match below(rng, 5) {
            0 => {
                let from: Vec<_> = (0..1 + below(rng, 5)).map(|_| below(rng, self.rows.len())).collect();
                self.told.push(format!("reorder {from:?}"));
                self.session.reorder(&from).map_err(|error| error.to_string())?;
                self.rows = from.iter().map(|row| self.rows[*row].clone()).collect();
            }
            1 if self.session.can_crop() => {
                let row = below(rng, self.rows.len());
                let len = below(rng, self.rows[row].len() + 1);
                self.told.push(format!("crop row {row} to {len}"));
                self.session.crop(row, len).map_err(|error| error.to_string())?;
                self.rows[row].truncate(len);
            }
            _ => self.step(model, rng, max_len, tolerance)?,
        }
        let lens: Vec<_> = (0..self.session.rows()).map(|row| self.session.len(row)).collect();
        let expected: Vec<_> = self.rows.iter().map(Vec::len).collect();
        if lens == expected { Ok(()) } else { Err(format!("rows hold {lens:?} tokens, expected {expected:?}")) }
    }

    /// Rows bring 0 to 3 tokens, each as many as it has room for.
    fn step(&mut self, model: &dyn Model, rng: &mut Rng, max_len: usize, tolerance: Tolerance) -> Result<(), String> {
        let mut bring = |row: &Vec<TokenId>| {
            let len = below(rng, 4).min(max_len.saturating_sub(row.len()));
            tokens(rng, len, model.vocab_size())
        };
        let inputs: Vec<_> = self.rows.iter().map(&mut bring).collect();
        if inputs.iter().all(Vec::is_empty) {
            return Ok(());
        }
        self.told.push(format!("step {inputs:?}"));
        let got = step(&mut *self.session, &inputs.iter().map(|tokens| (&tokens[..], Keep::Last)).collect::<Vec<_>>())?;
        self.rows.iter_mut().zip(&inputs).for_each(|(row, tokens)| row.extend(tokens));
        let ran: Vec<_> =
            inputs.iter().enumerate().filter(|(_, tokens)| !tokens.is_empty()).map(|(at, _)| at).collect();
        if got.len() != ran.len() {
            return Err(format!("{} rows of scores, expected {}", got.len(), ran.len()));
        }
        for (scores, row) in got.iter().zip(ran) {
            let expected = fresh(model, &self.rows[row])?;
            tolerance.check(scores, &expected).map_err(|what| format!("row {row} ({:?}): {what}", self.rows[row]))?;
        }
        Ok(())
    }
}

/// The scores after the last of `tokens` from a fresh session of one row, `[vocab]`.
fn fresh(model: &dyn Model, tokens: &[TokenId]) -> Result<Vec<f32>, String> {
    let scores = step(&mut *open(model, 1)?, &[(tokens, Keep::Last)])?;
    scores.into_iter().next().ok_or_else(|| "a fresh session returned no scores".to_owned())
}

fn open(model: &dyn Model, rows: usize) -> Result<Box<dyn Session>, String> {
    model.open(&SessionOptions { rows, capacity: 8 }).map_err(|error| error.to_string())
}

/// One step; the scores of every kept position, `[kept][vocab]`.
fn step(session: &mut dyn Session, rows: &[(&[TokenId], Keep)]) -> Result<Vec<Vec<f32>>, String> {
    let inputs: Vec<_> = rows.iter().map(|(tokens, keep)| RowInput { tokens, keep: *keep }).collect();
    let logits = session.step(&inputs).map_err(|error| error.to_string())?;
    Ok((0..logits.kept()).map(|kept| logits.row(kept).to_vec()).collect())
}

/// A random number below `end`, which is above 0.
fn below(rng: &mut Rng, end: usize) -> usize {
    (rng.next_u64() % end as u64) as usize
}

fn tokens(rng: &mut Rng, len: usize, vocab: usize) -> Vec<TokenId> {
    (0..len).map(|_| below(rng, vocab) as TokenId).collect()
}
