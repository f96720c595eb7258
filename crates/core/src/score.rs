//! What a model makes of a text that is there already: the log-probability of each of its tokens, without writing any.
//!
//! Scores over the vocabulary are reduced to one number a token as soon as a chunk has run, so a text of any length takes
//! the memory of one chunk.

use std::collections::HashMap;

use crate::decode::{check_numbers, feed};
use crate::error::{Error, Result};
use crate::memory::Need;
use crate::model::{Keep, Model, Session, SessionOptions};
use crate::select::{argmax, log_prob};
use crate::token::{TokenId, check_ids};

/// Scores over the vocabulary that a step may hold: 32 MiB of f32.
const HELD: usize = 8 << 20;

/// Tokens in one step when memory does not ask for fewer.
const CHUNK: usize = 128;

/// Tokens that each row should be able to bring to a step, before fewer rows run together.
const LEAST: usize = 16;

/// A text in two parts: what is given, and what is scored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoredText {
    /// The tokens that are given; at least one, since the first token of a text has nothing to be foreseen from.
    pub context: Vec<TokenId>,
    /// The tokens whose log-probabilities are asked for; at least one.
    pub continuation: Vec<TokenId>,
}

/// What the model made of one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextScore {
    /// `[continuation] f32`: the log-probability of each token given all before it.
    pub logprobs: Vec<f32>,
    /// `[continuation]`: whether the token is the one that greedy decoding would have chosen there.
    pub greedy: Vec<bool>,
}

impl TextScore {
    /// The log-likelihood of the continuation: the sum of its log-probabilities, in nats.
    pub fn sum(&self) -> f64 {
        self.logprobs.iter().map(|&logprob| f64::from(logprob)).sum()
    }

    /// The exponential of the mean negative log-probability.
    pub fn perplexity(&self) -> f64 {
        (-self.sum() / self.logprobs.len() as f64).exp()
    }

    /// Whether greedy decoding would have written the whole continuation.
    pub fn is_greedy(&self) -> bool {
        self.greedy.iter().all(|&greedy| greedy)
    }
}

/// Scores `texts`, at most `batch` of them together, in steps of at most `max_chunk` tokens (by default as many as
/// bounded memory allows, at most 128). The results are in the order of the texts and do not depend on either number.
///
/// Texts of a batch with the same context share it: it runs once, and its row is repeated. A graph without a cache runs the
/// whole text in every step, and one that also cannot be asked for single positions computes the scores of all of them.
///
/// # Errors
///
/// A text without context or continuation, an id outside the vocabulary, a text beyond the model's positions (its last
/// token is not run and needs none); the place is the text's index. And those of the model.
///
/// ```no_run
/// # fn sample(model: &dyn unspool_core::Model) -> unspool_core::Result<()> {
/// use unspool_core::score::{ScoredText, score};
///
/// let text = ScoredText { context: vec![1, 2], continuation: vec![3, 4] };
/// let scores = score(model, &[text], 8, None)?;
/// println!("{} {}", scores[0].sum(), scores[0].is_greedy());
/// # Ok(())
/// # }
/// ```
#[doc(alias = "loglikelihood")]
#[doc(alias = "perplexity")]
pub fn score(
    model: &dyn Model,
    texts: &[ScoredText],
    batch: usize,
    max_chunk: Option<usize>,
) -> Result<Vec<TextScore>> {
    for (index, text) in texts.iter().enumerate() {
        check(model, text).map_err(|error| error.at_one_of("text", index, texts.len()))?;
    }
    let together = batch.min(HELD / model.vocab_size().max(1) / LEAST).max(1);
    let mut scores = Vec::with_capacity(texts.len());
    for part in texts.chunks(together) {
        let fits = HELD / model.vocab_size().max(1) / part.len();
        let chunk = max_chunk.unwrap_or(usize::MAX).min(fits.clamp(2, CHUNK)).max(1);
        scores.extend(score_together(model, part, chunk)?);
    }
    Ok(scores)
}

