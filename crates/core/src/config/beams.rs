//! Checked settings of beam search.

use serde_json::Value;

use crate::config::layers::Resolved;
use crate::config::settings::{ModelFacts, Settings, count};
use crate::error::{Error, Result};
use crate::token::TokenId;

/// Beams of one prompt: far above what is of use, and small enough that sizes of their buffers can be counted.
const MAX_BEAMS: usize = 1 << 12;

/// When the search of a prompt ends; Python's `early_stopping`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStopping {
    /// When no running beam is likely to beat the worst finished sequence, judged by its score so far (`false`).
    #[default]
    Heuristic,
    /// As soon as `num_beams` sequences are finished (`true`).
    First,
    /// When no running beam can beat the worst finished sequence whatever it becomes (`"never"`).
    Never,
}

/// What every returned sequence must hold; Python's `Constraint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// These tokens, one after another (`PhrasalConstraint`).
    Phrasal(Vec<TokenId>),
    /// One of these runs of tokens (`DisjunctiveConstraint`).
    Disjunctive(Vec<Vec<TokenId>>),
}

/// The settings of beam search, by Python's names.
#[derive(Clone, Debug, PartialEq)]
pub struct Beams {
    /// Sequences that are followed side by side for each prompt; 1 is no beam search.
    pub num_beams: usize,
    /// Groups that avoid each other's tokens; 1 is none.
    pub num_beam_groups: usize,
    /// What a token costs in a group for each beam of the groups before it that took the token at the same step.
    pub diversity_penalty: f64,
    /// Exponent of the number of new tokens that a sequence's summed log-probability is divided by.
    pub length_penalty: f64,
    /// When the search ends.
    pub early_stopping: EarlyStopping,
    /// What every sequence must hold (`constraints` and `force_words_ids`).
    pub constraints: Vec<Constraint>,
}

impl Default for Beams {
    fn default() -> Self {
        Beams {
            num_beams: 1,
            num_beam_groups: 1,
            diversity_penalty: 0.0,
            length_penalty: 1.0,
            early_stopping: EarlyStopping::default(),
            constraints: Vec::new(),
        }
    }
}

impl Beams {
    /// Reads and checks the settings of beam search in merged fields.
    pub(super) fn resolve(fields: &Resolved, model: &ModelFacts) -> Result<Beams> {
        let num_beams = count(fields, "num_beams", 1)?.unwrap_or(1);
        if num_beams > MAX_BEAMS {
            return Err(fields.refuse("num_beams", &format!("at most {MAX_BEAMS}")));
        }
        let length_penalty = fields.float("length_penalty").unwrap_or(1.0);
        if !length_penalty.is_finite() {
            return Err(fields.refuse("length_penalty", "a finite number"));
        }
        let mut beams = Beams {
            num_beams,
            length_penalty,
            early_stopping: match fields.value("early_stopping") {
                Some(Value::Bool(true)) => EarlyStopping::First,
                Some(Value::String(_)) => EarlyStopping::Never,
                _ => EarlyStopping::Heuristic,
            },
            constraints: constraints(fields, model.vocab_size)?,
            ..Beams::default()
        };
        beams.check_constraints(fields)?;
        beams.read_groups(fields)?;
        Ok(beams)
    }

    /// Checks settings that a caller put together by hand; those read from fields were checked there.
    pub(crate) fn check(&self, settings: &Settings, vocab: usize) -> Result<()> {
        let (beams, groups, sequences) = (self.num_beams, self.num_beam_groups, settings.num_return_sequences);
        let refuse = |message: String| Err(Error::invalid_config(message));
        if beams <= 1 {
            return Ok(());
        }
        if beams > MAX_BEAMS {
            return refuse(format!("num_beams is {beams}, expected at most {MAX_BEAMS}"));
        }
        if sequences > beams {
            return refuse(format!("num_return_sequences is {sequences}, expected at most num_beams={beams}"));
        }
        if groups == 0 || !beams.is_multiple_of(groups) {
            return refuse(format!("num_beam_groups is {groups}, expected a divisor of num_beams={beams}"));
        }
        if groups == 1 && self.constraints.is_empty() {
            return Ok(());
        }
        if settings.do_sample || (groups > 1 && !self.constraints.is_empty()) {
            return refuse(
                "do_sample, num_beam_groups above 1 and constraints exclude each other; set one of them".to_owned(),
            );
        }
        for constraint in &self.constraints {
            if let Err(wanted) = constraint.check(vocab) {
                return refuse(format!("constraints holds {constraint:?}, expected {wanted}"));
            }
        }
        match settings.pad_token_id {
            Some(pad) if pad as usize >= vocab => refuse(format!(
                "pad_token_id is {pad}, expected an id below the vocabulary's {vocab} entries: beams that are done write it"
            )),
            _ => Ok(()),
        }
    }

