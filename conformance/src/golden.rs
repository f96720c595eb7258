//! `golden.json`: what Python `generate()` was asked and what it returned.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use unspool_core::{Error, Result, TokenId};

/// Scores of steps, `[step][row][token]`; `None` is minus infinity.
pub type StepScores = Vec<Vec<Vec<Option<f32>>>>;

/// The recorded cases of one model folder.
#[derive(Debug, Deserialize)]
pub struct Golden {
    /// Why recorded numbers are only roughly those of the graph; tokens hold all the same.
    #[serde(default)]
    pub approximate: Option<String>,
    /// The cases, in the order of recording.
    #[serde(default)]
    pub cases: Vec<Case>,
    #[serde(default)]
    same_as: Option<String>,
}

/// One call of `generate()`.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Unique within the file.
    pub name: String,
    /// What the case is about.
    pub group: String,
    /// A text whose ids are the (only) prompt.
    pub text: Option<String>,
    /// Token ids without padding.
    pub prompts: Vec<Vec<TokenId>>,
    /// Generation fields by their Python names.
    pub settings: Map<String, Value>,
    /// Start from the folder's `generation_config.json`.
    #[serde(default)]
    pub from_repository: bool,
    /// What Python returned.
    pub expect: Expect,
    /// Arguments of the call beside the settings (`assistant`, `negative_prompt`, `prefix_allowed_tokens_rule`, ...).
    #[serde(flatten)]
    pub arguments: HashMap<String, Value>,
}

/// What Python returned.
#[derive(Debug, Deserialize)]
pub struct Expect {
    /// The new tokens of each row up to and with its end token; absent in sampling cases.
    pub new_tokens: Option<Vec<Vec<TokenId>>>,
    /// `eos`, `length` or `stop_string` of each row.
    pub finish: Option<Vec<String>>,
    /// `compute_transition_scores(normalize_logits=True)` of the new tokens.
    pub logprobs: Option<Vec<Vec<Option<f32>>>>,
    /// `compute_transition_scores(normalize_logits=False)` with beams.
    pub transition_scores: Option<Vec<Vec<Option<f32>>>>,
    /// The score of each sequence with beams.
    pub sequences_scores: Option<Vec<f32>>,
    /// The running beam that each token extended; -1 after the end.
    pub beam_indices: Option<Vec<Vec<i64>>>,
    /// Raw scores of the first steps.
    pub logits: Option<StepScores>,
    /// Processed scores of the first steps.
    pub scores: Option<StepScores>,
    /// Runs of the model in assisted cases: how often drafts were verified.
    pub model_calls: Option<usize>,
    /// Tokens left by the rules of sampling, per row.
    pub kept: Option<Vec<usize>>,
    /// The new tokens as text.
    pub text: Option<String>,
    /// For batches: whether each row gives the same tokens alone, and those tokens if not.
    pub unpadded: Option<Vec<Unpadded>>,
}

/// A row of a padded batch, compared with its prompt run alone.
#[derive(Debug, Deserialize)]
pub struct Unpadded {
    /// Whether padding left the tokens unchanged.
    pub same: bool,
    /// The tokens of the prompt alone, one list per sequence, when they differ.
    pub new_tokens: Option<Vec<Vec<TokenId>>>,
}

/// Arguments of a case that only describe it.
const REMARKS: &[&str] = &["differs", "note", "equals_greedy"];

/// Arguments that the replay gives to the call.
const GIVEN: &[&str] = &["assistant", "negative_prompt", "prefix_allowed_tokens_rule"];

impl Case {
    /// The first argument of the call that is not a setting and that the replay has no use for yet.
    pub fn unknown_argument(&self) -> Option<&str> {
        let mut names: Vec<_> = self
            .arguments
            .keys()
            .map(String::as_str)
            .filter(|key| !REMARKS.contains(key) && !GIVEN.contains(key))
            .collect();
        names.sort_unstable();
        names.first().copied()
    }
}

impl Golden {
    /// Reads `folder/golden.json`, or the file it points to with `same_as`; `None` when the folder has none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or is not in the format above.
    pub fn load(folder: &Path) -> Result<Option<Golden>> {
        let path = folder.join("golden.json");
        if !path.exists() {
            return Ok(None);
        }
        let golden = read(&path)?;
        match &golden.same_as {
            Some(other) => read(&folder.join(other)).map(Some),
            None => Ok(Some(golden)),
        }
    }
}

fn read(path: &Path) -> Result<Golden> {
    let text = fs::read_to_string(path)
        .map_err(|e| Error::io("cannot read the recorded cases").at(path.display()).because(e))?;
    serde_json::from_str(&text)
        .map_err(|e| Error::invalid_input("not a file of recorded cases").at(path.display()).because(e))
}
