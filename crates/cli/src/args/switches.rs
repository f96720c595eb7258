//! Switches: flags that are on or off. A bare `true` or `false` right after one is its value, any other word is not.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{ArgAction, Command};

use crate::failure::Failure;

/// The words of a command line for `command` to parse, with the value of each switch in the switch's own word.
///
/// `--do-sample false` becomes `--do-sample=false`. A switch that knows only how to be on (`--json`) stays without its
/// value when it is on, and is left out when it is off.
///
/// # Errors
///
/// [`Failure::Usage`] when a switch is given more than once.
pub fn join(command: &Command, words: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Failure> {
    let mut words = words.into_iter().peekable();
    let mut joined: Vec<OsString> = words.by_ref().take(2).collect();
    let chosen = joined.get(1).and_then(|word| command.find_subcommand(word));
    let Some(chosen) = chosen else {
        joined.extend(words);
        return Ok(joined);
    };
    let mut seen = BTreeSet::new();
    while let Some(word) = words.next() {
        if word == "--" {
            joined.push(word);
            break;
        }
        let Some((name, own)) = word.to_str().and_then(|word| word.strip_prefix("--")).map(split) else {
            joined.push(word);
            continue;
        };
        let Some(kind) = kind(chosen, name) else {
            joined.push(word);
            continue;
        };
        if !seen.insert(name.to_owned()) {
            return Err(Failure::usage(format!("--{name} is given more than once")));
        }
        let value = match own {
            Some(own) => own.parse::<Bool>().ok(),
            None => words.peek().and_then(|next| next.to_str()?.parse::<Bool>().ok()),
        };
        if own.is_none() && value.is_some() {
            words.next();
        }
        match (kind, value) {
            // What is no value of a switch is refused by the parser.
            (_, None) => joined.push(word),
            (Kind::Field, Some(Bool(on))) => joined.push(format!("--{name}={on}").into()),
            (Kind::On, Some(Bool(true))) => joined.push(format!("--{name}").into()),
            (Kind::On, Some(Bool(false))) => {}
        }
    }
    joined.extend(words);
    Ok(joined)
}

/// `true` or `false`, as JSON or as Python writes them.
struct Bool(bool);

impl std::str::FromStr for Bool {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "true" | "True" => Ok(Bool(true)),
            "false" | "False" => Ok(Bool(false)),
            _ => Err(()),
        }
    }
}

/// What a switch can be told.
enum Kind {
    /// A generation field: on or off, which differs from not given.
    Field,
    /// On.
    On,
}

fn kind(command: &Command, name: &str) -> Option<Kind> {
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    match arg.get_action() {
        ArgAction::SetTrue => Some(Kind::On),
        _ if arg.is_require_equals_set() => Some(Kind::Field),
        _ => None,
    }
}

fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use unspool::config::{FIELDS, Kind as FieldKind};

    use super::*;
    use crate::args::command::{command, parse};
    use crate::args::fields;
    use crate::args::help::Page;

    fn matches(name: &str, words: &[&str]) -> Result<clap::ArgMatches, Failure> {
        let parsed =
            parse(["unspool", name, "m"].iter().chain(words).map(OsString::from))?.expect("no help was asked for");
        Ok(parsed.subcommand_matches(name).unwrap().clone())
    }

    fn prompts(matches: &clap::ArgMatches) -> Vec<&String> {
        matches.get_many::<String>("text").into_iter().flatten().collect()
    }

    #[test]
    fn every_boolean_field_takes_true_and_false_and_no_other_word() {
        let mut walked = 0;
        for field in FIELDS.iter().filter(|field| field.kind == FieldKind::Bool) {
            let flag = &*format!("--{}", field.name.replace('_', "-"));
            let cases: [(&[&str], bool, &[&str]); 8] = [
                (&[flag], true, &[]),
                (&[flag, "true"], true, &[]),
                (&[flag, "True", "word"], true, &["word"]),
                (&[flag, "false"], false, &[]),
                (&[&format!("{flag}=false"), "true"], false, &["true"]),
                (&[flag, "word"], true, &["word"]),
                (&["false", flag], true, &["false"]),
                (&[flag, "--", "false"], true, &["false"]),
            ];
            for (words, value, left) in cases {
                let matches = matches("generate", words).unwrap();
                assert_eq!(fields::read(&matches).unwrap()[field.name], json!(value), "{words:?}");
                assert_eq!(prompts(&matches), left, "{words:?}");
            }
            walked += 1;
        }
        assert!(walked > 10, "{walked}");
    }

    #[test]
    fn every_other_field_takes_one_word() {
        for field in FIELDS.iter().filter(|field| field.kind != FieldKind::Bool) {
            let flag = format!("--{}", field.name.replace('_', "-"));
            let matches = matches("generate", &[&flag, "2", "3"]).unwrap();
            assert_eq!(prompts(&matches), ["3"], "{flag}");
        }
    }

    #[test]
    fn every_switch_of_every_command_can_be_off() {
        let command = command(Page::Long);
        let mut walked = 0;
        // What these take is no model.
        for sub in command.get_subcommands().filter(|sub| !["cache", "completions"].contains(&sub.get_name())) {
            // What `import` writes to stands behind the checkpoint.
            let rest: &[&str] = if sub.get_name() == "import" { &["out"] } else { &[] };
            for arg in sub.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::SetTrue)) {
                let name = arg.get_long().unwrap();
                let switch = |words: &[&str]| {
                    let all = [rest, words].concat();
                    matches(sub.get_name(), &all).unwrap().get_flag(arg.get_id().as_str())
                };
                let flag = &*format!("--{name}");
                // What needs another flag beside it is not switched on alone.
                if name != "force" {
                    assert!(switch(&[flag]) && switch(&[flag, "true"]) && switch(&[&format!("{flag}=true")]), "{name}");
                }
                assert!(!switch(&[flag, "false"]) && !switch(&[&format!("{flag}=False")]) && !switch(&[]), "{name}");
                walked += 1;
            }
        }
        assert!(walked > 10, "{walked}");
    }

    #[test]
    fn a_switch_off_stands_beside_what_it_would_exclude_and_twice_is_too_often() {
        assert!(matches("generate", &["--ids", "[1]", "--chat", "false"]).is_ok());
        for wrong in [&["--json", "--json=false"][..], &["--do-sample", "false", "--do-sample"], &["--json=maybe"]] {
            assert!(matches!(matches("generate", wrong), Err(Failure::Usage(_))), "{wrong:?}");
        }
        let wrong = matches("generate", &["--do-sample=maybe"]).unwrap();
        assert!(fields::read(&wrong).is_err());
        assert_eq!(Value::Object(fields::read(&matches("generate", &[]).unwrap()).unwrap()), json!({}));
    }
}
