//! Texts that are there already, scored without writing any.

use serde_json::Value;
use unspool_core::score::{ScoredText, TextScore, check, score};
use unspool_core::{Error, Result, TokenId};

use crate::call::Call;
use crate::pipeline::Pipeline;
use crate::prompt::Prompt;

/// One text to be scored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scorable {
    /// A whole text: every token but the first is scored, or every one (see [`ScoreOptions::add_bos`]).
    Whole(Prompt),
    /// A text in two parts of which the second is scored, as the evaluation harness of EleutherAI splits them: both are
    /// encoded together, spaces at the end of the prompt belong to the continuation, and the tokens of the prompt by
    /// itself are cut off.
    Pair {
        /// What is given; with an empty one the model's own first token is given.
        prompt: String,
        /// What is scored.
        continuation: String,
    },
    /// The same as token ids.
    PairIds {
        /// What is given.
        prompt: Vec<TokenId>,
        /// What is scored.
        continuation: Vec<TokenId>,
    },
}

impl From<Prompt> for Scorable {
    fn from(prompt: Prompt) -> Self {
        Scorable::Whole(prompt)
    }
}

/// How texts are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreOptions {
    /// Begin every text with the model's `bos_token_id` (without one, its first `eos_token_id`) unless it does already, so
    /// that its own first token has a score too, as in `loglikelihood_rolling` of EleutherAI's harness.
    pub add_bos: bool,
    /// Encode texts without the special tokens that the tokenizer puts around a text.
    pub raw: bool,
    /// Texts that run together at most; memory may ask for fewer.
    pub batch: usize,
}

impl Default for ScoreOptions {
    fn default() -> Self {
        ScoreOptions { add_bos: false, raw: false, batch: 8 }
    }
}

impl Pipeline {
    /// The tokens of `text` in two parts, checked; padding in ids is left out.
    ///
    /// # Errors
    ///
    /// When it cannot be encoded, nothing is given or nothing left to be scored, or it is too long for the model.
    pub fn scorable(&self, text: &Scorable, options: &ScoreOptions) -> Result<ScoredText> {
        let encode = |text: &str| self.tokenize(text, !options.raw);
        let (mut context, continuation) = match text {
            Scorable::Whole(prompt) => {
                let mut ids = match prompt {
                    Prompt::Text(text) => encode(text)?,
                    other => self.tokens_read(other)?,
                };
                let first = if options.add_bos { Some(self.first_token()?) } else { None };
                match first {
                    Some(first) if ids.first() != Some(&first) => (vec![first], ids),
                    _ => {
                        let rest = ids.split_off(ids.len().min(1));
                        (ids, rest)
                    }
                }
            }
            Scorable::Pair { prompt, continuation } => {
                let given = prompt.trim_end();
                let context = encode(given)?;
                let mut whole = encode(&format!("{prompt}{continuation}"))?;
                let rest = whole.split_off(whole.len().min(context.len()));
                if rest.is_empty() && !continuation.is_empty() {
                    return Err(Error::invalid_input(
                        "the prompt and its continuation together have no more tokens than the prompt alone, so no token is \
                         left to be scored; move the border between them, or give prompt_ids and continuation_ids",
                    ));
                }
                (context, rest)
            }
            Scorable::PairIds { prompt, continuation } => {
                (self.tokens_read(&prompt.clone().into())?, self.tokens_read(&continuation.clone().into())?)
            }
        };
        let pair = !matches!(text, Scorable::Whole(_));
        if pair && (context.is_empty() || options.add_bos) {
            let first = self.first_token()?;
            if context.first() != Some(&first) {
                context.insert(0, first);
            }
        }
        let scored = ScoredText { context, continuation };
        check(self.model(), &scored)?;
        Ok(scored)
    }

    /// What the model makes of each of `texts`, in their order: the log-probability of every scored token and whether greedy
    /// decoding would have written it. Nothing is generated, and no prompt's scores over the vocabulary are ever held whole.
    ///
    /// # Errors
    ///
    /// When a text is not usable (the place is its index), or the engine fails.
    ///
    /// ```no_run
    /// use unspool::{Prompt, Scorable, ScoreOptions};
    ///
    /// # fn main() -> unspool::Result<()> {
    /// let pipeline = unspool::open("models/smollm2")?;
    /// let answers = ["Paris.", "Lyon."].map(|city| Scorable::Pair {
    ///     prompt: "The capital of France is".into(),
    ///     continuation: format!(" {city}"),
    /// });
    /// let scores = pipeline.score(&answers, &ScoreOptions::default())?;
    /// assert!(scores[0].sum() > scores[1].sum());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "loglikelihood")]
    pub fn score(&self, texts: &[Scorable], options: &ScoreOptions) -> Result<Vec<TextScore>> {
        let numbered = texts.iter().enumerate();
        let texts = numbered
            .map(|(index, text)| {
                self.scorable(text, options).map_err(|error| error.at_one_of("text", index, texts.len()))
            })
            .collect::<Result<Vec<_>>>()?;
        score(self.model(), &texts, options.batch, None)
    }

    /// The token that stands before a text: the model's first, else its end token, as in EleutherAI's harness.
    fn first_token(&self) -> Result<TokenId> {
        let fields = self.resolve(&Call::new());
        let token = |name: &str| {
            let value = fields.value(name)?;
            let id = value.as_array().map_or(Some(value), |ids| ids.first()).and_then(Value::as_u64)?;
            TokenId::try_from(id).ok()
        };
        token("bos_token_id").or_else(|| token("eos_token_id")).ok_or_else(|| {
            Error::invalid_input(
                "the model names neither bos_token_id nor eos_token_id to begin a text with; give a prompt of at least one \
                 token",
            )
        })
    }
}
