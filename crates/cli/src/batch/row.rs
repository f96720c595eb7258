//! A line of JSON: the keys that it is read for, and all others, which go through to the line of its result.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::{Map, Value};
use unspool::{Error, Result, json};

/// Keys that will have a meaning: refused until then, so that no file changes what it says.
const RESERVED: [&str; 7] = ["images", "audio", "inputs", "source_lang", "target_lang", "settings", "tools"];

/// Keys and values of an object, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Keys(Map<String, Value>);

impl Keys {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// When `line` is no JSON object.
    pub fn read(line: &str) -> Result<Self> {
        json::from_str(line).map(Keys).map_err(|error| why(&error))
    }

    /// Of an object of the program's own, those of its keys that are `wanted`; `None` when `line` is no object.
    pub fn find(line: &[u8], wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_slice(line);
        let found = Wanted(wanted).deserialize(&mut reader).ok()?;
        reader.end().ok().map(|()| Keys(found))
    }

    /// Takes the value of a key out.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }

    /// Whether a key is among them.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The same keys, when all of them can go through, unchanged, to a result with the keys `own`.
    ///
    /// # Errors
    ///
    /// When a key is reserved, or one of `own`, or holds an integer above 64 bits.
    pub fn through(self, own: &[&str]) -> Result<Self> {
        for (key, value) in &self.0 {
            if RESERVED.contains(&key.as_str()) {
                return Err(Error::unsupported(format!(
                    "{key:?} is reserved and has no meaning yet; leave it out, or give it another name to find it beside the \
                     result"
                )));
            }
            if own.contains(&key.as_str()) {
                return Err(Error::invalid_input(format!(
                    "{key:?} is a key of the result, so it cannot go through to it; give it another name"
                )));
            }
            if rounded(value) {
                return Err(Error::invalid_input(format!(
                    "{key:?} has a number of more than 64 bits, which cannot go through unchanged; write it as a string"
                )));
            }
        }
        Ok(self)
    }

    /// Whether all of these are among `others`, with the same values.
    pub fn are_in(&self, others: &Keys) -> bool {
        self.0.iter().all(|(key, value)| others.0.get(key) == Some(value))
    }
}

/// Whether a number in `value` may have been an integer that its reader rounded.
fn rounded(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            !number.is_u64()
                && !number.is_i64()
                && number.as_f64().is_some_and(|number| number.abs() >= i64::MAX as f64)
        }
        Value::Array(items) => items.iter().any(rounded),
        Value::Object(object) => object.values().any(rounded),
        _ => false,
    }
}

/// Reads an object and keeps only some of its keys; the others, which may be large, are passed over.
struct Wanted<W>(W);

impl<'de, W: Fn(&str) -> bool> DeserializeSeed<'de> for Wanted<W> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, W: Fn(&str) -> bool> Visitor<'de> for Wanted<W> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut found = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if self.0(&key) {
                found.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Why a line is no JSON, or JSON of another form. A reader of a line knows of no other line, so only the column is told.
pub fn why(error: &Error) -> Error {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<serde_json::Error>());
    let Some(source) = source else { return Error::invalid_input(error.message()) };
    let told = source.to_string();
    let why = told.split(" at line ").next().unwrap_or_default();
    Error::invalid_input(match source.is_data() {
        true => why.to_owned(),
        false => format!("not JSON at column {}: {why}", source.column()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_through_as_they_stand() {
        let line = r#"{"id": 18446744073709551615, "prompt": "a", "x": {"b": [1.5, "\u00e9", -0.0, 1e-7]}, "id": 7}"#;
        let mut keys = Keys::read(line).unwrap();
        assert_eq!(keys.take("prompt"), Some(Value::from("a")));
        let keys = keys.through(&["index"]).unwrap();
        assert_eq!(serde_json::to_string(&keys).unwrap(), r#"{"id":7,"x":{"b":[1.5,"é",-0.0,1e-7]}}"#);
        let line = br#"{"index":0,"x":{"b":[1.5,"\u00e9",-0.0,1e-7]},"large":[[[1]]],"id":7}"#;
        let found = Keys::find(line, |key| key == "index" || keys.has(key)).unwrap();
        assert!(keys.are_in(&found) && found.has("index") && !found.has("large"));
        assert!(!keys.are_in(&Keys::find(br#"{"id":7}"#, |_| true).unwrap()));
        assert_eq!(Keys::find(b"{\"id\":7} x", |_| true), None);
    }

    #[test]
    fn reserved_keys_and_those_of_the_result_are_refused() {
        let refused = |line: &str| Keys::read(line).unwrap().through(&["index", "seed"]).unwrap_err().to_string();
        for key in RESERVED {
            let error = refused(&format!("{{\"{key}\":1}}"));
            assert!(error.contains(key) && error.contains("reserved"), "{error}");
        }
        assert!(refused(r#"{"seed":1}"#).contains("\"seed\" is a key of the result"));
        assert!(refused(r#"{"id":[123456789012345678901234567890]}"#).contains("write it as a string"));
    }

    #[test]
    fn a_line_that_is_no_object_says_why() {
        assert_eq!(Keys::read("{\"a\":}").unwrap_err().to_string(), "not JSON at column 6: expected value");
        assert!(Keys::read(&"{\"a\":".repeat(1_000_000)).unwrap_err().to_string().contains("100 levels"));
    }
}
