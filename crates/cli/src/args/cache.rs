//! The arguments of `unspool cache`.

use clap::{Arg, ArgAction, Command, value_parser};

/// The command.
pub fn command() -> Command {
    let json =
        || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object a line and entry");
    Command::new("cache")
        .about("Show and free the models that are kept on this machine")
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommands([
            Command::new("list").about("List imports and downloads: name, kind, size, last use").arg(json()),
            Command::new("rm").about("Remove entries by their names in the list").args([
                Arg::new("name")
                    .value_name("NAME")
                    .num_args(1..)
                    .required(true)
                    .help("Names, as `unspool cache list` shows them"),
                json(),
            ]),
            Command::new("prune")
                .about("Remove imports that are damaged or of another version, and what killed runs left")
                .args([
                    Arg::new("older-than")
                        .long("older-than")
                        .value_name("DAYS")
                        .value_parser(value_parser!(u64))
                        .help("Also remove imports that were not used for so many days"),
                    json(),
                ]),
        ])
}
