//! The session of a scripted model: rows are lists of tokens.

use unspool_core::{Error, HiddenAsk, HiddenStates, Keep, Logits, Result, RowInput, Session, TokenId, check_ids};

use crate::log::{Call, StepRow};
use crate::scripted_model::ScriptedModel;

#[derive(Debug)]
pub(crate) struct ScriptedSession {
    model: ScriptedModel,
    rows: Vec<Vec<TokenId>>,
    scores: Vec<f32>,
    states: Vec<f32>,
    steps: usize,
    broken: bool,
}

impl ScriptedSession {
    pub(crate) fn new(model: ScriptedModel, rows: usize) -> Self {
        ScriptedSession {
            model,
            rows: vec![Vec::new(); rows],
            scores: Vec::new(),
            states: Vec::new(),
            steps: 0,
            broken: false,
        }
    }

    fn check(&mut self, rows: &[RowInput<'_>]) -> Result<()> {
        if self.broken {
            return Err(Error::engine("the session was used after an engine error"));
        }
        if self.model.fails_at == Some(self.steps) {
            self.broken = true;
            return Err(Error::engine(format!("the scripted failure of step {}", self.steps)));
        }
        if rows.len() != self.rows.len() {
            return Err(Error::invalid_input(format!("a step of {} rows, expected {}", rows.len(), self.rows.len())));
        }
        for (index, (input, row)) in rows.iter().zip(&self.rows).enumerate() {
            check_ids(input.tokens, self.model.vocab).map_err(|error| error.at(format!("row {index}")))?;
            let len = row.len() + input.tokens.len();
            if let Some(positions) = self.model.max_positions.filter(|positions| len > *positions) {
                let message = format!("{len} tokens, the model takes at most {positions} positions");
                return Err(Error::invalid_input(message).at(format!("row {index}")));
            }
        }
        Ok(())
    }

    fn row(&self, row: usize) -> Result<&Vec<TokenId>> {
        let outside = || Error::invalid_input(format!("row {row} of a session of {} rows", self.rows.len()));
        self.rows.get(row).ok_or_else(outside)
    }
}

impl Session for ScriptedSession {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn len(&self, row: usize) -> usize {
        self.rows[row].len()
    }

    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        let recorded = rows.iter().map(|row| StepRow { tokens: row.tokens.to_vec(), keep: row.keep }).collect();
        self.model.log.push(Call::Step { rows: recorded });
        self.check(rows)?;
        self.steps += 1;
        self.scores.clear();
        for (input, row) in rows.iter().zip(&mut self.rows) {
            for (at, token) in input.tokens.iter().enumerate() {
                row.push(*token);
                let last = at + 1 == input.tokens.len();
                if input.keep == Keep::All || (input.keep == Keep::Last && last) {
                    let scores = (self.model.rule)(row);
                    assert_eq!(scores.len(), self.model.vocab, "the rule gives one score per entry of the vocabulary");
                    self.scores.extend(scores);
                }
            }
        }
        Ok(Logits::new(&mut self.scores, self.model.vocab))
    }

