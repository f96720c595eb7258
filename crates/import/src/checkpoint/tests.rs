//! Small checkpoints of both formats, good and bad.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::gguf::sample::{Sample, text};
use crate::graph::RopeScaling;
use crate::quant::GgmlType;
use crate::safetensors::sample::floats;
use crate::weights::{BlockRows, MatrixKind, Source};

const LAYERS: usize = 2;

fn hyper() -> Hyper {
    Hyper {
        hidden_size: 32,
        intermediate_size: 64,
        layers: LAYERS,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        vocab_size: 10,
        max_position_embeddings: 128,
        rms_norm_eps: 1e-5,
        rope_theta: 1e4,
        rope_scaling: RopeScaling::None,
        attention_bias: false,
        output_bias: false,
        qk_norm: false,
        tied_embeddings: true,
        sliding_windows: vec![],
    }
}

/// The values of a tensor: integers, so that every type holds them, different for each row.
fn values(role: Role, hyper: &Hyper) -> Vec<f32> {
    let shape = role.shape(hyper);
    let columns: usize = shape.iter().skip(1).product();
    (0..shape.iter().product()).map(|i| ((i / columns) % 100 + i % columns % 3) as f32).collect()
}

fn has(role: Role, hyper: &Hyper) -> bool {
    role.is_required(hyper)
}

/// The rows of a matrix or vector as llama.cpp's converter orders them.
fn interleave(rows: &[f32], columns: usize, head_dim: usize) -> Vec<f32> {
    let half = head_dim / 2;
    let heads = rows.len() / columns / head_dim;
    let mut out = Vec::new();
    for head in 0..heads {
        for i in 0..half {
            for j in 0..2 {
                let row = head * head_dim + j * half + i;
                out.extend(&rows[row * columns..(row + 1) * columns]);
            }
        }
    }
    out
}

fn q8(rows: &[f32]) -> Vec<u8> {
    let block = |values: &[f32]| [vec![0x00, 0x3c], values.iter().map(|v| *v as i8 as u8).collect()].concat();
    rows.chunks(32).flat_map(block).collect()
}

fn gguf(hyper: &Hyper, architecture: &str) -> Sample {
    let key = |end: &str| format!("{architecture}.{end}");
    let mut sample = Sample::default()
        .str("general.architecture", architecture)
        .u32(&key("block_count"), hyper.layers as u32)
        .u32(&key("embedding_length"), hyper.hidden_size as u32)
        .u32(&key("feed_forward_length"), hyper.intermediate_size as u32)
        .u32(&key("attention.head_count"), hyper.heads as u32)
        .u32(&key("attention.head_count_kv"), hyper.kv_heads as u32)
        .u32(&key("attention.key_length"), hyper.head_dim as u32)
        .u32(&key("context_length"), hyper.max_position_embeddings as u32)
        .f32(&key("attention.layer_norm_rms_epsilon"), hyper.rms_norm_eps);
    for role in Role::all(hyper.layers).filter(|role| has(*role, hyper)) {
        let shape = role.shape(hyper);
        let mut numbers = values(role, hyper);
        use LayerRole::*;
        if architecture == "llama" && matches!(role, Role::Layer(_, QProj | KProj | QBias | KBias)) {
            numbers = interleave(&numbers, shape.iter().skip(1).product(), hyper.head_dim);
        }
        let dims: Vec<u64> = shape.iter().rev().map(|dim| *dim as u64).collect();
        sample = match shape.len() {
            2 => sample.tensor(&role.gguf_name(), &dims, GgmlType::Q8_0, &q8(&numbers)),
            _ => sample.floats(&role.gguf_name(), &dims, &numbers),
        };
    }
    sample
}

fn open_gguf(sample: &Sample) -> unspool_core::Result<Checkpoint> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, sample.file()).unwrap();
    Checkpoint::open(&path)
}

