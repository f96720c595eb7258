//! `unspool chat`: a conversation.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use clap::{ArgMatches, FromArgMatches};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::Value;
use unspool::config::Field;
use unspool::{Call, Conversation, Error, FinishReason, Flow, GenerationConfig, Pipeline, TextSink, cache_folder};

use super::notice;
use super::spoken::{HELP, Spoken, read};
use crate::args::model::ModelArgs;
use crate::args::{assistant, fields};
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::table::two_columns;
use crate::print::{file, out};

/// Tokens of an answer when neither the user nor the model says how many.
const ANSWER: usize = 1024;

/// Runs the command.
///
/// # Errors
///
/// When the model cannot be opened, has no chat template, or standard output goes away. A turn that fails is told and
/// does not end the conversation.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let model = ModelArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let config = GenerationConfig::from_json(&Value::Object(fields::read(matches)?))?;
    let mut call = Call { config, seed: matches.get_one::<u64>("seed").copied(), ..Call::new() };
    call.always_draft = assistant::always(matches);
    let pipeline = assistant::join(notice::open(&model.path()?, &model.options_for(&call.config))?, matches, &model)?;
    pipeline.chat_template()?;
    let fields = pipeline.resolve(&call);
    let unbounded = |name: &str| fields.source(name).is_none_or(|source| source.as_str() == "default");
    if unbounded("max_new_tokens") && unbounded("max_length") {
        call.config.set("max_new_tokens", ANSWER.into())?;
    }
    let mut conversation = pipeline.conversation(call);
    let (_, warnings) = conversation.settings()?;
    let warned = notice::Warned::default();
    warned.warn(&warnings);
    conversation.set_system(matches.get_one::<String>("system").map(String::as_str));
    let mut lines = Lines::open();
    // The editor hears Ctrl-C by itself; one that comes late, after an answer, must not end the program.
    let _listening = lines.for_people().then(|| interrupt::listen(Mode::Noted));
    if lines.for_people() {
        notice::say("Talk with the model; /help lists commands, Ctrl-D leaves.");
    }
    while let Some(line) = lines.next()? {
        if !obey(read(&line), &pipeline, &mut conversation, &warned)? {
            break;
        }
    }
    lines.close();
    Ok(())
}

/// Does what a line asks for; whether the conversation goes on.
fn obey(
    spoken: Spoken<'_>,
    pipeline: &Pipeline,
    conversation: &mut Conversation<'_>,
    warned: &notice::Warned,
) -> Result<bool, Failure> {
    match spoken {
        Spoken::Nothing => {}
        Spoken::Say(text) => say(text, conversation, warned)?,
        Spoken::System(text) => conversation.set_system(Some(text).filter(|text| !text.is_empty())),
        Spoken::Reset => conversation.reset(),
        Spoken::List => {
            let rows: Vec<(String, String)> = pipeline
                .resolve(conversation.call())
                .iter()
                .map(|(field, value, source)| (field.name.to_string(), format!("{value}  ({})", source.as_str())))
                .collect();
            out::write(&two_columns(&rows))?;
        }
        Spoken::Tell(name) => match Field::named(name) {
            Some(field) => {
                let fields = pipeline.resolve(conversation.call());
                let value = fields.value(field.name).cloned().unwrap_or(Value::Null);
                out::line(&format!("{name} = {value}  ({})", field.help))?;
            }
            None => complain(&format!("{name} is not a generation setting; /set lists them")),
        },
        Spoken::Set(name, text) => match set(name, text, conversation) {
            Ok(warnings) => notice::warn(&warnings),
            Err(message) => complain(&message),
        },
        Spoken::Save(file) => match save(Path::new(file), conversation) {
            Ok(()) => notice::say(&format!("saved to {file}")),
            Err(error) => complain(&error.to_string()),
        },
        Spoken::Help => out::write(HELP)?,
        Spoken::Unknown(line) => complain(&format!("{line}: no such command, or it needs something more; see /help")),
        Spoken::Quit => return Ok(false),
    }
    Ok(true)
}

