//! Reads little-endian values from the head of a GGUF file and never past its end.

use unspool_core::{Error, Result};

use super::value::{Array, Value};

/// Arrays within arrays are read to this depth; no writer nests deeper than two.
const MAX_ARRAY_DEPTH: usize = 4;

/// GGUF's own bound on a key, in bytes.
const MAX_NAME: usize = 65_535;

/// A place in the file's bytes.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `count` bytes; `what` names them in the error.
    pub(super) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..count)).ok_or_else(|| {
            Error::invalid_model(format!(
                "the file ends inside {what}: {count} bytes are wanted at byte {}, {} are left",
                self.at,
                self.left()
            ))
        })?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A count of items of at least `least` bytes each, believed only if the rest of the file could hold them.
    pub(super) fn count(&mut self, least: usize, what: &str) -> Result<usize> {
        let claimed = self.u64(what)?;
        let possible = self.left() / least;
        usize::try_from(claimed).ok().filter(|&count| count <= possible).ok_or_else(|| {
            Error::invalid_model(format!(
                "{what} is {claimed}, but the {} bytes left in the file hold at most {possible}",
                self.left()
            ))
        })
    }

    /// A string with its length before it.
    pub(super) fn string(&mut self, what: &str) -> Result<String> {
        let length = self.count(1, &format!("the length of {what}"))?;
        let bytes = self.take(length, what)?;
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Error::invalid_model(format!("{what} is not UTF-8")).because(error))?;
        Ok(text.to_owned())
    }

    /// A key or a tensor's name: a string of at most [`MAX_NAME`] bytes.
    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        let name = self.string(what)?;
        if name.len() > MAX_NAME {
            return Err(Error::invalid_model(format!("{what} has {} bytes, expected at most {MAX_NAME}", name.len())));
        }
        Ok(name)
    }

    fn boolean(&mut self, what: &str) -> Result<bool> {
        match self.array::<1>(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(Error::invalid_model(format!("{what} is a truth value of {other}, expected 0 or 1"))),
        }
    }

    /// A metadata value of the type with the given id.
    pub(super) fn value(&mut self, kind: u32, what: &str) -> Result<Value> {
        Ok(match kind {
            0 => Value::U8(u8::from_le_bytes(self.array(what)?)),
            1 => Value::I8(i8::from_le_bytes(self.array(what)?)),
            2 => Value::U16(u16::from_le_bytes(self.array(what)?)),
            3 => Value::I16(i16::from_le_bytes(self.array(what)?)),
            4 => Value::U32(self.u32(what)?),
            5 => Value::I32(i32::from_le_bytes(self.array(what)?)),
            6 => Value::F32(f32::from_le_bytes(self.array(what)?)),
            7 => Value::Bool(self.boolean(what)?),
            8 => Value::String(self.string(what)?),
            9 => Value::Array(self.values(what, MAX_ARRAY_DEPTH)?),
            10 => Value::U64(self.u64(what)?),
            11 => Value::I64(i64::from_le_bytes(self.array(what)?)),
            12 => Value::F64(f64::from_le_bytes(self.array(what)?)),
            _ => return Err(unknown_type(kind, what)),
        })
    }

    /// An array: the type of its items, their count, and the items.
    fn values(&mut self, what: &str, depth: usize) -> Result<Array> {
        let Some(deeper) = depth.checked_sub(1) else {
            return Err(Error::invalid_model(format!(
                "{what} nests arrays more than {MAX_ARRAY_DEPTH} deep, which no model does"
            )));
        };
        let kind = self.u32(what)?;
        let length = format!("the length of {what}");
        Ok(match kind {
            0 => Array::U8(self.scalars(what, u8::from_le_bytes)?),
            1 => Array::I8(self.scalars(what, i8::from_le_bytes)?),
            2 => Array::U16(self.scalars(what, u16::from_le_bytes)?),
            3 => Array::I16(self.scalars(what, i16::from_le_bytes)?),
            4 => Array::U32(self.scalars(what, u32::from_le_bytes)?),
            5 => Array::I32(self.scalars(what, i32::from_le_bytes)?),
            6 => Array::F32(self.scalars(what, f32::from_le_bytes)?),
            7 => Array::Bool((0..self.count(1, &length)?).map(|_| self.boolean(what)).collect::<Result<_>>()?),
            8 => Array::String((0..self.count(8, &length)?).map(|_| self.string(what)).collect::<Result<_>>()?),
            9 => Array::Array((0..self.count(12, &length)?).map(|_| self.values(what, deeper)).collect::<Result<_>>()?),
            10 => Array::U64(self.scalars(what, u64::from_le_bytes)?),
            11 => Array::I64(self.scalars(what, i64::from_le_bytes)?),
            12 => Array::F64(self.scalars(what, f64::from_le_bytes)?),
            _ => return Err(unknown_type(kind, what)),
        })
    }

    fn scalars<T, const N: usize>(&mut self, what: &str, from: fn([u8; N]) -> T) -> Result<Vec<T>> {
        let count = self.count(N, &format!("the length of {what}"))?;
        let bytes = self.take(count.saturating_mul(N), what)?;
        Ok(bytes.as_chunks::<N>().0.iter().map(|&item| from(item)).collect())
    }
}

fn unknown_type(kind: u32, what: &str) -> Error {
    Error::invalid_model(format!("{what} has value type {kind}, expected 0 to 12"))
}
