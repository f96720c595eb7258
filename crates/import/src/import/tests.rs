use std::path::{Path, PathBuf};

use prost::Message;
use serde_json::{Value, json};

use super::*;
use crate::gguf::sample::{Sample, text};
use crate::onnx::proto::ModelProto;
use crate::quant::GgmlType;
use crate::safetensors::sample::floats;

const CONFIG: &str = r#"{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 10,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "hidden_act": "silu"}"#;

/// Tensors of a decoder of one layer: names of both formats and shapes, outputs first.
const TENSORS: [(&str, &str, &[usize]); 14] = [
    ("model.embed_tokens.weight", "token_embd.weight", &[10, 32]),
    ("model.norm.weight", "output_norm.weight", &[32]),
    ("model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight", &[32]),
    ("model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight", &[32]),
    ("model.layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight", &[32, 32]),
    ("model.layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight", &[16, 32]),
    ("model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight", &[16, 32]),
    ("model.layers.0.self_attn.q_proj.bias", "blk.0.attn_q.bias", &[32]),
    ("model.layers.0.self_attn.k_proj.bias", "blk.0.attn_k.bias", &[16]),
    ("model.layers.0.self_attn.v_proj.bias", "blk.0.attn_v.bias", &[16]),
    ("model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight", &[32, 32]),
    ("model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight", &[64, 32]),
    ("model.layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight", &[64, 32]),
    ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight", &[32, 64]),
];

fn values(shape: &[usize]) -> Vec<f32> {
    (0..shape.iter().product::<usize>()).map(|index| (index * 7 % 23) as f32 / 23.0 - 0.5).collect()
}

fn safetensors_folder(folder: &Path) -> PathBuf {
    let path = folder.join("checkpoint");
    fs::create_dir(&path).unwrap();
    let tensors: Vec<_> =
        TENSORS.iter().map(|(name, _, shape)| (name.to_string(), shape.to_vec(), values(shape))).collect();
    fs::write(path.join("model.safetensors"), floats(&tensors)).unwrap();
    fs::write(path.join("config.json"), CONFIG).unwrap();
    fs::write(path.join("tokenizer.json"), "{}").unwrap();
    fs::write(path.join("chat_template.jinja"), "{{ messages }}").unwrap();
    fs::write(path.join("private_notes.txt"), "not for the model").unwrap();
    fs::create_dir(path.join("additional_chat_templates")).unwrap();
    fs::write(path.join("additional_chat_templates/tool_use.jinja"), "{{ tools }}").unwrap();
    path
}

fn gguf_file(folder: &Path) -> PathBuf {
    gguf_file_of(folder, 1)
}

