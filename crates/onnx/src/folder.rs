//! A model folder on disk: which graph to open, and what config.json says that the graph leaves open.

use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_core::{Error, Result, file, json};

use crate::graph::signature::ConfigFacts;

/// Largest JSON file that is read.
const MAX_JSON: u64 = 64 << 20;

/// Graph names by preference; the word of a `--dtype` follows the stem (`model_q4.onnx`).
const STEMS: [&str; 3] = ["model", "decoder_model_merged", "decoder_model"];

/// Finds the graph in `folder` (or takes `folder` itself when it is an `.onnx` file).
///
/// `dtype` is the word exporters put in file names: `fp32` (or nothing) for `model.onnx`, else `fp16`, `q4`, `q4f16`,
/// `int8`, `uint8`, `bnb4`, `quantized` (also as `q8`).
///
/// # Errors
///
/// When there is none, or several and no plain one; the message lists what is there.
pub fn find_graph(folder: &Path, dtype: Option<&str>) -> Result<PathBuf> {
    if folder.extension().is_some_and(|e| e == "onnx") && folder.is_file() {
        return Ok(folder.to_owned());
    }
    if !folder.is_dir() {
        return Err(Error::io(
            "there is no such model folder; give a folder that holds config.json and onnx/model.onnx",
        )
        .at(folder.display()));
    }
    let places = [folder.join("onnx"), folder.to_owned()];
    if let Some(encoder) = places.iter().map(|place| place.join("encoder_model.onnx")).find(|path| path.is_file()) {
        return Err(Error::unsupported(
            "this is an encoder-decoder model (its encoder is this file); encoder-decoder models such as T5, BART or Whisper \
             are not supported yet, use a decoder-only model",
        )
        .at(encoder.display()));
    }
    let suffix = match dtype {
        None | Some("fp32" | "f32") => String::new(),
        Some("q8") => "_quantized".to_owned(),
        Some(word) if word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => format!("_{word}"),
        Some(word) => {
            return Err(Error::invalid_input(format!(
                "dtype '{word}'; expected a word such as fp32, fp16, q4 or int8"
            )));
        }
    };
    for stem in STEMS {
        for place in &places {
            let path = place.join(format!("{stem}{suffix}.onnx"));
            if path.is_file() {
                return Ok(path);
            }
        }
    }
    let found = graphs_in(&places);
    if dtype.is_none() && found.len() == 1 {
        return Ok(found[0].clone());
    }
    let names: Vec<String> =
        found.iter().filter_map(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned()).collect();
    let what = match (dtype, names.is_empty()) {
        (_, true) => "no ONNX graph is here (looked for onnx/model.onnx, model.onnx, decoder_model_merged.onnx); \
                      export the model, or give a GGUF or safetensors checkpoint"
            .to_owned(),
        (Some(word), false) => format!("no graph of dtype '{word}' is here; there are {}", names.join(", ")),
        (None, false) => format!("several graphs are here ({}); choose one with --dtype", names.join(", ")),
    };
    Err(Error::invalid_input(what).at(folder.display()))
}

fn graphs_in(places: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            name.ends_with(".onnx") && STEMS.iter().any(|stem| name.starts_with(stem))
        })
        .collect();
    found.sort();
    found
}

/// The folder with config.json that a graph belongs to: its own, or the one above `onnx/`.
pub fn root_of(graph: &Path) -> PathBuf {
    let own = graph.parent().unwrap_or(Path::new("."));
    let above = own.parent().filter(|_| own.file_name().is_some_and(|name| name == "onnx"));
    match above {
        Some(above) if !own.join("config.json").is_file() => above.to_owned(),
        _ => own.to_owned(),
    }
}

