//! Jinja's filters and tests that the engine has not, or has a little differently.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, State, Value, filters};

use super::format;
use super::python::{self, invalid};
use super::strings;
use super::values::{self, Generator, Range};

/// Adds them all.
pub(super) fn add(environment: &mut Environment<'_>) {
    add_iterators(environment);
    add_numbers(environment);
    add_texts(environment);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("attr", |value: &Value, name: &Value| {
        // The items of a mapping are no attributes.
        if value.kind() == ValueKind::Map && !values::has_attributes(value) {
            return Ok(Value::UNDEFINED);
        }
        value.get_item(name)
    });
    environment.add_filter("dictsort", dict_sort);
    environment.add_filter("pprint", |value: &Value| python::repr_of(value));
    environment.add_test("callable", |value: &Value| values::is_callable(value));
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    // In Python strings and mappings have a length and items too, and undefined is empty.
    environment.add_test("sequence", |value: &Value| {
        !values::has_attributes(value)
            && matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Undefined)
    });
    environment.add_test("mapping", |value: &Value| value.kind() == ValueKind::Map && !values::has_attributes(value));
    environment.add_function("range", |first: i64, second: Option<i64>, step: Option<i64>| {
        Range::of(first, second, step).map_err(invalid)
    });
    environment.add_function("namespace", namespace);
    environment.add_global("dict", Value::from_object(super::dict::Dict));
    environment.add_filter(format::REMAINDER, format::remainder);
    environment.add_filter(format::SUM, strings::sum);
    environment.add_filter(ITERATED, |value: Value| match value.is_none() {
        true => Err(invalid("None is not iterable")),
        false => Ok(value),
    });
}

/// The name of the filter around what a loop goes over: None is an error there.
pub(super) const ITERATED: &str = "__iterated__";

type Arguments = Rest<ValueOrKwargs>;

/// Filters that give generators.
fn add_iterators(environment: &mut Environment<'_>) {
    environment.add_filter("map", |state: &mut State, value: Value, arguments: Arguments| {
        filters::map(state, value, arguments).map(Generator::of)
    });
    type Test = Option<std::borrow::Cow<'static, str>>;
    fn owned(test: Option<String>) -> Test {
        test.map(std::borrow::Cow::Owned)
    }
    environment.add_filter("select", |state: &mut State, value: Value, test: Option<String>, arguments: Arguments| {
        filters::select(state, value, owned(test), arguments).map(Generator::of)
    });
    environment.add_filter("reject", |state: &mut State, value: Value, test: Option<String>, arguments: Arguments| {
        filters::reject(state, value, owned(test), arguments).map(Generator::of)
    });
    environment.add_filter(
        "selectattr",
        |state: &mut State, value: Value, name: String, test: Option<String>, arguments: Arguments| {
            filters::selectattr(state, value, name.into(), owned(test), arguments).map(Generator::of)
        },
    );
    environment.add_filter(
        "rejectattr",
        |state: &mut State, value: Value, name: String, test: Option<String>, arguments: Arguments| {
            filters::rejectattr(state, value, name.into(), owned(test), arguments).map(Generator::of)
        },
    );
    environment.add_filter("unique", |state: &State, value: Value, arguments: Kwargs| {
        values::items(&filters::unique(state, value, arguments)?).map(Generator::of)
    });
    environment.add_filter("batch", |state: &State, value: Value, count: usize, fill: Option<Value>| {
        values::items(&filters::batch(state, value, count, fill)?).map(Generator::of)
    });
    environment.add_filter("slice", |state: &State, value: Value, count: usize, fill: Option<Value>| {
        values::items(&filters::slice(state, value, count, fill)?).map(Generator::of)
    });
}

fn add_numbers(environment: &mut Environment<'_>) {
    environment.add_filter("int", |value: &Value, default: Option<Value>, base: Option<u32>, arguments: Kwargs| {
        let default = named(default, &arguments, "default")?.unwrap_or_else(|| Value::from(0));
        let base = named(base, &arguments, "base")?.unwrap_or(10);
        arguments.assert_all_used()?;
        match value.kind() {
            ValueKind::Undefined => Err(invalid("int() of an undefined value")),
            ValueKind::String => Ok(integer(value.as_str().unwrap_or_default(), base).unwrap_or(default)),
            ValueKind::Bool => Ok(Value::from(i64::from(value.is_true()))),
            ValueKind::Number if value.is_integer() => Ok(value.clone()),
            ValueKind::Number => Ok(f64::try_from(value.clone()).ok().and_then(truncated).unwrap_or(default)),
            _ => Ok(default),
        }
    });
    environment.add_filter("float", |value: &Value, default: Option<Value>, arguments: Kwargs| {
        let default = named(default, &arguments, "default")?.unwrap_or_else(|| Value::from(0.0));
        arguments.assert_all_used()?;
        match value.kind() {
            ValueKind::Undefined => Err(invalid("float() of an undefined value")),
            ValueKind::String => Ok(float(value.as_str().unwrap_or_default()).map_or(default, Value::from)),
            ValueKind::Bool => Ok(Value::from(if value.is_true() { 1.0 } else { 0.0 })),
            ValueKind::Number => Ok(f64::try_from(value.clone()).map_or(default, Value::from)),
            _ => Ok(default),
        }
    });
}

