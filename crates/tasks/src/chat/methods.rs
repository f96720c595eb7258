//! Python's methods of strings that `minijinja-contrib` has not, or has a little differently.

use minijinja::value::{Kwargs, Tuple, from_args};
use minijinja::{Error, State, Value};

use super::python::invalid;

/// Called for every method the engine does not know: Python's string methods first, then those of
/// `minijinja-contrib` (lists, maps and the rest of strings).
pub(super) fn unknown_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match value.as_str() {
        Some(text) => string_method(text, method, args)?,
        None => None,
    };
    match own {
        Some(result) => Ok(result),
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let pair =
        |(before, found, after): (&str, &str, &str)| Value::from(Tuple::from([before, found, after].map(Value::from)));
    Ok(Some(match method {
        "strip" | "lstrip" | "rstrip" => {
            let (characters,): (Option<&str>,) = from_args(args)?;
            let strip = |c: char| characters.map_or_else(|| is_space(c), |characters| characters.contains(c));
            Value::from(match method {
                "strip" => text.trim_matches(strip),
                "lstrip" => text.trim_start_matches(strip),
                _ => text.trim_end_matches(strip),
            })
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            if separator.is_empty() {
                return Err(invalid("the separator of partition() must not be empty"));
            }
            match method {
                "partition" => text
                    .split_once(separator)
                    .map_or_else(|| pair((text, "", "")), |(before, after)| pair((before, separator, after))),
                _ => text
                    .rsplit_once(separator)
                    .map_or_else(|| pair(("", "", text)), |(before, after)| pair((before, separator, after))),
            }
        }
        "split" | "rsplit" => {
            let (separator, limit, kwargs): (Option<&str>, Option<i64>, Kwargs) = from_args(args)?;
            let limit = match limit {
                Some(limit) => limit,
                None => kwargs.get::<Option<i64>>("maxsplit")?.unwrap_or(-1),
            };
            kwargs.assert_all_used()?;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            split(text, separator, limit, method == "rsplit")?.into_iter().map(Value::from).collect()
        }
        "splitlines" => {
            let (keep,): (Option<bool>,) = from_args(args)?;
            split_lines(text, keep.unwrap_or(false)).into_iter().map(Value::from).collect()
        }
        "index" | "rindex" => {
            let (part,): (&str,) = from_args(args)?;
            let found = if method == "index" { text.find(part) } else { text.rfind(part) };
            match found.and_then(|at| text.get(..at)) {
                Some(before) => Value::from(before.chars().count()),
                None => return Err(invalid("substring not found")),
            }
        }
        "swapcase" => {
            let () = from_args(args)?;
            let swap =
                |c: char| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() };
            Value::from(text.chars().map(swap).collect::<String>())
        }
        "casefold" => {
            let () = from_args(args)?;
            Value::from(text.to_lowercase().replace('ß', "ss"))
        }
        "isdecimal" => {
            let () = from_args(args)?;
            Value::from(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()))
        }
        _ => return Ok(None),
    }))
}

/// What Python's `str.isspace` says: Rust's white space and the four separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// `str.split` and `str.rsplit` with at most `limit` cuts; without a separator, runs of white space part the words.
fn split<'t>(text: &'t str, separator: Option<&str>, limit: usize, from_right: bool) -> Result<Vec<&'t str>, Error> {
    let mut parts = Vec::new();
    match separator {
        Some("") => return Err(invalid("empty separator")),
        Some(separator) if from_right => {
            parts.extend(text.rsplitn(limit.saturating_add(1), separator));
            parts.reverse();
        }
        Some(separator) => parts.extend(text.splitn(limit.saturating_add(1), separator)),
        None if from_right => {
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() {
                let cut =
                    if parts.len() < limit { rest.char_indices().rev().find(|&(_, c)| is_space(c)) } else { None };
                let Some((at, space)) = cut else { break };
                let (before, word) = rest.split_at(at);
                parts.push(&word[space.len_utf8()..]);
                rest = before.trim_end_matches(is_space);
            }
            parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
            parts.reverse();
        }
        None => {
            let mut rest = text.trim_start_matches(is_space);
            while let Some(at) = rest.find(is_space).filter(|_| parts.len() < limit) {
                let (word, after) = rest.split_at(at);
                parts.push(word);
                rest = after.trim_start_matches(is_space);
            }
            parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
        }
    }
    Ok(parts)
}

/// `str.splitlines`: every end of line that Python knows.
fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let is_end = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((at, end)) = rest.char_indices().find(|&(_, c)| is_end(c)) {
        let length = if rest[at..].starts_with("\r\n") { 2 } else { end.len_utf8() };
        let (line, after) = rest.split_at(at + length);
        lines.push(if keep_ends { line } else { &line[..at] });
        rest = after;
    }
    lines.extend(Some(rest).filter(|rest| !rest.is_empty()));
    lines
}

/// The filter `trim`: `str.strip` with or without characters.
pub(super) fn trim(text: &str, characters: Option<&str>) -> String {
    text.trim_matches(|c| characters.map_or_else(|| is_space(c), |characters| characters.contains(c))).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_python_does() {
        let split = |text, separator, limit, right| split(text, separator, limit, right).unwrap();
        assert_eq!(split(" a  b c ", None, usize::MAX, false), ["a", "b", "c"]);
        assert_eq!(split(" a  b c ", None, 1, false), ["a", "b c "]);
        assert_eq!(split(" a  b c ", None, 1, true), [" a  b", "c"]);
        assert_eq!(split("a,b,,c", Some(","), 2, false), ["a", "b", ",c"]);
        assert_eq!(split("a,b,,c", Some(","), 2, true), ["a,b", "", "c"]);
        assert_eq!(split("", Some(","), 5, false), [""]);
        assert!(split("", None, 5, false).is_empty());
        assert!(super::split("a", Some(""), 5, false).is_err());
        assert_eq!(split_lines("a\r\nb\n\nc", false), ["a", "b", "", "c"]);
        assert_eq!(split_lines("a\r\nb\n", true), ["a\r\n", "b\n"]);
    }
}
