//! The JSON header of a safetensors file, checked against the file's length.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use unspool_core::{Error, Result};

/// The format's own bound on a header, in bytes.
pub(super) const MAX_HEADER: u64 = 100_000_000;
/// No tensor of any model has more axes.
const MAX_AXES: usize = 8;

/// A tensor's line of the header, its bytes known to lie in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub dtype: String,
    pub shape: Vec<usize>,
    pub range: Range<usize>,
}

/// A line as written.
#[derive(Deserialize)]
struct Line {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// Reads the header of a whole file's bytes.
pub(super) fn read(bytes: &[u8]) -> Result<BTreeMap<String, Entry>> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(Error::invalid_model(format!(
            "not a safetensors file: it has {} bytes, expected 8 and more",
            bytes.len()
        )));
    };
    let claimed = u64::from_le_bytes(*length);
    if claimed > MAX_HEADER {
        return Err(Error::invalid_model(format!(
            "the safetensors header claims {claimed} bytes, the format allows {MAX_HEADER} (is this a safetensors file?)"
        )));
    }
    let header = rest.get(..claimed as usize).ok_or_else(|| {
        Error::invalid_model(format!(
            "the safetensors header claims {claimed} bytes, but {} are left in the file (is the download complete?)",
            rest.len()
        ))
    })?;
    let data = rest.len() - header.len();
    let Lines(lines) = serde_json::from_slice(header)
        .map_err(|error| Error::invalid_model("the safetensors header is not as the format says").because(error))?;
    let start = bytes.len() - data;
    let mut entries = BTreeMap::new();
    for (name, line) in lines {
        let entry = check(&name, line, start, data)?;
        if entries.insert(name.clone(), entry).is_some() {
            return Err(Error::invalid_model(format!("tensor {name:?} is listed twice")));
        }
    }
    refuse_overlaps(&entries)?;
    Ok(entries)
}

/// Bits of a number, for the types whose sizes can be held against the offsets here.
fn bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F64" | "I64" | "U64" | "C64" => 64,
        "F32" | "I32" | "U32" => 32,
        "F16" | "BF16" | "I16" | "U16" => 16,
        "BOOL" | "I8" | "U8" => 8,
        _ if dtype.starts_with("F8_") => 8,
        _ => return None,
    })
}

fn check(name: &str, line: Line, start: usize, data: usize) -> Result<Entry> {
    let Line { dtype, shape, data_offsets: (from, to) } = line;
    if shape.len() > MAX_AXES {
        return Err(Error::invalid_model(format!(
            "tensor {name:?} has {} axes, expected at most {MAX_AXES}",
            shape.len()
        )));
    }
    if from > to || to > data as u64 {
        return Err(Error::invalid_model(format!(
            "tensor {name:?} lies at bytes {from} to {to}, but the file has {data} bytes of data (is the download complete?)"
        )));
    }
    let axes: Option<Vec<usize>> = shape.iter().map(|axis| usize::try_from(*axis).ok()).collect();
    let count = shape.iter().try_fold(1u64, |product, axis| product.checked_mul(*axis));
    let (Some(axes), Some(count)) = (axes, count) else {
        return Err(Error::invalid_model(format!("tensor {name:?} has shape {shape:?}, whose product does not fit")));
    };
    if let Some(bits) = bits(&dtype)
        && count.checked_mul(bits / 8) != Some(to - from)
    {
        return Err(Error::invalid_model(format!(
            "tensor {name:?} of {dtype} {shape:?} has {} bytes, which is not its size",
            to - from
        )));
    }
    Ok(Entry { dtype, shape: axes, range: start + from as usize..start + to as usize })
}

fn refuse_overlaps(entries: &BTreeMap<String, Entry>) -> Result<()> {
    let mut order: Vec<_> = entries.iter().filter(|(_, entry)| !entry.range.is_empty()).collect();
    order.sort_by_key(|(_, entry)| entry.range.start);
    for pair in order.windows(2) {
        if let [(first, before), (second, after)] = pair
            && after.range.start < before.range.end
        {
            return Err(Error::invalid_model(format!("tensors {first:?} and {second:?} overlap in the file")));
        }
    }
    Ok(())
}

/// The header's lines in order, doubles kept so that they can be refused.
struct Lines(Vec<(String, Line)>);

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Header;
        impl<'de> Visitor<'de> for Header {
            type Value = Lines;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Lines, A::Error> {
                let mut lines = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        lines.push((name, map.next_value()?));
                    }
                }
                Ok(Lines(lines))
            }
        }
        deserializer.deserialize_map(Header)
    }
}
