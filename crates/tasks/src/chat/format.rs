//! The operators of which Python has more: `%` formats texts, and `+` joins what is marked as safe.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, Value};

use super::python::{self, invalid};

/// The name of the filter that stands for `%`.
pub(super) const REMAINDER: &str = "__remainder__";
/// The name of the filter that stands for `+`.
pub(super) const SUM: &str = "__sum__";

/// The widest field of a format, in bytes.
const MAX_WIDTH: usize = 1 << 16;

/// `left % right`.
pub(super) fn remainder(left: &Value, right: &Value) -> Result<Value, Error> {
    match left.as_str() {
        Some(template) => formatted(template, right).map(Value::from),
        None => number(left, right),
    }
}

/// Python's `template % arguments`.
fn formatted(template: &str, arguments: &Value) -> Result<String, Error> {
    let tuple = arguments.downcast_object_ref::<Tuple>().is_some();
    let by_name = arguments.kind() == ValueKind::Map && template.contains("%(");
    let given = if tuple { super::values::items(arguments)? } else { vec![arguments.clone()] };
    let mut rest = given.iter();
    let mut out = String::new();
    let mut left = template;
    while let Some(at) = left.find('%') {
        out.push_str(&left[..at]);
        let spec = &left[at..];
        let Some(length) = spec_length(spec) else { return Err(invalid(format!("{spec:?} is no format"))) };
        let (spec, after) = spec.split_at(length);
        left = after;
        if spec.ends_with('%') {
            out.push('%');
            continue;
        }
        out.push_str(&one(spec, by_name.then_some(arguments), &mut rest)?);
    }
    out.push_str(left);
    // As in Python, what can be asked for items may have more of them than the format names.
    let is_container = matches!(arguments.kind(), ValueKind::Map | ValueKind::Seq) && !tuple;
    if rest.next().is_some() && !is_container {
        return Err(invalid("not all arguments were used by the format"));
    }
    Ok(out)
}

/// The bytes of the format at the start of `text`, up to and with its conversion.
fn spec_length(text: &str) -> Option<usize> {
    let name = match text.strip_prefix("%(") {
        Some(rest) => rest.find(')')? + 3,
        None => 1,
    };
    let conversion = text.get(name..)?.find(|c: char| !"-+ #0123456789.*".contains(c))?;
    let end = name + conversion;
    text.get(end..)?.chars().next().filter(char::is_ascii).map(|_| end + 1)
}

/// Refuses a width or precision above [`MAX_WIDTH`] in a format such as `%5.1f`.
fn check_width(spec: &str) -> Result<(), Error> {
    let mut numbers = spec.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    match numbers.any(|digits| digits.parse::<usize>().map_or(true, |width| width > MAX_WIDTH)) {
        true => Err(invalid(format!("a format is wider than {MAX_WIDTH}"))),
        false => Ok(()),
    }
}

/// Refuses fields of `str.format` that are wider: `{:99999999}`, and `{:{width}}` with such an argument.
pub(super) fn check_fields(format: &str, arguments: &[Value]) -> Result<(), Error> {
    let fields = format.split('{').skip(1).map(|field| field.split('}').next().unwrap_or_default());
    for spec in fields.filter_map(|field| field.split_once(':')).map(|(_, spec)| spec) {
        check_width(spec)?;
    }
    let nested = [":{", ">{", "<{", "^{", ".{"].iter().any(|inner| format.contains(inner));
    for number in arguments.iter().filter_map(Value::as_i64).filter(|_| nested) {
        check_width(&number.to_string())?;
    }
    Ok(())
}

/// One format, which takes its values from `named` or from `rest`.
fn one(spec: &str, named: Option<&Value>, rest: &mut std::slice::Iter<'_, Value>) -> Result<String, Error> {
    let missing = || invalid("not enough arguments for the format");
    let (name, spec) = match spec.strip_prefix("%(").and_then(|inner| inner.split_once(')')) {
        Some((name, spec)) => (Some(name), format!("%{spec}")),
        None => (None, spec.to_owned()),
    };
    let mut filled = String::new();
    for c in spec.chars() {
        match c {
            '*' => filled += &rest.next().and_then(Value::as_i64).ok_or_else(missing)?.to_string(),
            c => filled.push(c),
        }
    }
    check_width(&filled)?;
    let value = match (name, named) {
        (Some(name), Some(map)) => Some(map.get_item(&Value::from(name))?).filter(|value| !value.is_undefined()),
        (Some(_), None) => None,
        (None, _) => rest.next().cloned(),
    };
    let value = value.ok_or_else(missing)?;
    // Texts are written as Python writes them, and numbers that stand for a whole one lose their fraction.
    let (flags, conversion) = filled.split_at(filled.len() - 1);
    let value = match conversion {
        "s" => Value::from(python::str(&value)?),
        "r" | "a" => Value::from(python::repr_of(&value)?),
        "d" | "i" | "u" if value.kind() == ValueKind::Number && !value.is_integer() => {
            Value::from(f64::try_from(value)?.trunc() as i128)
        }
        "d" | "i" | "u" | "x" | "X" | "o" if value.kind() == ValueKind::Bool => Value::from(i64::from(value.is_true())),
        _ => value,
    };
    let conversion = match conversion {
        "r" | "a" => "s",
        "i" | "u" => "d",
        same => same,
    };
    format(FormatStyle::Printf, &format!("{flags}{conversion}"), &[value])
}

/// Python's remainder, which has the sign of the divisor.
fn number(left: &Value, right: &Value) -> Result<Value, Error> {
    let whole = |value: &Value| match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    };
    let zero = || invalid("the remainder of a division by zero");
    match (whole(left), whole(right)) {
        (Some(_), Some(0)) => Err(zero()),
        (Some(left), Some(right)) => {
            let rest = left.wrapping_rem(right);
            Ok(Value::from(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }))
        }
        _ => {
            let float = |value: &Value| match value.kind() {
                ValueKind::Number | ValueKind::Bool => f64::try_from(value.clone()).ok(),
                _ => None,
            };
            match (float(left), float(right)) {
                (Some(_), Some(0.0)) => Err(zero()),
                (Some(left), Some(right)) => {
                    let rest = left % right;
                    Ok(Value::from(if rest != 0.0 && (rest < 0.0) != (right < 0.0) { rest + right } else { rest }))
                }
                _ => Err(invalid(format!("% does not work with {} and {}", left.kind(), right.kind()))),
            }
        }
    }
}
