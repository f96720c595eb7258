//! Which files of a repository a model needs.

use std::path::{Path, PathBuf};

use unspool_core::{Error, Result};

/// The files to fetch, and which of them is the model.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    files: Vec<String>,
    /// The GGUF file; `None` when the folder itself is the model.
    file: Option<String>,
}

impl Choice {
    /// All files to fetch, small ones first.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// What is opened below the folder that holds the files.
    pub fn model_in(&self, folder: &Path) -> PathBuf {
        match &self.file {
            Some(file) => folder.join(file),
            None => folder.to_path_buf(),
        }
    }
}

/// What sort of model is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A graph where there is one, else a checkpoint.
    Any,
    /// Weights to import; graphs are passed over.
    Checkpoint,
}

/// Files that say how a model is used; fetched when the repository has them.
const SMALL: [&str; 13] = [
    "config.json",
    "generation_config.json",
    "genai_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "preprocessor_config.json",
    "processor_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "merges.txt",
];

/// Stems of the graphs of a model; the first that is there is the decoder.
const DECODERS: [&str; 3] = ["model", "decoder_model_merged", "decoder_model"];

/// Graphs that belong beside a decoder.
const COMPANIONS: [&str; 4] = ["encoder_model", "decoder_with_past_model", "embed_tokens", "vision_encoder"];

/// Chooses among `files`: an ONNX graph of `dtype`, else a safetensors checkpoint, else a GGUF file.
///
/// # Errors
///
/// When there is none of them, a file of a checkpoint is missing, or there are several and `dtype` does not say which.
pub fn choose(files: &[String], dtype: Option<&str>, kind: Kind) -> Result<Choice> {
    let mut chosen: Vec<String> =
        SMALL.iter().filter(|name| files.iter().any(|file| file == *name)).map(|name| name.to_string()).collect();
    if kind == Kind::Any
        && let Some(mut graphs) = graphs(files, dtype)
    {
        chosen.append(&mut graphs);
        return Ok(Choice { files: chosen, file: None });
    }
    let onnx: Vec<&str> = ending(files, ".onnx");
    if kind == Kind::Any && !onnx.is_empty() && (dtype.is_some() || ending(files, ".safetensors").is_empty()) {
        return Err(Error::invalid_input(format!(
            "there is no graph of dtype {}; the graphs are {}; choose with --dtype",
            dtype.unwrap_or("fp32"),
            onnx.join(", ")
        )));
    }
    let shards: Vec<&str> = match files.iter().find(|file| *file == "model.safetensors") {
        Some(single) => vec![single],
        None if files.iter().any(|file| file == "model.safetensors.index.json") => {
            chosen.push("model.safetensors.index.json".to_string());
            ending(files, ".safetensors").into_iter().filter(|file| file.starts_with("model-")).collect()
        }
        None => Vec::new(),
    };
    // `model-00001-of-00003.safetensors` says how many there are.
    let told = shards.iter().find_map(|shard| shard.strip_suffix(".safetensors")?.rsplit_once("-of-")?.1.parse().ok());
    if let Some(told) = told.filter(|told: &usize| shards.len() < *told) {
        return Err(Error::invalid_model(format!("there are {} of the checkpoint's {told} files", shards.len())));
    }
    if !shards.is_empty() {
        chosen.extend(shards.into_iter().map(String::from));
        return Ok(Choice { files: chosen, file: None });
    }
    let mut gguf: Vec<&str> = ending(files, ".gguf");
    if let Some(dtype) = dtype.map(str::to_lowercase) {
        gguf.retain(|file| file.to_lowercase().contains(&dtype));
    }
    match gguf.as_slice() {
        [one] => Ok(Choice { files: vec![one.to_string()], file: Some(one.to_string()) }),
        [] => Err(Error::invalid_model(format!(
            "there is no ONNX graph, safetensors checkpoint or GGUF file{}",
            dtype.map(|dtype| format!(" of dtype {dtype}")).unwrap_or_default()
        ))),
        many => Err(Error::invalid_input(format!(
            "there are several GGUF files ({}); choose with --dtype, for example --dtype Q4_0",
            many.join(", ")
        ))),
    }
}

