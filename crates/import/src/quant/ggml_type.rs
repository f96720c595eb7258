//! The number formats of tensors, with the ids and names that GGUF gives them.

use std::fmt;

/// How the numbers of a tensor are stored. The names and ids are GGUF's; safetensors uses the three float types.
#[doc(alias = "GGMLQuantizationType")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, non_camel_case_types, clippy::upper_case_acronyms)]
#[non_exhaustive]
pub enum GgmlType {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4_K,
    Q5_K,
    Q6_K,
}

/// Every type that GGUF has given an id, for error messages that name what was refused.
const NAMES: [(u32, &str); 36] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (30, "BF16"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

impl GgmlType {
    /// All supported types.
    pub const ALL: [GgmlType; 11] = [
        GgmlType::F32,
        GgmlType::F16,
        GgmlType::BF16,
        GgmlType::Q4_0,
        GgmlType::Q4_1,
        GgmlType::Q5_0,
        GgmlType::Q5_1,
        GgmlType::Q8_0,
        GgmlType::Q4_K,
        GgmlType::Q5_K,
        GgmlType::Q6_K,
    ];

    /// The type with GGUF's id, if it is supported.
    pub fn from_id(id: u32) -> Option<Self> {
        let name = NAMES.iter().find(|(known, _)| *known == id)?.1;
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What to call an id in a message: GGUF's name of it, or its number.
    pub fn name_of_id(id: u32) -> String {
        match NAMES.iter().find(|(known, _)| *known == id) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("number {id}"),
        }
    }

    /// GGUF's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            GgmlType::F32 => "F32",
            GgmlType::F16 => "F16",
            GgmlType::BF16 => "BF16",
            GgmlType::Q4_0 => "Q4_0",
            GgmlType::Q4_1 => "Q4_1",
            GgmlType::Q5_0 => "Q5_0",
            GgmlType::Q5_1 => "Q5_1",
            GgmlType::Q8_0 => "Q8_0",
            GgmlType::Q4_K => "Q4_K",
            GgmlType::Q5_K => "Q5_K",
            GgmlType::Q6_K => "Q6_K",
        }
    }

    /// Whether the numbers are plain floats.
    pub fn is_float(self) -> bool {
        matches!(self, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16)
    }

    /// Whether groups carry an offset (Q4_1, Q5_1, Q4_K, Q5_K) and their integers start at zero.
    pub fn has_offset(self) -> bool {
        matches!(self, GgmlType::Q4_1 | GgmlType::Q5_1 | GgmlType::Q4_K | GgmlType::Q5_K)
    }

    /// Bits of one weight's integer, without scales: 4, 5, 6 or 8; of a float: 16 or 32.
    pub fn bits(self) -> usize {
        match self {
            GgmlType::F32 => 32,
            GgmlType::F16 | GgmlType::BF16 => 16,
            GgmlType::Q8_0 => 8,
            GgmlType::Q6_K => 6,
            GgmlType::Q5_0 | GgmlType::Q5_1 | GgmlType::Q5_K => 5,
            GgmlType::Q4_0 | GgmlType::Q4_1 | GgmlType::Q4_K => 4,
        }
    }

    /// What to add to [`Group::quants`](crate::quant::Group::quants) to get the unsigned code of [`Self::bits`] bits:
    /// 8, 16, 32 or 128 in formats around zero, else 0.
    pub fn zero_point(self) -> u8 {
        match self {
            GgmlType::Q4_0 => 8,
            GgmlType::Q5_0 => 16,
            GgmlType::Q6_K => 32,
            GgmlType::Q8_0 => 128,
            _ => 0,
        }
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_type_has_an_id() {
        let found: Vec<_> = (0..64).filter_map(GgmlType::from_id).collect();
        assert_eq!(found.len(), GgmlType::ALL.len());
        assert_eq!(GgmlType::from_id(30), Some(GgmlType::BF16));
    }

    #[test]
    fn an_unsupported_type_has_a_name() {
        assert_eq!(GgmlType::from_id(10), None);
        assert_eq!(GgmlType::name_of_id(10), "Q2_K");
        assert_eq!(GgmlType::name_of_id(77), "number 77");
    }
}
