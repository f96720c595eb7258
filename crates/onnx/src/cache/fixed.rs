//! Graphs whose batch axis is fixed: every row has caches of its own and runs by itself, as often as the axis has places.

use unspool_core::{HiddenAsk, HiddenStates, Keep, Logits, Result, RowInput, Session, Together};

use super::runner::{check_crop, check_reorder};
use super::session::{CachedSession, Rows};

/// Rows that run one after the other. Each is a session of as many equal rows as the graph wants, of which the first counts.
pub struct FixedSession<R> {
    /// One for each row.
    units: Vec<CachedSession<R>>,
    places: usize,
    vocab: usize,
    logits: Vec<f32>,
    hidden: Vec<f32>,
}

impl<R: Rows + Clone> FixedSession<R> {
    /// `count` rows like `empty`, a session of `places` empty rows.
    pub fn new(empty: CachedSession<R>, count: usize, places: usize, vocab: usize) -> Self {
        FixedSession { units: vec![empty; count], places, vocab, logits: Vec::new(), hidden: Vec::new() }
    }

    /// What the copies of a row bring: the first is asked for scores.
    fn copies<'a>(&self, input: &RowInput<'a>) -> Vec<RowInput<'a>> {
        let mut copies = vec![RowInput { keep: Keep::None, ..*input }; self.places];
        copies[0] = *input;
        copies
    }
}

impl<R: Rows + Clone> Session for FixedSession<R> {
    fn rows(&self) -> usize {
        self.units.len()
    }

    fn len(&self, row: usize) -> usize {
        self.units[row].len(0)
    }

    fn step(&mut self, inputs: &[RowInput<'_>]) -> Result<Logits<'_>> {
        for (unit, input) in self.units.iter().zip(inputs) {
            unit.check(std::slice::from_ref(input))?;
        }
        self.logits.clear();
        for (row, input) in inputs.iter().enumerate() {
            let copies = self.copies(input);
            let logits = self.units[row].step(&copies)?;
            (0..logits.kept()).for_each(|place| self.logits.extend_from_slice(logits.row(place)));
        }
        Ok(Logits::new(&mut self.logits, self.vocab))
    }

    fn step_hidden(&mut self, inputs: &[RowInput<'_>], ask: &HiddenAsk<'_>) -> Result<(Logits<'_>, HiddenStates<'_>)> {
        for (unit, input) in self.units.iter().zip(inputs) {
            unit.check(std::slice::from_ref(input))?;
        }
        self.logits.clear();
        let (mut states, mut kept, mut width) = (vec![Vec::new(); ask.states.len()], 0, 1);
        for (row, input) in inputs.iter().enumerate() {
            let copies = self.copies(input);
            let (logits, hidden) = self.units[row].step_hidden(&copies, ask)?;
            (0..logits.kept()).for_each(|place| self.logits.extend_from_slice(logits.row(place)));
            let own = ask.positions_of(input);
            for (number, state) in states.iter_mut().enumerate() {
                (0..own).for_each(|position| state.extend_from_slice(hidden.at(number, position)));
            }
            (kept, width) = (kept + own, hidden.width());
        }
        self.hidden = states.concat();
        Ok((Logits::new(&mut self.logits, self.vocab), HiddenStates::new(&self.hidden, kept, width)))
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        check_reorder(from, self.rows())?;
        let mut left = vec![0usize; self.units.len()];
        from.iter().for_each(|&row| left[row] += 1);
        let mut old: Vec<Option<CachedSession<R>>> = std::mem::take(&mut self.units).into_iter().map(Some).collect();
        for &row in from {
            left[row] -= 1;
            // The last one that goes on from a row takes it.
            self.units.extend(if left[row] == 0 { old[row].take() } else { old[row].clone() });
        }
        Ok(())
    }

    fn can_crop(&self) -> bool {
        self.units.iter().all(CachedSession::can_crop)
    }

    fn together(&self) -> Together {
        self.units.first().map_or(Together::Same, CachedSession::together)
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        check_crop(row, len, self.units.get(row).map(|unit| unit.len(0)), self.rows())?;
        (0..self.places).try_for_each(|place| self.units[row].crop(place, len))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use unspool_core::Model;
    use unspool_testing::laws::{Tolerance, check_batch_law, check_cache_law, check_step_law, random_prompts};

    use crate::{EngineChoice, OnnxModel, OnnxOptions};

    const TOLERANCE: Tolerance = Tolerance::new(2e-4, "sums of f32 products in another order, over two layers");

    #[test]
    fn rows_of_a_fixed_batch_keep_the_laws() {
        // Append, grow, in place and no cache; the last two fixed at one row.
        for (name, places) in [("llama", 1), ("llama", 3), ("bloom", 2), ("llama-genai", 1), ("gpt2-no-cache", 1)] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models").join(name);
            let options = OnnxOptions { engine: EngineChoice::Rten, threads: Some(1), ..OnnxOptions::default() };
            let mut model = OnnxModel::open(&folder, &options).unwrap();
            Arc::make_mut(&mut model.runner_mut().signature).fixed_batch = Some(places);
            let prompts = random_prompts(3, 3, 9, model.vocab_size());
            check_batch_law(&model, &prompts, TOLERANCE).unwrap_or_else(|why| panic!("{name} {places}: {why}"));
            check_step_law(&model, &prompts, 3, TOLERANCE).unwrap_or_else(|why| panic!("{name} {places}: {why}"));
            check_cache_law(&model, 3, 12, 20, TOLERANCE).unwrap_or_else(|why| panic!("{name} {places}: {why}"));
        }
    }
}