fn config() -> Value {
    json!({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 10,
        "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "hidden_act": "silu"})
}

fn with(changes: Value) -> Value {
    let mut config = config();
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn write_folder(folder: &Path, config: &Value, hyper: &Hyper, more: &[(&str, Vec<usize>)]) {
    let mut tensors: Vec<_> = Role::all(hyper.layers)
        .filter(|role| has(*role, hyper))
        .map(|role| (role.hf_name(), role.shape(hyper), values(role, hyper)))
        .collect();
    tensors.extend(
        more.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone(), vec![0.5; shape.iter().product()])),
    );
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.join("model.safetensors"), floats(&tensors)).unwrap();
}

fn open_folder(config: &Value, hyper: &Hyper, more: &[(&str, Vec<usize>)]) -> unspool_core::Result<Checkpoint> {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), config, hyper, more);
    Checkpoint::open(folder.path())
}

fn config_error(changes: Value) -> String {
    open_folder(&with(changes), &hyper(), &[]).unwrap_err().to_string()
}

#[test]
fn both_formats_give_the_same_tensors_in_the_same_order() {
    let biased = Hyper { attention_bias: true, tied_embeddings: false, ..hyper() };
    let file = open_gguf(&gguf(&biased, "llama")).unwrap();
    let settings = with(json!({"attention_bias": true, "tie_word_embeddings": false}));
    // Llama's configuration has a bias on the output of attention as well.
    let folder_hyper = Hyper { output_bias: true, ..biased.clone() };
    let folder = open_folder(&settings, &folder_hyper, &[]).unwrap();
    assert_eq!(file.hyper().unwrap(), biased);
    assert_eq!(folder.hyper().unwrap(), folder_hyper);
    assert!(file.gguf().is_some() && folder.gguf().is_none());
    for role in Role::all(LAYERS) {
        let (ours, theirs) = (file.tensor(role).unwrap(), folder.tensor(role).unwrap());
        assert_eq!(ours.is_some(), role.is_required(&biased), "{role:?}");
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            assert_eq!(ours.shape(), theirs.shape());
            assert_eq!(ours.name(), theirs.name());
            assert_eq!(ours.to_f32().unwrap(), values(role, &biased), "{role:?}");
            assert_eq!(theirs.to_f32().unwrap(), values(role, &biased), "{role:?}");
        }
    }
}

#[test]
fn rows_and_blocks_of_queries_are_put_back_in_order() {
    let file = open_gguf(&gguf(&hyper(), "llama")).unwrap();
    let role = Role::Layer(1, LayerRole::QProj);
    let tensor = file.tensor(role).unwrap().unwrap();
    let expected = values(role, &hyper());
    assert!(tensor.bytes_in_order().is_none());
    for row in 0..32 {
        let group = tensor.row_groups(row).unwrap().next().unwrap();
        assert_eq!(group.values().collect::<Vec<_>>(), expected[row * 32..(row + 1) * 32], "{row}");
        assert_eq!(tensor.row(row).unwrap().len(), 34);
    }
    assert!(tensor.row(32).is_none());
    assert!(tensor.row_f32(32, &mut [0.0; 32]).is_err());
}

#[test]
fn qwen_files_are_not_reordered() {
    let qwen = Hyper { attention_bias: true, ..hyper() };
    let file = open_gguf(&gguf(&qwen, "qwen2")).unwrap();
    let role = Role::Layer(0, LayerRole::KProj);
    assert_eq!(file.tensor(role).unwrap().unwrap().to_f32().unwrap(), values(role, &qwen));
    assert!(file.hyper().unwrap().attention_bias);
    let qwen3 = Hyper { qk_norm: true, ..hyper() };
    let file = open_gguf(&gguf(&qwen3, "qwen3")).unwrap();
    assert_eq!(file.tensor(Role::Layer(0, LayerRole::QNorm)).unwrap().unwrap().shape(), [8]);
}

