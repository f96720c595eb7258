//! One flag per generation field, made from the table of the core: Python's name in kebab case.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value};
use unspool::config::{FIELDS, Field, Group, Kind, Status};
use unspool::{Error, GenerationConfig, file, json};

use crate::failure::Failure;

/// Adds `--config` and a flag for every field to `command`.
///
/// Fields that change nothing here, or are not built yet, are understood and left out of the help.
pub fn add(command: Command) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("JSON|@FILE")
        .help("Generation fields by their Python names, as JSON or in a file; flags win over it")
        .help_heading("Generation");
    FIELDS.iter().fold(command.arg(config), |command, field| command.arg(flag(field)))
}

fn flag(field: &'static Field) -> Arg {
    let arg = Arg::new(field.name)
        .long(field.name.replace('_', "-"))
        .value_name(placeholder(field.kind))
        .value_parser(ValueParser::string())
        .allow_negative_numbers(true)
        .help(field.help)
        .help_heading(heading(field.group))
        .hide(field.status != Status::Supported);
    match field.kind {
        Kind::Bool => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Kind::Texts => arg.action(ArgAction::Append),
        _ => arg,
    }
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Length => "Length and stopping",
        Group::Strategy | Group::Scores => "Generation",
        Group::Cache => "Cache",
        Group::Output => "Output",
        Group::SpecialTokens => "Special tokens",
        Group::Assisted => "Assisted generation",
    }
}

fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "BOOL",
        Kind::Int => "N",
        Kind::Float => "NUMBER",
        Kind::Text | Kind::Texts | Kind::BoolOrText | Kind::TextOrInts => "TEXT",
        Kind::IntOrInts => "ID",
        _ => "JSON",
    }
}

/// The fields that the call sets: those of `--config`, then those of the flags.
///
/// # Errors
///
/// When `--config` is not a JSON object, or a flag's value has the wrong type.
pub fn read(matches: &ArgMatches) -> Result<Map<String, Value>, Failure> {
    let mut fields = match matches.get_one::<String>("config") {
        Some(text) => config(text)?,
        None => Map::new(),
    };
    for field in FIELDS {
        let Some(texts) = matches.get_many::<String>(field.name) else { continue };
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        fields.insert(field.name.to_string(), value(field, &texts).map_err(Failure::Usage)?);
    }
    Ok(fields)
}

/// Refuses fields that ask for what only JSON can show; `instead` says what to do.
///
/// # Errors
///
/// [`Failure::Usage`] with the name of the flag.
pub fn refuse_outputs(config: &GenerationConfig, instead: &str) -> Result<(), Failure> {
    let outputs = ["output_scores", "output_logits", "output_hidden_states"];
    match outputs.iter().find(|name| config.bool(name) == Some(true)) {
        Some(name) => Err(Failure::usage(format!("--{} {instead}", name.replace('_', "-")))),
        None => Ok(()),
    }
}

/// Most bytes of the file of `--config`.
const MAX_CONFIG: u64 = 16 << 20;

fn config(text: &str) -> Result<Map<String, Value>, Failure> {
    let (text, place) = match text.strip_prefix('@') {
        Some(path) => match file::read_text(path.as_ref(), MAX_CONFIG)? {
            Some(text) => (text, path),
            None => return Err(Error::io("there is no such file of --config").at(path).into()),
        },
        None => (text.to_string(), "--config"),
    };
    let expected = "expected a JSON object of generation fields";
    match json::parse(&text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Error::invalid_input(expected).at(place).into()),
        Err(error) if text.trim().is_empty() => {
            Err(Error::invalid_input(format!("this is empty; {expected}")).at(place).because(error).into())
        }
        Err(error) => Err(Error::invalid_input(expected).at(place).because(error).into()),
    }
}

