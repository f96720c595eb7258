//! Good, broken and hostile files.

use proptest::prelude::*;

use super::sample::{Sample, text};
use super::*;
use crate::quant::GgmlType;

fn array(kind: u32, count: u64, items: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes(), items].concat()
}

fn good() -> Sample {
    let nested = array(9, 2, &[array(5, 1, &7i32.to_le_bytes()), array(8, 1, &text("inner"))].concat());
    Sample::default()
        .str("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .f32("llama.rope.freq_base", 1e5)
        .entry("flag", 7, &[1])
        .entry("wide", 10, &7u64.to_le_bytes())
        .entry("tokens", 9, &array(8, 2, &[text("a"), text("bc")].concat()))
        .entry("scores", 9, &array(6, 2, &[1f32.to_le_bytes(), 2f32.to_le_bytes()].concat()))
        .entry("types", 9, &array(5, 1, &3i32.to_le_bytes()))
        .entry("nested", 9, &nested)
        .floats("a.weight", &[2, 3], &[1., 2., 3., 4., 5., 6.])
        .tensor("b.weight", &[32], GgmlType::Q8_0, &[1; 34])
}

fn refusal(file: Vec<u8>) -> String {
    Gguf::parse(file).unwrap_err().to_string()
}

#[test]
fn reads_metadata_and_tensors() {
    let file = Gguf::parse(good().file()).unwrap();
    assert_eq!(file.version(), 3);
    assert_eq!(file.str("general.architecture").unwrap(), "llama");
    assert_eq!(file.u32("llama.block_count").unwrap(), 2);
    assert_eq!(file.u32("wide").unwrap(), 7);
    assert_eq!(file.f32("llama.rope.freq_base").unwrap(), 1e5);
    assert!(file.bool("flag").unwrap());
    assert_eq!(file.strings("tokens").unwrap(), ["a", "bc"]);
    assert_eq!(file.f32s("scores").unwrap(), [1.0, 2.0]);
    assert_eq!(file.i32s("types").unwrap(), [3]);
    let nested = Array::Array(vec![Array::I32(vec![7]), Array::String(vec!["inner".into()])]);
    assert_eq!(file.metadata("nested"), Some(&Value::Array(nested)));
    let tensor = file.tensor("a.weight").unwrap();
    assert_eq!((tensor.ggml_type, tensor.dims), (GgmlType::F32, &[2, 3][..]));
    assert_eq!(tensor.data[20..], 6f32.to_le_bytes());
    assert_eq!(file.tensor("b.weight").unwrap().data, [1; 34]);
    assert!(file.tensor("c.weight").is_none());
    assert_eq!(file.tensors().len(), 2);
}

#[test]
fn reads_version_two() {
    let mut bytes = good().file();
    bytes[4] = 2;
    assert_eq!(Gguf::parse(bytes).unwrap().version(), 2);
}

#[test]
fn a_wrong_type_is_named() {
    let file = Gguf::parse(good().file()).unwrap();
    let error = file.u32("tokens").unwrap_err().to_string();
    assert_eq!(error, "metadata \"tokens\" is an array of texts, expected an integer from 0 to 4294967295");
    assert_eq!(file.str("none").unwrap_err().to_string(), "metadata \"none\" is missing, expected a text");
}

#[test]
fn refuses_other_files_and_versions_by_name() {
    assert_eq!(refusal(vec![]), "the file ends inside the magic number: 4 bytes are wanted at byte 0, 0 are left");
    assert!(refusal(b"PK\x03\x04....".to_vec()).starts_with("not a GGUF file"));
    let mut bytes = good().file();
    bytes[4..8].copy_from_slice(&3u32.to_be_bytes());
    assert!(refusal(bytes.clone()).contains("big-endian"));
    bytes[4..8].copy_from_slice(&1u32.to_le_bytes());
    assert!(refusal(bytes.clone()).contains("version 1"));
    bytes[4..8].copy_from_slice(&9u32.to_le_bytes());
    assert_eq!(refusal(bytes), "GGUF version 9 is not known, expected 2 or 3");
}

#[test]
fn refuses_counts_the_file_cannot_hold() {
    let error = refusal(good().with_counts(1 << 60, 1));
    assert!(error.starts_with("the count of tensors is 1152921504606846976, but the "), "{error}");
    assert!(refusal(good().with_counts(1, u64::MAX)).starts_with("the count of metadata entries is"));
    let long = array(8, 1 << 59, &[]);
    let error = refusal(Sample::default().entry("tokens", 9, &long).file());
    assert!(error.starts_with("the length of metadata \"tokens\" is 576460752303423488"), "{error}");
    let error = refusal(Sample::default().entry("name", 8, &u64::MAX.to_le_bytes()).file());
    assert!(error.starts_with("the length of metadata \"name\""), "{error}");
}

#[test]
fn refuses_arrays_nested_too_deep() {
    let mut value = array(0, 0, &[]);
    for _ in 0..100_000 {
        let mut outer = 9u32.to_le_bytes().to_vec();
        outer.extend(1u64.to_le_bytes());
        value.splice(0..0, outer);
        if value.len() > 2000 {
            break;
        }
    }
    assert!(refusal(Sample::default().entry("deep", 9, &value).file()).contains("nests arrays more than 4 deep"));
}

#[test]
fn refuses_impossible_tensors() {
    let bad = |dims: &[u64], id| refusal(Sample::default().line("t", dims, id, 0).file());
    assert!(bad(&[1 << 40, 1 << 40], 0).contains("has dimensions [1099511627776, 1099511627776] of F32"));
    assert!(bad(&[0], 0).contains("has dimensions [0]"));
    assert!(bad(&[33], 8).contains("whole blocks of 32"));
    assert!(bad(&[1 << 50], 0).contains("does not fit the file"));
    assert!(bad(&[1; 5], 0).contains("5 dimensions, expected 1 to 4"));
    assert!(bad(&[], 0).contains("0 dimensions"));
    assert!(bad(&[32], 10).contains("tensor \"t\" has type Q2_K, supported are F32"));
    assert!(bad(&[32], 4000).contains("type number 4000"));
    let off = |offset| refusal(Sample::default().floats("a", &[1], &[1.0]).line("t", &[1], 0, offset).file());
    assert!(off(3).contains("multiple of the alignment 32"));
    assert!(off(u64::MAX - 31).contains("does not fit the file"));
    assert!(off(0).contains("overlap"));
}

#[test]
fn refuses_doubles() {
    let error = refusal(Sample::default().u32("a", 1).u32("a", 2).file());
    assert_eq!(error, "metadata \"a\" is given twice");
    let error = refusal(Sample::default().floats("t", &[1], &[1.0]).floats("t", &[1], &[1.0]).file());
    assert_eq!(error, "tensor \"t\" is listed twice");
}

#[test]
fn refuses_odd_alignments_and_honours_good_ones() {
    assert!(refusal(Sample::default().u32("general.alignment", 0).file()).contains("power of two"));
    assert!(refusal(Sample::default().u32("general.alignment", 48).file()).contains("power of two"));
    assert!(Gguf::parse(good().u32("general.alignment", 32).file()).is_ok());
    assert!(Gguf::parse(good().u32("general.alignment", 1 << 31).file()).is_err());
}

#[test]
fn refuses_text_that_is_not_utf8_and_odd_truth() {
    assert!(refusal(Sample::default().entry("a", 8, b"\x01\0\0\0\0\0\0\0\xff").file()).contains("not UTF-8"));
    assert!(refusal(Sample::default().entry("a", 7, &[2]).file()).contains("expected 0 or 1"));
    assert!(refusal(Sample::default().entry("a", 13, &[2]).file()).contains("value type 13"));
}

#[test]
fn a_cut_file_is_an_error_at_every_length() {
    let bytes = good().file();
    for end in 0..bytes.len() - 32 {
        assert!(Gguf::parse(&bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn opens_a_path_and_names_it_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, good().file()).unwrap();
    assert_eq!(Gguf::open(&path).unwrap().path(), Some(path.as_path()));
    std::fs::write(&path, b"GGUF").unwrap();
    assert!(Gguf::open(&path).unwrap_err().to_string().starts_with(&path.display().to_string()));
    std::fs::write(&path, b"").unwrap();
    assert!(Gguf::open(&path).is_err());
    assert!(Gguf::open(folder.path()).is_err());
    assert!(Gguf::open(folder.path().join("none")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unspool_testing::scaled(512)))]

    #[test]
    fn mutated_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = good().file();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(file) = Gguf::parse(bytes) {
            for info in file.tensors() {
                prop_assert!(file.tensor(&info.name).is_some());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(tail in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Gguf::parse(tail.clone());
        let _ = Gguf::parse([b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0".as_slice(), &tail].concat());
    }
}

#[test]
fn names_a_pointer_and_a_page() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    for (text, words) in [(pointer, "git lfs pull"), ("<!DOCTYPE html><html>", "HTML page")] {
        let gguf = Gguf::parse(text.as_bytes()).unwrap_err().to_string();
        let safetensors = crate::safetensors::SafetensorsFile::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(gguf.contains(words) && safetensors.contains(words), "{gguf}; {safetensors}");
    }
}