#[test]
fn serves_the_writers_of_weights() {
    let file = open_gguf(&gguf(&hyper(), "llama")).unwrap();
    let name = "model.layers.0.self_attn.q_proj.weight";
    let matrix = file.matrix(name).unwrap();
    assert_eq!((matrix.rows, matrix.cols), (32, 32));
    assert_eq!(matrix.kind, MatrixKind::Blocks { block: 32, min: -128, max: 127, affine: false });
    let expected = values(Role::Layer(0, LayerRole::QProj), &hyper());
    let mut out = vec![];
    file.floats(name, 3..5, &mut out).unwrap();
    assert_eq!(out, expected[3 * 32..5 * 32]);
    let mut blocks = BlockRows::default();
    file.blocks(name, 3..5, &mut blocks).unwrap();
    assert_eq!((blocks.scale.len(), blocks.offset.len()), (2, 0));
    assert_eq!(blocks.q.iter().map(|q| f32::from(*q)).collect::<Vec<_>>(), expected[3 * 32..5 * 32]);
    let norm = file.matrix("model.norm.weight").unwrap();
    assert_eq!((norm.rows, norm.cols, norm.kind), (1, 32, MatrixKind::Float));
    out.clear();
    file.floats("model.norm.weight", 0..1, &mut out).unwrap();
    assert_eq!(out, values(Role::Norm, &hyper()));
    assert!(file.matrix("lm_head.weight").is_none());
    assert!(file.floats(name, 30..33, &mut out).is_err());
    assert!(file.floats("none", 0..1, &mut out).is_err());
    assert!(file.blocks(name, 32..33, &mut blocks).is_err());
}

#[test]
fn refuses_architectures_by_name() {
    let error = open_gguf(&gguf(&hyper(), "gemma3")).unwrap_err().to_string();
    assert!(
        error.contains("GGUF architecture \"gemma3\" is not supported, supported are llama, qwen2, qwen3"),
        "{error}"
    );
    assert!(error.contains("an ONNX export of the model"), "{error}");
    let error = config_error(json!({"model_type": "phi3"}));
    assert!(error.contains("model type \"phi3\" is not supported"), "{error}");
    assert!(error.contains("an ONNX export of the model"), "{error}");
    for encoder in [json!({"model_type": "t5"}), json!({"model_type": "marian", "is_encoder_decoder": true})] {
        let error = config_error(encoder);
        assert!(error.contains("has an encoder and a decoder; only decoders are imported"), "{error}");
    }
    let error = config_error(json!({"architectures": ["LlamaForSequenceClassification"]}));
    assert!(error.contains("architecture \"LlamaForSequenceClassification\""), "{error}");
    let experts = gguf(&hyper(), "llama").u32("llama.expert_count", 8);
    assert!(open_gguf(&experts).unwrap_err().to_string().contains("mixtures of experts"));
    let split = gguf(&hyper(), "llama").entry("split.count", 2, &[3, 0]);
    assert!(open_gguf(&split).unwrap_err().to_string().contains("3 parts of a split GGUF"));
    let scaled = gguf(&hyper(), "llama").f32("llama.logit_scale", 8.0);
    assert!(open_gguf(&scaled).unwrap_err().to_string().contains("\"llama.logit_scale\" is not supported"));
}

