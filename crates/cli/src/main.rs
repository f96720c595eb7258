//! The unspool command line: `unspool demo` answers a question with a real model, `unspool generate` continues prompts,
//! `unspool chat` talks, `unspool score` and `unspool embed` read, `unspool detect` looks for watermarks, `unspool inspect` tells what a model is,
//! `unspool import` turns a checkpoint into a model folder, `unspool completions` helps shells.

mod args;
mod batch;
mod commands;
mod failure;
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
    let Some((name, own)) = matches.subcommand() else { return Err(Failure::usage("a command is needed")) };
    if matches.get_flag("quiet") || own.get_flag("quiet") {
        commands::notice::be_quiet();
    }
    let done = match name {
        "demo" => commands::demo::run(own),
        "generate" => commands::generate::run(own),
        "chat" => commands::chat::run(own),
        "detect" => commands::detect::run(own),
        "score" => commands::score::run(own),
        "embed" => commands::embed::run(own),
        "inspect" => commands::inspect::run(own),
        "import" => commands::import::run(own),
        "cache" => commands::cache::run(own),
        _ => commands::completions::run(own),
    };
    done.map_err(|failure| failure.of_command(Some(name)))
}
