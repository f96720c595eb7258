//! Checks of external data before an engine opens it: names stay inside the folder, ranges stay inside the files.

use std::collections::HashMap;
use std::path::{Component, Path};

use unspool_core::{Error, Result};

use super::proto::{Graph, Tensor};

/// Checks every external tensor of `graph`, subgraphs included; `folder` is the graph's own.
///
/// # Errors
///
/// A location that is absolute or leaves the folder, a missing file, or a range beyond the file's end.
pub(super) fn check(graph: &Graph, folder: &Path) -> Result<()> {
    let mut sizes = HashMap::new();
    let mut result = Ok(());
    let mut check_all = |tensors: &mut dyn Iterator<Item = &Tensor>| {
        for tensor in tensors {
            if result.is_ok() && !tensor.external_data.is_empty() {
                result = check_tensor(tensor, folder, &mut sizes);
            }
        }
    };
    check_all(&mut graph.initializer.iter());
    graph.walk(&mut |_, node| {
        for attribute in &node.attribute {
            check_all(&mut attribute.t.iter());
            for inner in attribute.g.iter().chain(&attribute.graphs) {
                check_all(&mut inner.initializer.iter());
            }
        }
    });
    result
}

fn check_tensor(tensor: &Tensor, folder: &Path, sizes: &mut HashMap<String, u64>) -> Result<()> {
    let entry = |key: &str| tensor.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
    let place = || format!("external data of tensor '{}'", tensor.name);
    let Some(location) = entry("location") else {
        return Err(Error::invalid_model("no file name is given; export the model again").at(place()));
    };
    let path = Path::new(location);
    let inside =
        !location.is_empty() && path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(Error::invalid_model(format!(
            "the file name '{location}' leaves the model's folder; only files beside the graph are read"
        ))
        .at(place()));
    }
    let number = |key: &str| match entry(key) {
        None | Some("") => Ok(None),
        Some(text) => text
            .parse::<u64>()
            .map(Some)
            .map_err(|_| Error::invalid_model(format!("{key} is '{text}', expected a number of bytes")).at(place())),
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    let size = match sizes.get(location) {
        Some(&size) => size,
        None => {
            let size = std::fs::metadata(folder.join(path))
                .map_err(|e| {
                    Error::io(format!(
                        "the file '{location}' cannot be read; it belongs beside the graph, download it too"
                    ))
                    .at(place())
                    .because(e)
                })?
                .len();
            sizes.insert(location.to_owned(), size);
            size
        }
    };
    let end = offset.checked_add(length.unwrap_or(0));
    if end.is_none_or(|end| end > size) {
        return Err(Error::invalid_model(format!(
            "bytes {offset} to {} are outside '{location}' of {size} bytes; the file is cut or belongs to another graph",
            offset as u128 + u128::from(length.unwrap_or(0))
        ))
        .at(place()));
    }
    Ok(())
}
