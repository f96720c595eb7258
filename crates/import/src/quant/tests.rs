//! The decoders against values recorded from the `gguf` Python package (`tests/data/record_quants.py`).

use super::*;

const RECORDED: &[u8] = include_bytes!("../../tests/data/quants.bin");

struct Case<'a> {
    kind: GgmlType,
    bytes: &'a [u8],
    values: Vec<f32>,
}

fn cases() -> Vec<Case<'static>> {
    let mut rest = RECORDED;
    let mut cases = Vec::new();
    while !rest.is_empty() {
        let head: Vec<usize> =
            rest[..16].chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()) as usize).collect();
        let (weights, size) = (head[2], head[3]);
        let (bytes, after) = rest[16..].split_at(size);
        let (values, after) = after.split_at(weights * 4);
        let values = values.chunks(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect();
        cases.push(Case { kind: GgmlType::from_id(head[0] as u32).unwrap(), bytes, values });
        rest = after;
    }
    assert_eq!(cases.len(), GgmlType::ALL.len());
    cases
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn equals_the_reference_bit_for_bit() {
    for case in cases() {
        let mut out = vec![f32::NAN; case.values.len()];
        dequantize(case.kind, case.bytes, &mut out).unwrap();
        assert_eq!(bits(&out), bits(&case.values), "{}", case.kind);
    }
}

#[test]
fn groups_say_the_same_values_bit_for_bit() {
    for case in cases().into_iter().filter(|case| !case.kind.is_float()) {
        let groups = groups(case.kind, case.bytes).unwrap();
        assert_eq!(groups.len() * case.kind.group_weights(), case.values.len());
        let values: Vec<f32> = groups.flat_map(|group| group.values().collect::<Vec<_>>()).collect();
        assert_eq!(bits(&values), bits(&case.values), "{}", case.kind);
    }
}

#[test]
fn codes_fit_their_bits_and_offsets_are_where_the_type_says() {
    for case in cases().into_iter().filter(|case| !case.kind.is_float()) {
        let zero = i16::from(case.kind.zero_point());
        for group in groups(case.kind, case.bytes).unwrap() {
            assert_eq!(group.quants().len(), case.kind.group_weights());
            for &quant in group.quants() {
                assert!((0..1 << case.kind.bits()).contains(&(i16::from(quant) + zero)), "{} {quant}", case.kind);
            }
            assert!(case.kind.has_offset() || group.offset.to_bits() == (-0.0f32).to_bits());
        }
    }
}

#[test]
fn refuses_bytes_of_a_wrong_size() {
    let error = dequantize(GgmlType::Q4_0, &[0; 17], &mut [0.0; 32]).unwrap_err();
    assert_eq!(error.to_string(), "32 weights of type Q4_0 take 18 bytes, got 17");
    let error = dequantize(GgmlType::Q6_K, &[0; 210], &mut [0.0; 32]).unwrap_err();
    assert_eq!(error.to_string(), "32 weights do not fill whole Q6_K blocks of 256 weights");
    assert!(groups(GgmlType::Q8_0, &[0; 35]).is_err());
    assert!(groups(GgmlType::F16, &[0; 4]).is_err());
}

#[test]
fn a_nan_scale_gives_nan() {
    let mut block = vec![0x00, 0x7e];
    block.extend([0; 16]);
    let mut out = [0.0; 32];
    dequantize(GgmlType::Q4_0, &block, &mut out).unwrap();
    assert!(out.iter().all(|value| value.is_nan()));
}