/// Says an error that does not end the conversation.
fn complain(message: &str) {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    notice::say(&format!("error: {message}"));
}

fn set(name: &str, text: &str, conversation: &mut Conversation<'_>) -> Result<Vec<String>, String> {
    let name = name.replace('-', "_");
    // An unknown name is told by the conversation, with the nearest one.
    let value = match Field::named(&name) {
        Some(field) => fields::value(field, &[text])?,
        None => Value::from(text),
    };
    conversation.set(&name, value).map_err(|error| error.to_string())
}

fn say(text: &str, conversation: &mut Conversation<'_>, warned: &notice::Warned) -> Result<(), Failure> {
    let _listening = interrupt::listen(Mode::Noted);
    let mut sink = Answering::default();
    let turn = conversation.say(text, &mut sink);
    if let Some(failure) = sink.failure {
        return Err(failure);
    }
    out::write("\n")?;
    if let Ok(turn) = &turn {
        warned.warn(&turn.warnings);
    }
    match turn {
        Ok(turn) if interrupt::pressed() || turn.finish == FinishReason::Cancelled => notice::say("(stopped)"),
        Ok(_) => {}
        Err(error) => complain(&error.to_string()),
    }
    Ok(())
}

/// The answer on standard output, until Ctrl-C.
#[derive(Default)]
struct Answering {
    failure: Option<Failure>,
}

impl TextSink for Answering {
    fn text(&mut self, _row: usize, piece: &str) -> Flow {
        if self.failure.is_none()
            && !piece.is_empty()
            && let Err(failure) = out::write(piece)
        {
            self.failure = Some(failure);
        }
        self.poll()
    }

    fn poll(&mut self) -> Flow {
        if self.failure.is_some() || interrupt::pressed() { Flow::Stop } else { Flow::Continue }
    }
}

/// Writes the messages as JSON.
fn save(target: &Path, conversation: &Conversation<'_>) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(conversation.messages())
        .map_err(|error| Error::io("the messages are not JSON").because(error))?;
    file::write(target, &(json + "\n"), false, "remove it first")
}

/// Where lines come from: an editor with history on a terminal, else standard input as it is.
enum Lines {
    Edited(Box<DefaultEditor>, Option<std::path::PathBuf>),
    Plain,
}

impl Lines {
    fn open() -> Self {
        if !std::io::stdin().is_terminal() {
            return Lines::Plain;
        }
        match DefaultEditor::new() {
            Ok(mut editor) => {
                let history = cache_folder().ok().map(|folder| folder.join("history.txt"));
                if let Some(history) = &history {
                    // The first conversation has no history yet.
                    let _ = editor.load_history(history);
                }
                Lines::Edited(Box::new(editor), history)
            }
            Err(_) => Lines::Plain,
        }
    }

    fn for_people(&self) -> bool {
        matches!(self, Lines::Edited(..))
    }

    /// The next line; `None` at the end of the input. Ctrl-C clears the line.
    fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Lines::Edited(editor, _) => loop {
                match editor.readline("> ") {
                    Ok(line) => {
                        let _ = editor.add_history_entry(line.as_str());
                        return Ok(Some(line));
                    }
                    Err(ReadlineError::Interrupted) => continue,
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(Error::io("the terminal could not be read").because(error).into()),
                }
            },
            Lines::Plain => {
                let mut line = Vec::new();
                let count = std::io::stdin()
                    .lock()
                    .read_until(b'\n', &mut line)
                    .map_err(|error| Error::io("standard input could not be read").because(error))?;
                Ok((count > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
            }
        }
    }

    fn close(&mut self) {
        if let Lines::Edited(editor, Some(history)) = self {
            if let Some(folder) = history.parent() {
                let _ = std::fs::create_dir_all(folder);
            }
            // A history that cannot be written is lost and nothing more.
            let _ = editor.save_history(history);
        }
    }
}
