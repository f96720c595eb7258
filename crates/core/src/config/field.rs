//! What a generation setting is: its type, its default, its status.

use serde_json::Value;

use crate::json;

/// The JSON type of a field. `null` is allowed for every field and means "not set" (in a call: "switched off").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A number; integers are fine.
    Float,
    /// A text.
    Text,
    /// A text or a list of texts.
    Texts,
    /// A list of integers.
    Ints,
    /// An integer or a list of integers.
    IntOrInts,
    /// A list of lists of integers.
    IntLists,
    /// `true`, `false` or a text (`early_stopping`).
    BoolOrText,
    /// A text or a list of integers (`dola_layers`).
    TextOrInts,
    /// A pair of an integer and a number (`exponential_decay_length_penalty`).
    IntAndFloat,
    /// A list of `[[ids], bias]` pairs (`sequence_bias`).
    Biases,
    /// An object.
    Object,
    /// A list of anything.
    List,
}

impl Kind {
    /// What the type is called in an error message.
    pub fn expected(self) -> &'static str {
        match self {
            Kind::Bool => "true or false",
            Kind::Int => "an integer",
            Kind::Float => "a number",
            Kind::Text => "a text",
            Kind::Texts => "a text or a list of texts",
            Kind::Ints => "a list of integers",
            Kind::IntOrInts => "an integer or a list of integers",
            Kind::IntLists => "a list of lists of integers",
            Kind::BoolOrText => "true, false or a text",
            Kind::TextOrInts => "a text or a list of integers",
            Kind::IntAndFloat => "a list of an integer and a number",
            Kind::Biases => "a list of [[ids], bias] pairs",
            Kind::Object => "an object",
            Kind::List => "a list",
        }
    }

    /// `value` as this type has it, or nothing when it is of another type. `null` has every type; an integer may be written
    /// as a float (`12.0`), and a boolean as `0` or `1`, as Python takes them.
    pub fn read(self, value: &Value) -> Option<Value> {
        let int = |value: &Value| match json::int(value) {
            Some(int) => Some(int.into()),
            None => value.is_u64().then(|| value.clone()),
        };
        let number = |value: &Value| value.is_number().then(|| value.clone());
        let flag = |value: &Value| json::flag(value).map(Value::Bool);
        let text = |value: &Value| value.is_string().then(|| value.clone());
        let list = |value: &Value, item: &dyn Fn(&Value) -> Option<Value>| {
            value.as_array()?.iter().map(item).collect::<Option<Vec<Value>>>().map(Value::Array)
        };
        let ints = |value: &Value| list(value, &int);
        let pair = |value: &Value, first: &dyn Fn(&Value) -> Option<Value>| match value.as_array()?.as_slice() {
            [left, right] => Some(Value::Array(vec![first(left)?, number(right)?])),
            _ => None,
        };
        if value.is_null() {
            return Some(Value::Null);
        }
        match self {
            Kind::Bool => flag(value),
            Kind::Int => int(value),
            Kind::Float => number(value),
            Kind::Text => text(value),
            Kind::Texts => text(value).or_else(|| list(value, &text)),
            Kind::Ints => ints(value),
            Kind::IntOrInts => int(value).or_else(|| ints(value)),
            Kind::IntLists => list(value, &ints),
            Kind::BoolOrText => flag(value).or_else(|| text(value)),
            Kind::TextOrInts => text(value).or_else(|| ints(value)),
            Kind::IntAndFloat => pair(value, &int),
            Kind::Biases => list(value, &|item| pair(item, &ints)),
            Kind::Object => value.is_object().then(|| value.clone()),
            Kind::List => value.is_array().then(|| value.clone()),
        }
    }
}

/// The value of a field that neither the model's file nor the call sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Stays unset.
    Unset,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(&'static str),
}

impl Fill {
    /// The value as JSON; `None` when the field stays unset.
    pub fn value(self) -> Option<Value> {
        match self {
            Fill::Unset => None,
            Fill::Bool(value) => Some(value.into()),
            Fill::Int(value) => Some(value.into()),
            Fill::Float(value) => Some(value.into()),
            Fill::Text(value) => Some(value.into()),
        }
    }
}

/// What a field is about; the headings of help and documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// How long rows become and what ends them.
    Length,
    /// Which loop runs.
    Strategy,
    /// Rules that change scores.
    Scores,
    /// Caches and speed.
    Cache,
    /// What is returned.
    Output,
    /// Ids with a meaning of their own.
    SpecialTokens,
    /// Assisted generation.
    Assisted,
}

/// Whether a field is honoured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    /// Has its effect.
    Supported,
    /// Read and accepted: it changes how Python computes, not which tokens come out.
    NoEffect,
    /// Changes tokens and is not built yet: refused by name unless its value is neutral.
    NotYet(Neutral),
}

/// Which values of a field that is not built change nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Neutral {
    /// Only unset.
    Unset,
    /// Unset or `false`.
    False,
    /// Unset or this number.
    Number(f64),
    /// Every value by itself: it refines another setting that is refused (assistants, encoder-decoders).
    Always,
}

/// One generation setting.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Python's name.
    pub name: &'static str,
    /// JSON type.
    pub kind: Kind,
    /// Value when nobody sets it.
    pub fill: Fill,
    /// Heading.
    pub group: Group,
    /// Whether it is honoured.
    pub status: Status,
    /// One line for help and documents.
    pub help: &'static str,
}
