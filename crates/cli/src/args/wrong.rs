//! A wrong command line, in one line.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is wrong, and what may have been meant.
pub fn message(error: &clap::Error) -> String {
    let one = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let meant = |kind| one(kind).map(|text| format!("; did you mean {text}?")).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let got = one(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("there is no command {got}{}", meant(ContextKind::SuggestedSubcommand))
        }
        ErrorKind::UnknownArgument => {
            let got = one(ContextKind::InvalidArg).unwrap_or_default();
            format!("there is no option {got}{}", meant(ContextKind::SuggestedArg))
        }
        ErrorKind::MissingRequiredArgument => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing)) => format!("{} is missing", missing.join(" ")),
            _ => text(error),
        },
        ErrorKind::MissingSubcommand => "a command is needed".to_owned(),
        _ => text(error),
    }
}

/// The words of Rust's number parser, and plainer ones.
const NUMBERS: [(&str, &str); 3] = [
    ("invalid digit found in string", "expected an integer, 0 or more"),
    ("cannot parse integer from empty string", "expected an integer, 0 or more"),
    ("number too large to fit in target type", "this number is too large"),
];

/// The parser's own words, without its page of usage.
fn text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ").replace(" tip: ", "; ");
    let text = NUMBERS.iter().fold(text, |text, (theirs, plain)| text.replace(theirs, plain));
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}
