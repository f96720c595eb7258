//! What Python's strings and Jinja's filters of texts do.

use std::fmt::Write;

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, Value};

use super::python::{self, invalid};
use super::values::items;

/// The widest padding.
pub(super) const MAX_PADDING: usize = 1 << 16;

/// What Python's `str.isspace` says: Rust's white space and the four separators of ASCII.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// `str.splitlines`: every end of line that Python knows.
pub(super) fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
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

/// Where padding goes.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
    Both,
}

/// `str.center`, `str.ljust` and `str.rjust`.
pub(super) fn padded(text: &str, width: usize, fill: &str, side: Side) -> Result<String, Error> {
    if fill.chars().count() != 1 {
        return Err(invalid("a text is filled up with exactly one character"));
    }
    if width > MAX_PADDING {
        return Err(invalid(format!("a width is at most {MAX_PADDING}, got {width}")));
    }
    let missing = width.saturating_sub(text.chars().count());
    let left = match side {
        Side::Left => missing,
        Side::Right => 0,
        // Python's rule for what cannot be halved.
        Side::Both => missing / 2 + (missing & width & 1),
    };
    Ok(format!("{}{text}{}", fill.repeat(left), fill.repeat(missing - left)))
}

/// The first `count` characters.
pub(super) fn head(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}

/// The part of `text` from character `start` to `end`, as Python's slices count them, and how many characters precede it;
/// `None` where Python finds nothing, not even an empty text.
pub(super) fn part(text: &str, start: Option<i64>, end: Option<i64>) -> Option<(usize, &str)> {
    let length = text.chars().count();
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => at,
        Err(_) => length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let (start, end) = (place(start.unwrap_or(0)), end.map_or(length, place).min(length));
    if start > end {
        return None;
    }
    let from = head(text, start).len();
    Some((start, &text[from..head(text, end).len()]))
}

/// Jinja's `truncate`.
pub(super) fn truncate(text: &str, length: usize, whole: bool, end: &str, leeway: usize) -> Result<String, Error> {
    let ending = end.chars().count();
    if length < ending {
        return Err(invalid(format!("truncate needs a length of at least {ending}, got {length}")));
    }
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text.to_owned());
    }
    let cut = head(text, length - ending);
    let cut = if whole { cut } else { cut.rsplit_once(' ').map_or(cut, |(words, _)| words) };
    Ok(format!("{cut}{end}"))
}

/// Jinja's `wordwrap`: every line is cut into lines of at most `width` characters at its spaces.
pub(super) fn wrap(text: &str, width: usize, cut_long: bool, line_end: &str) -> Result<String, Error> {
    if width == 0 {
        return Err(invalid("the width of wordwrap must be above zero"));
    }
    let mut lines = Vec::new();
    for line in split_lines(text, false) {
        wrap_line(line, width, cut_long, &mut lines);
    }
    Ok(lines.join(line_end))
}

fn wrap_line(line: &str, width: usize, cut_long: bool, lines: &mut Vec<String>) {
    let count = |text: &str| text.chars().count();
    let mut chunks: Vec<&str> = Vec::new();
    let mut from = 0;
    let mut before = None;
    for (at, c) in line.char_indices() {
        let is_new = before.is_some_and(|before| is_space(before) != is_space(c));
        if is_new {
            chunks.push(&line[from..at]);
            from = at;
        }
        before = Some(c);
    }
    chunks.push(&line[from..]);
    let mut chunks = chunks.into_iter().filter(|chunk| !chunk.is_empty()).rev().collect::<Vec<_>>();
    let first = lines.len();
    while !chunks.is_empty() {
        let mut own = String::new();
        if lines.len() > first && chunks.last().is_some_and(|chunk| chunk.chars().all(is_space)) {
            chunks.pop();
        }
        while let Some(chunk) = chunks.pop_if(|chunk| count(&own) + count(chunk) <= width) {
            own.push_str(chunk);
        }
        if let Some(long) = chunks.pop_if(|chunk| count(chunk) > width) {
            let space = width - count(&own);
            if cut_long && space > 0 {
                let cut = head(long, space);
                own.push_str(cut);
                chunks.push(&long[cut.len()..]);
            } else if own.is_empty() {
                own.push_str(long);
            } else {
                chunks.push(long);
            }
        }
        let own = own.trim_end_matches(is_space);
        if !own.is_empty() {
            lines.push(own.to_owned());
        }
    }
    if lines.len() == first {
        lines.push(String::new());
    }
}

