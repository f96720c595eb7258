//! Prompts from JSON.

use std::io::Read;
use std::path::Path;

use serde_json::Value;
use unspool::{Error, Prompt, Result, Scorable, TokenId};

use super::chat;

/// Prompts, each with the place it was read from, for messages.
pub type Placed = Vec<(String, Prompt)>;

/// Prompts of a file of JSON lines: a string, `{"prompt": "..."}`, `{"ids": [...]}` or `{"messages": [...]}` (beside them `tools`, `documents`
/// and `chat_template_kwargs`) each. Empty
/// lines are passed over. `-` is standard input.
///
/// # Errors
///
/// When the file cannot be read or a line is none of these; the message names the line.
pub fn lines(path: &Path) -> Result<Placed> {
    each_line(path, "prompts", prompt)
}

/// Texts to be scored, of a file of JSON lines: a string, `{"text": "..."}`, `{"prompt": "...", "continuation": "..."}`,
/// `{"ids": [...]}` or `{"prompt_ids": [...], "continuation_ids": [...]}` each; otherwise as [`lines`].
///
/// # Errors
///
/// As [`lines`].
pub fn scorable_lines(path: &Path) -> Result<Vec<(String, Scorable)>> {
    each_line(path, "texts", scorable)
}

/// Texts of a file of JSON lines: a string, `{"text": "..."}` or `{"ids": [...]}` each; otherwise as [`lines`].
///
/// # Errors
///
/// As [`lines`].
pub fn text_lines(path: &Path) -> Result<Placed> {
    each_line(path, "texts", |line| match scorable(line) {
        Ok(Scorable::Whole(prompt)) => Ok(prompt),
        _ => Err(Error::invalid_input("expected a string, {\"text\": \"...\"} or {\"ids\": [...]}")),
    })
}

/// What `read_one` makes of each line that is not empty, with the line's place.
fn each_line<T>(path: &Path, what: &str, read_one: impl Fn(&str) -> Result<T>) -> Result<Vec<(String, T)>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Error::io(format!("the {what} could not be read")).at(path.display()).because(error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count() + 1;
        Error::invalid_input("not UTF-8; save the file in that encoding").at(format!("{}, line {line}", path.display()))
    })?;
    // Some editors begin a file with a mark of its encoding.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let found: Vec<(String, T)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            let place = format!("{}, line {}", path.display(), index + 1);
            match read_one(line) {
                Ok(one) => Ok((place, one)),
                Err(error) => Err(error.at(place)),
            }
        })
        .collect::<Result<_>>()?;
    if found.is_empty() {
        return Err(Error::invalid_input(format!("the file holds no {what}")).at(path.display()));
    }
    Ok(found)
}

/// Texts of the command line.
pub fn arguments(texts: &[String]) -> Placed {
    let placed = |(index, text): (usize, &String)| (format!("text {index}"), Prompt::Text(text.clone()));
    texts.iter().enumerate().map(placed).collect()
}

/// Prompts of `--ids`: `[[1,2,3],[4,5]]`, or one prompt `[1,2,3]`.
///
/// # Errors
///
/// When `json` is no list of token ids or of such lists.
pub fn ids(json: &str) -> Result<Placed> {
    let expected = || Error::invalid_input("--ids must be JSON such as [[1,2,3],[4,5]]");
    let value: Value = serde_json::from_str(json).map_err(|error| expected().because(error))?;
    let Value::Array(items) = value else { return Err(expected()) };
    if items.is_empty() {
        return Err(Error::invalid_input("--ids holds no prompt"));
    }
    if items.iter().all(Value::is_number) {
        return Ok(vec![("--ids".to_string(), Prompt::Ids(token_ids(Value::Array(items))?))]);
    }
    let numbered = items.into_iter().enumerate();
    numbered.map(|(index, item)| Ok((format!("--ids, prompt {index}"), Prompt::Ids(token_ids(item)?)))).collect()
}

fn json(line: &str) -> Result<Value> {
    serde_json::from_str(line).map_err(|error| {
        let told = error.to_string();
        // The place tells the line; the reader knows of one line only.
        let why = told.split(" at line ").next().unwrap_or_default();
        Error::invalid_input(format!("not JSON at column {}: {why}", error.column()))
    })
}

fn prompt(line: &str) -> Result<Prompt> {
    let mut object = match json(line)? {
        Value::String(text) => return Ok(Prompt::Text(text)),
        Value::Object(object) => object,
        _ => return Err(Error::invalid_input(EXPECTED)),
    };
    let found = ["prompt", "ids", "messages"].map(|key| object.remove(key));
    let of_chat = |key: &str| found[2].is_some() && chat::KEYS.contains(&key);
    if let Some(key) = object.keys().find(|key| !of_chat(key)) {
        return Err(Error::invalid_input(format!(
            "{key:?} is not known here; {EXPECTED}; settings are options of the command"
        )));
    }
    if found.iter().flatten().count() > 1 {
        return Err(Error::invalid_input("prompt, ids and messages exclude each other; give one of them"));
    }
    match found {
        [Some(Value::String(text)), None, None] => Ok(Prompt::Text(text)),
        [None, Some(ids), None] => token_ids(ids).map(Prompt::Ids),
        [None, None, Some(messages)] => chat::chat(messages, &mut object).map(Prompt::Chat),
        _ => Err(Error::invalid_input(EXPECTED)),
    }
}

const EXPECTED: &str = "expected a string, {\"prompt\": \"...\"}, {\"ids\": [...]} or {\"messages\": [...]}";