fn ending<'a>(files: &'a [String], end: &str) -> Vec<&'a str> {
    files.iter().map(String::as_str).filter(|file| file.ends_with(end)).collect()
}

/// Whether `file` is beside `graph` and its name goes on where the graph's ends: `model.onnx_data`, `model.onnx.data.1`.
fn is_data_of(file: &str, graph: &str) -> bool {
    file.strip_prefix(graph).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

/// The decoder of `dtype` with the graphs and data files beside it.
fn graphs(files: &[String], dtype: Option<&str>) -> Option<Vec<String>> {
    let suffix = match dtype {
        None | Some("fp32" | "f32") => String::new(),
        Some("q8") => "_quantized".to_string(),
        Some(dtype) => format!("_{dtype}"),
    };
    let has = |name: &str| files.iter().any(|file| file == name);
    for folder in ["onnx/", ""] {
        let Some(decoder) = DECODERS.iter().map(|stem| format!("{folder}{stem}{suffix}.onnx")).find(|name| has(name))
        else {
            continue;
        };
        let companions = COMPANIONS.iter().map(|stem| format!("{folder}{stem}{suffix}.onnx")).filter(|name| has(name));
        let graphs: Vec<String> = std::iter::once(decoder).chain(companions).collect();
        let data: Vec<String> =
            files.iter().filter(|file| graphs.iter().any(|graph| is_data_of(file, graph))).cloned().collect();
        // A graph comes after its data: where the graph is, all of it is.
        return Some(data.into_iter().chain(graphs).collect());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &[&str]) -> Vec<String> {
        files.iter().map(|file| file.to_string()).collect()
    }

    #[test]
    fn takes_the_graph_of_the_dtype_with_its_data() {
        let files = names(&[
            "README.md",
            "config.json",
            "model.safetensors",
            "onnx/model.onnx",
            "onnx/model.onnx_data",
            "onnx/model_q4.onnx",
            "onnx/model_q4.onnx_data",
            "onnx/model_q4f16.onnx",
        ]);
        let choice = choose(&files, Some("q4"), Kind::Any).unwrap();
        assert_eq!(choice.files(), ["config.json", "onnx/model_q4.onnx_data", "onnx/model_q4.onnx"]);
        let choice = choose(&files, None, Kind::Any).unwrap();
        assert_eq!(choice.files(), ["config.json", "onnx/model.onnx_data", "onnx/model.onnx"]);
    }

    #[test]
    fn names_the_graphs_when_the_dtype_is_missing() {
        let error =
            choose(&names(&["onnx/model_q4.onnx", "onnx/model_int8.onnx"]), Some("fp16"), Kind::Any).unwrap_err();
        assert!(error.to_string().contains("onnx/model_int8.onnx"), "{error}");
    }

    #[test]
    fn takes_all_shards_of_a_checkpoint() {
        let files = names(&[
            "config.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
        ]);
        assert_eq!(choose(&files, None, Kind::Any).unwrap().files().len(), 4);
        let error = choose(&[&files[..2], &files[3..]].concat(), None, Kind::Any).unwrap_err().to_string();
        assert!(error.contains("1 of the checkpoint's 2 files"), "{error}");
    }

    #[test]
    fn takes_the_only_gguf_and_asks_among_several() {
        let choice = choose(&names(&["a.Q4_0.gguf", "a.Q8_0.gguf"]), Some("q8_0"), Kind::Any).unwrap();
        assert_eq!(choice.model_in(Path::new("x")), Path::new("x/a.Q8_0.gguf"));
        assert!(choose(&names(&["a.Q4_0.gguf", "a.Q8_0.gguf"]), None, Kind::Any).is_err());
        assert!(choose(&names(&["README.md"]), None, Kind::Any).is_err());
    }
}
