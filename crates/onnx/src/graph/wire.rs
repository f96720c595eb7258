//! The bytes of an ONNX graph, field by field: to bound what decoding it takes before it is decoded, and to write it again
//! with other names of external data, keeping everything that this crate does not know.

use unspool_core::{Error, Result};

/// Fields that are decoded at most: a file's own size does not bound the memory of a decoded graph, since a message of two
/// bytes becomes a structure of a hundred.
const MAX_FIELDS: usize = 8 << 20;

/// Messages within messages at most; prost's own limit is 100.
const MAX_DEPTH: usize = 100;

/// The messages in which other ones are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Sparse,
    Function,
}

impl Kind {
    /// The message in field `number`.
    fn child(self, number: u64) -> Option<Kind> {
        Some(match (self, number) {
            (Kind::Model, 7) => Kind::Graph,
            (Kind::Model, 25) => Kind::Function,
            (Kind::Graph, 1) | (Kind::Function, 7) => Kind::Node,
            (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) | (Kind::Sparse, 1 | 2) => Kind::Tensor,
            (Kind::Graph, 15) | (Kind::Attribute, 22 | 23) => Kind::Sparse,
            (Kind::Node, 5) => Kind::Attribute,
            (Kind::Attribute, 6 | 11) => Kind::Graph,
            _ => return None,
        })
    }

    /// Whether field `number` holds a tensor's elements, which are not decoded.
    fn elements(self, number: u64) -> bool {
        self == Kind::Tensor && matches!(number, 4 | 5 | 6 | 7 | 9 | 10 | 11)
    }
}

/// One field: its number, the bytes of all of it, and those of its payload when it is a message, a text or packed numbers.
struct Field<'a> {
    number: u64,
    whole: &'a [u8],
    payload: Option<&'a [u8]>,
}

/// Takes one field off `bytes`; `None` when they are no field.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<Field<'a>> {
    let start = *bytes;
    let tag = varint(bytes)?;
    let mut payload = None;
    match tag & 7 {
        0 => {
            varint(bytes)?;
        }
        1 => *bytes = bytes.get(8..)?,
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            payload = Some(bytes.get(..length)?);
            *bytes = &bytes[length..];
        }
        5 => *bytes = bytes.get(4..)?,
        _ => return None,
    }
    Some(Field { number: tag >> 3, whole: &start[..start.len() - bytes.len()], payload })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The numbers of a packed field, as far as they can be read.
pub(super) fn varints(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || varint(&mut bytes))
}

fn broken() -> Error {
    Error::invalid_model("this is not a readable ONNX graph; download or export it again")
}

/// Checks that decoding `model` takes bounded memory.
///
/// # Errors
///
/// When it has more fields than any decoder, is nested too deeply, or is no protobuf.
pub(super) fn check(model: &[u8]) -> Result<()> {
    count(model, Kind::Model, 0, &mut 0)
}

fn count(mut bytes: &[u8], kind: Kind, depth: usize, fields: &mut usize) -> Result<()> {
    while !bytes.is_empty() {
        let field = field(&mut bytes).ok_or_else(broken)?;
        *fields += 1;
        if let (Some(child), Some(payload)) = (kind.child(field.number), field.payload) {
            if depth >= MAX_DEPTH {
                return Err(Error::invalid_model(format!(
                    "the graph nests its subgraphs more than {MAX_DEPTH} messages deep; no decoder does"
                )));
            }
            count(payload, child, depth + 1, fields)?;
        } else if !kind.elements(field.number) {
            // Numbers may be packed, and types hold messages of their own.
            *fields += field.payload.map_or(0, <[u8]>::len) / 4;
        }
        if *fields > MAX_FIELDS {
            return Err(Error::invalid_model(format!(
                "the graph describes itself in more than {MAX_FIELDS} fields, more than any decoder; it is not loaded"
            )));
        }
    }
    Ok(())
}

/// Where the elements of a tensor lie.
pub(super) struct Place {
    /// The name that the file gets.
    pub location: String,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// `model` with other places of external data: `place` is asked for each external tensor, by its bytes.
///
/// # Errors
///
/// Those of `place`; when `model` is no protobuf.
pub(super) fn relocate(model: &[u8], place: &mut dyn FnMut(&[u8]) -> Result<Place>) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(model.len());
    write(model, Kind::Model, place, &mut out)?;
    Ok(out)
}