/// Refuses a text that cannot be scored.
///
/// # Errors
///
/// As [`score`], without the place.
pub fn check(model: &dyn Model, text: &ScoredText) -> Result<()> {
    if text.context.is_empty() {
        return Err(Error::invalid_input(
            "nothing comes before the first token, so it cannot be scored; give a context, or begin with the model's \
             first token (ScoreOptions::add_bos, --add-bos)",
        ));
    }
    if text.continuation.is_empty() {
        return Err(Error::invalid_input("no token is left to be scored; give a longer text"));
    }
    check_ids(&[&text.context[..], &text.continuation].concat(), model.vocab_size())?;
    let run = text.context.len() + text.continuation.len() - 1;
    match model.max_positions() {
        Some(positions) if run > positions => Err(Error::invalid_input(format!(
            "the text has {} tokens and the model can score at most {}; shorten it or split it",
            run + 1,
            positions.saturating_add(1)
        ))),
        _ => Ok(()),
    }
}

/// Scores checked texts in one session.
fn score_together(model: &dyn Model, texts: &[ScoredText], chunk: usize) -> Result<Vec<TextScore>> {
    // All but the last token of each different context runs once; the scores of the last one are the first that count.
    let mut places: HashMap<&[TokenId], usize> = HashMap::new();
    let mut given: Vec<&[TokenId]> = Vec::new();
    let mut rows = Vec::with_capacity(texts.len());
    let mut scored: Vec<Vec<TokenId>> = Vec::with_capacity(texts.len());
    for text in texts {
        let (last, context) =
            text.context.split_last().map_or((&[][..], &[][..]), |(last, all)| (std::slice::from_ref(last), all));
        rows.push(*places.entry(context).or_insert_with(|| {
            given.push(context);
            given.len() - 1
        }));
        let run = text.continuation.len().saturating_sub(1);
        scored.push(last.iter().chain(text.continuation.iter().take(run)).copied().collect());
    }
    let longest = texts.iter().map(|text| text.context.len() + text.continuation.len() - 1).max().unwrap_or(0);
    Need::rows(model, rows.len(), longest).check()?;
    let mut session = model.open(&SessionOptions { rows: given.len(), capacity: longest })?;
    run(&mut *session, &given, chunk, Keep::None, &mut |_, _| ())?;
    if rows.iter().enumerate().any(|(new, old)| new != *old) || rows.len() != given.len() {
        session.reorder(&rows)?;
    }
    let mut scores = vec![TextScore::default(); texts.len()];
    let scored: Vec<&[TokenId]> = scored.iter().map(Vec::as_slice).collect();
    run(&mut *session, &scored, chunk, Keep::All, &mut |row, logits| {
        let (score, text) = (&mut scores[row], &texts[row]);
        let place = score.logprobs.len();
        if let Some(&id) = text.continuation.get(place) {
            score.logprobs.push(log_prob(logits, id));
            score.greedy.push(argmax(logits) == id);
        }
    })?;
    match scores.iter().zip(texts).find(|(score, text)| score.logprobs.len() != text.continuation.len()) {
        Some((score, text)) => Err(Error::engine(format!(
            "the model returned scores of {} positions, expected {}",
            score.logprobs.len(),
            text.continuation.len()
        ))),
        None => Ok(scores),
    }
}

/// Runs every row's tokens in chunks of at most `chunk`; `take` is told the scores of each kept position with its row.
fn run(
    session: &mut dyn Session,
    rows: &[&[TokenId]],
    chunk: usize,
    keep: Keep,
    take: &mut dyn FnMut(usize, &[f32]),
) -> Result<()> {
    for inputs in feed(rows, chunk, keep) {
        let logits = session.step(&inputs)?;
        check_numbers(&logits, &inputs)?;
        let owners = inputs.iter().enumerate().flat_map(|(row, input)| std::iter::repeat_n(row, input.tokens.len()));
        // With `Keep::None` there are no scores to tell.
        for (kept, row) in (0..logits.kept()).zip(owners) {
            take(row, logits.row(kept));
        }
    }
    Ok(())
}
