//! Which names of a server may become parts of a path.

use std::path::{Component, Path};

/// The longest name of a file or folder, in bytes; the limit of the usual file systems.
const LONGEST: usize = 255;

/// Names that Windows takes for devices.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// A relative path that stays below the folder it is joined to, on every platform.
pub fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    name.len() <= 4 * LONGEST
        && !name.is_empty()
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && name.split('/').all(is_plain_part)
}

fn is_plain_part(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    !part.is_empty()
        && part.len() <= LONGEST
        && !part.ends_with(['.', ' '])
        && !DEVICES.contains(&stem)
        && part.chars().all(|c| !c.is_control() && !"\\:*?\"<>|".contains(c))
}

/// Hexadecimal digits of a SHA-1 (40) or a SHA-256 (64), in lower case.
pub fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What stands in an `ETag`, without quotes and the mark of a weak one.
pub fn etag(header: &str) -> &str {
    header.trim().trim_start_matches("W/").trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_leave_the_cache() {
        for name in ["onnx/model.onnx", "model-00001-of-00002.safetensors", "ünï code.json", ".gitattributes", "a..b"]
        {
            assert!(is_plain(name), "{name}");
        }
        let long = "x".repeat(256);
        let deep = "a/".repeat(600) + "a";
        for name in [
            "",
            ".",
            "..",
            "../x",
            "/etc/passwd",
            "a/../../b",
            "a\\..\\b",
            "C:x",
            "a//b",
            "a/",
            "./a",
            "a/./b",
            "a\0b",
            "a\nb",
            "nul",
            "onnx/CON.onnx",
            "com1",
            "a.",
            "a ",
            "a:b",
            "x?",
            &long,
            &deep,
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn a_hash_is_digits_and_nothing_else() {
        assert!(is_hash(&"a1".repeat(20)) && is_hash(&"0f".repeat(32)));
        for text in ["", "abc", &"A1".repeat(20), &"g0".repeat(20), "../../../../../../climbed", &"a1".repeat(21)] {
            assert!(!is_hash(text), "{text}");
        }
        assert_eq!(etag("W/\"abc\""), "abc");
    }
}