    fn step_hidden(&mut self, rows: &[RowInput<'_>], ask: &HiddenAsk<'_>) -> Result<(Logits<'_>, HiddenStates<'_>)> {
        let shape = ask.check(self.model.hidden.as_ref().map(|(shape, _)| *shape))?;
        self.step(rows)?;
        self.states.clear();
        if let Some((_, rule)) = &self.model.hidden {
            for &state in ask.states {
                for (input, row) in rows.iter().zip(&self.rows) {
                    for back in (0..ask.positions_of(input)).rev() {
                        self.states.extend(rule(state, &row[..row.len() - back]));
                    }
                }
            }
        }
        let hidden = HiddenStates::new(&self.states, ask.positions(rows), shape.width);
        Ok((Logits::new(&mut self.scores, self.model.vocab), hidden))
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        self.model.log.push(Call::Reorder { from: from.to_vec() });
        if from.is_empty() {
            return Err(Error::invalid_input("a reorder to 0 rows, expected at least 1"));
        }
        self.rows = from.iter().map(|row| self.row(*row).cloned()).collect::<Result<_>>()?;
        Ok(())
    }

    fn can_crop(&self) -> bool {
        self.model.can_crop
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        self.model.log.push(Call::Crop { row, len });
        if !self.model.can_crop {
            return Err(Error::unsupported("this scripted model cannot crop; ask can_crop first"));
        }
        let held = self.row(row)?.len();
        if len > held {
            return Err(Error::invalid_input(format!("row {row} cannot be cropped to {len} tokens, it holds {held}")));
        }
        self.rows[row].truncate(len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool_core::{ErrorKind, HiddenShape, Model, SessionOptions};

    fn open(model: &ScriptedModel, rows: usize) -> Box<dyn Session> {
        model.open(&SessionOptions { rows, capacity: 0 }).unwrap()
    }

    fn input(tokens: &[TokenId], keep: Keep) -> RowInput<'_> {
        RowInput { tokens, keep }
    }

    #[test]
    fn returns_the_positions_that_were_asked_for() {
        let model = ScriptedModel::from_fn(2, |ids| vec![ids.len() as f32, ids[0] as f32]);
        let mut session = open(&model, 3);
        let rows = [input(&[1, 0], Keep::All), input(&[0, 1], Keep::None), input(&[1], Keep::Last)];
        let logits = session.step(&rows).unwrap();
        assert_eq!(logits.kept(), 3);
        assert_eq!([logits.row(0), logits.row(1), logits.row(2)], [[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]]);
        assert_eq!([session.len(0), session.len(1), session.len(2)], [2, 2, 1]);
    }

    #[test]
    fn holds_callers_to_the_contract() {
        let model = ScriptedModel::hashed(4).with_max_positions(3).without_crop();
        let mut session = open(&model, 1);
        assert!(session.step(&[input(&[4], Keep::Last)]).is_err());
        assert!(session.step(&[]).is_err());
        assert!(session.step(&[input(&[0, 1, 2, 3], Keep::Last)]).is_err());
        assert!(session.reorder(&[1]).is_err());
        assert!(session.reorder(&[]).is_err());
        assert!(session.crop(0, 0).is_err());
        assert!(open(&ScriptedModel::hashed(4), 1).crop(0, 1).is_err());
        assert!(model.open(&SessionOptions { rows: 0, capacity: 0 }).is_err());
    }

    #[test]
    fn fails_at_the_step_that_was_named_and_stays_broken() {
        let model = ScriptedModel::hashed(4).failing_at(1);
        let mut session = open(&model, 1);
        assert!(session.step(&[input(&[0], Keep::Last)]).is_ok());
        for _ in 0..2 {
            assert_eq!(session.step(&[input(&[0], Keep::Last)]).unwrap_err().kind(), ErrorKind::Engine);
        }
    }

    #[test]
    fn hidden_states_are_those_of_the_new_tokens() {
        let shape = HiddenShape { last: 2, width: 1, tied: false };
        let rule = |state, ids: &[TokenId]| vec![(state * 100 + ids.len()) as f32];
        let model = ScriptedModel::hashed(9).with_hidden(shape, rule);
        let mut session = open(&model, 2);
        session.step(&[input(&[1], Keep::None), input(&[], Keep::None)]).unwrap();
        let rows = [input(&[1, 2], Keep::Last), input(&[3], Keep::None)];
        let (logits, hidden) = session.step_hidden(&rows, &HiddenAsk { states: &[2, 0], keep: Keep::All }).unwrap();
        assert_eq!((logits.kept(), hidden.kept(), hidden.width()), (1, 3, 1));
        assert_eq!((hidden.state(0), hidden.state(1)), (&[202.0, 203.0, 201.0][..], &[2.0, 3.0, 1.0][..]));
        assert_eq!(hidden.at(1, 1), [3.0]);
        let ask = |states, keep| HiddenAsk { states, keep };
        let (_, hidden) = session.step_hidden(&rows, &ask(&[1], Keep::Last)).unwrap();
        assert_eq!(hidden.state(0), [105.0, 102.0]);
        assert!(session.step_hidden(&rows, &ask(&[3], Keep::Last)).is_err());
        let error = open(&ScriptedModel::hashed(9), 1).step_hidden(&rows[..1], &ask(&[0], Keep::Last)).unwrap_err();
        assert!(error.to_string().contains("import --hidden-states"), "{error}");
    }

    #[test]
    fn rows_follow_reorder_and_crop() {
        let model = ScriptedModel::hashed(9);
        let mut session = open(&model, 2);
        session.step(&[input(&[1, 2], Keep::None), input(&[3], Keep::None)]).unwrap();
        session.reorder(&[1, 0, 0]).unwrap();
        session.crop(2, 1).unwrap();
        assert_eq!([session.len(0), session.len(1), session.len(2)], [1, 2, 1]);
        assert_eq!(model.log().reorders(), [[1, 0, 0]]);
        assert_eq!(model.log().take().last(), Some(&Call::Crop { row: 2, len: 1 }));
        assert!(model.log().calls().is_empty());
    }
}
