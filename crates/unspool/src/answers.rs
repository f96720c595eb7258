//! What was generated, and short ways to its parts.

use std::fmt;
use std::ops::Index;

use unspool_core::{DraftCounts, PromptOutput, Sequence, Timing, TokenId};

/// What was generated for the prompts of a call: one [`Answer`] per prompt, in order.
///
/// ```no_run
/// use unspool::Call;
///
/// let pipeline = unspool::open("models/smollm2")?;
/// let answers = pipeline.generate(["Roses are red,", "Once upon a time"], &Call::new())?;
/// println!("{}", answers[1].text());
/// for answer in &answers {
///     println!("{answer} ({} tokens)", answer.ids().len());
/// }
/// # Ok::<(), unspool::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Answers {
    /// One entry per prompt, in order.
    pub answers: Vec<Answer>,
    /// Where the time went.
    pub timing: Timing,
    /// What drafts did, over all sequences, when tokens were drafted.
    pub drafts: Option<DraftCounts>,
    /// The seed of the draws, when tokens were drawn.
    pub seed: Option<u64>,
    /// One line per setting that had no effect as it was combined.
    pub warnings: Vec<String>,
}

/// What was generated for one prompt: `num_return_sequences` sequences, with beams the best one first.
///
/// [`text`](Answer::text), [`ids`](Answer::ids) and [`logprobs`](Answer::logprobs) are those of the first sequence.
///
/// ```no_run
/// use unspool::Call;
///
/// let pipeline = unspool::open("models/smollm2")?;
/// let answers = pipeline.generate("The sea is", &Call::new().num_beams(4).num_return_sequences(2))?;
/// for (text, sequence) in answers[0].texts.iter().zip(answers[0].sequences()) {
///     println!("{:?} {text}", sequence.score);
/// }
/// # Ok::<(), unspool::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Answer {
    /// The prompt's tokens; with `token_healing` those that it was healed to.
    pub prompt_ids: Vec<TokenId>,
    /// The text of each sequence, without special tokens and without the token that ended it; empty when the model has no
    /// tokenizer.
    pub texts: Vec<String>,
    /// The new tokens and what else was asked for.
    pub output: PromptOutput,
}

impl Answers {
    /// The text of the first sequence of the first prompt; empty when there is none.
    pub fn text(&self) -> &str {
        self.answers.first().map_or("", Answer::text)
    }

    /// The texts of all sequences of all prompts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().flat_map(|answer| answer.texts.iter().map(String::as_str))
    }

    /// The new tokens of the first sequence of the first prompt.
    pub fn ids(&self) -> &[TokenId] {
        self.answers.first().map_or(&[], Answer::ids)
    }

    /// The log-probabilities of [`ids`](Answers::ids), with [`Call::logprobs`](crate::Call::logprobs); else empty.
    pub fn logprobs(&self) -> &[f32] {
        self.answers.first().map_or(&[], Answer::logprobs)
    }

    /// All sequences of all prompts, in order.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.answers.iter().flat_map(Answer::sequences)
    }

    /// The number of prompts.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether there was no prompt.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The answers, in the order of the prompts.
    pub fn iter(&self) -> std::slice::Iter<'_, Answer> {
        self.answers.iter()
    }
}

impl Answer {
    /// The text of the first sequence; empty when the model has no tokenizer.
    pub fn text(&self) -> &str {
        self.texts.first().map_or("", String::as_str)
    }

    /// The new tokens of the first sequence, the one that ended it included.
    pub fn ids(&self) -> &[TokenId] {
        self.output.sequences.first().map_or(&[], |sequence| &sequence.ids)
    }

    /// The log-probability of each of [`ids`](Answer::ids), with [`Call::logprobs`](crate::Call::logprobs); else empty.
    pub fn logprobs(&self) -> &[f32] {
        self.output.sequences.first().and_then(|sequence| sequence.logprobs.as_deref()).unwrap_or_default()
    }

    /// The sequences with everything that was asked for.
    pub fn sequences(&self) -> std::slice::Iter<'_, Sequence> {
        self.output.sequences.iter()
    }
}

/// The answer to the prompt of this index.
impl Index<usize> for Answers {
    type Output = Answer;

    fn index(&self, prompt: usize) -> &Answer {
        &self.answers[prompt]
    }
}

impl IntoIterator for Answers {
    type Item = Answer;
    type IntoIter = std::vec::IntoIter<Answer>;

    fn into_iter(self) -> Self::IntoIter {
        self.answers.into_iter()
    }
}

impl<'a> IntoIterator for &'a Answers {
    type Item = &'a Answer;
    type IntoIter = std::slice::Iter<'a, Answer>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The texts, one below the other.
impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(f, self.texts())
    }
}

/// The texts of the sequences, one below the other.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(f, self.texts.iter().map(String::as_str))
    }
}

fn lines<'a>(f: &mut fmt::Formatter<'_>, texts: impl Iterator<Item = &'a str>) -> fmt::Result {
    for (index, text) in texts.enumerate() {
        let separator = if index == 0 { "" } else { "\n" };
        write!(f, "{separator}{text}")?;
    }
    Ok(())
}
