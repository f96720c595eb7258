//! Values that Python has and the engine has not: generators, the views of a dictionary, and what knows no attributes.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, Value};

/// What a filter such as `map` gives: it can be iterated over and nothing else, and is true also when it is empty.
#[derive(Debug)]
pub(super) struct Generator(Vec<Value>);

impl Generator {
    pub(super) fn of(items: Vec<Value>) -> Value {
        Value::from_object(Generator(items))
    }
}

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // An iterator without an exact length has no length.
        let generator = Arc::clone(self);
        let mut at = 0;
        Enumerator::Iter(Box::new(std::iter::from_fn(move || {
            at += 1;
            generator.0.get(at - 1).cloned()
        })))
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }
}

/// `dict.keys()`, `dict.values()` and `dict.items()`.
#[derive(Debug)]
pub(super) struct View {
    /// Python's name of the type.
    pub(super) name: &'static str,
    items: Vec<Value>,
}

impl View {
    pub(super) fn of(name: &'static str, items: Vec<Value>) -> Value {
        Value::from_object(View { name, items })
    }
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }
}

/// `range(...)`: a sequence of known length.
#[derive(Debug)]
pub(super) struct Range {
    start: i64,
    stop: i64,
    step: i64,
    length: usize,
}

/// The longest range, as in Python's sandbox.
const MAX_RANGE: i128 = 100_000;

impl Range {
    /// `range(stop)` or `range(start, stop, step)`; the error says what is wrong.
    pub(super) fn of(first: i64, second: Option<i64>, step: Option<i64>) -> Result<Value, String> {
        let (start, stop) = second.map_or((0, first), |stop| (first, stop));
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err("the step of range() must not be zero".to_owned());
        }
        let (distance, stride) = (i128::from(stop) - i128::from(start), i128::from(step));
        let length =
            if (distance > 0) == (stride > 0) { (distance.abs() + stride.abs() - 1) / stride.abs() } else { 0 };
        if length > MAX_RANGE {
            return Err(format!("range() is longer than {MAX_RANGE}"));
        }
        let length = usize::try_from(length).unwrap_or(0);
        Ok(Value::from_object(Range { start, stop, step, length }))
    }

    /// As Python writes it.
    pub(super) fn text(&self) -> String {
        match self.step {
            1 => format!("range({}, {})", self.start, self.stop),
            step => format!("range({}, {}, {step})", self.start, self.stop),
        }
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let index = key.as_usize().filter(|index| *index < self.length)?;
        // Inside the range, so it cannot overflow.
        Some(Value::from(self.start.wrapping_add(self.step.wrapping_mul(i64::try_from(index).ok()?))))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.length)
    }
}

/// Whether a mapping is one of the engine's own objects (a namespace, a loop), whose items are attributes in Python.
pub(super) fn has_attributes(value: &Value) -> bool {
    value.as_object().is_some_and(|object| {
        let name = object.type_name();
        ["Namespace", "Loop", "Macro", "Cycler", "Module"].iter().any(|own| name.contains(own))
    })
}

/// Whether Python can call the value; what is undefined can be, and then says so.
pub(super) fn is_callable(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined => true,
        ValueKind::Plain => value.as_object().is_some(),
        _ => value.as_object().is_some_and(|object| object.type_name().contains("Macro")),
    }
}

/// The items of something that can be iterated over.
pub(super) fn items(value: &Value) -> Result<Vec<Value>, Error> {
    value.try_iter()?.checked().collect()
}
