//! Arguments about a second model that drafts.

use clap::{Arg, ArgAction, ArgMatches, Command};
use unspool::{OpenOptions, Pipeline, Weights, is_checkpoint};

use super::model::ModelArgs;
use crate::commands::notice;
use crate::failure::Failure;

const HEADING: &str = "Assisted generation";

/// Adds `--assistant` and `--always-draft` to `command`.
pub fn add(command: Command) -> Command {
    command.args([
        Arg::new("assistant")
            .long("assistant")
            .value_name("MODEL")
            .help("A smaller model that drafts tokens for the model to verify: the same text, sooner")
            .help_heading(HEADING),
        Arg::new("always-draft")
            .long("always-draft")
            .action(ArgAction::SetTrue)
            .help("Draft in every round, as Python does, also while drafts do not pay")
            .help_heading(HEADING),
    ])
}

/// Whether to draft in every round.
pub fn always(matches: &ArgMatches) -> bool {
    matches.get_flag("always-draft")
}

/// `pipeline` with the assistant that the arguments name, run as `model` is.
///
/// # Errors
///
/// When the assistant cannot be opened, or cannot draft for the model.
pub fn join(pipeline: Pipeline, matches: &ArgMatches, model: &ModelArgs) -> Result<Pipeline, Failure> {
    let Some(name) = matches.get_one::<String>("assistant") else { return Ok(pipeline) };
    let small = ModelArgs { model: name.clone(), revision: None, dtype: None, run: model.run.clone() };
    let path = small.path()?;
    // A graph is used as it is, whatever the model itself is imported to.
    let weights = if is_checkpoint(&path)? { small.options().weights } else { Weights::Keep };
    let options = OpenOptions { weights, hidden_states: false, ..small.options() };
    Ok(pipeline.with_assistant(&notice::open(&path, &options)?)?)
}