/// The JSON value that `texts`, one per time a flag was given, say for `field`.
///
/// # Errors
///
/// When they have another type; the message names the flag and the type.
pub fn value(field: &Field, texts: &[&str]) -> Result<Value, String> {
    if let (Kind::Texts, false) = (field.kind, texts.len() == 1 && texts.iter().all(|text| is_list(text))) {
        return Ok(texts.iter().map(|text| Value::from(*text)).collect());
    }
    let text = texts.last().copied().unwrap_or_default();
    let wrong = || format!("--{} {text}: expected {}", field.name.replace('_', "-"), field.kind.expected());
    if field.kind == Kind::Text {
        return Ok(Value::from(text));
    }
    let parsed = match (field.kind, text) {
        (Kind::Bool | Kind::BoolOrText, "True") => Some(Value::Bool(true)),
        (Kind::Bool | Kind::BoolOrText, "False") => Some(Value::Bool(false)),
        (_, "None") => Some(Value::Null),
        _ => json::parse(text).ok(),
    };
    match parsed.and_then(|value| field.kind.read(&value)) {
        Some(value) => Ok(value),
        _ if matches!(field.kind, Kind::BoolOrText | Kind::TextOrInts) => Ok(Value::from(text)),
        _ => Err(wrong()),
    }
}

fn is_list(text: &str) -> bool {
    text.trim_start().starts_with('[') && matches!(json::parse(text), Ok(Value::Array(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(line: &[&str]) -> Map<String, Value> {
        let command = add(Command::new("test").arg(Arg::new("rest").num_args(0..)));
        let words = std::iter::once("test").chain(line.iter().copied());
        read(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        add(Command::new("test")).debug_assert();
    }

    #[test]
    fn reads_flags_by_their_types() {
        let fields = parse(&[
            "--max-new-tokens",
            "5",
            "--do-sample",
            "--temperature",
            "0.7",
            "--stop-strings",
            "a",
            "--stop-strings",
            "b, c",
            "--eos-token-id",
            "[1,2]",
            "rest",
        ]);
        let expected = json!({
            "max_new_tokens": 5, "do_sample": true, "temperature": 0.7, "stop_strings": ["a", "b, c"],
            "eos_token_id": [1, 2]
        });
        assert_eq!(Value::Object(fields), expected);
    }

    #[test]
    fn a_switch_can_be_turned_off_and_does_not_eat_the_next_word() {
        assert_eq!(parse(&["--do-sample=false"])["do_sample"], json!(false));
        assert_eq!(parse(&["--do-sample", "word"])["do_sample"], json!(true));
    }

    #[test]
    fn flags_win_over_config() {
        let fields = parse(&["--config", r#"{"top_k": 3, "top_p": 0.5}"#, "--top-k", "4"]);
        assert_eq!(Value::Object(fields), json!({"top_k": 4, "top_p": 0.5}));
    }

    #[test]
    fn a_wrong_type_names_the_flag() {
        let field = Field::named("max_new_tokens").unwrap();
        assert_eq!(value(field, &["many"]).unwrap_err(), "--max-new-tokens many: expected an integer");
        assert_eq!(value(field, &["None"]).unwrap(), Value::Null);
    }

    #[test]
    fn json_is_read_as_python_reads_it() {
        assert_eq!(parse(&["--config", "\u{feff}{\"top_k\": 3, \"top_k\": 4}"])["top_k"], json!(4));
        assert_eq!(parse(&["--stop-strings", r#"["\ud83d"]"#])["stop_strings"], json!(["\u{fffd}"]));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}{\"temperature\": 0.5, \"x\": NaN}").unwrap();
        assert_eq!(parse(&["--config", &format!("@{}", file.path().display())])["temperature"], json!(0.5));
    }

    #[test]
    fn config_must_be_an_object() {
        for bad in ["[1]", "{", "", "@/does/not/exist", "@/dev/zero", "@."] {
            assert!(config(bad).is_err(), "{bad}");
        }
        assert!(config(&"{\"a\":".repeat(1_000_000)).is_err());
    }
}
