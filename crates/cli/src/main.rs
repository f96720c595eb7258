//! The unspool command line: `unspool demo` answers a question with a real model, `unspool generate` continues prompts,
//! `unspool chat` talks, `unspool score` and `unspool embed` read, `unspool detect` looks for watermarks, `unspool inspect` tells what a model is,
//! `unspool import` turns a checkpoint into a model folder.

mod args;
mod batch;
mod commands;
mod failure;
mod fetch;
mod interrupt;
mod print;
mod quiet;
mod typed;

use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    quiet::no_telemetry();
    interrupt::install();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run() -> Result<(), Failure> {
    let Some(matches) = args::command::parse(std::env::args_os())? else { return Ok(()) };
    match matches.subcommand() {
        Some(("demo", matches)) => commands::demo::run(matches),
        Some(("generate", matches)) => commands::generate::run(matches),
        Some(("chat", matches)) => commands::chat::run(matches),
        Some(("detect", matches)) => commands::detect::run(matches),
        Some(("score", matches)) => commands::score::run(matches),
        Some(("embed", matches)) => commands::embed::run(matches),
        Some(("inspect", matches)) => commands::inspect::run(matches),
        Some(("import", matches)) => commands::import::run(matches),
        _ => Err(Failure::usage("a command is needed; see `unspool --help`")),
    }
}
