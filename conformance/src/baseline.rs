//! The committed verdicts: a ratchet that may rise and never fall.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use unspool_core::{Error, Result};

use crate::verdict::Verdict;

/// Verdict words by engine, model and case.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Baseline(BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>);

/// How a verdict stands against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// As recorded.
    Same,
    /// Better than recorded; the baseline wants to be written anew.
    Better,
    /// Not recorded yet.
    New,
    /// Worse than recorded.
    Worse,
}

impl Baseline {
    /// Reads a baseline; a missing file is an empty one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is no baseline.
    pub fn load(path: &Path) -> Result<Baseline> {
        if !path.exists() {
            return Ok(Baseline::default());
        }
        let text = fs::read_to_string(path)
            .map_err(|e| Error::io("cannot read the baseline").at(path.display()).because(e))?;
        serde_json::from_str(&text).map_err(|e| Error::invalid_input("not a baseline").at(path.display()).because(e))
    }

    /// Writes the baseline, one case a line.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::io("cannot write the baseline").because(e))?;
        fs::write(path, text + "\n").map_err(|e| Error::io("cannot write the baseline").at(path.display()).because(e))
    }

    /// Records a verdict.
    pub fn set(&mut self, engine: &str, model: &str, case: &str, verdict: &Verdict) {
        let models = self.0.entry(engine.to_owned()).or_default();
        models.entry(model.to_owned()).or_default().insert(case.to_owned(), verdict.word().to_owned());
    }

    /// Holds a verdict against the recorded one. A fail that is not recorded counts as worse.
    pub fn judge(&self, engine: &str, model: &str, case: &str, verdict: &Verdict) -> Change {
        let recorded = self.0.get(engine).and_then(|models| models.get(model)).and_then(|cases| cases.get(case));
        match recorded {
            None if matches!(verdict, Verdict::Fail(_)) => Change::Worse,
            None => Change::New,
            Some(word) if word == verdict.word() => Change::Same,
            Some(word) if rank(verdict.word()) > rank(word) => Change::Better,
            Some(_) => Change::Worse,
        }
    }

    /// Recorded cases of `model` on `engine` that are missing from `ran`: a case may not vanish either.
    pub fn missing<'a>(&'a self, engine: &str, model: &str, ran: &[String]) -> Vec<&'a str> {
        let Some(cases) = self.0.get(engine).and_then(|models| models.get(model)) else { return Vec::new() };
        cases.keys().filter(|name| !ran.contains(name)).map(String::as_str).collect()
    }
}

/// A refusal by name is as good as an engine that cannot: both are honest, neither is an answer.
fn rank(word: &str) -> u8 {
    match word {
        "pass" => 2,
        "not_built" | "unsupported" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(verdict: Verdict) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.set("rten", "gpt2", "greedy", &verdict);
        baseline
    }

    #[test]
    fn a_lost_pass_is_worse() {
        let baseline = recorded(Verdict::Pass);
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::Fail("step 1".into())), Change::Worse);
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::NotBuilt("top_h".into())), Change::Worse);
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::Pass), Change::Same);
    }

    #[test]
    fn a_new_pass_is_better() {
        let baseline = recorded(Verdict::NotBuilt("use_mtp".into()));
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::Pass), Change::Better);
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::Unsupported("op".into())), Change::Worse);
    }

    #[test]
    fn an_unrecorded_fail_is_worse() {
        let baseline = Baseline::default();
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::Fail("step 1".into())), Change::Worse);
        assert_eq!(baseline.judge("rten", "gpt2", "greedy", &Verdict::Pass), Change::New);
    }

    #[test]
    fn a_vanished_case_is_seen() {
        let baseline = recorded(Verdict::Pass);
        assert_eq!(baseline.missing("rten", "gpt2", &[]), ["greedy"]);
        assert!(baseline.missing("rten", "gpt2", &["greedy".into()]).is_empty());
        assert!(baseline.missing("ort", "gpt2", &[]).is_empty());
    }
}
