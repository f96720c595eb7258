//! The whole command line.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, value_parser};

use super::help::{self, Page};
use super::model::{ModelArgs, RunArgs, WeightsArg};
use super::prompts::PromptArgs;
use super::template::TemplateArgs;
use super::texts::{TextArgs, WhichTexts};
use super::{assistant, cache, fields, switches, wrong};
use crate::failure::Failure;
use crate::print::out;

const EXAMPLES: &str = "\
Examples:
  unspool demo
  unspool generate HuggingFaceTB/SmolLM2-135M-Instruct \"What is the capital of France?\" --chat
  unspool chat model.gguf
  unspool generate --help";

/// Every command with its arguments, as `page` shows them.
pub fn command(page: Page) -> Command {
    let root = Command::new("unspool")
        .about("Hugging Face generate() in Rust: give it a model, get the tokens that Python would give")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(EXAMPLES)
        .subcommands([
            demo(),
            generate(),
            chat(),
            score(),
            embed(),
            detect(),
            inspect(),
            import(),
            cache::command(),
            completions(),
        ]);
    help::with_pages(root, page)
}

fn completions() -> Command {
    Command::new("completions").about("Print what a shell needs to complete commands and options").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(["bash", "zsh", "fish"])
            .help("For example: unspool completions bash > ~/.local/share/bash-completion/completions/unspool"),
    )
}

fn demo() -> Command {
    let question =
        Arg::new("question").value_name("QUESTION").num_args(0..).help("What to ask [default: the capital of France]");
    let command = RunArgs::augment_args(Command::new("demo").arg(question));
    fields::add(command).about("Fetch a small model once and let it answer a question")
}

fn generate() -> Command {
    // The argument groups bring descriptions of their own, so the command's is set last.
    let command = Command::new("generate");
    let command = PromptArgs::augment_args(ModelArgs::augment_args(command)).args([
        Arg::new("out")
            .long("out")
            .value_name("FILE")
            .value_parser(value_parser!(std::path::PathBuf))
            .help("Write JSON lines to FILE; the same command continues an interrupted run")
            .help_heading("Prompts"),
        Arg::new("force")
            .long("force")
            .action(ArgAction::SetTrue)
            .requires("out")
            .help("Replace the FILE of --out when it is there already")
            .help_heading("Prompts"),
        Arg::new("batch-size")
            .long("batch-size")
            .value_name("N")
            .value_parser(value_parser!(u32).range(1..=65_536))
            .help("Prompts that run together [default: 8 with --prompts, else all]")
            .help_heading("Prompts"),
        Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON object a line and prompt")
            .help_heading("Output"),
        Arg::new("logprobs")
            .long("logprobs")
            .action(ArgAction::SetTrue)
            .help("Add the log-probability of each new token to the JSON")
            .help_heading("Output"),
        Arg::new("verbose")
            .short('v')
            .long("verbose")
            .action(ArgAction::SetTrue)
            .conflicts_with("quiet")
            .help("At the end, print tokens, speeds, seed and engine on standard error")
            .help_heading("Output"),
        Arg::new("stream")
            .long("stream")
            .value_name("PIECES")
            .value_parser(["token", "word"])
            .conflicts_with_all(["json", "out"])
            .help("Write text as soon as it is certain (token), or in the pieces of Python's TextStreamer (word) [default: token]")
            .help_heading("Output"),
        Arg::new("show-prompt")
            .long("show-prompt")
            .action(ArgAction::SetTrue)
            .conflicts_with_all(["json", "out"])
            .help("Write each prompt before its answer")
            .help_heading("Output"),
        seed(),
    ]);
    fields::add(assistant::add(command)).about("Continue one or many prompts")
}

fn chat() -> Command {
    let command = Command::new("chat").args([
        Arg::new("system").long("system").value_name("TEXT").help("The system message").help_heading("Prompts"),
        Arg::new("context")
            .long("context")
            .value_name("WHEN-FULL")
            .value_parser(["refuse", "keep-first"])
            .default_value("refuse")
            .help("When the context is full: refuse the message, or drop the oldest turns but the system message")
            .help_heading("Prompts"),
    ]);
    fields::add(assistant::add(TemplateArgs::augment_args(ModelArgs::augment_args(command)).arg(seed())))
        .about("Talk with a model; /help lists what a line may be")
}

