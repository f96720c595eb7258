//! Metadata values.

/// A metadata value of any type that GGUF knows.
#[doc(alias = "GGUFValueType")]
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of values of one type; arrays may hold arrays.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    String(Vec<String>),
    Array(Vec<Array>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

impl Value {
    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The number, if it is an integer of any width that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::U8(n) => Some(n.into()),
            Value::U16(n) => Some(n.into()),
            Value::U32(n) => Some(n.into()),
            Value::U64(n) => Some(n),
            Value::I8(n) => n.try_into().ok(),
            Value::I16(n) => n.try_into().ok(),
            Value::I32(n) => n.try_into().ok(),
            Value::I64(n) => n.try_into().ok(),
            _ => None,
        }
    }

    /// The number, if it is an integer of any width that fits.
    pub fn as_u32(&self) -> Option<u32> {
        self.as_u64().and_then(|n| n.try_into().ok())
    }

    /// The number, if it is a float; an F64 is rounded.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Value::F32(n) => Some(n),
            Value::F64(n) => Some(n as f32),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The texts, if it is an array of text.
    pub fn as_strings(&self) -> Option<&[String]> {
        match self {
            Value::Array(Array::String(texts)) => Some(texts),
            _ => None,
        }
    }

    /// The number, if it is a signed integer.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::I8(n) => Some(n.into()),
            Value::I16(n) => Some(n.into()),
            Value::I32(n) => Some(n.into()),
            Value::I64(n) => Some(n),
            _ => None,
        }
    }

    /// The numbers, if it is an array of F32.
    pub fn as_f32s(&self) -> Option<&[f32]> {
        match self {
            Value::Array(Array::F32(numbers)) => Some(numbers),
            _ => None,
        }
    }

    /// The numbers, if it is an array of I32.
    pub fn as_i32s(&self) -> Option<&[i32]> {
        match self {
            Value::Array(Array::I32(numbers)) => Some(numbers),
            _ => None,
        }
    }

    /// What the value is, for messages: `a text`, `an array of I32`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::U8(_) => "a U8",
            Value::I8(_) => "an I8",
            Value::U16(_) => "a U16",
            Value::I16(_) => "an I16",
            Value::U32(_) => "a U32",
            Value::I32(_) => "an I32",
            Value::F32(_) => "an F32",
            Value::Bool(_) => "a truth value",
            Value::String(_) => "a text",
            Value::U64(_) => "a U64",
            Value::I64(_) => "an I64",
            Value::F64(_) => "an F64",
            Value::Array(array) => match array {
                Array::U8(_) => "an array of U8",
                Array::I8(_) => "an array of I8",
                Array::U16(_) => "an array of U16",
                Array::I16(_) => "an array of I16",
                Array::U32(_) => "an array of U32",
                Array::I32(_) => "an array of I32",
                Array::F32(_) => "an array of F32",
                Array::Bool(_) => "an array of truth values",
                Array::String(_) => "an array of texts",
                Array::Array(_) => "an array of arrays",
                Array::U64(_) => "an array of U64",
                Array::I64(_) => "an array of I64",
                Array::F64(_) => "an array of F64",
            },
        }
    }
}