    /// Python's checks of constrained beam search.
    fn check_constraints(&self, fields: &Resolved) -> Result<()> {
        let Some(name) = ["constraints", "force_words_ids"].into_iter().find(|name| fields.value(name).is_some())
        else {
            return Ok(());
        };
        let needs = |what: &str| {
            let message = format!("{name} is set, and constrained beam search needs {what}");
            Err(fields.locate(name, Error::invalid_config(message)))
        };
        if self.num_beams == 1 {
            return needs("num_beams above 1; set num_beams");
        }
        if fields.bool("do_sample") == Some(true) {
            return needs("do_sample=false; set it to false");
        }
        if fields.int("num_beam_groups") > Some(1) {
            return needs("one group of beams; set num_beam_groups to 1");
        }
        Ok(())
    }

    /// Python's checks of group beam search.
    fn read_groups(&mut self, fields: &Resolved) -> Result<()> {
        let groups = count(fields, "num_beam_groups", 1)?.unwrap_or(1);
        if groups == 1 || self.num_beams == 1 {
            return Ok(());
        }
        if !self.num_beams.is_multiple_of(groups) {
            let wanted = format!("a divisor of num_beams={}", self.num_beams);
            return Err(fields.refuse("num_beam_groups", &wanted));
        }
        if fields.bool("do_sample") == Some(true) {
            return Err(fields.refuse("num_beam_groups", "1 with do_sample=true: groups of beams do not draw"));
        }
        let penalty = fields.float("diversity_penalty").unwrap_or(0.0);
        if !(penalty > 0.0 && penalty.is_finite()) {
            return Err(fields.refuse("diversity_penalty", "a number above 0, since num_beam_groups is above 1"));
        }
        (self.num_beam_groups, self.diversity_penalty) = (groups, penalty);
        Ok(())
    }
}

/// `constraints`, then one constraint for each entry of `force_words_ids`.
fn constraints(fields: &Resolved, vocab: usize) -> Result<Vec<Constraint>> {
    let mut read = Vec::new();
    for (name, of) in [("constraints", constraint as fn(&Value) -> Option<Constraint>), ("force_words_ids", word)] {
        let Some(value) = fields.value(name) else { continue };
        let wanted = match name {
            "constraints" => {
                "a list of objects with \"token_ids\" (a list of ids) or \"nested_token_ids\" (lists of ids)"
            }
            _ => "a list of words, each a list of ids, or a list of such lists of which one must come",
        };
        let entries = value.as_array().filter(|entries| !entries.is_empty());
        for entry in entries.ok_or_else(|| fields.refuse(name, wanted))? {
            let constraint =
                of(entry).ok_or_else(|| fields.refuse(name, &format!("{wanted}{}", unknown_key(entry))))?;
            constraint.check(vocab).map_err(|wanted| fields.refuse(name, &wanted))?;
            read.push(constraint);
        }
    }
    Ok(read)
}

impl Constraint {
    /// What was expected of a constraint that cannot be met.
    fn check(&self, vocab: usize) -> std::result::Result<(), String> {
        let words = match self {
            Constraint::Phrasal(ids) => std::slice::from_ref(ids),
            Constraint::Disjunctive(words) => words.as_slice(),
        };
        if words.is_empty() || words.iter().any(Vec::is_empty) {
            return Err("at least one id in every list".to_owned());
        }
        if let Some(id) = words.iter().flatten().find(|id| **id as usize >= vocab) {
            return Err(format!("ids below {vocab}, the size of the vocabulary, which {id} is not"));
        }
        let begins = |(place, word): (usize, &Vec<TokenId>)| {
            words.iter().enumerate().any(|(other, longer)| other != place && longer.starts_with(word))
        };
        if words.iter().enumerate().any(begins) {
            return Err(
                "alternatives of which none begins another, or that one could never be told complete".to_owned()
            );
        }
        Ok(())
    }
}

/// What to say of a key that an entry of `constraints` may not have.
fn unknown_key(entry: &Value) -> String {
    let keys = entry.as_object().into_iter().flat_map(|fields| fields.keys());
    let unknown = keys.into_iter().find(|key| !["token_ids", "nested_token_ids"].contains(&key.as_str()));
    unknown.map_or_else(String::new, |key| format!("; {key:?} is not known"))
}

fn ids(value: &Value) -> Option<Vec<TokenId>> {
    let id = |value: &Value| TokenId::try_from(value.as_u64()?).ok();
    value.as_array()?.iter().map(id).collect()
}

fn words(value: &Value) -> Option<Vec<Vec<TokenId>>> {
    value.as_array()?.iter().map(ids).collect()
}

/// One entry of `constraints`, with the argument names of Python's classes.
fn constraint(value: &Value) -> Option<Constraint> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    match (fields.get("token_ids"), fields.get("nested_token_ids")) {
        (Some(value), None) => ids(value).map(Constraint::Phrasal),
        (None, Some(value)) => words(value).map(Constraint::Disjunctive),
        _ => None,
    }
}

/// One entry of `force_words_ids`.
fn word(value: &Value) -> Option<Constraint> {
    ids(value).map(Constraint::Phrasal).or_else(|| words(value).map(Constraint::Disjunctive))
}
