//! Reads a graph file into a [`Signature`].

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use memmap2::Mmap;
use prost::Message;
use prost::bytes::Bytes;
use unspool_core::{Error, Result};

use super::proto::{Graph, Model, ValueInfo};
use super::signature::{ConfigFacts, ElementType, Io, Signature, assign, assign_head};
use super::{cache_mode, external, limits, needs, wire};

/// Reads what the graph in `path` declares, and checks its external data and what it would have an engine do. Weights are
/// not read.
///
/// # Errors
///
/// When the file is no ONNX graph, external data leaves the folder or its files, the graph loops or makes constants that no
/// machine holds, or an input has no role in generation.
pub fn read(path: &Path, facts: &ConfigFacts) -> Result<Signature> {
    mapped(path, |bytes, folder| signature(bytes, path, folder, facts))
}

/// As [`read`], for a graph that applies the output matrix alone.
///
/// # Errors
///
/// As [`read`].
pub fn read_head(path: &Path, vocab_size: usize) -> Result<Signature> {
    mapped(path, |bytes, folder| {
        let (_, inputs, outputs) = decode(bytes, path, folder)?;
        assign_head(inputs, outputs, vocab_size)
    })
}

/// What `parse` makes of the bytes of the file `path` and the folder it is in.
fn mapped(path: &Path, parse: impl FnOnce(Bytes, &Path) -> Result<Signature>) -> Result<Signature> {
    let place = path.display().to_string();
    let file = File::open(path).map_err(|e| Error::io("the graph cannot be opened").at(&place).because(e))?;
    // SAFETY: the map is only read, while this function runs; a file that another process changes meanwhile can at
    // worst give a wrong or refused signature, since every byte is decoded with bounds checks.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io("the graph cannot be read").at(&place).because(e))?;
    parse(Bytes::from_owner(map), path.parent().unwrap_or(Path::new("."))).map_err(|e| e.at(&place))
}

/// [`read`] for the bytes of a graph whose external data lies in `folder`.
///
/// # Errors
///
/// As [`read`].
pub fn parse(bytes: &[u8], folder: &Path, facts: &ConfigFacts) -> Result<Signature> {
    signature(Bytes::copy_from_slice(bytes), Path::new(""), folder, facts)
}

fn signature(bytes: Bytes, path: &Path, folder: &Path, facts: &ConfigFacts) -> Result<Signature> {
    let (graph, inputs, outputs) = decode(bytes, path, folder)?;
    let mut signature = assign(
        inputs,
        outputs,
        facts,
        |has_past, has_positions| cache_mode::choose(&graph, has_past, has_positions),
        cache_mode::Attention::of(&graph),
    )?;
    signature.refused_by_ort = needs::refused_by_ort(&graph, &signature.cache);
    Ok(signature)
}

