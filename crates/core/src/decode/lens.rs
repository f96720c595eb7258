//! Looks at hidden states while tokens are written: for DoLa, and to return them.
//!
//! The lens stands between the loop and the session: it asks for hidden states with every step, keeps per row what the next
//! token needs of them, and follows the rows where they move. Nothing is asked for or kept without a lens.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::dola;
use crate::config::Settings;
use crate::error::Result;
use crate::hidden::{HiddenAsk, HiddenStates, StepStates};
use crate::logits::Logits;
use crate::model::{Keep, Model, RowInput, Session};

/// What a generation looks at beside scores.
pub(crate) struct Lens<'m> {
    model: &'m dyn Model,
    /// The states that every step is asked for.
    states: Vec<usize>,
    /// Places in `states` of the layers that DoLa contrasts the last one with.
    early: Vec<usize>,
    /// Whether states are returned.
    returned: bool,
    rows: Mutex<Vec<Seen>>,
}

/// What is known of a row since its last token was written.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// `[early, vocab]`: what earlier layers make of the row's newest token.
    early: Vec<f32>,
    /// States of the tokens that were run.
    states: StepStates,
}

impl<'m> Lens<'m> {
    /// The lens that `settings` ask for.
    ///
    /// # Errors
    ///
    /// When the model does not give the hidden states that it needs, or lacks the layers.
    pub(crate) fn open(model: &'m dyn Model, settings: &Settings) -> Result<Option<Self>> {
        let returned = settings.output_hidden_states;
        let layers = match &settings.dola_layers {
            Some(layers) => {
                let shape = HiddenAsk { states: &[1], keep: Keep::Last };
                let shape = shape.check(model.hidden()).map_err(|error| error.of("dola_layers"))?;
                // What cannot be applied is refused before anything runs.
                model.head(&vec![0.0; shape.width], &mut Vec::new()).map_err(|error| error.of("dola_layers"))?;
                dola::candidates(layers, shape)?
            }
            None => Vec::new(),
        };
        let all = || all_states(model).map_err(|error| error.of("output_hidden_states"));
        let states = if returned { all()? } else { layers.clone() };
        if states.is_empty() {
            return Ok(None);
        }
        let place = |layer: &usize| states.iter().position(|state| state == layer);
        let early = layers.iter().filter_map(place).collect();
        Ok(Some(Lens { model, states, early, returned, rows: Mutex::default() }))
    }

    /// `session` behind this lens.
    pub(crate) fn before<'s>(&'s self, session: &'s mut dyn Session) -> LensSession<'s, 'm> {
        let rows = session.rows();
        *self.rows() = vec![Seen::default(); rows];
        LensSession { lens: self, session }
    }

    /// What belongs to the next token of the row at `place`: DoLa changes its `scores`, and the states since the last token go
    /// to `hidden`, when they are returned.
    pub(crate) fn look(&self, place: usize, scores: &mut [f32], hidden: &mut Option<Vec<StepStates>>) {
        let mut rows = self.rows();
        let Some(seen) = rows.get_mut(place) else { return };
        if !seen.early.is_empty() {
            dola::contrast(scores, &mut seen.early);
        }
        if let Some(hidden) = hidden {
            hidden.push(std::mem::take(&mut seen.states));
        }
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a step gave.
    fn keep(&self, inputs: &[RowInput<'_>], ask: &HiddenAsk<'_>, hidden: &HiddenStates<'_>) -> Result<()> {
        let mut rows = self.rows();
        let mut newest = Vec::new();
        let mut owners = Vec::new();
        let mut position = 0;
        for (row, input) in inputs.iter().enumerate() {
            let count = ask.positions_of(input);
            if let Some(seen) = rows.get_mut(row).filter(|_| self.returned) {
                seen.states.extend(hidden, position..position + count);
            }
            position += count;
            if input.keep != Keep::None && count > 0 && !self.early.is_empty() {
                owners.push(row);
                self.early.iter().for_each(|&state| newest.extend_from_slice(hidden.at(state, position - 1)));
            }
        }
        if owners.is_empty() {
            return Ok(());
        }
        let mut early = Vec::new();
        self.model.head(&newest, &mut early)?;
        let each = early.len() / owners.len();
        for (row, early) in owners.into_iter().zip(early.chunks_exact(each.max(1))) {
            if let Some(seen) = rows.get_mut(row) {
                seen.early = early.to_vec();
            }
        }
        Ok(())
    }
}

/// The numbers of all hidden states of `model`.
///
/// # Errors
///
/// When it does not give them.
pub(super) fn all_states(model: &dyn Model) -> Result<Vec<usize>> {
    let shape = HiddenAsk { states: &[1], keep: Keep::All }.check(model.hidden())?;
    Ok((0..=shape.last).collect())
}

/// A session that a lens looks at.
pub(crate) struct LensSession<'s, 'm> {
    lens: &'s Lens<'m>,
    session: &'s mut dyn Session,
}

impl Session for LensSession<'_, '_> {
    fn rows(&self) -> usize {
        self.session.rows()
    }

    fn len(&self, row: usize) -> usize {
        self.session.len(row)
    }

    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        let keep = if self.lens.returned { Keep::All } else { Keep::Last };
        let ask = HiddenAsk { states: &self.lens.states, keep };
        let (logits, hidden) = self.session.step_hidden(rows, &ask)?;
        self.lens.keep(rows, &ask, &hidden)?;
        Ok(logits)
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        self.session.reorder(from)?;
        let mut rows = self.lens.rows();
        *rows = from.iter().map(|&row| rows.get(row).cloned().unwrap_or_default()).collect();
        Ok(())
    }

    fn can_crop(&self) -> bool {
        self.session.can_crop()
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        self.session.crop(row, len)
    }
}