fn score() -> Command {
    let command = TextArgs::augment_args(ModelArgs::augment_args(Command::new("score")));
    command
        .arg(
            Arg::new("add-bos")
                .long("add-bos")
                .action(ArgAction::SetTrue)
                .help("Start every text with the model's first token, so that its own first token is scored too")
                .help_heading("Texts"),
        )
        .about("Score texts: the log-probability of every token, without generating any")
}

fn embed() -> Command {
    let command = TextArgs::augment_args(ModelArgs::augment_args(Command::new("embed")));
    command
        .args([
            Arg::new("pooling")
                .long("pooling")
                .value_name("POOLING")
                .value_parser(["last", "mean"])
                .default_value("last")
                .help("Take the hidden state of the last token, or the mean of all")
                .help_heading("Output"),
            Arg::new("normalize")
                .long("normalize")
                .action(ArgAction::SetTrue)
                .help("Give every vector the length 1")
                .help_heading("Output"),
        ])
        .about("Make a vector of each text")
}

fn seed() -> Arg {
    Arg::new("seed")
        .long("seed")
        .value_name("N")
        .value_parser(value_parser!(u64))
        .allow_negative_numbers(true)
        .help("Where random draws start; the same seed gives the same tokens [default: random]")
        .help_heading("Generation")
}

fn detect() -> Command {
    let command = WhichTexts::augment_args(ModelArgs::augment_args(Command::new("detect"))).args([
        Arg::new("watermarking_config")
            .long("watermarking-config")
            .value_name("JSON")
            .help("The watermark to look for [default: that of the model's generation_config.json, or of --detector]"),
        Arg::new("detector")
            .long("detector")
            .value_name("FOLDER")
            .value_parser(value_parser!(std::path::PathBuf))
            .help("A trained SynthID detector, as Python's BayesianDetectorModel.save_pretrained writes it"),
        Arg::new("z-threshold")
            .long("z-threshold")
            .value_name("NUMBER")
            .value_parser(finite)
            .allow_hyphen_values(true)
            .default_value("3.0")
            .help("Standard deviations above which a text counts as marked with green lists"),
        Arg::new("ignore-repeated-ngrams")
            .long("ignore-repeated-ngrams")
            .action(ArgAction::SetTrue)
            .help("Judge equal windows of a text once (green lists)"),
    ]);
    command.about("Look for a watermark in texts; prints one JSON object a line and text")
}

fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("expected a finite number, such as 3 or 2.5".to_owned()),
    }
}

fn inspect() -> Command {
    let command = Command::new("inspect").args([
        Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object").help_heading("Output"),
        Arg::new("tokens")
            .long("tokens")
            .value_name("N")
            .value_parser(value_parser!(u64))
            .allow_negative_numbers(true)
            .help("Tokens whose cache is measured [default: the maximum positions]")
            .help_heading("Output"),
        Arg::new("tensors")
            .long("tensors")
            .action(ArgAction::SetTrue)
            .conflicts_with("json")
            .help("List the tensors of the cache too")
            .help_heading("Output"),
        Arg::new("settings")
            .long("settings")
            .action(ArgAction::SetTrue)
            .conflicts_with("json")
            .help("List the settings at their defaults too")
            .help_heading("Output"),
    ]);
    fields::add(ModelArgs::augment_args(command)).about("Show what a model is and how it would run")
}

fn layers(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a number of layers, such as 6".to_owned())
}

