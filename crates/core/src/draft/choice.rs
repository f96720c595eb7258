//! Which draft the settings alone ask for.

use super::assistant::Assistant;
use super::contract::Draft;
use super::prompt_lookup::PromptLookup;
use crate::config::AssistedSettings;
use crate::error::Result;
use crate::model::Model;

/// The draft that needs nothing but `model` and its rows: its own first layers (Python's `EarlyExitCandidateGenerator`), or
/// prompt lookup; `None` when the settings ask for neither.
///
/// # Errors
///
/// When the model has no such exit, or a setting is out of its range.
pub(crate) fn from_settings(model: &dyn Model, settings: &AssistedSettings) -> Result<Option<Box<dyn Draft>>> {
    if let Some(layers) = settings.assistant_early_exit {
        return Ok(Some(Box::new(Assistant::new(model.early_exit(layers)?, settings.clone()))));
    }
    Ok(PromptLookup::from_settings(settings)?.map(|lookup| Box::new(lookup) as Box<dyn Draft>))
}
