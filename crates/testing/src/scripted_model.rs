//! A model whose scores are written down.

use std::fmt;
use std::sync::Arc;

use unspool_core::{Error, HiddenShape, Model, Result, Session, SessionOptions, TokenId};

use crate::log::{Call, CallLog};
use crate::scripted_session::ScriptedSession;

/// Scores of the next token as a function of all tokens of the row, `[vocab]`.
pub(crate) type Rule = Arc<dyn Fn(&[TokenId]) -> Vec<f32> + Send + Sync>;

/// A hidden state as a function of its number and all tokens of the row, `[width]`.
pub(crate) type HiddenRule = Arc<dyn Fn(usize, &[TokenId]) -> Vec<f32> + Send + Sync>;

/// The output matrix: scores of a hidden state, `[width]` to `[vocab]`.
type Head = Arc<dyn Fn(&[f32]) -> Vec<f32> + Send + Sync>;

/// A [`Model`] that plays the scores of a rule and records every call; it holds its callers to the port's contract.
///
/// ```
/// use unspool_core::{Request, Settings, generate};
/// use unspool_testing::{ScriptedModel, tables};
///
/// let model = ScriptedModel::table(&tables::C);
/// let output = generate(&model, Request::new(vec![vec![0]], Settings::default())).unwrap();
/// assert_eq!(output.prompts[0].sequences[0].ids[..4], [1, 2, 3, 0]);
/// assert_eq!(model.log().steps()[..3], [[[0]], [[1]], [[2]]]);
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    pub(crate) rule: Rule,
    pub(crate) vocab: usize,
    pub(crate) max_positions: Option<usize>,
    pub(crate) can_crop: bool,
    pub(crate) fails_at: Option<usize>,
    pub(crate) log: CallLog,
    pub(crate) hidden: Option<(HiddenShape, HiddenRule)>,
    head: Option<Head>,
    exit: Option<(usize, Arc<ScriptedModel>)>,
}

impl ScriptedModel {
    /// A vocabulary of `vocab` entries, and `rule` from a row's tokens to the scores of its next one, `[vocab]`.
    pub fn from_fn(vocab: usize, rule: impl Fn(&[TokenId]) -> Vec<f32> + Send + Sync + 'static) -> Self {
        let (max_positions, can_crop, fails_at, log) = (None, true, None, CallLog::default());
        let (rule, hidden, head, exit) = (Arc::new(rule), None, None, None);
        ScriptedModel { rule, vocab, max_positions, can_crop, fails_at, log, hidden, head, exit }
    }

    /// The table model: the scores after token `i` are the logarithms of `probabilities[i]`.
    pub fn table<const N: usize>(probabilities: &[[f32; N]; N]) -> Self {
        let scores = probabilities.map(|row| row.map(f32::ln).to_vec());
        ScriptedModel::from_fn(N, move |ids| ids.last().map_or(vec![0.0; N], |last| scores[*last as usize].clone()))
    }

    /// Scores that depend on every token of the row and on their order, so that a mistaken cache cannot hide; no two
    /// scores of a row are equal. The scores of a step lie in `[-4, 4)`.
    pub fn hashed(vocab: usize) -> Self {
        ScriptedModel::from_fn(vocab, move |ids| {
            let row = ids.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, id| scramble(hash ^ u64::from(*id)));
            let score = |id: u64| (scramble(row ^ id) >> 40) as f32 / (1u32 << 21) as f32 - 4.0;
            (0..vocab as u64).map(score).collect()
        })
    }

    /// Refuses rows above `positions` tokens.
    #[must_use]
    pub fn with_max_positions(mut self, positions: usize) -> Self {
        self.max_positions = Some(positions);
        self
    }

    /// Sessions cannot crop.
    #[must_use]
    pub fn without_crop(mut self) -> Self {
        self.can_crop = false;
        self
    }

    /// Step number `step` of every session fails, counted from 0.
    #[must_use]
    pub fn failing_at(mut self, step: usize) -> Self {
        self.fails_at = Some(step);
        self
    }

    /// The scores after `ids`, `[vocab]`, without a session.
    pub fn scores(&self, ids: &[TokenId]) -> Vec<f32> {
        (self.rule)(ids)
    }

    /// Gives hidden states of `shape`: `rule` maps a state's number and a row's tokens to `[width]`.
    #[must_use]
    pub fn with_hidden(
        mut self,
        shape: HiddenShape,
        rule: impl Fn(usize, &[TokenId]) -> Vec<f32> + Send + Sync + 'static,
    ) -> Self {
        self.hidden = Some((shape, Arc::new(rule)));
        self
    }

    /// Applies an output matrix to hidden states: `head` maps `[width]` to `[vocab]`.
    #[must_use]
    pub fn with_head(mut self, head: impl Fn(&[f32]) -> Vec<f32> + Send + Sync + 'static) -> Self {
        self.head = Some(Arc::new(head));
        self
    }

    /// `exit` is the model that ends after `layers` layers.
    #[must_use]
    pub fn with_early_exit(mut self, layers: usize, exit: ScriptedModel) -> Self {
        self.exit = Some((layers, Arc::new(exit)));
        self
    }

    /// What was asked so far.
    pub fn log(&self) -> &CallLog {
        &self.log
    }
}

/// The finaliser of MurmurHash3: spreads every bit over all others.
fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

impl Model for ScriptedModel {
    fn vocab_size(&self) -> usize {
        self.vocab
    }

    fn max_positions(&self) -> Option<usize> {
        self.max_positions
    }

    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        self.log.push(Call::Open { rows: options.rows, capacity: options.capacity });
        if options.rows == 0 {
            return Err(Error::invalid_input("a session was opened for 0 rows, expected at least 1"));
        }
        Ok(Box::new(ScriptedSession::new(self.clone(), options.rows)))
    }

    fn hidden(&self) -> Option<HiddenShape> {
        self.hidden.as_ref().map(|(shape, _)| *shape)
    }

    fn head(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<()> {
        match (&self.head, &self.hidden) {
            (Some(head), Some((shape, _))) => {
                logits.clear();
                logits.extend(states.chunks_exact(shape.width).flat_map(|state| head(state)));
                Ok(())
            }
            _ => Err(Error::unsupported("this scripted model has no output matrix")),
        }
    }

    fn early_exit(&self, layers: usize) -> Result<Arc<dyn Model>> {
        match &self.exit {
            Some((after, exit)) if *after == layers => Ok(exit.clone()),
            _ => Err(Error::unsupported(format!("this scripted model does not end after {layers} layers"))),
        }
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("vocab", &self.vocab).finish_non_exhaustive()
    }
}