#[test]
fn refuses_settings_that_change_the_model_by_name() {
    for (changes, expected) in [
        (json!({"quantization_config": {"quant_method": "gptq"}}), "quantization_config"),
        (json!({"hidden_act": "gelu"}), "\"hidden_act\" \"gelu\" is not supported"),
        (json!({"mlp_bias": true}), "mlp_bias"),
        (json!({"partial_rotary_factor": 0.5}), "\"partial_rotary_factor\" 0.5"),
        (json!({"rope_scaling": {"type": "yarn", "factor": 4.0}}), "rope scaling \"yarn\" is not supported"),
        (json!({"rope_scaling": {"type": "linear"}}), "rope scaling \"linear\" has no \"factor\""),
        (json!({"rope_scaling": 7}), "\"rope_scaling\" is 7, expected an object"),
        (json!({"tie_word_embeddings": "yes"}), "\"tie_word_embeddings\" is \"yes\""),
    ] {
        let error = config_error(changes);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn refuses_absurd_sizes_by_name() {
    for (changes, expected) in [
        (json!({"hidden_size": 0}), "hidden_size is 0, expected 1 to 1048576"),
        (json!({"hidden_size": u64::MAX}), "hidden_size is 18446744073709551615"),
        (json!({"hidden_size": -4}), "\"hidden_size\" is -4"),
        (json!({"hidden_size": null}), "has no \"hidden_size\""),
        (json!({"num_hidden_layers": 1_000_000_000}), "num_hidden_layers is 1000000000"),
        (json!({"num_attention_heads": 3}), "hidden_size 32 does not divide among 3"),
        (json!({"num_key_value_heads": 3}), "4 attention heads do not divide among 3"),
        (json!({"num_attention_heads": 32, "num_key_value_heads": 32}), "the head size is 1, expected an even"),
        (json!({"rms_norm_eps": -1.0}), "rms_norm_eps is -1"),
        (json!({"rope_theta": 0}), "rope_theta is 0"),
        (json!({"vocab_size": 11}), "\"model.embed_tokens.weight\" has shape [10, 32], expected [11, 32]"),
        (json!({"num_hidden_layers": 3}), "\"model.layers.2.input_layernorm.weight\" is missing, expected shape [32]"),
        (json!({"tie_word_embeddings": false}), "\"lm_head.weight\" is missing, expected shape [10, 32]"),
    ] {
        let error = config_error(changes);
        assert!(error.contains(expected), "{error}");
    }
    let error = open_gguf(&gguf(&hyper(), "llama").u32("llama.vocab_size", 0)).unwrap_err().to_string();
    assert!(error.contains("llama.vocab_size is 0, expected 1 to"), "{error}");
    let error = open_gguf(&gguf(&hyper(), "llama").u32("llama.rope.dimension_count", 4)).unwrap_err().to_string();
    assert!(error.contains("rotary positions on 4 of a head's 8 numbers"), "{error}");
}

#[test]
fn reads_rope_scaling_old_and_new() {
    let scaling = |changes| open_folder(&with(changes), &hyper(), &[]).unwrap().hyper().unwrap();
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64, "rope_theta": 5e5});
    let read = RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original_positions: 64 };
    let new = scaling(json!({"rope_parameters": llama3}));
    assert_eq!((new.rope_theta, new.rope_scaling), (5e5, read.clone()));
    let old = scaling(json!({"rope_scaling": llama3, "rope_theta": 1e6}));
    assert_eq!((old.rope_theta, old.rope_scaling), (5e5, read));
    let linear = scaling(json!({"rope_scaling": {"type": "linear", "factor": 2}, "rope_theta": 1e6}));
    assert_eq!((linear.rope_theta, linear.rope_scaling), (1e6, RopeScaling::Linear { factor: 2.0 }));
    let plain = scaling(json!({"rope_scaling": null}));
    assert_eq!((plain.rope_theta, plain.rope_scaling), (1e4, RopeScaling::None));
    let factors = gguf(&hyper(), "llama").floats("rope_freqs.weight", &[4], &[1.0, 1.0, 2.0, 8.0]);
    let factors = open_gguf(&factors).unwrap().hyper().unwrap();
    assert_eq!(factors.rope_scaling, RopeScaling::Factors(vec![1.0, 1.0, 2.0, 8.0]));
    let bad = |count: u64, numbers: &[f32]| {
        open_gguf(&gguf(&hyper(), "llama").floats("rope_freqs.weight", &[count], numbers)).unwrap_err().to_string()
    };
    assert!(bad(3, &[1.0; 3]).contains("has 3 numbers, expected 4"));
    assert!(bad(4, &[1.0, 0.0, 1.0, 1.0]).contains("finite number above 0"));
    let linear = gguf(&hyper(), "llama").entry("llama.rope.scaling.type", 8, &text("linear"));
    assert!(open_gguf(&linear).unwrap_err().to_string().contains("rope.scaling.factor"));
    let linear = linear.f32("llama.rope.scaling.factor", 4.0);
    assert_eq!(open_gguf(&linear).unwrap().hyper().unwrap().rope_scaling, RopeScaling::Linear { factor: 4.0 });
    let yarn = gguf(&hyper(), "llama").entry("llama.rope.scaling.type", 8, &text("yarn"));
    assert!(open_gguf(&yarn).unwrap_err().to_string().contains("\"yarn\" is not supported"));
}

