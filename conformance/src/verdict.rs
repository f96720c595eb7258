//! How a case ended.

use serde::{Deserialize, Serialize};

/// How a case ended on one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The answer equals Python's.
    Pass,
    /// The case needs a setting or an argument that Unspool refuses by name; the text is the refusal.
    NotBuilt(String),
    /// The engine cannot load or run the graph; the text is its reason.
    Unsupported(String),
    /// The answer differs, or the run failed; the text says where first.
    Fail(String),
}

impl Verdict {
    /// The word of this verdict in reports and in the baseline.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::NotBuilt(_) => "not_built",
            Verdict::Unsupported(_) => "unsupported",
            Verdict::Fail(_) => "fail",
        }
    }

    /// The reason of anything but a pass.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Pass => None,
            Verdict::NotBuilt(reason) | Verdict::Unsupported(reason) | Verdict::Fail(reason) => Some(reason),
        }
    }
}
