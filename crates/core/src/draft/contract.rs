//! The port of whatever proposes tokens that the model then verifies.

use crate::config::Settings;
use crate::error::Result;
use crate::rng::Rng;
use crate::row::Row;
use crate::token::TokenId;

/// Proposes tokens that may follow a row; Python's `CandidateGenerator`.
///
/// The loop runs the proposed tokens through the model in one step and keeps them as far as the model would have written
/// them itself, so a draft decides how fast a text is written and never what is written. A draft may propose anything,
/// also nothing; a wrong one costs time.
///
/// ```
/// use unspool_core::draft::{Ask, Assist, Draft, Drafted};
/// use unspool_core::{Logits, Model, Request, Settings, generate};
///
/// /// Proposes the rest of a text that is known to be likely.
/// struct Known(Vec<u32>);
///
/// impl Draft for Known {
///     fn draft(&mut self, ask: &Ask<'_>) -> unspool_core::Result<Drafted> {
///         let rest = self.0.strip_prefix(ask.row.new_tokens()).unwrap_or_default();
///         Ok(Drafted::tokens(rest[..rest.len().min(ask.most)].to_vec()))
///     }
/// }
///
/// fn faster(model: &dyn Model) -> unspool_core::Result<Vec<u32>> {
///     let mut known = Known(vec![5, 6, 7, 8]);
///     let request = Request::new(vec![vec![1, 2, 3]], Settings::default()).assist(Assist::new(&mut known));
///     let output = generate(model, request)?;
///     if let Some(counts) = output.drafts() {
///         println!("{} of {} drafted tokens were right", counts.accepted, counts.drafted);
///     }
///     Ok(output.prompts[0].sequences[0].ids.clone())
/// }
/// ```
#[doc(alias = "CandidateGenerator")]
pub trait Draft: Send {
    /// A generation begins; what an earlier one left is forgotten, as far as it is not of use again.
    ///
    /// # Errors
    ///
    /// When the draft cannot serve this generation.
    fn begin(&mut self, start: &Start<'_>) -> Result<()> {
        let _ = start;
        Ok(())
    }

    /// Tokens that may follow one row, at most `ask.most`.
    ///
    /// # Errors
    ///
    /// A failure of the draft ends the generation.
    #[doc(alias = "get_candidates")]
    fn draft(&mut self, ask: &Ask<'_>) -> Result<Drafted>;

    /// What [`draft`](Draft::draft) gives for several rows, in their order; a draft that can work on rows together does so
    /// here.
    ///
    /// # Errors
    ///
    /// As [`draft`](Draft::draft).
    fn draft_all(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Drafted>> {
        asks.iter().map(|ask| self.draft(ask)).collect()
    }

    /// Whether drafts of this generation come with [`probabilities`](Drafted::probabilities), so that they take part in the
    /// draws. When to draft is then decided without a clock, that a seed gives the same tokens on every machine.
    fn gives_probabilities(&self) -> bool {
        false
    }

    /// Tells what became of the last proposal for row `index`: of `drafted` tokens, also 0, came `written`: those accepted
    /// and the model's own one after them. When the row ended inside the proposal, the last of `written` ended it.
    #[doc(alias = "update_candidate_strategy")]
    fn verified(&mut self, index: usize, drafted: usize, written: usize) {
        let _ = (index, drafted, written);
    }

    /// Row `index` has ended.
    fn ended(&mut self, index: usize) {
        let _ = index;
    }
}

/// What a draft is told when a generation begins.
#[derive(Debug)]
pub struct Start<'a> {
    /// The settings of the generation.
    pub settings: &'a Settings,
    /// Entries of the model's vocabulary.
    pub vocab: usize,
    /// The rows that will be written.
    pub rows: &'a [StartRow<'a>],
}

/// One row that will be written.
#[derive(Clone, Copy, Debug)]
pub struct StartRow<'a> {
    /// Index of the returned sequence, `prompt * num_return_sequences + sequence`; it names the row from here on.
    pub index: usize,
    /// Index of its prompt in the request.
    pub prompt: usize,
    /// The prompt's tokens.
    pub ids: &'a [TokenId],
    /// Those of them that a model reads: all but padding.
    pub read: &'a [TokenId],
    /// Random numbers of the row's own, apart from those that it is written with.
    pub rng: &'a Rng,
}

/// What is asked of a draft.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Which row; see [`StartRow::index`].
    pub index: usize,
    /// The row so far.
    pub row: Row<'a>,
    /// The largest number of tokens that is of use; may be 0.
    pub most: usize,
}

/// Proposed tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drafted {
    /// Ids of the model's vocabulary, in the order they would follow.
    pub tokens: Vec<TokenId>,
    /// `[tokens, vocab] f32`: the distribution that each token was drawn from, for a draft that draws; empty for one that
    /// knows none. It must be the true one, or draws lose the model's distribution.
    pub probabilities: Vec<f32>,
}

impl Drafted {
    /// Tokens without probabilities.
    pub fn tokens(tokens: Vec<TokenId>) -> Self {
        Drafted { tokens, probabilities: Vec::new() }
    }

    /// The token at `place` and its distribution, `[vocab]`, when the draft gave one.
    pub(crate) fn candidate(&self, place: usize, vocab: usize) -> Option<Candidate<'_>> {
        let token = *self.tokens.get(place)?;
        let from = place.saturating_mul(vocab);
        Some(Candidate { token, probabilities: self.probabilities.get(from..from.saturating_add(vocab)) })
    }
}

/// One proposed token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// The token.
    pub token: TokenId,
    /// The distribution it was drawn from, `[vocab] f32`.
    pub probabilities: Option<&'a [f32]>,
}

/// Who drafts, and when.
#[derive(Default)]
pub struct Assist<'a> {
    /// Who drafts; besides, the settings may ask for prompt lookup.
    pub draft: Option<&'a mut dyn Draft>,
    /// Draft in every round, as Python does, also while it does not pay.
    pub always: bool,
    /// The time since some moment; the system's clock by default. Drafts pause by it while they do not pay.
    pub elapsed: Option<Box<dyn Fn() -> std::time::Duration + 'a>>,
}

impl<'a> Assist<'a> {
    /// Assistance by `draft`.
    pub fn new(draft: &'a mut dyn Draft) -> Self {
        Assist { draft: Some(draft), ..Assist::default() }
    }

    /// Sets [`always`](Assist::always).
    #[must_use]
    pub fn always(mut self, always: bool) -> Self {
        self.always = always;
        self
    }

    /// Sets [`elapsed`](Assist::elapsed).
    #[must_use]
    pub fn elapsed(mut self, elapsed: impl Fn() -> std::time::Duration + 'a) -> Self {
        self.elapsed = Some(Box::new(elapsed));
        self
    }
}

impl std::fmt::Debug for Assist<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assist").field("draft", &self.draft.is_some()).field("always", &self.always).finish()
    }
}
