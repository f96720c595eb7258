//! JSON as Python's `json` module reads it, which takes more than the standard says.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::file;

/// JSON nested deeper than this is refused: no file of a model comes near, and deep nesting exhausts a parser's stack.
const MAX_DEPTH: usize = 100;

/// Reads `text` as Python's `json.loads` does.
///
/// Beside the standard's JSON it takes a byte order mark; `NaN`, `Infinity` and `-Infinity`, which become the strings of
/// these names (no field takes them, and a field that nobody reads does no harm), as floats do that overflow; integers of
/// any size, as floats; and halves of surrogate pairs, which become U+FFFD.
///
/// # Errors
///
/// When the text is no JSON, or is nested more than a hundred levels deep.
///
/// ```
/// use unspool_core::json::parse;
///
/// let read = parse(r#"{"time_step_limit": [0.0, Infinity], "eos_token_id": 2, "eos_token_id": 3}"#)?;
/// assert_eq!(read["time_step_limit"][1], "Infinity");
/// assert_eq!(read["eos_token_id"], 3);
/// assert!(parse("{'a': 1}").is_err());
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "json.loads")]
pub fn parse(text: &str) -> Result<Value> {
    from_str(text)
}

/// As [`parse`], into any type.
///
/// # Errors
///
/// As [`parse`], and when the JSON has another form than `T`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(what) = file::mistaken(text.as_bytes()) {
        return Err(Error::invalid_model(what));
    }
    check_depth(text)?;
    let failed = |error| Error::invalid_model("not readable as JSON").because(error);
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => match standard(text) {
            Cow::Borrowed(_) => Err(failed(error)),
            // Lines stay what they are in the file; a column behind what was rewritten may be off by a few.
            Cow::Owned(text) => serde_json::from_str(&text).map_err(failed),
        },
    }
}

/// An integer, also one that is written as a float (`12.0`), as Python takes it.
///
/// ```
/// # use serde_json::json;
/// use unspool_core::json::int;
///
/// assert_eq!([int(&json!(12)), int(&json!(12.0)), int(&json!(12.5)), int(&json!("12"))], [Some(12), Some(12), None, None]);
/// ```
pub fn int(value: &Value) -> Option<i64> {
    // Floats above this are not all integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

/// `true` or `false`, also written as `1` or `0`, as Python takes it.
///
/// ```
/// # use serde_json::json;
/// use unspool_core::json::flag;
///
/// assert_eq!([flag(&json!(true)), flag(&json!(0)), flag(&json!(1.0)), flag(&json!(2))], [Some(true), Some(false), Some(true), None]);
/// ```
pub fn flag(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| match int(value) {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    })
}

/// Refuses nesting above [`MAX_DEPTH`].
fn check_depth(text: &str) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(Error::invalid_model(format!("the JSON is nested more than {MAX_DEPTH} levels deep")));
        }
    }
    Ok(())
}

/// `text` in the standard's JSON: what Python takes beyond it is rewritten.
fn standard(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    // How much of `text` is in `out` already.
    let mut copied = 0;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let (length, instead) = match byte {
            b'"' => {
                at += 1;
                while let Some(byte) = text.as_bytes().get(at) {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            let length = escape(&text[at..]);
                            if let Escape::Half = length {
                                out.push_str(&text[copied..at]);
                                out.push_str("\\ufffd");
                                copied = at + 6;
                            }
                            at += length.bytes();
                        }
                        // Python takes control characters in strings only when it is not strict; neither do we.
                        _ => at += 1,
                    }
                }
                (1, None)
            }
            b'N' if text[at..].starts_with("NaN") => (3, Some("\"NaN\"".to_owned())),
            b'I' if text[at..].starts_with("Infinity") => (8, Some("\"Infinity\"".to_owned())),
            b'-' if text[at..].starts_with("-Infinity") => (9, Some("\"-Infinity\"".to_owned())),
            b'-' | b'0'..=b'9' => number(&text[at..]),
            _ => (1, None),
        };
        if let Some(instead) = instead {
            out.push_str(&text[copied..at]);
            out.push_str(&instead);
            copied = at + length;
        }
        at += length;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// What begins with a backslash inside a string.
enum Escape {
    /// Of this many bytes, and readable.
    Whole(usize),
    /// `\uXXXX` with half of a surrogate pair, and without the other half.
    Half,
}

impl Escape {
    fn bytes(&self) -> usize {
        match self {
            Escape::Whole(bytes) => *bytes,
            Escape::Half => 6,
        }
    }
}

fn escape(text: &str) -> Escape {
    let unit = |from: usize| {
        let digits = text.get(from..from + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    match unit(0) {
        Some(0xd800..=0xdbff) => match unit(6) {
            Some(0xdc00..=0xdfff) => Escape::Whole(12),
            _ => Escape::Half,
        },
        Some(0xdc00..=0xdfff) => Escape::Half,
        // What follows the backslash may be a character of several bytes, which no JSON has; its bytes are skipped whole.
        _ => Escape::Whole(1 + text.chars().nth(1).map_or(0, char::len_utf8)),
    }
}

/// The bytes of the number at the start of `text`, and what Python reads in its place where it overflows.
fn number(text: &str) -> (usize, Option<String>) {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count();
    let overflows = text[..length].parse::<f64>().is_ok_and(f64::is_infinite);
    let instead = overflows.then(|| if text.starts_with('-') { "\"-Infinity\"" } else { "\"Infinity\"" }.to_owned());
    (length, instead)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn takes_what_python_takes() {
        let cases = [
            ("\u{feff}[1]", json!([1])),
            ("[NaN, Infinity, -Infinity, -1]", json!(["NaN", "Infinity", "-Infinity", -1])),
            (r#"{"a": "NaN, \"Infinity", "b": NaN}"#, json!({"a": "NaN, \"Infinity", "b": "NaN"})),
            (
                r#"["\ud83d\ude00", "\ud83d", "\ude00x", "\ud83d\ud83d\ude00"]"#,
                json!(["😀", "\u{fffd}", "\u{fffd}x", "\u{fffd}😀"]),
            ),
            ("[1e400, -1e400]", json!(["Infinity", "-Infinity"])),
            (r#"{"a": 1, "a": 2}"#, json!({"a": 2})),
            ("123456789012345678901234567890", json!(1.234_567_890_123_456_8e29)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_python_refuses() {
        let deep = "[".repeat(1_000_000);
        for text in [
            "",
            "{",
            "[1,]",
            "{'a': 1}",
            "nan",
            "[Inf]",
            "[+1]",
            "[01]",
            "\"\u{e9}\\\u{e9}\"",
            "\"a",
            "\"\\",
            "\\",
            deep.as_str(),
        ] {
            assert!(parse(text).is_err(), "{}", text.chars().take(20).collect::<String>());
        }
        assert!(parse(&deep).unwrap_err().to_string().contains("100 levels"));
        assert!(parse(r#"{"a": "[[[[\"[[["}"#).is_ok());
    }

    #[test]
    fn an_error_names_the_line_in_the_file() {
        let error = parse("[NaN,\n  x]").unwrap_err().to_string();
        assert!(error.contains("line 2 column 3"), "{error}");
    }
}
