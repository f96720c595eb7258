//! `unspool demo`: a real model answers a question.

use clap::{ArgMatches, FromArgMatches};
use serde_json::Value;
use unspool::{Call, GenerationConfig, Message, OpenOptions, Prompt, cache_folder};

use super::{demo_model, notice};
use crate::args::fields;
use crate::args::model::{RunArgs, early_exits};
use crate::args::prompts::one_text;
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::out;
use crate::print::streamed::Ordered;
use crate::print::summary::Summary;

const QUESTION: &str = "What is the capital of France?";

/// Runs the command.
///
/// # Errors
///
/// When the model can be fetched from nowhere, or the engine fails.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let run = RunArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let words: Vec<String> = matches.get_many("question").into_iter().flatten().cloned().collect();
    let question = one_text(&words, "")?.map_or(QUESTION, String::as_str);
    let config = GenerationConfig::from_json(&Value::Object(fields::read(matches)?))?;
    fields::refuse_outputs(&config, "is not shown here; use `unspool generate --json`")?;
    let cache = cache_folder()?;
    let model = demo_model::fetch(&cache)?;
    let pipeline =
        notice::open(&model, &OpenOptions { cache: Some(cache), early_exits: early_exits(&config), ..run.options() })?;
    notice::say(&format!("> {question}"));
    let _listening = interrupt::listen(Mode::SecondEnds);
    let mut sink = Ordered::default();
    let prompt = Prompt::from(vec![Message::new("user", question)]);
    let mut summary = Summary::begin();
    let answers = pipeline.stream(prompt, &Call { config, ..Call::new() }, &mut sink);
    sink.result()?;
    let answers = answers?;
    notice::warn(&answers.warnings);
    if !notice::is_quiet() {
        out::line("")?;
        summary.add(&answers, sink.first_token());
        for line in summary.details(&pipeline) {
            out::line(&line)?;
        }
    }
    if interrupt::pressed() { Err(Failure::Interrupted) } else { Ok(()) }
}
