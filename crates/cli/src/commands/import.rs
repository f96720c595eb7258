//! `unspool import`: a checkpoint becomes a model folder.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use clap::ArgMatches;
use unspool::{Error, ImportOptions, OnProgress, Progress, Weights};

use super::notice;
use crate::args::model::WeightsArg;
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::progress;

/// Runs the command.
///
/// # Errors
///
/// When the checkpoint cannot be imported, or OUT holds something already.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    let (checkpoint, out) = (path("checkpoint"), path("out"));
    let weights: Weights = matches.get_one::<WeightsArg>("weights").copied().unwrap_or(WeightsArg::Keep).into();
    if !checkpoint.exists() {
        return Err(Error::io("there is no such checkpoint").at(checkpoint.display()).into());
    }
    if fs::read_dir(&out).map_or(out.exists(), |mut entries| entries.next().is_some()) {
        return Err(Error::invalid_input("this is there already; give a folder that does not exist or is empty")
            .at(out.display())
            .into());
    }
    let _listening = interrupt::listen(Mode::SecondEnds);
    let bar = progress::import();
    let on_progress = move |progress: Progress<'_>| match interrupt::pressed() {
        true => Err(Error::callback("the import was stopped")),
        false => bar.call(progress),
    };
    let started = Instant::now();
    let report = unspool::import(
        &checkpoint,
        &out,
        &ImportOptions {
            weights,
            hidden_states: matches.get_flag("hidden_states"),
            early_exits: matches.get_many::<usize>("early_exit").into_iter().flatten().copied().collect(),
            progress: Some(OnProgress::new(on_progress)),
        },
    );
    if interrupt::pressed() {
        return Err(Failure::Interrupted);
    }
    let report = report?;
    notice::warn(&report.warnings);
    notice::say(&format!(
        "Imported {} to {} ({report}), in {:.1} s",
        checkpoint.display(),
        out.display(),
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}