/// The number of `TensorProto.external_data`.
const EXTERNAL_DATA: u64 = 13;

fn write(bytes: &[u8], kind: Kind, place: &mut dyn FnMut(&[u8]) -> Result<Place>, out: &mut Vec<u8>) -> Result<()> {
    let (mut left, mut external) = (bytes, false);
    while !left.is_empty() {
        let field = field(&mut left).ok_or_else(broken)?;
        match (kind.child(field.number), field.payload) {
            (Some(child), Some(payload)) => {
                let mut inner = Vec::with_capacity(payload.len());
                write(payload, child, place, &mut inner)?;
                put(field.number, &inner, out);
            }
            _ if kind == Kind::Tensor && field.number == EXTERNAL_DATA => external = true,
            _ => out.extend_from_slice(field.whole),
        }
    }
    if external {
        let Place { location, offset, length } = place(bytes)?;
        for (key, value) in [("location", location), ("offset", offset.to_string()), ("length", length.to_string())] {
            let mut entry = Vec::new();
            put(1, key.as_bytes(), &mut entry);
            put(2, value.as_bytes(), &mut entry);
            put(EXTERNAL_DATA, &entry, out);
        }
    }
    Ok(())
}

/// Writes a field with a payload.
fn put(number: u64, payload: &[u8], out: &mut Vec<u8>) {
    for mut value in [number << 3 | 2, payload.len() as u64] {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::proto::{Attribute, Entry, Graph, Model, Node, Tensor};
    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        Entry { key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn places_change_and_everything_else_stays() {
        let tensor = |name: &str| Tensor {
            name: name.to_owned(),
            external_data: vec![entry("location", "./w"), entry("checksum", "1")],
            ..Tensor::default()
        };
        let attribute = Attribute { name: "value".to_owned(), t: Some(tensor("b")), ..Attribute::default() };
        let node = Node { op_type: "Constant".to_owned(), attribute: vec![attribute], ..Node::default() };
        let graph = Graph { node: vec![node], initializer: vec![tensor("a")], ..Graph::default() };
        let mut bytes = Model { graph: Some(graph), ..Model::default() }.encode_to_vec();
        // A field that this crate does not know.
        bytes.extend([0x08, 0x09, 0x12, 0x03, b'a', b'b', b'c']);
        let mut asked = 0;
        let written = relocate(&bytes, &mut |tensor| {
            asked += 1;
            assert_eq!(Tensor::decode(tensor).unwrap().external_data.len(), 2);
            Ok(Place { location: "0.data".to_owned(), offset: 8, length: 300 })
        });
        let written = written.unwrap();
        assert_eq!(asked, 2);
        assert!(written.ends_with(&[0x08, 0x09, 0x12, 0x03, b'a', b'b', b'c']));
        let graph = Model::decode(&written[..]).unwrap().graph.unwrap();
        let expected = vec![entry("location", "0.data"), entry("offset", "8"), entry("length", "300")];
        assert_eq!(graph.initializer[0].external_data, expected);
        assert_eq!(graph.node[0].attribute[0].t.as_ref().unwrap().external_data, expected);
        assert_eq!((graph.initializer[0].name.as_str(), graph.node[0].op_type.as_str()), ("a", "Constant"));
    }

    #[test]
    fn graphs_that_would_fill_the_memory_are_refused() {
        let mut nodes = Vec::new();
        for _ in 0..=MAX_FIELDS {
            nodes.extend([0x0a, 0x00]);
        }
        let mut model = Vec::new();
        put(7, &nodes, &mut model);
        assert!(check(&model).unwrap_err().to_string().contains("fields"));
        let mut deep = Vec::new();
        for _ in 0..200 {
            let mut attribute = Vec::new();
            put(6, &deep, &mut attribute);
            let mut node = Vec::new();
            put(5, &attribute, &mut node);
            deep.clear();
            put(1, &node, &mut deep);
        }
        let mut model = Vec::new();
        put(7, &deep, &mut model);
        assert!(check(&model).unwrap_err().to_string().contains("deep"));
        for bytes in [&[0x3a, 0xff][..], &[0xff; 12], &[0x3b, 0x00]] {
            assert!(check(bytes).is_err(), "{bytes:?}");
        }
    }
}
