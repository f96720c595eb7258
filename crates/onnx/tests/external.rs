//! External data under any name that ONNX allows, through links as the Hub's cache has them, and never outside the folder.

use std::fs;
use std::path::{Path, PathBuf};

use unspool_core::{Keep, Model, RowInput, SessionOptions};
use unspool_onnx::{EngineChoice, OnnxModel, OnnxOptions};

/// The fixture's own name for its data, and another of as many letters.
const OWN: &str = "model.onnx.data";
const OTHER: &str = "./w/weights.abc";

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/models/llama-genai-int4-f32")
}

/// A model folder whose graph calls its data `name`.
fn folder(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("onnx/w")).unwrap();
    fs::copy(fixture().join("config.json"), folder.path().join("config.json")).unwrap();
    let graph = fs::read(fixture().join("onnx/model.onnx")).unwrap();
    assert_eq!(name.len(), OWN.len());
    let mut named = graph.clone();
    let places = graph.windows(OWN.len()).enumerate().filter(|(_, bytes)| *bytes == OWN.as_bytes());
    for (place, _) in places {
        named[place..place + OWN.len()].copy_from_slice(name.as_bytes());
    }
    fs::write(folder.path().join("onnx/model.onnx"), named).unwrap();
    folder
}

fn scores(folder: &Path) -> unspool_core::Result<Vec<f32>> {
    let options = OnnxOptions { engine: EngineChoice::Rten, threads: Some(1), ..OnnxOptions::default() };
    let model = OnnxModel::open(folder, &options)?;
    let mut session = Model::open(&model, &SessionOptions { rows: 1, capacity: 4 })?;
    // The model may be dropped: the session keeps what it needs.
    drop(model);
    let logits = session.step(&[RowInput { tokens: &[5, 9, 12], keep: Keep::Last }])?;
    Ok(logits.row(0).to_vec())
}

#[test]
fn data_of_any_name_in_the_folder_is_read() {
    let expected = scores(&fixture()).unwrap();
    let folder = folder(OTHER);
    fs::copy(fixture().join("onnx").join(OWN), folder.path().join("onnx").join(OTHER)).unwrap();
    assert_eq!(scores(folder.path()).unwrap(), expected);
}

#[cfg(unix)]
#[test]
fn links_are_followed_where_the_graph_is_one_into_the_same_folder() {
    use std::os::unix::fs::symlink;

    let expected = scores(&fixture()).unwrap();
    let snapshot = folder(OWN);
    let onnx = snapshot.path().join("onnx");
    let blobs = tempfile::tempdir().unwrap();
    fs::rename(onnx.join("model.onnx"), blobs.path().join("aaaa")).unwrap();
    fs::copy(fixture().join("onnx").join(OWN), blobs.path().join("bbbb")).unwrap();
    symlink(blobs.path().join("aaaa"), onnx.join("model.onnx")).unwrap();
    symlink(blobs.path().join("bbbb"), onnx.join(OWN)).unwrap();
    assert_eq!(scores(snapshot.path()).unwrap(), expected);
    // A graph that lies here itself has no business there.
    fs::remove_file(onnx.join("model.onnx")).unwrap();
    fs::copy(blobs.path().join("aaaa"), onnx.join("model.onnx")).unwrap();
    let error = scores(snapshot.path()).unwrap_err().to_string();
    assert!(error.contains("leaves the model's folder through a link"), "{error}");
}

#[test]
fn missing_data_is_named() {
    let error = scores(folder(OTHER).path()).unwrap_err().to_string();
    assert!(error.contains(OTHER) && error.contains("download it too"), "{error}");
}