/// The graph with its inputs and outputs, after everything in it was checked.
fn decode(bytes: Bytes, path: &Path, folder: &Path) -> Result<(Graph, Vec<Io>, Vec<Io>)> {
    if let Some(what) = unspool_core::file::mistaken(&bytes) {
        return Err(Error::invalid_model(what));
    }
    wire::check(&bytes)?;
    let size = bytes.len() as u64;
    let model = Model::decode(bytes).map_err(|e| {
        Error::invalid_model("this is not a readable ONNX graph; download or export it again").because(e)
    })?;
    let files = external::check(&model, path, folder)?;
    limits::check(&model, files.values().fold(size, |sum, file| sum.saturating_add(file.size)))?;
    let graph =
        model.graph.ok_or_else(|| Error::invalid_model("the file holds no ONNX graph; download or export it again"))?;
    // Old exporters list weights among the inputs too.
    let weights: HashSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    let inputs: Vec<Io> = graph.input.iter().filter(|v| !weights.contains(v.name.as_str())).map(io).collect();
    let outputs: Vec<Io> = graph.output.iter().map(io).collect();
    Ok((graph, inputs, outputs))
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

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::proto::{Dimension, Entry, Graph, Model, Shape, Tensor, TensorType, Type, ValueInfo};
    use super::*;

    fn value(name: &str, elem_type: i32, dims: &[&str]) -> ValueInfo {
        let dim = dims
            .iter()
            .map(|d| match d.parse() {
                Ok(size) => Dimension { dim_value: Some(size), dim_param: None },
                Err(_) => Dimension { dim_value: None, dim_param: Some((*d).to_owned()) },
            })
            .collect();
        let tensor_type = Some(TensorType { elem_type, shape: Some(Shape { dim }) });
        ValueInfo { name: name.to_owned(), r#type: Some(Type { tensor_type }) }
    }

    fn decoder() -> Graph {
        Graph {
            input: vec![
                value("input_ids", 7, &["b", "s"]),
                value("past_key_values.0.value", 1, &["b", "2", "p", "d"]),
                value("past_key_values.0.key", 1, &["b", "2", "p", "d"]),
            ],
            output: vec![
                value("logits", 1, &["b", "s", "9"]),
                value("present.0.key", 1, &["b", "2", "t", "d"]),
                value("present.0.value", 1, &["b", "2", "t", "d"]),
            ],
            ..Graph::default()
        }
    }

    fn parsed(graph: Graph) -> Result<Signature> {
        let facts = ConfigFacts { head_dim: Some(16), ..ConfigFacts::default() };
        parse(&Model { graph: Some(graph), ..Model::default() }.encode_to_vec(), Path::new("/nowhere"), &facts)
    }

    fn message(graph: Graph) -> String {
        parsed(graph).unwrap_err().to_string()
    }

    #[test]
    fn binds_caches_by_name_and_takes_symbolic_head_sizes_from_the_config() {
        let signature = parsed(decoder()).unwrap();
        assert_eq!(signature.cache[0].past, "past_key_values.0.key");
        assert_eq!(signature.cache[1].present, "present.0.value");
        assert_eq!((signature.cache[0].heads, signature.cache[0].head_dim, signature.vocab_size), (2, 16, 9));
        assert_eq!(signature.cache_bytes_per_token(), 2 * 2 * 16 * 4);
    }

    #[test]
    fn what_has_no_role_is_named() {
        let mut graph = decoder();
        graph.input.push(value("pixel_values", 1, &["b", "3"]));
        assert!(message(graph).contains("'pixel_values'"));
        let mut graph = decoder();
        graph.output.retain(|o| o.name != "present.0.key");
        assert!(message(graph).contains("past_key_values.0.key"));
        let mut graph = decoder();
        graph.output.retain(|o| o.name != "logits");
        assert!(message(graph).contains("no output 'logits'"));
        let mut graph = decoder();
        graph.input.retain(|i| i.name != "input_ids");
        assert!(message(graph).contains("'input_ids'"));
    }

    #[test]
    fn hidden_states_are_found_by_their_names() {
        let with = |names: &[&str], width: &str| {
            let mut graph = decoder();
            graph.output.extend(names.iter().map(|name| value(name, 1, &["b", "s", width])));
            let facts = ConfigFacts { head_dim: Some(16), hidden_size: Some(8), ..ConfigFacts::default() };
            parse(&Model { graph: Some(graph), ..Model::default() }.encode_to_vec(), Path::new("/nowhere"), &facts)
        };
        let found = |names: &[&str], width: &str| with(names, width).unwrap().hidden.map(|hidden| hidden.shape());
        let shape = |last, width| Some(unspool_core::HiddenShape { last, width, tied: false });
        assert_eq!(found(&[], "4"), None);
        assert_eq!(found(&["hidden_states.1", "hidden_states.0", "hidden_states.2"], "4"), shape(2, 4));
        assert_eq!(found(&["hidden_states_0", "hidden_states_1"], "w"), shape(1, 8));
        assert_eq!(found(&["last_hidden_state"], "4"), shape(0, 4));
        assert_eq!(found(&["hidden_states"], "4"), shape(0, 4));
        assert!(with(&["last_hidden_state"], "99999999").unwrap_err().to_string().contains("hidden_size"));
        let mut graph = decoder();
        graph.output.push(value("last_hidden_state", 1, &["b", "4"]));
        assert!(message(graph).contains("'last_hidden_state'"));
    }

    #[test]
    fn graphs_of_other_kinds_are_named() {
        let with = |name: &str| {
            let mut graph = decoder();
            graph.input.push(value(name, 1, &["b", "s", "w"]));
            message(graph)
        };
        assert!(with("encoder_hidden_states").contains("encoder-decoder models such as T5"));
        assert!(with("past_key_values.0.encoder.key").contains("encoder-decoder models such as T5"));
        assert!(with("inputs_embeds").contains("reads embeddings"));
    }

    #[test]
    fn fixed_axes_of_the_ids() {
        let with = |dims: &[&str]| {
            let mut graph = decoder();
            let place = graph.input.iter().position(|input| input.name == "input_ids").unwrap();
            graph.input[place] = value("input_ids", 7, dims);
            let facts = ConfigFacts { head_dim: Some(16), ..ConfigFacts::default() };
            parse(&Model { graph: Some(graph), ..Model::default() }.encode_to_vec(), Path::new("."), &facts)
        };
        assert_eq!(with(&["b", "s"]).unwrap().fixed_batch, None);
        assert_eq!(with(&["4", "s"]).unwrap().fixed_batch, Some(4));
        let error = with(&["1", "1"]).unwrap_err().to_string();
        assert!(error.contains("axis 1") && error.contains("fixed at 1"), "{error}");
        let error = with(&["100000", "s"]).unwrap_err().to_string();
        assert!(error.contains("axis 0") && error.contains("fixed at 100000"), "{error}");
    }

    #[test]
    fn hostile_sizes_are_refused() {
        let mut graph = decoder();
        graph.input[1] = value("past_key_values.0.value", 1, &["b", "99999999999", "p", "d"]);
        assert!(message(graph).contains("num_key_value_heads"));
        let mut graph = decoder();
        graph.output[0] = value("logits", 1, &["b", "s", "9999999999"]);
        assert!(message(graph).contains("vocabulary"));
        let mut graph = decoder();
        graph.input[1] = value("past_key_values.0.value", 1, &["b", "2"]);
        assert!(message(graph).contains("2 axes"));
        let mut graph = decoder();
        graph.input[1] = value("past_key_values.99999999999999999999.key", 1, &["b", "2", "p", "d"]);
        assert!(message(graph).contains("is not one of"));
    }

    fn with_external(entries: &[(&str, &str)]) -> Graph {
        let external_data =
            entries.iter().map(|(k, v)| Entry { key: (*k).to_owned(), value: (*v).to_owned() }).collect();
        let tensor = Tensor { name: "w".to_owned(), external_data, ..Tensor::default() };
        Graph { initializer: vec![tensor], ..decoder() }
    }

    #[test]
    fn external_data_stays_in_its_folder_and_file() {
        for location in ["/etc/passwd", "../weights", "a/../../b", "..", ""] {
            let error = message(with_external(&[("location", location)]));
            assert!(error.contains("leaves the model's folder"), "{location}: {error}");
        }
        assert!(message(with_external(&[("location", "missing.data")])).contains("'missing.data' cannot be read"));
        assert!(message(with_external(&[("offset", "1")])).contains("no file name"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.data"), [0; 10]).unwrap();
        let check = |offset: &str, length: &str| {
            let graph = with_external(&[("location", "w.data"), ("offset", offset), ("length", length)]);
            let facts = ConfigFacts { head_dim: Some(16), ..ConfigFacts::default() };
            parse(&Model { graph: Some(graph), ..Model::default() }.encode_to_vec(), folder.path(), &facts)
                .map_err(|e| e.to_string())
        };
        assert!(check("2", "8").is_ok());
        assert!(check("3", "8").unwrap_err().contains("outside 'w.data' of 10 bytes"));
        assert!(check("18446744073709551615", "1").unwrap_err().contains("outside"));
        assert!(check("-1", "1").unwrap_err().contains("expected a number"));
    }

    #[test]
    fn bytes_that_are_no_graph_are_an_error() {
        for bytes in [&b""[..], b"\0\0\0", b"GGUF", &[0xff; 64]] {
            assert!(parse(bytes, Path::new("."), &ConfigFacts::default()).is_err());
        }
    }
}
