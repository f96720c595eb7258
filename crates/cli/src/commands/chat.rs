//! `unspool chat`: a conversation.

use std::path::Path;

use clap::{ArgMatches, FromArgMatches};
use serde_json::Value;
use unspool::config::Field;
use unspool::{
    Call, Context, Conversation, Error, ErrorKind, FinishReason, Flow, GenerationConfig, Pipeline, TextSink,
};

use super::notice;
use super::spoken::{HELP, Spoken, read};
use crate::args::model::ModelArgs;
use crate::args::template::TemplateArgs;
use crate::args::{assistant, fields};
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::progress::PromptBar;
use crate::print::table::two_columns;
use crate::print::{file, out};
use crate::typed::lines::Lines;

/// Tokens of an answer when neither the user nor the model says how many.
const ANSWER: usize = 1024;

/// Runs the command.
///
/// # Errors
///
/// When the model cannot be opened, has no chat template, or standard output goes away. A turn that fails prints its error
/// and does not end the conversation; without a person at the terminal, the program fails at the end.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let model = ModelArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let config = GenerationConfig::from_json(&Value::Object(fields::read(matches)?))?;
    fields::refuse_outputs(&config, "is not shown here; use `unspool generate --json`")?;
    let mut call = Call { config, seed: matches.get_one::<u64>("seed").copied(), ..Call::new() };
    call.always_draft = assistant::always(matches);
    let template = TemplateArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let options = template.read()?;
    let pipeline = assistant::join(notice::open(&model.path()?, &model.options_for(&call.config))?, matches, &model)?;
    if options.chat_template.is_none() {
        pipeline.chat_template()?;
    }
    let fields = pipeline.resolve(&call);
    let unbounded = |name: &str| fields.source(name).is_none_or(|source| source.as_str() == "default");
    if unbounded("max_new_tokens") && unbounded("max_length") {
        call.config.set("max_new_tokens", ANSWER.into())?;
    }
    let mut conversation = pipeline.conversation(call);
    conversation.set_options(options);
    let (_, warnings) = conversation.settings()?;
    let warned = notice::Warned::default();
    warned.warn(&warnings);
    conversation.set_system(matches.get_one::<String>("system").map(String::as_str));
    if matches.get_one::<String>("context").is_some_and(|context| context == "keep-first") {
        conversation.set_context(Context::KeepFirst);
    }
    let mut lines = Lines::open();
    let for_people = lines.for_people();
    // The editor hears Ctrl-C by itself; one that comes late, after an answer, must not end the program.
    let _listening = for_people.then(|| interrupt::listen(Mode::Noted));
    if for_people {
        notice::say("Talk with the model; /help lists commands, Ctrl-D leaves.");
    }
    let mut chat = Chat { pipeline: &pipeline, conversation, warned, for_people, failed: false };
    while let Some(line) = lines.next()? {
        if !chat.obey(read(&line))? {
            break;
        }
    }
    lines.close();
    if chat.failed && !for_people { Err(Failure::Reported) } else { Ok(()) }
}

/// A conversation on a terminal or a pipe.
struct Chat<'p> {
    pipeline: &'p Pipeline,
    conversation: Conversation,
    warned: notice::Warned,
    for_people: bool,
    /// Whether a line failed.
    failed: bool,
}

impl Chat<'_> {
    /// Does what a line asks for; whether the conversation goes on.
    fn obey(&mut self, spoken: Spoken<'_>) -> Result<bool, Failure> {
        match spoken {
            Spoken::Nothing => {}
            Spoken::Say(text) => self.say(text)?,
            Spoken::ShowSystem => match self.conversation.system() {
                Some(text) => out::line(text)?,
                None => notice::say("There is no system message; /system TEXT sets one."),
            },
            Spoken::System(text) => self.conversation.set_system(text),
            Spoken::Reset => self.conversation.reset(),
            Spoken::List => {
                let rows: Vec<(String, String)> = self
                    .pipeline
                    .resolve(self.conversation.call())
                    .iter()
                    .map(|(field, value, source)| (field.name.to_string(), format!("{value}  ({})", source.as_str())))
                    .collect();
                out::write(&two_columns(&rows))?;
            }
            Spoken::Tell(name) => match Field::named(name) {
                Some(field) => {
                    let fields = self.pipeline.resolve(self.conversation.call());
                    let value = fields.value(field.name).cloned().unwrap_or(Value::Null);
                    out::line(&format!("{name} = {value}  ({})", field.help))?;
                }
                None => self.complain(&format!("{name} is not a generation setting; /set lists them")),
            },
            Spoken::Set(name, text) => match set(name, text, &mut self.conversation) {
                Ok(warnings) => notice::warn(&warnings),
                Err(message) => self.complain(&message),
            },
            Spoken::Save { file, replace } => match save(Path::new(file), replace, &self.conversation) {
                Ok(()) => notice::say(&format!("saved to {file}")),
                Err(error) => self.complain(&error.to_string()),
            },
            Spoken::Help => out::write(HELP)?,
            Spoken::Wrong(message) => self.complain(&message),
            Spoken::Quit => return Ok(false),
        }
        Ok(true)
    }

    /// Says an error that does not end the conversation.
    fn complain(&mut self, message: &str) {
        self.failed = true;
        notice::error(message);
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        let _listening = interrupt::listen(Mode::Noted);
        let mut sink = Answering::default();
        let turn = self.conversation.say(text, &mut sink);
        if let Some(failure) = sink.failure {
            return Err(failure);
        }
        if turn.is_ok() || sink.shown {
            out::write("\n")?;
        }
        match turn {
            Ok(turn) => {
                self.warned.warn(&turn.warnings);
                if turn.dropped > 0 {
                    let dropped = turn.dropped;
                    notice::say(&format!(
                        "(the context is full: the model no longer reads {dropped} of the oldest messages)"
                    ));
                }
                if interrupt::pressed() || turn.finish == FinishReason::Cancelled {
                    if !self.for_people {
                        return Err(Failure::Interrupted);
                    }
                    notice::say("(stopped)");
                } else if turn.context_full {
                    notice::say(
                        "(the answer was cut: the context is full; /reset starts a new conversation, --context keep-first drops the oldest turns)",
                    );
                }
            }
            Err(error) if error.kind() == ErrorKind::TooLong => {
                self.complain(&format!("{error} (/reset, or start with --context keep-first)"))
            }
            Err(error) => self.complain(&error.to_string()),
        }
        Ok(())
    }
}

fn set(name: &str, text: &str, conversation: &mut Conversation) -> Result<Vec<String>, String> {
    let name = name.replace('-', "_");
    // An unknown name is told by the conversation, with the nearest one.
    let value = match Field::named(&name) {
        Some(field) => fields::value(field, &[text])?,
        None => Value::from(text),
    };
    conversation.set(&name, value).map_err(|error| error.to_string())
}

/// The answer on standard output, until Ctrl-C.
#[derive(Default)]
struct Answering {
    reading: PromptBar,
    /// Whether some text was shown.
    shown: bool,
    failure: Option<Failure>,
}

impl TextSink for Answering {
    fn prefill(&mut self, done: usize, total: usize) {
        self.reading.at(done, total);
    }

    fn text(&mut self, _row: usize, piece: &str) -> Flow {
        self.shown |= !piece.is_empty();
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
fn save(target: &Path, replace: bool, conversation: &Conversation) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(conversation.messages())
        .map_err(|error| Error::io("the messages are not JSON").because(error))?;
    file::write(target, &(json + "\n"), replace, "use /save!")
}
