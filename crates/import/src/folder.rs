//! The JSON files of a model folder: copied from a safetensors folder, or written from the metadata of a GGUF file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use unspool_core::{Error, Result, file};

use crate::checkpoint::Checkpoint;
use crate::gguf::Gguf;
use crate::graph::RopeScaling;
use crate::safetensors::weight_files;
use crate::staging::parent_of;
use crate::tokenizer;

/// Files that describe a checkpoint's text side and settings, and are taken over as they are.
const COPIED: [&str; 9] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
];

/// Those of them that a model is opened with.
const NEEDED: [&str; 3] = ["generation_config.json", "tokenizer.json", "tokenizer_config.json"];

/// The folder of further chat templates, one file each.
const TEMPLATES: &str = "additional_chat_templates";

/// The largest of these files that is copied, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Writes everything but the graph into `folder`.
///
/// # Errors
///
/// When a file cannot be written, or a GGUF file's vocabulary is broken or of a kind that is not supported.
pub(crate) fn write_description(checkpoint: &Checkpoint, folder: &Path) -> Result<()> {
    match checkpoint.gguf() {
        Some(gguf) => {
            write_json(folder, "config.json", &config(checkpoint, gguf)?)?;
            write_json(folder, "generation_config.json", &Value::Object(special_ids(gguf)?))?;
            write_json(folder, "tokenizer.json", &tokenizer::tokenizer_json(gguf)?)?;
            write_json(folder, "tokenizer_config.json", &tokenizer_config(checkpoint, gguf)?)
        }
        None => copy(checkpoint, folder),
    }
}

fn copy(checkpoint: &Checkpoint, folder: &Path) -> Result<()> {
    let source = source_of(checkpoint.path());
    for name in described_in(&source) {
        let (from, to) = (source.join(&name), folder.join(&name));
        let Some(bytes) = file::read_bytes(&from, MAX_BYTES)? else { continue };
        check(&name, &bytes).map_err(|error| error.at(from.display()))?;
        let written = fs::create_dir_all(to.parent().unwrap_or(folder)).and_then(|()| fs::write(&to, bytes));
        written.map_err(|error| Error::io("cannot copy the file").at(from.display()).because(error))?;
    }
    Ok(())
}

/// Refuses what nothing could read later, while the file can still be named.
fn check(name: &str, bytes: &[u8]) -> Result<()> {
    if let Some(what) = file::mistaken(bytes) {
        return Err(Error::invalid_model(what));
    }
    if !NEEDED.contains(&name) {
        return Ok(());
    }
    let failed = |message: String| Error::invalid_model(format!("{message}; download the file again"));
    let text = std::str::from_utf8(bytes).map_err(|_| failed("this file is not UTF-8 text".to_owned()))?;
    unspool_core::json::from_str::<IgnoredAny>(text).map(|_| ()).map_err(|error| failed(error.to_string()))
}

/// The folder with the description of a safetensors checkpoint.
fn source_of(checkpoint: &Path) -> PathBuf {
    if checkpoint.is_dir() { checkpoint.to_owned() } else { parent_of(checkpoint) }
}

/// The names of the files in `source` that an import takes over.
fn described_in(source: &Path) -> Vec<String> {
    let mut names: Vec<String> = COPIED.iter().map(|name| (*name).to_owned()).collect();
    let mut templates: Vec<String> = fs::read_dir(source.join(TEMPLATES))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".jinja"))
        .map(|name| format!("{TEMPLATES}/{name}"))
        .collect();
    templates.sort();
    names.extend(templates);
    names.retain(|name| source.join(name).is_file());
    names
}

/// Every file that an import of `checkpoint` reads.
///
/// # Errors
///
/// When an index of shards cannot be read.
pub fn files_read(checkpoint: &Path) -> Result<Vec<PathBuf>> {
    if checkpoint.extension().is_some_and(|ending| ending == "gguf") {
        return Ok(vec![checkpoint.to_owned()]);
    }
    let source = source_of(checkpoint);
    let mut files = if checkpoint.is_dir() { weight_files(checkpoint)? } else { vec![checkpoint.to_owned()] };
    files.extend(described_in(&source).into_iter().map(|name| source.join(name)));
    Ok(files)
}

/// `config.json` as transformers writes it for the same model.
fn config(checkpoint: &Checkpoint, file: &Gguf) -> Result<Value> {
    let hyper = checkpoint.hyper()?;
    let class = match checkpoint.architecture() {
        "qwen2" => "Qwen2ForCausalLM",
        "qwen3" => "Qwen3ForCausalLM",
        _ => "LlamaForCausalLM",
    };
    let mut config = json!({
        "architectures": [class],
        "model_type": checkpoint.architecture(),
        "hidden_size": hyper.hidden_size,
        "intermediate_size": hyper.intermediate_size,
        "num_hidden_layers": hyper.layers,
        "num_attention_heads": hyper.heads,
        "num_key_value_heads": hyper.kv_heads,
        "head_dim": hyper.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": hyper.max_position_embeddings,
        "vocab_size": hyper.vocab_size,
        "rms_norm_eps": shortest(hyper.rms_norm_eps),
        "rope_theta": hyper.rope_theta,
        "rope_scaling": rope_scaling(&hyper.rope_scaling),
        "attention_bias": hyper.attention_bias,
        "tie_word_embeddings": hyper.tied_embeddings,
        "sliding_window": hyper.sliding_windows.iter().flatten().next(),
        "use_cache": true,
    });
    if let Value::Object(fields) = &mut config {
        fields.extend(special_ids(file)?);
    }
    Ok(config)
}

fn rope_scaling(scaling: &RopeScaling) -> Value {
    match scaling {
        // Divisors of single frequencies are in the graph's tables; config.json has no word for them.
        RopeScaling::None | RopeScaling::Factors(_) => Value::Null,
        RopeScaling::Linear { factor } => json!({"rope_type": "linear", "factor": factor}),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_positions } => json!({
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low_freq_factor,
            "high_freq_factor": high_freq_factor,
            "original_max_position_embeddings": original_positions,
        }),
    }
}

/// The ids of beginning, end and padding. A separate end of turn is an end as well, as in llama.cpp.
fn special_ids(file: &Gguf) -> Result<Map<String, Value>> {
    let found = tokenizer::special_ids(file)?;
    let mut ids = Map::new();
    if let Some(bos) = found.bos {
        ids.insert("bos_token_id".to_owned(), bos.into());
    }
    match (found.eos, found.eot) {
        (Some(eos), Some(eot)) if eos != eot => ids.insert("eos_token_id".to_owned(), json!([eos, eot])),
        (Some(eos), _) | (None, Some(eos)) => ids.insert("eos_token_id".to_owned(), eos.into()),
        (None, None) => None,
    };
    if let Some(pad) = found.pad {
        ids.insert("pad_token_id".to_owned(), pad.into());
    }
    Ok(ids)
}

fn tokenizer_config(checkpoint: &Checkpoint, file: &Gguf) -> Result<Value> {
    let mut config = tokenizer::tokenizer_config_json(file)?;
    if let Value::Object(fields) = &mut config {
        fields.insert("model_max_length".to_owned(), checkpoint.hyper()?.max_position_embeddings.into());
    }
    Ok(config)
}

/// The f64 that prints as the f32 does: 1e-5 and not 0.000009999999747378752.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

fn write_json(folder: &Path, name: &str, value: &Value) -> Result<()> {
    let path = folder.join(name);
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|cause| Error::io("cannot write JSON").at(path.display()).because(cause))?;
    text.push('\n');
    fs::write(&path, text).map_err(|cause| Error::io("cannot write the file").at(path.display()).because(cause))
}
