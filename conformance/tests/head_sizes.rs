//! Imports of head sizes that ONNX Runtime's attention does not take give the tokens of rten's attention without filling up,
//! on both engines.

use std::fs;
use std::path::Path;

use serde_json::{Map, json};
use unspool::{Call, EngineChoice, ImportOptions, OpenOptions, Pipeline, TokenId};

const HIDDEN: usize = 24;
const INNER: usize = 32;
const VOCAB: usize = 40;
const HEADS: usize = 2;
const LAYERS: usize = 2;

/// Head size, and what follows the prompts `[5, 9, 12, 33]` and `[7]`, recorded on rten when the graph had heads as they are.
const RECORDED: [(usize, [TokenId; 10], [TokenId; 10]); 8] = [
    (2, [14, 8, 32, 26, 25, 8, 32, 26, 25, 8], [22, 22, 22, 22, 22, 22, 22, 22, 22, 22]),
    (6, [21, 23, 21, 23, 21, 23, 21, 23, 11, 6], [21, 21, 7, 21, 39, 6, 25, 2, 25, 32]),
    (8, [6, 39, 33, 13, 7, 6, 39, 33, 13, 2], [19, 24, 37, 6, 32, 2, 2, 2, 2, 2]),
    (12, [17, 9, 17, 9, 20, 6, 6, 6, 5, 27], [16, 16, 36, 30, 16, 30, 16, 30, 16, 30]),
    (16, [14, 14, 14, 14, 14, 14, 14, 14, 14, 14], [10, 7, 25, 7, 39, 29, 7, 10, 7, 10]),
    (20, [25, 25, 2, 27, 25, 39, 25, 39, 25, 11], [6, 6, 31, 25, 31, 31, 25, 31, 23, 23]),
    (80, [9, 9, 9, 9, 9, 26, 26, 26, 26, 11], [13, 22, 9, 38, 9, 38, 11, 26, 26, 24]),
    (100, [27, 22, 8, 2, 2, 2, 2, 2, 2, 2], [17, 27, 27, 17, 28, 28, 28, 28, 28, 39]),
];

/// Writes a checkpoint whose weights are those of a linear congruential generator.
fn write(folder: &Path, head_dim: usize) {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![VOCAB, HIDDEN]),
        ("model.norm.weight".to_owned(), vec![HIDDEN]),
    ];
    for layer in 0..LAYERS {
        for (end, shape) in [
            ("input_layernorm", vec![HIDDEN]),
            ("post_attention_layernorm", vec![HIDDEN]),
            ("self_attn.q_proj", vec![HEADS * head_dim, HIDDEN]),
            ("self_attn.k_proj", vec![head_dim, HIDDEN]),
            ("self_attn.v_proj", vec![head_dim, HIDDEN]),
            ("self_attn.o_proj", vec![HIDDEN, HEADS * head_dim]),
            ("mlp.gate_proj", vec![INNER, HIDDEN]),
            ("mlp.up_proj", vec![INNER, HIDDEN]),
            ("mlp.down_proj", vec![HIDDEN, INNER]),
        ] {
            shapes.push((format!("model.layers.{layer}.{end}.weight"), shape));
        }
    }
    shapes.push(("lm_head.weight".to_owned(), vec![VOCAB, HIDDEN]));
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, shape) in shapes {
        let start = data.len();
        data.extend((0..shape.iter().product::<usize>()).flat_map(|_| random().to_le_bytes()));
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]}));
    }
    let header = serde_json::to_vec(&header).unwrap();
    let file = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
    fs::write(folder.join("model.safetensors"), file).unwrap();
    let config = json!({"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 1, "head_dim": head_dim,
        "vocab_size": VOCAB, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu"});
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

#[test]
fn every_head_size_gives_the_same_tokens_on_both_engines() {
    for (head_dim, first, second) in RECORDED {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        write(folder.path(), head_dim);
        unspool::import(folder.path(), &out, &ImportOptions::default()).unwrap();
        for engine in [EngineChoice::Rten, EngineChoice::Ort] {
            let pipeline =
                match Pipeline::open(&out, &OpenOptions { engine, threads: Some(1), ..OpenOptions::default() }) {
                    Ok(pipeline) => pipeline,
                    Err(error)
                        if engine == EngineChoice::Ort
                            && error.to_string().contains("was not found")
                            && unspool_testing::engines_may_be_missing() =>
                    {
                        eprintln!("SKIPPED: ONNX Runtime cannot be used here: {error}");
                        continue;
                    }
                    Err(error) => panic!("head size {head_dim} on {engine:?}: {error}"),
                };
            let call = Call::new().set("max_new_tokens", 10).unwrap();
            let prompts = vec![vec![5, 9, 12, 33], vec![7]];
            let answers = pipeline.generate_ids(prompts, &call, None).unwrap();
            let ids: Vec<&[TokenId]> =
                answers.answers.iter().map(|answer| &answer.output.sequences[0].ids[..]).collect();
            assert_eq!(ids, [&first[..], &second[..]], "head size {head_dim} on {engine:?}");
        }
    }
}
