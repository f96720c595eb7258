//! Good, broken and hostile files.

use proptest::prelude::*;

use super::sample::{file, floats};
use super::*;
use crate::quant::GgmlType;

const GOOD: &str = r#"{"__metadata__":{"format":"pt"},
    "a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},
    "c":{"dtype":"I64","shape":[],"data_offsets":[12,20]}}"#;

fn refusal(header: &str, data: &[u8]) -> String {
    SafetensorsFile::parse(file(header, data)).unwrap_err().to_string()
}

#[test]
fn reads_tensors() {
    let parsed = SafetensorsFile::parse(file(GOOD, &[1; 20])).unwrap();
    assert_eq!(parsed.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    let a = parsed.tensor("a").unwrap().unwrap();
    assert_eq!((a.ggml_type, a.shape, a.data), (GgmlType::F32, &[2, 1][..], &[1; 8][..]));
    assert_eq!(parsed.tensor("b").unwrap().unwrap().ggml_type, GgmlType::BF16);
    assert!(parsed.tensor("z").unwrap().is_none());
    let error = parsed.tensor("c").unwrap_err().to_string();
    assert!(error.starts_with("tensor \"c\" has dtype I64, supported are F32, F16 and BF16"), "{error}");
}

#[test]
fn refuses_a_header_of_ten_gigabytes() {
    let claims = |size: u64| SafetensorsFile::parse([&size.to_le_bytes()[..], b"{}"].concat()).unwrap_err().to_string();
    assert!(claims(10_000_000_000).starts_with("the safetensors header claims 10000000000 bytes, the format allows"));
    assert!(claims(u64::MAX).contains("the format allows 100000000"));
    assert!(claims(99_999_999).contains("claims 99999999 bytes, but 2 are left in the file"));
    assert!(SafetensorsFile::parse(vec![1, 2]).unwrap_err().to_string().contains("it has 2 bytes"));
}

#[test]
fn refuses_headers_that_contradict_themselves() {
    let line = |rest: &str| refusal(&format!(r#"{{"t":{rest}}}"#), &[0; 8]);
    assert!(line(r#"{"dtype":"F32","shape":[3],"data_offsets":[0,8]}"#).contains("which is not its size"));
    assert!(line(r#"{"dtype":"F32","shape":[2],"data_offsets":[8,16]}"#).contains("the file has 8 bytes of data"));
    assert!(line(r#"{"dtype":"F32","shape":[2],"data_offsets":[8,0]}"#).contains("bytes 8 to 0"));
    assert!(
        line(r#"{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}"#)
            .contains("8 bytes of data")
    );
    assert!(line(r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}"#).contains("does not fit"));
    assert!(line(r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}"#).contains("not as the format says"));
    assert!(line(r#"{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}"#).contains("9 axes"));
    let tensor = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    assert!(refusal(&format!(r#"{{"a":{tensor},"b":{tensor}}}"#), &[0; 8]).contains("\"a\" and \"b\" overlap"));
    assert!(refusal(&format!(r#"{{"a":{tensor},"a":{tensor}}}"#), &[0; 8]).contains("listed twice"));
    assert!(refusal("[]", &[]).contains("not as the format says"));
}

#[test]
fn a_header_nested_a_million_deep_is_an_error() {
    assert!(refusal(&format!("{{\"t\":{}", "[".repeat(1_000_000)), &[]).contains("not as the format says"));
    let deep = format!(r#"{{"__metadata__":{}"#, "[".repeat(1_000_000));
    assert!(refusal(&deep, &[]).contains("not as the format says"));
}

#[test]
fn reads_shards_by_their_index() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, tensor: &str| {
        std::fs::write(folder.path().join(name), floats(&[(tensor.to_owned(), vec![1], vec![1.0])])).unwrap();
    };
    write("one.safetensors", "a");
    write("two.safetensors", "b");
    let index = |map: &str| {
        let text = format!(r#"{{"metadata":{{"total_size":8}},"weight_map":{map}}}"#);
        std::fs::write(folder.path().join("model.safetensors.index.json"), text).unwrap();
        Safetensors::open(folder.path())
    };
    let both = index(r#"{"a":"one.safetensors","b":"two.safetensors"}"#).unwrap();
    assert_eq!(both.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(both.tensor("b").unwrap().unwrap().data, 1f32.to_le_bytes());
    for escape in [
        "../one.safetensors",
        "/etc/passwd",
        "x/../one.safetensors",
        "..",
        "",
        "one.bin",
        "./one.safetensors",
        "a\\\\b.safetensors",
    ] {
        let error = index(&format!(r#"{{"a":"{escape}"}}"#)).unwrap_err().to_string();
        assert!(error.contains("expected the name of a .safetensors file"), "{escape}: {error}");
    }
    let unnamed = index(r#"{"a":"one.safetensors"}"#).unwrap();
    assert_eq!(unnamed.names().collect::<Vec<_>>(), ["a"], "two.safetensors is not listed");
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let tensors = ["c", "d"].map(|name| (name.to_owned(), vec![1], vec![3.0]));
    std::fs::write(folder.path().join("sub/three.safetensors"), floats(&tensors)).unwrap();
    let below = index(r#"{"a":"one.safetensors","c":"sub/three.safetensors"}"#).unwrap();
    assert_eq!(below.names().collect::<Vec<_>>(), ["a", "c", "d"], "the index does not name d");
    assert!(below.tensor("d").unwrap().is_some());
    assert!(index(r#"{"a":"two.safetensors"}"#).unwrap_err().to_string().contains("it is not"));
    assert!(index(r#"{"a":"none.safetensors"}"#).unwrap_err().to_string().contains("none.safetensors"));
    assert!(index("7").unwrap_err().to_string().contains("weight_map"));
}

#[test]
fn prefers_the_single_file_and_names_a_folder_without_weights() {
    let folder = tempfile::tempdir().unwrap();
    let error = Safetensors::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("neither model.safetensors nor model.safetensors.index.json"), "{error}");
    let single = floats(&[("a".to_owned(), vec![1], vec![2.0])]);
    std::fs::write(folder.path().join("model.safetensors"), single).unwrap();
    std::fs::write(folder.path().join("model.safetensors.index.json"), "broken").unwrap();
    assert_eq!(Safetensors::open(folder.path()).unwrap().names().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unspool_testing::scaled(512)))]

    #[test]
    fn mutated_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = file(GOOD, &[1; 20]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(parsed) = SafetensorsFile::parse(bytes) {
            for name in parsed.names() {
                let _ = parsed.tensor(name);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = SafetensorsFile::parse(bytes);
    }
}
