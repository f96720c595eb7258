//! `unspool embed` as people run it.

mod common;

use common::{Ran, json_lines, model, with_input};
use serde_json::Value;

fn embed(name: &str, arguments: &[&str], input: &str) -> Ran {
    let model = model(name);
    let mut all = vec!["embed", &model, "--engine", "rten"];
    all.extend_from_slice(arguments);
    with_input(&all, input.as_bytes())
}

fn vectors(out: &str) -> Vec<Vec<f64>> {
    let numbers = |line: &Value| line["embedding"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
    json_lines(out).iter().map(numbers).collect()
}

#[test]
fn every_text_becomes_a_line_whatever_the_batch() {
    let input = "\"the river runs\"\n{\"text\":\"she read the old letter\"}\n{\"ids\":[1,2,3]}\n";
    let out = embed("llama-hidden", &["--normalize", "--batch-size", "1"], input).fine();
    let lines = json_lines(&out);
    let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["index", "prompt_ids", "embedding"]);
    assert_eq!(lines.len(), 3);
    for vector in vectors(&out) {
        assert_eq!(vector.len(), 64);
        assert!((vector.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-5);
    }
    let together = vectors(&embed("llama-hidden", &["--normalize"], input).fine());
    for (a, b) in vectors(&out).iter().zip(&together) {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5));
    }
    let mean = vectors(&embed("llama-hidden", &["--normalize", "--pooling", "mean"], input).fine());
    assert_ne!(mean, together);
}

#[test]
fn a_checkpoint_is_imported_with_its_hidden_states() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
        std::fs::copy(std::path::Path::new(&model("llama")).join(file), folder.path().join(file)).unwrap();
    }
    let checkpoint = folder.path().to_str().unwrap();
    let ran = with_input(&["embed", checkpoint, "--engine", "rten", "the river runs"], b"");
    let exported = vectors(&embed("llama-hidden", &["the river runs"], "").fine());
    let imported = vectors(&ran.fine());
    assert!(imported[0].iter().zip(&exported[0]).all(|(a, b)| (a - b).abs() < 1e-4), "{imported:?} {exported:?}");
}

#[test]
fn bad_input_is_one_clear_line() {
    let cases: [(&str, &[&str], &str, i32, &str); 6] = [
        ("llama", &["a"], "", 1, "import --hidden-states"),
        ("llama-hidden", &[], "{\"prompt\":\"a\",\"continuation\":\"b\"}", 1, "line 1"),
        ("llama-hidden", &["--ids", "[[]]"], "", 1, "no tokens"),
        ("llama-hidden", &["--ids", "[[1,99999]]"], "", 1, "99999"),
        ("llama-hidden", &["--pooling", "max", "a"], "", 2, "--pooling"),
        ("llama-hidden", &[], "", 1, "standard input: there are no texts"),
    ];
    for (model, arguments, input, code, expected) in cases {
        let error = embed(model, arguments, input).failed(code);
        assert!(error.contains(expected), "{arguments:?} {input}: {error}");
    }
}
