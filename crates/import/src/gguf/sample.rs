//! Writes small GGUF files for tests.

use crate::quant::GgmlType;

/// A file under construction: entries and tensors are written as told, true or not.
#[derive(Clone, Default)]
pub(crate) struct Sample {
    entries: Vec<u8>,
    entry_count: u64,
    table: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

pub(crate) fn text(value: &str) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat()
}

impl Sample {
    /// An entry with a value of type `kind` in its written form.
    pub(crate) fn entry(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.entries.extend([text(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat());
        self.entry_count += 1;
        self
    }

    pub(crate) fn str(self, key: &str, value: &str) -> Self {
        self.entry(key, 8, &text(value))
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.entry(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn f32(self, key: &str, value: f32) -> Self {
        self.entry(key, 6, &value.to_le_bytes())
    }

    /// A line of the tensor table, whatever it says.
    pub(crate) fn line(mut self, name: &str, dims: &[u64], id: u32, offset: u64) -> Self {
        self.table.extend(text(name));
        self.table.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|dim| self.table.extend(dim.to_le_bytes()));
        self.table.extend(id.to_le_bytes());
        self.table.extend(offset.to_le_bytes());
        self.tensor_count += 1;
        self
    }

    /// A tensor with its data.
    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], kind: GgmlType, bytes: &[u8]) -> Self {
        let offset = self.data.len() as u64;
        self.data.extend(bytes);
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        let id = (0..64).find(|id| GgmlType::from_id(*id) == Some(kind)).unwrap();
        self.line(name, dims, id, offset)
    }

    /// A tensor of f32 values.
    pub(crate) fn floats(self, name: &str, dims: &[u64], values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, dims, GgmlType::F32, &bytes)
    }

    /// The file with counts as given.
    pub(crate) fn with_counts(&self, tensors: u64, entries: u64) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend(tensors.to_le_bytes());
        file.extend(entries.to_le_bytes());
        file.extend(&self.entries);
        file.extend(&self.table);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(&self.data);
        file
    }

    /// The file.
    pub(crate) fn file(&self) -> Vec<u8> {
        self.with_counts(self.tensor_count, self.entry_count)
    }
}
