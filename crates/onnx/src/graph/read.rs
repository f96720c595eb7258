//! Reads a graph file into a [`Signature`].

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use memmap2::Mmap;
use prost::Message;
use unspool_core::{Error, Result};

use super::proto::{Model, ValueInfo};
use super::signature::{ConfigFacts, ElementType, Io, Signature, assign};
use super::{cache_mode, external};

/// Reads what the graph in `path` declares and checks its external data. Weights are not read.
///
/// # Errors
///
/// When the file is no ONNX graph, external data leaves the folder or its files, or an input has no role in generation.
pub fn read(path: &Path, facts: &ConfigFacts) -> Result<Signature> {
    let place = path.display().to_string();
    let file = File::open(path).map_err(|e| Error::io("the graph cannot be opened").at(&place).because(e))?;
    // SAFETY: the map is only read, while this function runs; a file that another process changes meanwhile can at
    // worst give a wrong or refused signature, since every byte is decoded with bounds checks.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io("the graph cannot be read").at(&place).because(e))?;
    parse(&map, path.parent().unwrap_or(Path::new(".")), facts).map_err(|e| e.at(&place))
}

/// [`read`] for the bytes of a graph whose external data lies in `folder`.
///
/// # Errors
///
/// As [`read`].
pub fn parse(bytes: &[u8], folder: &Path, facts: &ConfigFacts) -> Result<Signature> {
    let model = Model::decode(bytes).map_err(|e| {
        Error::invalid_model("this is not a readable ONNX graph; download or export it again").because(e)
    })?;
    let graph =
        model.graph.ok_or_else(|| Error::invalid_model("the file holds no ONNX graph; download or export it again"))?;
    external::check(&graph, folder)?;
    // Old exporters list weights among the inputs too.
    let weights: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    let inputs: Vec<Io> = graph.input.iter().filter(|v| !weights.contains(v.name.as_str())).map(io).collect();
    let outputs: Vec<Io> = graph.output.iter().map(io).collect();
    assign(
        inputs,
        outputs,
        facts,
        |has_past, has_positions| cache_mode::choose(&graph, has_past, has_positions),
        cache_mode::Attention::of(&graph),
    )
}

fn io(value: &ValueInfo) -> Io {
    let tensor = value.r#type.as_ref().and_then(|t| t.tensor_type.as_ref());
    let dims = tensor.and_then(|t| t.shape.as_ref()).map_or(&[][..], |s| &s.dim);
    Io {
        name: value.name.clone(),
        dtype: ElementType::from_onnx(tensor.map_or(0, |t| t.elem_type)),
        shape: dims
            .iter()
            .map(|d| match (&d.dim_param, d.dim_value) {
                (Some(name), _) if !name.is_empty() => name.clone(),
                (_, Some(size)) => size.to_string(),
                _ => "?".to_owned(),
            })
            .collect(),
    }
}
