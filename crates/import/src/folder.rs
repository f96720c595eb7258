//! The JSON files of a model folder: copied from a safetensors folder, or written from the metadata of a GGUF file.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use unspool_core::{Error, Result};

use crate::checkpoint::Checkpoint;
use crate::gguf::Gguf;
use crate::graph::RopeScaling;
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

/// Writes everything but the graph into `folder`.
///
/// # Errors
///
/// When a file cannot be written, or a GGUF file's vocabulary is broken or of a kind that is not supported.
pub(crate) fn write_description(checkpoint: &Checkpoint, folder: &Path) -> Result<()> {
    match checkpoint.gguf() {
        Some(file) => {
            write_json(folder, "config.json", &config(checkpoint, file)?)?;
            write_json(folder, "generation_config.json", &Value::Object(special_ids(file)))?;
            write_json(folder, "tokenizer.json", &tokenizer::tokenizer_json(file)?)?;
            write_json(folder, "tokenizer_config.json", &tokenizer_config(checkpoint, file)?)
        }
        None => copy(checkpoint, folder),
    }
}

fn copy(checkpoint: &Checkpoint, folder: &Path) -> Result<()> {
    let path = checkpoint.path();
    let source = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    for name in COPIED {
        let from = source.join(name);
        if from.is_file() {
            fs::copy(&from, folder.join(name))
                .map_err(|cause| Error::io("cannot copy the file").at(from.display()).because(cause))?;
        }
    }
    Ok(())
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
        fields.extend(special_ids(file));
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
fn special_ids(file: &Gguf) -> Map<String, Value> {
    let id = |key: &str| file.u32(&format!("tokenizer.ggml.{key}")).ok();
    let mut ids = Map::new();
    if let Some(bos) = id("bos_token_id") {
        ids.insert("bos_token_id".to_owned(), bos.into());
    }
    match (id("eos_token_id"), id("eot_token_id")) {
        (Some(eos), Some(eot)) if eos != eot => ids.insert("eos_token_id".to_owned(), json!([eos, eot])),
        (Some(eos), _) | (None, Some(eos)) => ids.insert("eos_token_id".to_owned(), eos.into()),
        (None, None) => None,
    };
    if let Some(pad) = id("padding_token_id") {
        ids.insert("pad_token_id".to_owned(), pad.into());
    }
    ids
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