#[test]
fn sliding_windows_are_those_of_the_configuration_class() {
    let windows = |changes: Value, hyper: &Hyper| {
        open_folder(&with(changes), hyper, &[]).unwrap().hyper().unwrap().sliding_windows
    };
    let mistral = |window: Value| json!({"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": window});
    assert_eq!(windows(mistral(json!(16)), &hyper()), [Some(16), Some(16)]);
    assert!(windows(mistral(Value::Null), &hyper()).is_empty());
    let silent = json!({"model_type": "mistral", "architectures": ["MistralForCausalLM"]});
    assert_eq!(windows(silent, &hyper()), [Some(4096), Some(4096)]);
    let qwen = Hyper { attention_bias: true, ..hyper() };
    let qwen2 = |uses: bool| {
        json!({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": uses,
            "sliding_window": 16, "max_window_layers": 1})
    };
    assert!(windows(qwen2(false), &qwen).is_empty());
    assert_eq!(windows(qwen2(true), &qwen), [None, Some(16)]);
    let mut listed = qwen2(true);
    listed["layer_types"] = json!(["sliding_attention", "full_attention"]);
    assert_eq!(windows(listed, &qwen), [Some(16), None]);
    assert!(windows(json!({"sliding_window": 16}), &hyper()).is_empty());
}

#[test]
fn defaults_are_those_of_the_configuration_class() {
    let mut silent = config();
    for name in ["rms_norm_eps", "max_position_embeddings", "num_key_value_heads", "tie_word_embeddings"] {
        silent.as_object_mut().unwrap().remove(name);
    }
    let full = Hyper { kv_heads: 4, tied_embeddings: false, ..hyper() };
    let read = open_folder(&silent, &full, &[]).unwrap().hyper().unwrap();
    assert_eq!((read.rms_norm_eps, read.max_position_embeddings), (1e-6, 2048));
    assert_eq!((read.kv_heads, read.head_dim, read.rope_theta, read.tied_embeddings), (4, 8, 1e4, false));
}

#[test]
fn tied_embeddings_are_untied_by_a_different_output_matrix() {
    let head = [("lm_head.weight", vec![10, 32])];
    let checkpoint = open_folder(&config(), &hyper(), &head).unwrap();
    assert!(!checkpoint.hyper().unwrap().tied_embeddings);
    assert_eq!(checkpoint.tensor(Role::LmHead).unwrap().unwrap().to_f32().unwrap(), vec![0.5; 320]);
    let same = open_folder(&config(), &Hyper { tied_embeddings: false, ..hyper() }, &[]).unwrap();
    assert!(same.hyper().unwrap().tied_embeddings);
    assert!(same.tensor(Role::LmHead).unwrap().is_none());
}

