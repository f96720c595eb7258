//! Python's methods of strings, lists and dictionaries that `minijinja-contrib` has not, or has a little differently.

use std::sync::LazyLock;

use minijinja::value::{Kwargs, Tuple, ValueKind, from_args};
use minijinja::{Error, State, Value};
use regex::Regex;

use super::format;
use super::python::invalid;
use super::strings::{self, Side, is_space, padded, split_lines};
use super::values::{View, items};

/// Called for every method the engine does not know: Python's string methods first, then those of
/// `minijinja-contrib` (lists, maps and the rest of strings).
pub(super) fn unknown_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match (value.as_str(), value.kind()) {
        (Some(text), _) => string_method(text, method, args)?,
        (None, ValueKind::Map) => map_method(value, method, args)?,
        (None, ValueKind::Seq) => list_method(value, method, args)?,
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    }
}

/// A decimal digit of any script.
static DECIMAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\p{Nd}$").expect("the pattern is fixed and right"));

fn map_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let name = match method {
        "keys" => "dict_keys",
        "values" => "dict_values",
        "items" => "dict_items",
        "copy" => {
            let () = from_args(args)?;
            return Ok(Some(value.clone()));
        }
        _ => return Ok(None),
    };
    let () = from_args(args)?;
    let item = |key: Value| {
        Ok(match method {
            "keys" => key,
            "values" => value.get_item(&key)?,
            _ => Value::from(Tuple::from([key.clone(), value.get_item(&key)?])),
        })
    };
    Ok(Some(View::of(name, items(value)?.into_iter().map(item).collect::<Result<_, Error>>()?)))
}

fn list_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "copy" => {
            let () = from_args(args)?;
            Ok(Some(value.clone()))
        }
        "index" => {
            let (wanted,): (Value,) = from_args(args)?;
            match items(value)?.iter().position(|item| *item == wanted) {
                Some(at) => Ok(Some(Value::from(at))),
                None => Err(invalid("the list does not have this item")),
            }
        }
        _ => Ok(None),
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let pair =
        |(before, found, after): (&str, &str, &str)| Value::from(Tuple::from([before, found, after].map(Value::from)));
    Ok(Some(match method {
        "format" => {
            // The engine makes a field as wide as it is asked to.
            format::check_fields(text, args)?;
            return Ok(None);
        }
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
            let separator = match separator {
                Some(separator) => Some(separator),
                None => kwargs.get::<Option<&str>>("sep")?,
            };
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
        "index" | "rindex" | "find" | "rfind" => {
            let (wanted, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
            let found = strings::part(text, start, end).and_then(|(offset, part)| {
                let at = if method.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
                at.and_then(|at| part.get(..at)).map(|before| offset + before.chars().count())
            });
            match found {
                Some(at) => Value::from(at),
                None if method.ends_with("find") => Value::from(-1),
                None => return Err(invalid("substring not found")),
            }
        }
        "count" => {
            let (wanted, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
            Value::from(match strings::part(text, start, end) {
                Some((_, part)) if wanted.is_empty() => part.chars().count() + 1,
                Some((_, part)) => part.matches(wanted).count(),
                None => 0,
            })
        }
        "startswith" | "endswith" => {
            let (wanted, start, end): (Value, Option<i64>, Option<i64>) = from_args(args)?;
            let wanted = match (wanted.as_str(), wanted.downcast_object_ref::<Tuple>()) {
                (Some(_), _) => vec![wanted],
                (None, Some(_)) => items(&wanted)?,
                (None, None) => return Err(invalid(format!("{method}() takes a text or a tuple of texts"))),
            };
            let part = strings::part(text, start, end).map(|(_, part)| part);
            let holds = |wanted: &Value| match (part, wanted.as_str(), method) {
                (Some(part), Some(wanted), "startswith") => part.starts_with(wanted),
                (Some(part), Some(wanted), _) => part.ends_with(wanted),
                _ => false,
            };
            Value::from(wanted.iter().any(holds))
        }
        "center" | "ljust" | "rjust" => {
            let (width, fill): (usize, Option<&str>) = from_args(args)?;
            let side = match method {
                "center" => Side::Both,
                "ljust" => Side::Right,
                _ => Side::Left,
            };
            Value::from(padded(text, width, fill.unwrap_or(" "), side)?)
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = if text.starts_with(['+', '-']) { text.split_at(1) } else { ("", text) };
            Value::from(format!("{sign}{}", padded(digits, width.saturating_sub(sign.len()), "0", Side::Left)?))
        }
        "expandtabs" => {
            let (size,): (Option<usize>,) = from_args(args)?;
            let size = size.unwrap_or(8);
            let (mut out, mut column) = (String::new(), 0);
            for c in text.chars() {
                match c {
                    '\t' => {
                        let spaces = if size == 0 { 0 } else { size - column % size };
                        out = padded(&out, out.chars().count() + spaces, " ", Side::Right)?;
                        column += spaces;
                    }
                    '\n' | '\r' => {
                        out.push(c);
                        column = 0;
                    }
                    c => {
                        out.push(c);
                        column += 1;
                    }
                }
            }
            Value::from(out)
        }
        "title" => {
            let () = from_args(args)?;
            Value::from(strings::title(text))
        }
        "istitle" => {
            let () = from_args(args)?;
            Value::from(strings::is_title(text))
        }
        "isprintable" => {
            let () = from_args(args)?;
            Value::from(strings::is_printable(text))
        }
        "isidentifier" => {
            let () = from_args(args)?;
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            Value::from(text.chars().all(is_name) && text.chars().next().is_some_and(|c| !c.is_numeric()))
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
            Value::from(!text.is_empty() && text.chars().all(|c| DECIMAL.is_match(c.encode_utf8(&mut [0; 4]))))
        }
        _ => return Ok(None),
    }))
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
