//! Values written as Python writes them: `str()`, `repr()` and `json.dumps()`.

use std::fmt::Write;

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::values::{Range, View};

/// A value nested deeper than this is not written.
const MAX_DEPTH: usize = 100;

/// Python's `str(value)`; undefined is empty.
pub(super) fn str(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if value.is_undefined() => Ok(String::new()),
        None => repr_of(value),
    }
}

/// Python's `repr(value)`.
pub(super) fn repr_of(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    repr(value, 0, &mut out)?;
    Ok(out)
}

fn repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    check_depth(depth)?;
    if let Some(range) = value.downcast_object_ref::<Range>() {
        out.push_str(&range.text());
        return Ok(());
    }
    match value.kind() {
        ValueKind::String => repr_string(value.as_str().unwrap_or_default(), out),
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.checked().enumerate() {
                let key = key?;
                out.push_str(if index > 0 { ", " } else { "" });
                repr(&key, depth + 1, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let tuple = value.downcast_object_ref::<Tuple>().is_some();
            let view = value.downcast_object_ref::<View>();
            if let Some(view) = view {
                let _ = write!(out, "{}(", view.name);
            }
            out.push(if tuple { '(' } else { '[' });
            let mut count = 0;
            for item in value.try_iter()?.checked() {
                out.push_str(if count > 0 { ", " } else { "" });
                repr(&item?, depth + 1, out)?;
                count += 1;
            }
            out.push_str(match (tuple, count) {
                (true, 1) => ",)",
                (true, _) => ")",
                (false, _) => "]",
            });
            out.push_str(if view.is_some() { ")" } else { "" });
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

pub(super) fn repr_string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        let _ = match character {
            '\\' => write!(out, "\\\\"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            c if c == quote => write!(out, "\\{c}"),
            c if (c as u32) < 0x100 && (c.is_control() || c == '\u{ad}' || c == '\u{a0}') => {
                write!(out, "\\x{:02x}", c as u32)
            }
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{feff}') => {
                write!(out, "\\u{:04x}", c as u32)
            }
            c => write!(out, "{c}"),
        };
    }
    out.push(quote);
}

/// An integer, or a float as Python's `repr` (the shortest digits, an exponent outside 1e-4 to 1e16).
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(float) = f64::try_from(value.clone()) else { return value.to_string() };
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0);
    if float == 0.0 || (-4..16).contains(&exponent) {
        let fixed = float.to_string();
        if fixed.contains('.') { fixed } else { fixed + ".0" }
    } else {
        format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
    }
}

/// The arguments of Python's `json.dumps`.
#[derive(Default)]
pub(super) struct JsonStyle {
    pub(super) ensure_ascii: bool,
    /// What one level is indented by; none means everything on one line.
    pub(super) indent: Option<String>,
    /// Between items, and between key and value.
    pub(super) separators: Option<(String, String)>,
    pub(super) sort_keys: bool,
}

/// Python's `json.dumps(value, ...)`.
pub(super) fn json(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(value, style, 0, &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(match number(value).as_str() {
            "nan" => "NaN",
            "inf" => "Infinity",
            "-inf" => "-Infinity",
            number => number,
        }),
        ValueKind::String => json_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Map => {
            let mut keys = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
            if style.sort_keys {
                keys.sort();
            }
            write_items(style, depth, ('{', '}'), keys, out, |key, out| {
                match key.kind() {
                    ValueKind::String => json_string(key.as_str().unwrap_or_default(), style, out),
                    ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                        let mut text = String::new();
                        write_json(key, style, depth + 1, &mut text)?;
                        json_string(&text, style, out);
                    }
                    kind => return Err(invalid(format!("a JSON key must be a string, not {kind}"))),
                }
                out.push_str(style.separators.as_ref().map_or(": ", |(_, key)| key));
                write_json(&value.get_item(key)?, style, depth + 1, out)
            })?;
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
            write_items(style, depth, ('[', ']'), items, out, |item, out| write_json(item, style, depth + 1, out))?;
        }
        kind => return Err(invalid(format!("a value that is {kind} cannot be written as JSON"))),
    }
    Ok(())
}

fn write_items(
    style: &JsonStyle,
    depth: usize,
    (open, close): (char, char),
    items: Vec<Value>,
    out: &mut String,
    mut write_item: impl FnMut(&Value, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(open);
    let new_line = |out: &mut String, depth: usize| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), depth));
        }
    };
    let between = match &style.separators {
        Some((between, _)) => between,
        None if style.indent.is_some() => ",",
        None => ", ",
    };
    let empty = items.is_empty();
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index > 0 { between } else { "" });
        new_line(out, depth + 1);
        write_item(item, out)?;
    }
    if !empty {
        new_line(out, depth);
    }
    out.push(close);
    Ok(())
}

fn json_string(text: &str, style: &JsonStyle, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (style.ensure_ascii && !(' '..='~').contains(&c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(invalid(format!("a value nested more than {MAX_DEPTH} levels deep cannot be written")));
    }
    Ok(())
}

/// An error of the template's own making.
pub(super) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_does() {
        let cases = [
            (1.0, "1.0"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (-0.0, "-0.0"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (9007199254740993.0, "9007199254740992.0"),
            (0.1, "0.1"),
        ];
        for (float, expected) in cases {
            assert_eq!(str(&Value::from(float)).unwrap(), expected);
        }
        assert_eq!(str(&Value::from(u64::MAX)).unwrap(), "18446744073709551615");
    }

    #[test]
    fn containers_are_written_as_python_does() {
        let list = Value::from(vec![Value::from("a'b"), Value::from("c\n\"'"), Value::from(()), Value::from(true)]);
        assert_eq!(str(&list).unwrap(), r#"["a'b", 'c\n"\'', None, True]"#);
        let map = Value::from_pairs([("z", Value::from(1)), ("a", list)]);
        assert_eq!(str(&map).unwrap(), r#"{'z': 1, 'a': ["a'b", 'c\n"\'', None, True]}"#);
    }

    #[test]
    fn json_has_pythons_separators_and_escapes() {
        let value = Value::from_pairs([
            ("b", Value::from(vec![Value::from("<é😀>\u{7f}\u{1}\""), Value::from(1.0)])),
            ("a", Value::from(Vec::<Value>::new())),
        ]);
        let write = |style: JsonStyle| json(&value, &style).unwrap();
        assert_eq!(write(JsonStyle::default()), "{\"b\": [\"<é😀>\u{7f}\\u0001\\\"\", 1.0], \"a\": []}");
        let ascii = JsonStyle { ensure_ascii: true, sort_keys: true, ..JsonStyle::default() };
        assert_eq!(write(ascii), r#"{"a": [], "b": ["<\u00e9\ud83d\ude00>\u007f\u0001\"", 1.0]}"#);
        let indented = JsonStyle { indent: Some("  ".into()), ..JsonStyle::default() };
        assert_eq!(write(indented), "{\n  \"b\": [\n    \"<é😀>\u{7f}\\u0001\\\"\",\n    1.0\n  ],\n  \"a\": []\n}");
    }

    #[test]
    fn refuses_what_is_too_deep() {
        let deep = (0..200).fold(Value::from(1), |value, _| Value::from(vec![value]));
        assert!(json(&deep, &JsonStyle::default()).is_err());
        assert!(str(&deep).is_err());
    }
}