/// An argument given by position, or by name.
fn named<'a, T: minijinja::value::ArgType<'a, Output = T>>(
    positional: Option<T>,
    arguments: &'a Kwargs,
    name: &'a str,
) -> Result<Option<T>, Error>
where
    Option<T>: minijinja::value::ArgType<'a, Output = Option<T>>,
{
    match positional {
        Some(value) => Ok(Some(value)),
        None => arguments.get::<Option<T>>(name),
    }
}

/// Python's `int(text, base)`, else `int(float(text))`.
fn integer(text: &str, base: u32) -> Option<Value> {
    let text = text.trim_matches(strings::is_space);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixes: [(u32, [&str; 2]); 3] = [(16, ["0x", "0X"]), (8, ["0o", "0O"]), (2, ["0b", "0B"])];
    let prefix = prefixes.iter().find(|(own, _)| *own == base);
    let digits = prefix
        .and_then(|(_, prefixes)| prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix)))
        .unwrap_or(digits);
    let whole = (2..=36).contains(&base) && underscored(digits);
    let parsed = whole.then(|| i128::from_str_radix(&digits.replace('_', ""), base).ok()).flatten();
    match parsed {
        Some(number) => Some(Value::from(if negative { -number } else { number })),
        None => float(text).and_then(truncated),
    }
}

/// Whether underscores stand between digits only, and the first character is no sign.
fn underscored(digits: &str) -> bool {
    digits.chars().next().is_some_and(char::is_alphanumeric) && !digits.ends_with('_') && !digits.contains("__")
}

/// Python's `float(text)`.
fn float(text: &str) -> Option<f64> {
    let text = text.trim_matches(strings::is_space);
    let unsigned = text.trim_start_matches(['+', '-']);
    let is_word = unsigned.starts_with(|c: char| c.is_alphabetic());
    if !is_word && unsigned.contains('_') && !unsigned.split('.').all(|part| part.is_empty() || underscored(part)) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// The whole part of a finite number.
fn truncated(number: f64) -> Option<Value> {
    let whole = number.trunc();
    // Above 2^127 Python's integers go on; no template counts so far.
    (whole.abs() < 1.7e38).then(|| Value::from(whole as i128))
}

fn add_texts(environment: &mut Environment<'_>) {
    environment.add_filter("wordcount", |value: &Value| {
        let text = python::str(value)?;
        Ok::<_, Error>(text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).count())
    });
    environment.add_filter("center", |value: &Value, width: Option<usize>| {
        strings::padded(&python::str(value)?, width.unwrap_or(80), " ", strings::Side::Both)
    });
    environment.add_filter("truncate", |value: &Value, given: Arguments| {
        type Given = (Option<usize>, Option<bool>, Option<String>, Option<usize>, Kwargs);
        let given = given.into_values();
        let (length, whole, end, leeway, arguments): Given = from_args(&given)?;
        let length = named(length, &arguments, "length")?.unwrap_or(255);
        let whole = named(whole, &arguments, "killwords")?.unwrap_or(false);
        let end = named(end, &arguments, "end")?.unwrap_or_else(|| "...".to_owned());
        let leeway = named(leeway, &arguments, "leeway")?.unwrap_or(5);
        arguments.assert_all_used()?;
        strings::truncate(&python::str(value)?, length, whole, &end, leeway)
    });
    environment.add_filter(
        "wordwrap",
        |value: &Value, width: Option<usize>, cut: Option<bool>, line_end: Option<String>, arguments: Kwargs| {
            let width = named(width, &arguments, "width")?.unwrap_or(79);
            let cut = named(cut, &arguments, "break_long_words")?.unwrap_or(true);
            let line_end = named(line_end, &arguments, "wrapstring")?.unwrap_or_else(|| "\n".to_owned());
            arguments.assert_all_used()?;
            strings::wrap(&python::str(value)?, width, cut, &line_end)
        },
    );
    environment.add_filter(
        "indent",
        |value: &Value, width: Option<Value>, first: Option<bool>, blank: Option<bool>, arguments: Kwargs| {
            let width = named(width, &arguments, "width")?;
            let first = named(first, &arguments, "first")?.unwrap_or(false);
            let blank = named(blank, &arguments, "blank")?.unwrap_or(false);
            arguments.assert_all_used()?;
            let indent = match width {
                None => "    ".to_owned(),
                Some(width) => match (width.as_str(), width.as_usize()) {
                    (Some(text), _) => text.to_owned(),
                    (_, Some(width)) if width <= strings::MAX_PADDING => " ".repeat(width),
                    _ => {
                        return Err(invalid(format!(
                            "the width of indent must be a small number or a text, not {width}"
                        )));
                    }
                },
            };
            Ok(strings::indent(&python::str(value)?, &indent, first, blank))
        },
    );
    for name in ["escape", "e", "forceescape"] {
        environment.add_filter(name, move |value: &Value| match value.is_safe() && name != "forceescape" {
            true => Ok(value.clone()),
            false => python::str(value).map(|text| Value::from_safe_string(strings::escape(&text))),
        });
    }
    environment.add_filter("xmlattr", |value: &Value, space: Option<bool>| {
        let mut text = String::new();
        for (key, value) in pairs(value)? {
            if !value.is_none() && !value.is_undefined() {
                let (key, value) = (python::str(&key)?, python::str(&value)?);
                if key.contains([' ', '/', '>', '=']) {
                    return Err(invalid(format!("{key:?} is no name of an attribute")));
                }
                let space = if text.is_empty() && space == Some(false) { "" } else { " " };
                text += &format!("{space}{}=\"{}\"", strings::escape(&key), strings::escape(&value));
            }
        }
        Ok(text)
    });
    environment.add_filter("urlencode", |value: &Value| match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => {
            let pair = |(key, value): (Value, Value)| {
                Ok::<_, Error>(format!("{}={}", quoted_plus(&python::str(&key)?), quoted_plus(&python::str(&value)?)))
            };
            Ok(pairs(value)?.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?.join("&"))
        }
        _ => python::str(value).map(|text| strings::quote(&text, "/")),
    });
}

