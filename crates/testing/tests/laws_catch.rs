//! The checks of the laws find sessions that break them, and say where.

use unspool_core::{Logits, Model, Result, RowInput, Session, SessionOptions};
use unspool_testing::{ScriptedModel, Tolerance, check_batch_law, check_cache_law, check_step_law, random_prompts};

const VOCAB: usize = 9;

/// What a session gets wrong.
#[derive(Clone, Copy, Debug)]
enum Flaw {
    /// Scores change a little with every further row.
    SeesNeighbours,
    /// Scores change a little when a row already holds tokens.
    CountsSteps,
    /// A reorder keeps the number of rows but not their order.
    ForgetsOrder,
    /// A crop does nothing.
    IgnoresCrop,
    /// Everything is right.
    None,
}

struct Flawed {
    model: ScriptedModel,
    flaw: Flaw,
}

struct FlawedSession {
    session: Box<dyn Session>,
    flaw: Flaw,
}

impl Flawed {
    fn new(flaw: Flaw) -> Self {
        Flawed { model: ScriptedModel::hashed(VOCAB), flaw }
    }
}

impl Model for Flawed {
    fn vocab_size(&self) -> usize {
        VOCAB
    }

    fn max_positions(&self) -> Option<usize> {
        None
    }

    fn open(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(FlawedSession { session: self.model.open(options)?, flaw: self.flaw }))
    }
}

impl Session for FlawedSession {
    fn rows(&self) -> usize {
        self.session.rows()
    }

    fn len(&self, row: usize) -> usize {
        self.session.len(row)
    }

    fn step(&mut self, rows: &[RowInput<'_>]) -> Result<Logits<'_>> {
        let shift = match self.flaw {
            Flaw::SeesNeighbours => 0.01 * (rows.len() - 1) as f32,
            Flaw::CountsSteps if self.session.len(0) > 0 => 0.01,
            _ => 0.0,
        };
        let mut logits = self.session.step(rows)?;
        for kept in 0..logits.kept() {
            logits.row_mut(kept)[3] += shift;
        }
        Ok(logits)
    }

    fn reorder(&mut self, from: &[usize]) -> Result<()> {
        match self.flaw {
            Flaw::ForgetsOrder => {
                let rows = self.session.rows();
                self.session.reorder(&(0..from.len()).map(|row| row % rows).collect::<Vec<_>>())
            }
            _ => self.session.reorder(from),
        }
    }

    fn can_crop(&self) -> bool {
        true
    }

    fn crop(&mut self, row: usize, len: usize) -> Result<()> {
        match self.flaw {
            Flaw::IgnoresCrop => Ok(()),
            _ => self.session.crop(row, len),
        }
    }
}

fn batch(flaw: Flaw, tolerance: Tolerance) -> Result<(), String> {
    check_batch_law(&Flawed::new(flaw), &random_prompts(1, 3, 8, VOCAB), tolerance)
}

fn step(flaw: Flaw) -> Result<(), String> {
    check_step_law(&Flawed::new(flaw), &random_prompts(1, 3, 8, VOCAB), 5, Tolerance::EXACT)
}

fn cache(flaw: Flaw) -> Result<(), String> {
    (0..20).try_for_each(|seed| check_cache_law(&Flawed::new(flaw), seed, 30, 20, Tolerance::EXACT))
}

#[test]
fn a_right_session_passes() {
    assert_eq!(batch(Flaw::None, Tolerance::EXACT), Ok(()));
    assert_eq!(step(Flaw::None), Ok(()));
    assert_eq!(cache(Flaw::None), Ok(()));
}

#[test]
fn neighbours_are_noticed_and_told() {
    let told = batch(Flaw::SeesNeighbours, Tolerance::EXACT).unwrap_err();
    assert!(told.starts_with("batch law: row 0 of 3") && told.contains("token 3"), "{told}");
}

#[test]
fn a_tolerance_allows_what_it_says() {
    assert_eq!(batch(Flaw::SeesNeighbours, Tolerance::new(0.021, "two neighbours")), Ok(()));
    let told = batch(Flaw::SeesNeighbours, Tolerance::new(0.019, "too little")).unwrap_err();
    assert!(told.ends_with("allowed 0.019 (too little)"), "{told}");
    let nan = Tolerance::new(1.0, "").check(&[f32::NAN], &[1.0]);
    assert!(nan.is_err());
    assert!(Tolerance::EXACT.check(&[f32::NEG_INFINITY], &[f32::NEG_INFINITY]).is_ok());
}

#[test]
fn chunks_are_noticed() {
    let told = step(Flaw::CountsSteps).unwrap_err();
    assert!(told.starts_with("step law: prompt "), "{told}");
}

#[test]
fn lost_rows_and_ignored_crops_are_noticed() {
    let told = cache(Flaw::ForgetsOrder).unwrap_err();
    assert!(told.starts_with("cache law: seed ") && told.contains("reorder ["), "{told}");
    let told = cache(Flaw::IgnoresCrop).unwrap_err();
    assert!(told.contains("crop row"), "{told}");
}