fn gguf_file_of(folder: &Path, layers: u32) -> PathBuf {
    let tokens: Vec<u8> = (0..10).flat_map(|id| text(&char::from(b'a' + id).to_string())).collect();
    let array = |kind: u32, count: u64, bytes: &[u8]| [&kind.to_le_bytes()[..], &count.to_le_bytes(), bytes].concat();
    let mut sample = Sample::default()
        .str("general.architecture", "qwen2")
        .u32("qwen2.block_count", layers)
        .u32("qwen2.embedding_length", 32)
        .u32("qwen2.feed_forward_length", 64)
        .u32("qwen2.attention.head_count", 4)
        .u32("qwen2.attention.head_count_kv", 2)
        .u32("qwen2.context_length", 128)
        .f32("qwen2.attention.layer_norm_rms_epsilon", 1e-5)
        .f32("qwen2.rope.freq_base", 1e6)
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "qwen2")
        .entry("tokenizer.ggml.tokens", 9, &array(8, 10, &tokens))
        .entry("tokenizer.ggml.merges", 9, &array(8, 0, &[]))
        .entry("tokenizer.ggml.token_type", 9, &array(5, 10, &1_i32.to_le_bytes().repeat(10)))
        .str("tokenizer.chat_template", "{{ messages }}")
        .u32("tokenizer.ggml.bos_token_id", 1)
        .u32("tokenizer.ggml.eos_token_id", 2)
        .u32("tokenizer.ggml.eot_token_id", 3)
        .u32("tokenizer.ggml.padding_token_id", u32::MAX);
    let more = (1..layers).flat_map(|layer| TENSORS[2..].iter().map(move |tensor| (layer, tensor)));
    for (layer, (_, name, shape)) in TENSORS.iter().map(|tensor| (0, tensor)).chain(more) {
        let name = &name.replace("blk.0", &format!("blk.{layer}"));
        let dims: Vec<u64> = shape.iter().rev().map(|&dim| dim as u64).collect();
        sample = match shape {
            [rows, cols] => {
                let block = [&half::f16::from_f32(0.125).to_le_bytes()[..], &[0x5a; 16]].concat();
                sample.tensor(name, &dims, GgmlType::Q4_0, &block.repeat(rows * cols / 32))
            }
            _ => sample.floats(name, &dims, &values(shape)),
        };
    }
    let path = folder.join("model.gguf");
    fs::write(&path, sample.file()).unwrap();
    path
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_safetensors_folder_becomes_a_model_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, out) = (safetensors_folder(folder.path()), folder.path().join("deep/out"));
    let report = import(&checkpoint, &out, &ImportOptions::default()).unwrap();
    assert_eq!(
        names(&out),
        ["additional_chat_templates", "chat_template.jinja", "config.json", "import.json", "onnx", "tokenizer.json"]
    );
    assert_eq!(names(&out.join("onnx")), ["model.onnx", "model.onnx.data"]);
    assert_eq!(fs::read_to_string(out.join("additional_chat_templates/tool_use.jinja")).unwrap(), "{{ tools }}");
    assert_eq!(names(&folder.path().join("deep")), ["out"]);
    assert_eq!(report.to_string().split(';').next(), Some("qwen2 with 14 tensors: 14 as f32"));
    let model = ModelProto::decode(&fs::read(out.join("onnx/model.onnx")).unwrap()[..]).unwrap();
    let inputs: Vec<String> = model.graph.unwrap().input.into_iter().map(|input| input.name).collect();
    assert_eq!(
        inputs,
        ["input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value", "logits_to_keep"]
    );
}

#[test]
fn a_gguf_file_becomes_a_model_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (checkpoint, out) = (gguf_file(folder.path()), folder.path().join("out"));
    fs::create_dir(&out).unwrap();
    let report = import(&checkpoint, &out, &ImportOptions::default()).unwrap();
    assert!(
        report.to_string().starts_with("qwen2 with 14 tensors: 8 quantised ones kept without loss, 6 as f32"),
        "{report}"
    );
    assert_eq!(names(&out.join("onnx")), ["model.onnx", "model.onnx.data", "prompt.onnx", "token.onnx"]);
    let rounding = |graph: &str| {
        let model = ModelProto::decode(&fs::read(out.join("onnx").join(graph)).unwrap()[..]).unwrap();
        let products = model.graph.unwrap().node.into_iter().filter(|node| node.op_type == "MatMulNBits");
        products.map(|node| node.attribute.iter().any(|a| a.name == "accuracy_level")).collect::<Vec<_>>()
    };
    assert!(rounding("token.onnx").iter().all(|&rounds| rounds), "single tokens round activations");
    let expected = [true, false, false, false, false];
    assert_eq!(
        rounding("model.onnx"),
        expected,
        "of a prompt, the last position is by itself after the last attention"
    );
    assert!(!rounding("prompt.onnx").is_empty() && rounding("prompt.onnx").iter().all(|&rounds| !rounds));
    assert_eq!(
        names(&out),
        ["config.json", "generation_config.json", "import.json", "onnx", "tokenizer.json", "tokenizer_config.json"]
    );
    assert_eq!(
        report.warnings,
        ["tokenizer.ggml.padding_token_id is 4294967295, but there are 10 tokens; it is left out"]
    );
    let config = json(&out.join("config.json"));
    assert_eq!(config["architectures"], json!(["Qwen2ForCausalLM"]));
    for (field, expected) in [("rms_norm_eps", json!(1e-5)), ("rope_theta", json!(1e6)), ("head_dim", json!(8))] {
        assert_eq!(config[field], expected, "{field}");
    }
    let ids = json!({"bos_token_id": 1, "eos_token_id": [2, 3]});
    assert_eq!(json(&out.join("generation_config.json")), ids);
    let tokenizer = json(&out.join("tokenizer_config.json"));
    assert_eq!(tokenizer["eos_token"], "c");
    assert_eq!(tokenizer["chat_template"], "{{ messages }}");
    assert_eq!(tokenizer["model_max_length"], 128);
}

