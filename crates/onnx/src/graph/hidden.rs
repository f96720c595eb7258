//! Hidden states among a graph's outputs, by the names that exporters give them.

use serde::Serialize;
use unspool_core::{Error, HiddenShape, Result};

use super::signature::{ConfigFacts, ElementType, Io};

/// What exporters call the states, before their number.
const NUMBERED: [&str; 2] = ["hidden_states.", "hidden_states_"];

/// What exporters call the last state when it is the only one.
const LAST: [&str; 2] = ["last_hidden_state", "hidden_states"];

/// The hidden states that a graph gives.
#[derive(Clone, Debug, Serialize)]
pub struct Hidden {
    /// Output names: all states in order, or the last one alone.
    pub outputs: Vec<String>,
    /// Their element type.
    pub dtype: ElementType,
    /// Size of one state.
    pub width: usize,
    /// Whether the output matrix is the embedding table.
    pub tied: bool,
}

impl Hidden {
    /// The hidden states among `outputs`: `hidden_states.0` and so on without a gap, or `last_hidden_state`.
    ///
    /// # Errors
    ///
    /// When they are no f32 or f16 `[batch, sequence, width]`, or nothing tells their width.
    pub(super) fn among(outputs: &[Io], facts: &ConfigFacts) -> Result<Option<Self>> {
        let named = |name: &str| outputs.iter().find(|output| output.name == name);
        let numbered = |number: usize| NUMBERED.iter().find_map(|prefix| named(&format!("{prefix}{number}")));
        let mut found: Vec<&Io> = (0..outputs.len()).map_while(numbered).collect();
        if found.is_empty() {
            found.extend(LAST.iter().find_map(|name| named(name)));
        }
        let Some(first) = found.first() else { return Ok(None) };
        for state in &found {
            let fits = state.shape.len() == 3 && state.dtype == first.dtype;
            if !fits || !matches!(state.dtype, ElementType::F32 | ElementType::F16) {
                return Err(Error::unsupported(format!(
                    "output '{}' is {:?} {:?}; expected f32 or f16 [batch, sequence, width]",
                    state.name, state.dtype, state.shape
                )));
            }
        }
        let width = found.iter().find_map(|state| state.fixed(2)).or(facts.hidden_size);
        let width = width.filter(|&width| width > 0 && width <= 1 << 20).ok_or_else(|| {
            Error::invalid_model(format!(
                "the size of output '{}' is neither in the graph nor a usable 'hidden_size' in config.json",
                first.name
            ))
        })?;
        let outputs = found.iter().map(|state| state.name.clone()).collect();
        Ok(Some(Hidden { outputs, dtype: first.dtype, width, tied: facts.tied }))
    }

    /// What the port says of them.
    pub fn shape(&self) -> HiddenShape {
        HiddenShape { last: self.outputs.len() - 1, width: self.width, tied: self.tied }
    }
}