fn import() -> Command {
    Command::new("import").about("Turn a GGUF or safetensors checkpoint into a model folder").args([
        Arg::new("checkpoint")
            .value_name("CHECKPOINT")
            .required(true)
            .value_parser(value_parser!(std::path::PathBuf))
            .help("A .gguf file, a .safetensors file, or a folder with a safetensors checkpoint"),
        Arg::new("out")
            .value_name("OUT")
            .required(true)
            .value_parser(value_parser!(std::path::PathBuf))
            .help("The folder to write; it must not exist or be empty"),
        Arg::new("weights")
            .long("weights")
            .value_parser(value_parser!(WeightsArg))
            .default_value("keep")
            .help("keep the checkpoint's own values, write f32, or requantise to int8 or int4"),
        Arg::new("hidden_states")
            .long("hidden-states")
            .action(ArgAction::SetTrue)
            .help("Write a graph that gives hidden states too: for embed, contrastive search and DoLa"),
        Arg::new("early_exit")
            .long("early-exit")
            .value_name("LAYERS")
            .value_parser(layers)
            .value_delimiter(',')
            .allow_negative_numbers(true)
            .action(ArgAction::Append)
            .help("Write the model's first LAYERS (or several: 10,20) as a model that drafts for the whole: for --assistant-early-exit"),
    ])
}

/// What the words of a command line say; `None` when they ask for help or the version, which is printed.
///
/// # Errors
///
/// [`Failure::Usage`] for a wrong command line; the message names the command's own help.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<ArgMatches>, Failure> {
    let words = help::command_first(words.into_iter().collect());
    let command = command(help::page(&words));
    let chosen = words.get(1).and_then(|word| command.find_subcommand(word));
    let name = chosen.map(|command| command.get_name().to_owned());
    let parsed = switches::join(&command, words).and_then(|words| match command.try_get_matches_from(words) {
        Ok(matches) => Ok(Some(matches)),
        Err(error) => explain(&error).map(|()| None),
    });
    parsed.map_err(|failure| failure.of_command(name.as_deref()))
}

/// Help and version go to standard output; anything else is a wrong command line, told in one line.
fn explain(error: &clap::Error) -> Result<(), Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => out::write(&error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(Failure::usage(
            "a command is needed (demo, generate, chat, score, embed, detect, inspect, import, cache or completions)",
        )),
        _ => Err(Failure::Usage(wrong::message(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_says_what_it_does() {
        let command = super::command(Page::Long);
        let told: Vec<String> =
            command.get_subcommands().map(|sub| sub.get_about().unwrap_or_default().to_string()).collect();
        assert_eq!(told.len(), 10);
        for (about, begins) in
            told.iter().zip(["Fetch", "Continue", "Talk", "Score", "Make", "Look", "Show", "Turn", "Show", "Print"])
        {
            assert!(about.starts_with(begins), "{about}");
        }
    }

    #[test]
    fn is_well_formed() {
        for page in [Page::Short, Page::Long] {
            command(page).debug_assert();
        }
    }

    #[test]
    fn streams_only_where_text_is_written() {
        let parse = |arguments: &[&str]| {
            command(Page::Long).try_get_matches_from(["unspool", "generate", "m", "p"].iter().chain(arguments))
        };
        assert!(parse(&["--stream", "word", "--show-prompt"]).is_ok());
        for wrong in [&["--stream", "line"][..], &["--stream", "word", "--json"], &["--show-prompt", "--out", "f"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_one_line_that_names_the_commands_help() {
        for (line, expected) in [
            (
                "generate m --maxnewtokens 3",
                "there is no option --maxnewtokens; did you mean --max-new-tokens?; see `unspool generate --help`",
            ),
            ("generate", "<MODEL> is missing; see `unspool generate --help`"),
            ("generat m", "there is no command generat; did you mean generate?; see `unspool --help`"),
            ("help nosuch", "there is no command nosuch; see `unspool --help`"),
            (
                "chat m --threads 0",
                "invalid value '0' for '--threads <N>': 0 is not in 1..=65535; see `unspool chat --help`",
            ),
            (
                "chat m --seed -1",
                "invalid value '-1' for '--seed <N>': expected an integer, 0 or more; see `unspool chat --help`",
            ),
            ("--quiet", "a command is needed; see `unspool --help`"),
            (
                "completions tcsh",
                "invalid value 'tcsh' for '<SHELL>' [possible values: bash, zsh, fish]; a similar value exists: 'zsh'; see `unspool completions --help`",
            ),
        ] {
            let words = std::iter::once("unspool").chain(line.split(' ')).map(OsString::from);
            let Err(Failure::Usage(message)) = parse(words) else { panic!("{line}") };
            assert_eq!(message, expected);
        }
    }
}
