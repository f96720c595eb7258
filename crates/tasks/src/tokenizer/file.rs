//! Reads text and JSON files of a model folder, with sizes bounded before they are believed.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::de::IgnoredAny;
use unspool_core::{Error, Result};

/// JSON deeper than this is refused: no tokenizer file comes near, and deep nesting exhausts a parser's stack.
const MAX_JSON_DEPTH: usize = 64;

/// The text of a file of at most `limit` bytes; `None` when there is no such file.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("cannot open the file").at(path.display()).because(error)),
    };
    let mut bytes = Vec::new();
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::io("cannot read the file").at(path.display()).because(error))?;
    if bytes.len() as u64 > limit {
        return Err(Error::invalid_model(format!("the file is larger than the {limit} bytes allowed for it"))
            .at(path.display()));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Error::invalid_model("the file is not UTF-8 text").at(path.display()))?;
    Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
}

/// The text of a JSON file, checked to be well-formed and not too deep; `None` when there is no such file.
pub(crate) fn read_json(path: &Path, limit: u64) -> Result<Option<String>> {
    let Some(text) = read_text(path, limit)? else { return Ok(None) };
    check_json(&text).map_err(|error| error.at(path.display()))?;
    Ok(Some(text))
}

/// Refuses text that is not JSON, and JSON nested deeper than [`MAX_JSON_DEPTH`].
pub(crate) fn check_json(text: &str) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_JSON_DEPTH {
            return Err(Error::invalid_model(format!("the JSON is nested more than {MAX_JSON_DEPTH} levels deep")));
        }
    }
    serde_json::from_str::<IgnoredAny>(text)
        .map(|_| ())
        .map_err(|error| Error::invalid_model("the file is not valid JSON").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_json_nested_a_million_deep() {
        let deep = "[".repeat(1_000_000);
        assert!(check_json(&deep).unwrap_err().to_string().contains("64 levels"));
        assert!(check_json("{\"a\": \"[[[[\\\"[[[\"}").is_ok());
    }

    #[test]
    fn refuses_a_file_above_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "[1, 2, 3]").unwrap();
        assert!(read_json(&path, 9).unwrap().is_some());
        assert!(read_json(&path, 8).unwrap_err().to_string().contains("larger than the 8 bytes"));
        assert!(read_json(&folder.path().join("b.json"), 8).unwrap().is_none());
    }
}