fn quoted_plus(text: &str) -> String {
    strings::quote(text, " ").replace(' ', "+")
}

/// The pairs of a mapping, or of a list of pairs.
fn pairs(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    let is_map = value.kind() == ValueKind::Map;
    let pair = |item: Value| match is_map {
        true => value.get_item(&item).map(|value| (item, value)),
        false => super::dict::pair(&item),
    };
    values::items(value)?.into_iter().map(pair).collect()
}

/// `default(value, default_value="", boolean=False)`.
fn default(value: &Value, instead: Option<Value>, boolean: Option<Value>, arguments: Kwargs) -> Result<Value, Error> {
    let instead = named(instead, &arguments, "default_value")?.unwrap_or_else(|| Value::from(""));
    let boolean = named(boolean, &arguments, "boolean")?.is_some_and(|value| value.is_true());
    arguments.assert_all_used()?;
    Ok(if value.is_undefined() || (boolean && !value.is_true()) { instead } else { value.clone() })
}

/// `dictsort(value, case_sensitive=False, by="key", reverse=False)`.
fn dict_sort(
    value: &Value,
    case_sensitive: Option<bool>,
    by: Option<String>,
    reverse: Option<bool>,
    arguments: Kwargs,
) -> Result<Value, Error> {
    let case_sensitive = named(case_sensitive, &arguments, "case_sensitive")?.unwrap_or(false);
    let by = named(by, &arguments, "by")?.unwrap_or_else(|| "key".to_owned());
    let reverse = named(reverse, &arguments, "reverse")?.unwrap_or(false);
    arguments.assert_all_used()?;
    let pairs: [(&str, Value); 3] =
        [("case_sensitive", case_sensitive.into()), ("by", by.into()), ("reverse", reverse.into())];
    filters::dictsort(value, pairs.into_iter().collect())
}

/// `namespace(mapping, name=value, ...)`, without names that begin with an underscore.
fn namespace(mapping: Option<Value>, arguments: Kwargs) -> Result<Value, Error> {
    let own = arguments.args().map(|name| Ok((Value::from(name), arguments.get::<Value>(name)?)));
    let own = own.collect::<Result<Vec<_>, Error>>()?;
    let first = match mapping {
        Some(mapping) => super::dict::of(&mapping)?,
        None => Vec::new(),
    };
    let all: Vec<(Value, Value)> = first.into_iter().chain(own).collect();
    if let Some((name, _)) = all.iter().find(|(name, _)| name.as_str().is_some_and(|name| name.starts_with('_'))) {
        return Err(invalid(format!("a namespace cannot have the name {name}, which begins with an underscore")));
    }
    minijinja::functions::namespace(Some(ValueOrKwargs::from(Value::from_pairs(all))))
}