/// Reads what config.json (and genai_config.json) say about sizes; missing files say nothing.
///
/// # Errors
///
/// When a file is there but no JSON object, or too large.
pub fn config_facts(root: &Path) -> Result<ConfigFacts> {
    let mut facts = ConfigFacts::default();
    if let Some(config) = read_json(&root.join("config.json"))? {
        let text = config.get("text_config").filter(|v| v.is_object());
        let number = |keys: &[&str]| {
            text.into_iter().chain([&config]).find_map(|v| keys.iter().find_map(|key| size(v.get(*key))))
        };
        let heads = number(&["num_attention_heads", "n_head", "n_heads"]);
        facts.vocab_size = number(&["vocab_size"]);
        facts.hidden_size = number(&["hidden_size", "n_embd", "d_model"]);
        facts.tied = text
            .into_iter()
            .chain([&config])
            .find_map(|v| v.get("tie_word_embeddings").and_then(json::flag))
            .unwrap_or(false);
        facts.kv_heads = number(&["num_key_value_heads"]).or(heads);
        facts.head_dim = number(&["head_dim"]).or_else(|| {
            let hidden = number(&["hidden_size", "n_embd", "d_model"])?;
            hidden.checked_div(heads?)
        });
        facts.max_positions = number(&["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"]);
    }
    if let Some(genai) = read_json(&root.join("genai_config.json"))? {
        let model = genai.get("model");
        let decoder = model.and_then(|m| m.get("decoder"));
        let from = |v: Option<&Value>, key: &str| v.and_then(|v| size(v.get(key)));
        facts.vocab_size = facts.vocab_size.or(from(model, "vocab_size"));
        facts.kv_heads = facts.kv_heads.or(from(decoder, "num_key_value_heads"));
        facts.head_dim = facts.head_dim.or(from(decoder, "head_size"));
        facts.max_positions = facts.max_positions.or(from(model, "context_length"));
    }
    Ok(facts)
}

fn size(value: Option<&Value>) -> Option<usize> {
    usize::try_from(json::int(value?)?).ok().filter(|&n| n > 0)
}

fn read_json(path: &Path) -> Result<Option<Value>> {
    let Some(text) = file::read_text(path, MAX_JSON)? else { return Ok(None) };
    let value = json::parse(&text).map_err(|error| {
        Error::invalid_model("this is not JSON; download it again").at(path.display()).because(error)
    })?;
    if value.is_object() {
        Ok(Some(value))
    } else {
        Err(Error::invalid_model("expected a JSON object").at(path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn takes_the_plain_graph_and_the_dtype_asked_for() {
        let folder =
            folder_with(&[("onnx/model.onnx", ""), ("onnx/model_q4.onnx", ""), ("onnx/model_quantized.onnx", "")]);
        let name = |dtype| find_graph(folder.path(), dtype).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name(None), "model.onnx");
        assert_eq!(name(Some("fp32")), "model.onnx");
        assert_eq!(name(Some("q4")), "model_q4.onnx");
        assert_eq!(name(Some("q8")), "model_quantized.onnx");
        let error = find_graph(folder.path(), Some("fp16")).unwrap_err().to_string();
        assert!(error.contains("'fp16'") && error.contains("model_q4.onnx"), "{error}");
        let error = find_graph(folder.path(), Some("../x")).unwrap_err().to_string();
        assert!(error.contains("dtype '../x'"), "{error}");
    }

    #[test]
    fn encoder_decoder_models_are_named() {
        let folder = folder_with(&[("onnx/encoder_model.onnx", ""), ("onnx/decoder_model_merged.onnx", "")]);
        let error = find_graph(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("encoder_model.onnx") && error.contains("not supported yet"), "{error}");
    }

    #[test]
    fn asks_when_there_are_several_graphs_and_no_plain_one() {
        let folder = folder_with(&[("model_q4.onnx", ""), ("model_int8.onnx", "")]);
        let error = find_graph(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("--dtype") && error.contains("model_int8.onnx"), "{error}");
        let folder = folder_with(&[("onnx/model_q4.onnx", "")]);
        assert!(find_graph(folder.path(), None).unwrap().ends_with("onnx/model_q4.onnx"), "the only one is taken");
        let folder = folder_with(&[]);
        assert!(find_graph(folder.path(), None).unwrap_err().to_string().contains("no ONNX graph is here"));
    }

    #[test]
    fn reads_sizes_from_text_config_and_derives_the_head_size() {
        let folder = folder_with(&[(
            "config.json",
            r#"{"vocab_size": 5, "text_config": {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}}"#,
        )]);
        let facts = config_facts(folder.path()).unwrap();
        assert_eq!((facts.vocab_size, facts.kv_heads, facts.head_dim), (Some(5), Some(2), Some(16)));
    }

    #[test]
    fn hostile_json_is_an_error() {
        let deep = "[".repeat(1_000_000);
        for text in ["", "{", "[]", "7", deep.as_str()] {
            let folder = folder_with(&[("config.json", text)]);
            assert!(config_facts(folder.path()).unwrap_err().to_string().contains("JSON"), "{:.20}", text);
        }
        let zero = folder_with(&[("config.json", r#"{"hidden_size": 8, "num_attention_heads": 0, "vocab_size": -1}"#)]);
        let facts = config_facts(zero.path()).unwrap();
        assert_eq!((facts.vocab_size, facts.head_dim), (None, None));
    }
}