#[test]
fn tensors_without_a_place_are_left_out_with_a_warning() {
    let inverse = [("model.layers.0.self_attn.rotary_emb.inv_freq", vec![4])];
    assert!(open_folder(&config(), &hyper(), &inverse).unwrap().warnings().is_empty());
    let one = open_folder(&config(), &hyper(), &[("v_head.summary.weight", vec![1, 32])]).unwrap();
    let expected =
        "tensor \"v_head.summary.weight\" has no place in architecture \"llama\" with 2 layers and is left out";
    assert_eq!(one.warnings(), [expected]);
    let beyond = [("model.layers.2.mlp.up_proj.weight", vec![64, 32]), ("v_head.bias", vec![1])];
    let several = open_folder(&config(), &hyper(), &beyond).unwrap();
    let expected = "2 tensors (\"model.layers.2.mlp.up_proj.weight\", ...) have no place in architecture \"llama\" with 2 \
                    layers and are left out";
    assert_eq!(several.warnings(), [expected]);
    let more = [("model.layers.0.self_attn.q_norm.weight", vec![8])];
    assert!(open_folder(&config(), &hyper(), &more).unwrap_err().to_string().contains("query and key norms"));

    let beyond = gguf(&hyper(), "llama").floats("blk.2.ffn_up.bias", &[64], &[0.5; 64]);
    assert!(open_gguf(&beyond).unwrap().warnings()[0].contains("\"blk.2.ffn_up.bias\" has no place"));
    let inside = gguf(&hyper(), "llama").floats("blk.1.ffn_up.bias", &[64], &[0.5; 64]);
    let error = open_gguf(&inside).unwrap_err().to_string();
    assert!(error.contains("\"blk.1.ffn_up.bias\" has no place"), "{error}");
}

/// A checkpoint whose tensors have other names than the whole model's.
fn renamed(config: &Value, hyper: &Hyper, rename: impl Fn(&str) -> String) -> Checkpoint {
    let folder = tempfile::tempdir().unwrap();
    let roles = Role::all(hyper.layers).filter(|role| has(*role, hyper));
    let tensors: Vec<_> = roles.map(|role| (rename(&role.hf_name()), role.shape(hyper), values(role, hyper))).collect();
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.path().join("model.safetensors"), floats(&tensors)).unwrap();
    Checkpoint::open(folder.path()).unwrap()
}

#[test]
fn names_of_the_base_model_and_of_a_tied_head_are_known() {
    let expected = |role| values(role, &hyper());
    let base = with(json!({"architectures": ["LlamaModel"]}));
    let bare = renamed(&base, &hyper(), |name| name.trim_start_matches("model.").to_owned());
    let head = renamed(&config(), &hyper(), |name| name.replace("model.embed_tokens", "lm_head"));
    for checkpoint in [bare, head] {
        assert!(checkpoint.warnings().is_empty(), "{:?}", checkpoint.warnings());
        assert!(checkpoint.hyper().unwrap().tied_embeddings);
        for role in [Role::EmbedTokens, Role::Norm, Role::Layer(1, LayerRole::DownProj)] {
            assert_eq!(checkpoint.tensor(role).unwrap().unwrap().to_f32().unwrap(), expected(role), "{role:?}");
        }
    }
}

#[test]
fn integers_may_be_floats_and_booleans_numbers() {
    let changes = json!({"num_hidden_layers": 2.0, "max_position_embeddings": 128.0, "tie_word_embeddings": 1,
        "mlp_bias": 0, "use_sliding_window": 0.0});
    assert_eq!(open_folder(&with(changes), &hyper(), &[]).unwrap().hyper().unwrap(), hyper());
    assert!(config_error(json!({"num_hidden_layers": 2.5})).contains("\"num_hidden_layers\" is 2.5"));
    assert!(config_error(json!({"tie_word_embeddings": 2})).contains("expected true or false"));
}

#[test]
fn a_broken_configuration_names_its_file() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), &config(), &hyper(), &[]);
    let config = folder.path().join("config.json");
    std::fs::write(&config, format!("{{\"a\":{}", "[".repeat(1_000_000))).unwrap();
    let error = Checkpoint::open(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: not a JSON object of settings", config.display())), "{error}");
    std::fs::write(&config, "{}").unwrap();
    assert!(Checkpoint::open(folder.path()).unwrap_err().to_string().contains("has no \"model_type\""));
    std::fs::remove_file(&config).unwrap();
    assert!(Checkpoint::open(folder.path()).unwrap_err().to_string().contains("config.json"));
}

#[test]
fn opens_one_safetensors_file_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), &config(), &hyper(), &[]);
    let checkpoint = Checkpoint::open(&folder.path().join("model.safetensors")).unwrap();
    assert_eq!((checkpoint.architecture(), checkpoint.hyper().unwrap()), ("llama", hyper()));
}