fn scorable(line: &str) -> Result<Scorable> {
    let mut object = match json(line)? {
        Value::String(text) => return Ok(Scorable::Whole(Prompt::Text(text))),
        Value::Object(object) => object,
        _ => return Err(Error::invalid_input(EXPECTED_TEXT)),
    };
    let found =
        ["text", "ids", "prompt", "continuation", "prompt_ids", "continuation_ids"].map(|key| object.remove(key));
    if let Some(key) = object.keys().next() {
        return Err(Error::invalid_input(format!("{key:?} is not known here; {EXPECTED_TEXT}")));
    }
    match found {
        [Some(Value::String(text)), None, None, None, None, None] => Ok(Scorable::Whole(Prompt::Text(text))),
        [None, Some(ids), None, None, None, None] => Ok(Scorable::Whole(Prompt::Ids(token_ids(ids)?))),
        [None, None, Some(Value::String(prompt)), Some(Value::String(continuation)), None, None] => {
            Ok(Scorable::Pair { prompt, continuation })
        }
        [None, None, None, None, Some(prompt), Some(continuation)] => {
            Ok(Scorable::PairIds { prompt: token_ids(prompt)?, continuation: token_ids(continuation)? })
        }
        _ => Err(Error::invalid_input(EXPECTED_TEXT)),
    }
}

const EXPECTED_TEXT: &str = "expected a string, {\"text\": \"...\"}, {\"prompt\": \"...\", \"continuation\": \"...\"}, \
                             {\"ids\": [...]} or {\"prompt_ids\": [...], \"continuation_ids\": [...]}";

fn token_ids(value: Value) -> Result<Vec<TokenId>> {
    serde_json::from_value(value).map_err(|error| Error::invalid_input("not a list of token ids").because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompts.jsonl");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn reads_every_kind_of_line() {
        let (_folder, path) = file(
            "\"a\"\n{\"prompt\":\"b\"}\n\n{\"ids\":[1,2]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"c\"}]}\n",
        );
        let prompts: Vec<Prompt> = lines(&path).unwrap().into_iter().map(|(_, prompt)| prompt).collect();
        assert!(matches!(
            &prompts[..],
            [Prompt::Text(a), Prompt::Text(b), Prompt::Ids(ids), Prompt::Chat(chat)]
                if a == "a" && b == "b" && ids == &[1, 2] && chat.messages.len() == 1
        ));
    }

    #[test]
    fn names_the_bad_line() {
        for bad in ["{", "7", "{\"prompt\":3}", "{\"prompt\":\"a\",\"ids\":[1]}", "{\"ids\":[-1]}", "{\"ids\":[1.5]}"] {
            let (_folder, path) = file(&format!("\"fine\"\n{bad}\n"));
            let message = lines(&path).unwrap_err().to_string();
            assert!(message.contains("line 2"), "{bad}: {message}");
        }
    }

    #[test]
    fn reads_every_kind_of_text_to_be_scored() {
        let (_folder, path) = file(
            "\"a\"\n{\"text\":\"b\"}\n{\"ids\":[1]}\n{\"prompt\":\"c\",\"continuation\":\"d\"}\n\
             {\"prompt_ids\":[1],\"continuation_ids\":[2]}\n",
        );
        let texts: Vec<Scorable> = scorable_lines(&path).unwrap().into_iter().map(|(_, text)| text).collect();
        let whole = |prompt| Scorable::Whole(prompt);
        assert_eq!(
            texts,
            [
                whole(Prompt::Text("a".into())),
                whole(Prompt::Text("b".into())),
                whole(Prompt::Ids(vec![1])),
                Scorable::Pair { prompt: "c".into(), continuation: "d".into() },
                Scorable::PairIds { prompt: vec![1], continuation: vec![2] },
            ]
        );
        for bad in ["{\"prompt\":\"a\"}", "{\"text\":1}", "{\"texts\":\"a\"}", "{\"text\":\"a\",\"ids\":[1]}"] {
            let (_folder, path) = file(&format!("\"fine\"\n\n{bad}\n"));
            let message = scorable_lines(&path).unwrap_err().to_string();
            assert!(message.contains("line 3"), "{bad}: {message}");
        }
    }

    #[test]
    fn names_the_line_that_is_no_utf_8_and_passes_over_a_mark_of_the_encoding() {
        let (_folder, path) = file("");
        std::fs::write(&path, b"\xef\xbb\xbf\"fine\"\n\"\xff\"\n").unwrap();
        let message = lines(&path).unwrap_err().to_string();
        assert!(message.contains("line 2: not UTF-8"), "{message}");
        std::fs::write(&path, b"\xef\xbb\xbf\"fine\"\n").unwrap();
        assert_eq!(lines(&path).unwrap().len(), 1);
    }

    #[test]
    fn refuses_deep_nesting_and_an_empty_file() {
        let (_folder, path) = file(&"[".repeat(1_000_000));
        assert!(lines(&path).is_err());
        let (_folder, path) = file("\n\n");
        assert!(lines(&path).is_err());
    }

    #[test]
    fn reads_one_prompt_or_several_of_ids() {
        assert_eq!(ids("[1,2]").unwrap().len(), 1);
        assert_eq!(ids("[[1,2],[3]]").unwrap().len(), 2);
        for bad in ["", "{}", "[]", "[[1],2]", "[\"a\"]", "[4294967296]"] {
            assert!(ids(bad).is_err(), "{bad}");
        }
    }
}