#[test]
fn hidden_states_are_written_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = gguf_file(folder.path());
    let out = folder.path().join("out");
    import(&checkpoint, &out, &ImportOptions { hidden_states: true, ..ImportOptions::default() }).unwrap();
    let graph =
        |name: &str| ModelProto::decode(&fs::read(out.join("onnx").join(name)).unwrap()[..]).unwrap().graph.unwrap();
    for name in ["model.onnx", "token.onnx", "prompt.onnx"] {
        let outputs: Vec<String> = graph(name).output.into_iter().map(|output| output.name).collect();
        let expected = ["logits", "present.0.key", "present.0.value", "hidden_states.0", "hidden_states.1"];
        assert_eq!(outputs, expected, "{name}");
    }
    let head = graph("head.onnx");
    let names = |values: &[crate::onnx::proto::ValueInfoProto]| -> Vec<String> {
        values.iter().map(|value| value.name.clone()).collect()
    };
    assert_eq!(
        (names(&head.input), names(&head.output)),
        (vec!["hidden_states".to_owned()], vec!["logits".to_owned()])
    );
    assert!(head.node.iter().all(|node| node.name.starts_with("/head/")), "only the output matrix");
    let products = head.node.iter().filter(|node| node.op_type == "MatMulNBits");
    assert!(
        products.clone().count() == 1 && products.flat_map(|node| &node.attribute).all(|a| a.name != "accuracy_level")
    );
}

#[test]
fn early_exits_are_written_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = gguf_file_of(folder.path(), 3);
    let out = folder.path().join("out");
    import(&checkpoint, &out, &ImportOptions { early_exits: vec![2, 1, 2], ..ImportOptions::default() }).unwrap();
    let onnx = out.join("onnx");
    let files = ["exit_1.onnx", "exit_1_token.onnx", "exit_2.onnx", "exit_2_token.onnx"];
    let written: Vec<String> = names(&onnx).into_iter().filter(|name| name.starts_with("exit")).collect();
    assert_eq!(written, files);
    let graph = |name: &str| ModelProto::decode(&fs::read(onnx.join(name)).unwrap()[..]).unwrap().graph.unwrap();
    for (name, layers) in files.into_iter().zip([1, 1, 2, 2]) {
        let graph = graph(name);
        let names = |values: &[crate::onnx::proto::ValueInfoProto]| -> Vec<String> {
            values.iter().map(|value| value.name.clone()).collect()
        };
        let parts = |what: &str| -> Vec<String> {
            (0..layers).flat_map(|layer| ["key", "value"].map(|part| format!("{what}.{layer}.{part}"))).collect()
        };
        let inputs = names(&graph.input);
        assert_eq!(
            inputs,
            [
                &["input_ids", "attention_mask"].map(str::to_owned)[..],
                &parts("past_key_values"),
                &["logits_to_keep".to_owned()]
            ]
            .concat(),
            "{name}"
        );
        assert_eq!(names(&graph.output), [&["logits".to_owned()][..], &parts("present")].concat(), "{name}");
        let above = format!("layers.{layers}/");
        assert!(graph.node.iter().all(|node| !node.name.contains(&above)), "{name}: a layer above the exit");
        assert!(
            graph.initializer.iter().all(|constant| !constant.name.contains(&format!("layers.{layers}."))),
            "{name}"
        );
    }
    for wrong in [0, 3, 9] {
        let options = ImportOptions { early_exits: vec![wrong], ..ImportOptions::default() };
        let error = import(&checkpoint, &folder.path().join("none"), &options).unwrap_err().to_string();
        assert!(
            error.contains(&format!("an early exit after {wrong} layers; the model has 3, so expected 1 to 2")),
            "{error}"
        );
        assert!(!folder.path().join("none").exists());
    }
}

