//! The surroundings a chat template finds: Jinja with the settings, filters and functions of Python's
//! `apply_chat_template`.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, Value};

use super::clock::Clock;
use super::filters;
use super::methods;
use super::python::{self, JsonStyle, invalid};
use super::strings;

/// The environment in which every template of a model is rendered.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    minijinja_contrib::add_to_environment(&mut environment);
    // Only an unknown delimiter makes this fail, and none is set.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(methods::unknown_method);
    environment.set_formatter(|out, state, value| {
        let text = python::str(value)?;
        let escapes = *state.auto_escape() == AutoEscape::Html && !value.is_safe();
        out.write_str(&if escapes { strings::escape(&text) } else { text })
            .map_err(|error| invalid("the text cannot be written").with_source(error))
    });
    filters::add(&mut environment);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| python::str(value));
    environment.add_filter("trim", |value: &Value, characters: Option<&str>| {
        python::str(value).map(|text| strings::trim(&text, characters))
    });
    environment.add_function("raise_exception", |message: &Value| -> Result<Value, Error> {
        Err(invalid(format!("{RAISED}{}", python::str(message)?)))
    });
    environment
}

/// Marks the text of an error as the template's own words.
pub(super) const RAISED: &str = "the template says: ";

/// Adds `strftime_now`.
pub(super) fn add_clock(environment: &mut Environment<'_>, clock: Clock) {
    environment.add_function("strftime_now", move |format: &str| -> Result<String, Error> {
        clock.format(format).map_err(|error| invalid(format!("strftime_now({format:?}): {error}")))
    });
}

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
fn to_json(
    value: &Value,
    ensure_ascii: Option<Value>,
    indent: Option<Value>,
    separators: Option<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let argument = |positional: Option<Value>, name: &str| -> Result<Option<Value>, Error> {
        let given = match positional {
            Some(value) => Some(value),
            None => kwargs.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let mut style = JsonStyle {
        ensure_ascii: argument(ensure_ascii, "ensure_ascii")?.is_some_and(|value| value.is_true()),
        ..JsonStyle::default()
    };
    if let Some(indent) = argument(indent, "indent")? {
        style.indent = Some(match indent.as_str() {
            Some(text) if text.len() <= MAX_INDENT => text.to_owned(),
            Some(_) => return Err(invalid("the indent of tojson is too long")),
            None => match indent.as_i64() {
                Some(width) if width <= MAX_INDENT as i64 => " ".repeat(usize::try_from(width).unwrap_or(0)),
                _ => return Err(invalid(format!("the indent of tojson must be a small number, not {indent}"))),
            },
        });
    }
    if let Some(separators) = argument(separators, "separators")? {
        let pair =
            separators.try_iter()?.take(3).map(|part| part.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
        style.separators = match pair.as_deref() {
            Some([item, key]) => Some((item.clone(), key.clone())),
            _ => return Err(invalid("the separators of tojson must be two strings")),
        };
    }
    style.sort_keys = argument(None, "sort_keys")?.is_some_and(|value| value.is_true());
    kwargs.assert_all_used()?;
    python::json(value, &style).map(Value::from)
}

/// The widest indent of `tojson`.
const MAX_INDENT: usize = 64;
