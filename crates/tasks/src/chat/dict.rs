//! The function `dict`.

use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ObjectRepr, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};

use super::python::invalid;
use super::values::items;

/// `dict(mapping or pairs, name=value, ...)` and `dict.fromkeys(keys, value)`.
#[derive(Debug)]
pub(super) struct Dict;

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let (first, named): (Option<Value>, Kwargs) = from_args(args)?;
        let mut all = match first {
            Some(value) => of(&value)?,
            None => Vec::new(),
        };
        for name in named.args() {
            all.push((Value::from(name), named.get::<Value>(name)?));
        }
        Ok(Value::from_pairs(all))
    }

    fn call_method(self: &Arc<Self>, _state: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        if method != "fromkeys" {
            return Err(Error::from(ErrorKind::UnknownMethod));
        }
        let (keys, value): (Value, Option<Value>) = from_args(args)?;
        let value = value.unwrap_or_else(|| Value::from(()));
        Ok(Value::from_pairs(items(&keys)?.into_iter().map(|key| (key, value.clone()))))
    }
}

/// The pairs of a mapping, or of a list of pairs.
pub(super) fn of(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    match value.kind() {
        ValueKind::Map => items(value)?.into_iter().map(|key| value.get_item(&key).map(|item| (key, item))).collect(),
        _ => items(value)?.iter().map(pair).collect(),
    }
}

/// A list of two as a pair.
pub(super) fn pair(value: &Value) -> Result<(Value, Value), Error> {
    match items(value)?.as_slice() {
        [key, value] => Ok((key.clone(), value.clone())),
        other => Err(invalid(format!("expected a pair of a key and a value, got {} items", other.len()))),
    }
}
