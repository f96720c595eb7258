//! The pages of help: `-h` is short, `--help` has every option.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};
use unspool::config::FIELDS;

/// Which page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The main options.
    Short,
    /// All of them.
    Long,
}

/// Commands that generate: they have an option for every generation field.
const GENERATING: [&str; 3] = ["demo", "generate", "chat"];

/// What the short page of these commands shows.
const MAIN: &[&str] = &[
    "question",
    "model",
    "text",
    "prompt",
    "prompts",
    "chat",
    "system",
    "context",
    "out",
    "force",
    "json",
    "verbose",
    "max_new_tokens",
    "stop_strings",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "seed",
    "config",
    "dtype",
    "engine",
    "quiet",
    "help",
];

/// `unspool help COMMAND` becomes `unspool COMMAND --help`; other words stay.
pub fn command_first(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.truncate(3);
        words.push("--help".into());
    }
    words
}

/// The page that `words` ask for.
pub fn page(words: &[OsString]) -> Page {
    let mut options = words.iter().take_while(|word| *word != "--");
    if options.any(|word| word == "-h") { Page::Short } else { Page::Long }
}

/// `root` with the options that every command has, and on the short page with the main ones alone.
pub fn with_pages(root: Command, page: Page) -> Command {
    let root = root.disable_help_flag(true).args([help("Print help"), quiet()]);
    root.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let command =
            command.disable_help_flag(true).args([help("Print the main options (-h), or all (--help)"), quiet()]);
        let command = command.mut_subcommands(|inner| inner.disable_help_flag(true).arg(help("Print help")));
        if page == Page::Long {
            return command;
        }
        let generates = GENERATING.contains(&name.as_str());
        let rare = |arg: &Arg| {
            let id = arg.get_id().as_str();
            let field = FIELDS.iter().any(|field| field.name == id);
            (generates || field) && !(generates && MAIN.contains(&id))
        };
        let more = format!("`unspool {name} --help` lists all options.");
        let hidden = command.get_arguments().any(rare);
        let command = command.mut_args(|arg| if rare(&arg) { arg.hide(true) } else { arg });
        if hidden { command.after_help(more) } else { command }
    })
}

fn help(text: &'static str) -> Arg {
    // Both pages are written in the short form: one option a line.
    Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help(text)
}

fn quiet() -> Arg {
    Arg::new("quiet")
        .short('q')
        .long("quiet")
        .action(ArgAction::SetTrue)
        .help("No notices and no progress on standard error; warnings and errors stay")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command::command;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn text(name: &str, page: Page) -> String {
        let mut command = command(page);
        command.build();
        command.find_subcommand_mut(name).unwrap().clone().term_width(100).render_help().to_string()
    }

    #[test]
    fn the_words_say_which_page() {
        assert_eq!(page(&words("unspool generate -h")), Page::Short);
        assert_eq!(page(&words("unspool generate --help")), Page::Long);
        assert_eq!(page(&words("unspool generate m -- -h")), Page::Long);
        assert_eq!(command_first(words("unspool help generate")), words("unspool generate --help"));
        assert_eq!(command_first(words("unspool help")), words("unspool --help"));
        assert_eq!(command_first(words("unspool generate help")), words("unspool generate help"));
    }

    #[test]
    fn the_short_page_fits_a_screen_and_the_long_one_has_every_option() {
        for name in GENERATING.iter().chain(&["inspect"]) {
            let short = text(name, Page::Short);
            assert!(short.lines().count() <= 52, "{} lines:\n{short}", short.lines().count());
            assert!(short.contains(&format!("unspool {name} --help")), "{short}");
            let long = text(name, Page::Long);
            for field in FIELDS.iter().filter(|field| field.status == unspool::config::Status::Supported) {
                let flag = format!("--{}", field.name.replace('_', "-"));
                assert!(long.contains(&flag), "{flag} is missing for {name}");
            }
        }
        let short = text("generate", Page::Short);
        for flag in
            ["--max-new-tokens", "--temperature", "--chat", "--prompts", "--out", "--seed", "--engine", "--quiet"]
        {
            assert!(short.contains(flag), "{flag} is missing in:\n{short}");
        }
        assert!(!short.contains("--eta-cutoff"), "{short}");
    }

    #[test]
    fn what_the_short_page_shows_exists() {
        let command = command(Page::Long);
        let ids: Vec<&str> = command
            .get_subcommands()
            .filter(|command| GENERATING.contains(&command.get_name()))
            .flat_map(|command| command.get_arguments().map(|arg| arg.get_id().as_str()))
            .collect();
        for main in MAIN {
            assert!(ids.contains(main), "{main}");
        }
    }
}