#[test]
fn requantising_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = gguf_file(folder.path());
    for (weights, expected) in [
        (Weights::Int4, "8 requantised to int4, 6 as f32"),
        (Weights::Int8, "8 requantised to int8, 6 as f32"),
        (Weights::F32, "14 as f32, among them 8 dequantised (model.embed_tokens.weight, ...)"),
    ] {
        let options = ImportOptions { weights, ..ImportOptions::default() };
        let report = import(&checkpoint, &folder.path().join(weights.name()), &options).unwrap();
        assert!(report.to_string().contains(expected), "{report}");
        assert_eq!(Weights::parse(weights.name()).unwrap(), weights);
    }
    assert!(Weights::parse("int3").is_err());
}

#[test]
fn nothing_is_left_when_the_import_ends_early() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = safetensors_folder(folder.path());
    let out = folder.path().join("out");
    let progress = OnProgress::new(|progress| {
        assert_eq!((progress.total, progress.total_bytes), (14, 38_784));
        assert!(progress.bytes > 0 && progress.bytes <= progress.total_bytes);
        if progress.done < 5 { Ok(()) } else { Err(Error::callback(format!("stopped at {}", progress.tensor))) }
    });
    let options = ImportOptions { progress: Some(progress), ..ImportOptions::default() };
    let error = import(&checkpoint, &out, &options).unwrap_err();
    assert!(error.to_string().contains("stopped at model.layers.0."), "{error}");
    assert_eq!(names(folder.path()), ["checkpoint"]);
}

#[test]
fn an_occupied_folder_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = safetensors_folder(folder.path());
    let error = import(&checkpoint, &checkpoint, &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("checkpoint: is there already and not empty"), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(import(&checkpoint, &file, &ImportOptions::default()).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

#[test]
fn a_tokenizer_that_is_missing_or_broken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = safetensors_folder(folder.path());
    let out = folder.path().join("out");
    for broken in [&b""[..], b"{\"a\":", b"\xff\xfe{}"] {
        fs::write(checkpoint.join("tokenizer.json"), broken).unwrap();
        let error = import(&checkpoint, &out, &ImportOptions::default()).unwrap_err().to_string();
        let place = checkpoint.join("tokenizer.json");
        assert!(
            error.starts_with(&place.display().to_string()) && error.contains("download the file again"),
            "{error}"
        );
    }
    fs::remove_file(checkpoint.join("tokenizer.json")).unwrap();
    let report = import(&checkpoint, &out, &ImportOptions::default()).unwrap();
    assert!(report.warnings[0].contains("no tokenizer.json"), "{:?}", report.warnings);
}

#[test]
fn what_is_no_model_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let checkpoint = safetensors_folder(folder.path());
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n";
    for name in ["model.safetensors", "tokenizer.json", "config.json"] {
        let whole = fs::read(checkpoint.join(name)).unwrap();
        for (content, expected) in [(pointer, "git lfs pull"), ("<!DOCTYPE html>\n<html>", "an HTML page")] {
            fs::write(checkpoint.join(name), content).unwrap();
            let error = import(&checkpoint, &out, &ImportOptions::default()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(name), "{error}");
        }
        fs::write(checkpoint.join(name), whole).unwrap();
    }
    let file = folder.path().join("m.gguf");
    fs::write(&file, pointer).unwrap();
    assert!(import(&file, &out, &ImportOptions::default()).unwrap_err().to_string().contains("git lfs pull"));
    import(&checkpoint, &out, &ImportOptions::default()).unwrap();
}
