//! `unspool completions`: what a shell needs to complete the command line.

use clap::ArgMatches;
use clap_complete::{Shell, generate};

use crate::args::command::command;
use crate::args::help::Page;
use crate::failure::Failure;
use crate::print::out;

/// Runs the command.
///
/// # Errors
///
/// When standard output cannot be written.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let shell = match matches.get_one::<String>("shell").map(String::as_str) {
        Some("zsh") => Shell::Zsh,
        Some("fish") => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut script = Vec::new();
    generate(shell, &mut command(Page::Long), "unspool", &mut script);
    out::write(&String::from_utf8_lossy(&script))
}