/// Jinja's `indent`.
pub(super) fn indent(text: &str, indent: &str, first: bool, blank: bool) -> String {
    let text = format!("{text}\n");
    let lines = split_lines(&text, false);
    let mut out = String::new();
    for (index, line) in lines.into_iter().enumerate() {
        out.push_str(if index > 0 { "\n" } else { "" });
        if if index == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(indent);
        }
        out.push_str(line);
    }
    out
}

/// The characters of HTML as MarkupSafe writes them.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    out
}

/// Python's `urllib.parse.quote`.
pub(super) fn quote(text: &str, safe: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            byte if safe.as_bytes().contains(&byte) => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// The longest list that `+` makes: doubling one again and again costs a template nothing.
const MAX_ITEMS: usize = 1 << 20;

/// `left + right`, where a text that is marked as safe escapes the other one.
pub(super) fn sum(left: &Value, right: &Value) -> Result<Value, Error> {
    if (left.is_safe() || right.is_safe()) && left.as_str().is_some() && right.as_str().is_some() {
        let side = |value: &Value| match (value.is_safe(), value.as_str().unwrap_or_default()) {
            (true, text) => text.to_owned(),
            (false, text) => escape(text),
        };
        return Ok(Value::from_safe_string(side(left) + &side(right)));
    }
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return Ok(Value::from(format!("{left}{right}")));
    }
    let refused = || invalid(format!("+ does not work with {} and {}", left.kind(), right.kind()));
    let is_number = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if is_number(left) && is_number(right) {
        let whole = |value: &Value| match value.kind() {
            ValueKind::Bool => Some(i128::from(value.is_true())),
            _ if value.is_integer() => i128::try_from(value.clone()).ok(),
            _ => None,
        };
        return match (whole(left), whole(right)) {
            (Some(left), Some(right)) => left.checked_add(right).map(Value::from).ok_or_else(refused),
            _ => Ok(Value::from(f64::try_from(left.clone())? + f64::try_from(right.clone())?)),
        };
    }
    let tuples = [left, right].map(|value| value.downcast_object_ref::<Tuple>().is_some());
    if left.kind() != ValueKind::Seq || right.kind() != ValueKind::Seq || tuples[0] != tuples[1] {
        return Err(refused());
    }
    let count = |value: &Value| value.len().unwrap_or(0);
    if count(left).saturating_add(count(right)) > MAX_ITEMS {
        return Err(invalid(format!("a list of more than {MAX_ITEMS} items")));
    }
    let all: Vec<Value> = items(left)?.into_iter().chain(items(right)?).collect();
    Ok(if tuples[0] { Value::from(Tuple::from(all)) } else { Value::from(all) })
}

/// `str.title`: a letter after none is a capital, any other is small.
pub(super) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for c in text.chars() {
        match in_word {
            true => out.extend(c.to_lowercase()),
            false => out.extend(c.to_uppercase()),
        }
        in_word = is_cased(c);
    }
    out
}

/// `str.istitle`.
pub(super) fn is_title(text: &str) -> bool {
    let (mut in_word, mut any) = (false, false);
    for c in text.chars() {
        match (in_word, c.is_uppercase(), c.is_lowercase()) {
            (true, true, _) | (false, _, true) => return false,
            _ => any |= is_cased(c),
        }
        in_word = is_cased(c);
    }
    any
}

fn is_cased(c: char) -> bool {
    c.is_uppercase() || c.is_lowercase()
}

/// `str.isprintable`.
pub(super) fn is_printable(text: &str) -> bool {
    // `repr` writes a text between two quotes as it is when every character can be printed.
    let mut out = String::new();
    python::repr_string(text, &mut out);
    let plain = out.replace("\\\\", "").replace("\\'", "");
    !plain.contains('\\')
}
