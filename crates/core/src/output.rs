//! What comes back from a generation.

use crate::hidden::StepStates;
use crate::stop::FinishReason;
use crate::token::TokenId;

/// The result of one request: an entry per prompt, in order; Python's `GenerateDecoderOnlyOutput`, without padding.
#[doc(alias = "GenerateDecoderOnlyOutput")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// One entry per prompt of the request.
    pub prompts: Vec<PromptOutput>,
    /// Where the time went.
    pub timing: Timing,
    /// What the caller should know, one line each: a rule of his own that took a built one's place, a prompt that ends
    /// with padding.
    pub warnings: Vec<String>,
}

impl Output {
    /// What drafts did, over all sequences; `None` when nothing was to be drafted.
    pub fn drafts(&self) -> Option<DraftCounts> {
        let counts = self.prompts.iter().flat_map(|prompt| &prompt.sequences).filter_map(|sequence| sequence.drafts);
        counts.reduce(|sum, one| DraftCounts {
            drafted: sum.drafted + one.drafted,
            accepted: sum.accepted + one.accepted,
            target_runs: sum.target_runs + one.target_runs,
        })
    }
}

/// What drafts did for one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DraftCounts {
    /// Tokens that were drafted and run.
    pub drafted: usize,
    /// Those of them that the sequence has.
    pub accepted: usize,
    /// Runs of the model that wrote the sequence, the prompt's (in however many steps) counted once.
    pub target_runs: usize,
}

/// What was written for one prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptOutput {
    /// `num_return_sequences` sequences, in order.
    pub sequences: Vec<Sequence>,
}

/// One sequence that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The new tokens, the one that ended the row included; no prompt, no padding.
    pub ids: Vec<TokenId>,
    /// Why the row ended.
    pub finish: FinishReason,
    /// The score of the whole sequence, beams only (Python's `sequences_scores`): the sum of its tokens' processed
    /// log-probabilities over the number of tokens to the power of `length_penalty`.
    pub score: Option<f32>,
    /// `[ids] i64`, beams only: the beam that each token extended, counted through the beams of all prompts (Python's
    /// `beam_indices`, without the -1 after the end).
    pub beam_indices: Option<Vec<usize>>,
    /// `[ids] f32`: the log-probability of each of `ids` under its step's processed scores, when asked for. With beams it
    /// is the processed score itself, as `compute_transition_scores` gives by default.
    pub logprobs: Option<Vec<f32>>,
    /// `[ids, vocab] f32`: the processed scores of every step, with `output_scores`; with beams, of the beams that the
    /// tokens extended.
    pub scores: Option<Vec<Vec<f32>>>,
    /// `[ids, vocab] f32`: the model's own scores of every step, with `output_logits`.
    pub logits: Option<Vec<Vec<f32>>>,
    /// `[ids]`: the hidden states of every step, with `output_hidden_states`: those of the whole prompt for the first token,
    /// of the token before it for every other one.
    pub hidden_states: Option<Vec<StepStates>>,
    /// What drafts did, in assisted decoding.
    pub drafts: Option<DraftCounts>,
}

impl Sequence {
    /// New tokens and why they ended, nothing else.
    pub fn new(ids: Vec<TokenId>, finish: FinishReason) -> Self {
        let (logprobs, scores, logits, hidden_states) = (None, None, None, None);
        Sequence { ids, finish, score: None, beam_indices: None, logprobs, scores, logits, hidden_states, drafts: None }
    }
}

/// Where the time of a generation went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Prompt tokens that were run. A prompt with several sequences is run once; what a kept session still held is not
    /// run again and not counted.
    pub prompt_tokens: usize,
    /// Seconds from the opening of the session to the scores of the first new token.
    pub prompt_s: f64,
    /// Tokens written, over all rows.
    pub new_tokens: usize,
    /// Seconds from there to the end.
    pub decode_s: f64,
    /// Seconds of both that were spent inside [`Session::step`](crate::Session::step).
    pub model_s: f64,
}

impl Timing {
    /// The share of the time that was spent inside the model, 0 to 1; 1 when nothing was run.
    pub fn model_share(&self) -> f64 {
        let total = self.prompt_s + self.decode_s;
        if total > 0.0 { self.model_s / total } else { 1.0 }
    }
}
