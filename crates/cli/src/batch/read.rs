//! Prompts and texts from JSON and from the command line.

use std::path::Path;

use serde_json::Value;
use unspool::{Error, Prompt, Result, Scorable, TokenId, json};

use super::chat;
use super::row::{Keys, why};
use super::source::{MAX_LINES, Source};
use crate::failure::Failure;

/// One of the things that were read.
#[derive(Clone, Debug)]
pub struct Placed<T = Prompt> {
    /// Where it is, for messages; `None` for the only one of the command line.
    pub place: Option<String>,
    /// What it is.
    pub item: T,
    /// Keys of its line that go through to the line of its result.
    pub keys: Keys,
}

impl<T> Placed<T> {
    /// The same thing made into another, where a failure tells its place.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub fn make<U>(self, make: impl FnOnce(T) -> Result<U>) -> Result<Placed<U>> {
        match (make(self.item), self.place) {
            (Ok(item), place) => Ok(Placed { place, item, keys: self.keys }),
            (Err(error), Some(place)) => Err(error.at(place)),
            (Err(error), None) => Err(error),
        }
    }
}

/// Refuses flags about texts where none of `items` is one.
///
/// # Errors
///
/// [`Failure::Usage`] with the name of the first of `flags` that is set.
pub fn check_texts<T>(
    items: &[Placed<T>],
    is_text: impl Fn(&T) -> bool,
    flags: &[(&str, bool)],
) -> std::result::Result<(), Failure> {
    match flags.iter().find(|(_, set)| *set) {
        Some((flag, _)) if !items.iter().any(|placed| is_text(&placed.item)) => Err(Failure::usage(format!(
            "{flag} is about texts, and none is given: ids are taken as they are, and messages go through the chat template; \
             leave it out"
        ))),
        _ => Ok(()),
    }
}

/// Things that stand on the command line: a single one needs no name, others are counted as `what`.
pub fn counted<T>(what: &str, items: Vec<T>) -> Vec<Placed<T>> {
    let several = items.len() > 1;
    let place = |index: usize| several.then(|| format!("{what} {index}"));
    let numbered = items.into_iter().enumerate();
    numbered.map(|(index, item)| Placed { place: place(index), item, keys: Keys::default() }).collect()
}

/// Prompts of a file of JSON lines: a string, `{"prompt": "..."}`, `{"ids": [...]}` or `{"messages": [...]}` (beside them
/// `tools`, `documents` and `chat_template_kwargs`) each. Blank lines are passed over, and other keys go through to the
/// results, whose own keys are `own`. `-` is standard input.
///
/// # Errors
///
/// When the file cannot be read or a line is none of these; the message names the line.
pub fn lines(path: &Path, own: &[&str]) -> Result<Vec<Placed>> {
    each_line(Source::open(path)?, "prompts", own, prompt)
}

/// Texts to be scored, of JSON lines: a string, `{"text": "..."}`, `{"prompt": "...", "continuation": "..."}`,
/// `{"ids": [...]}` or `{"prompt_ids": [...], "continuation_ids": [...]}` each; otherwise as [`lines`].
///
/// # Errors
///
/// As [`lines`].
pub fn scorable_lines(source: Source, own: &[&str]) -> Result<Vec<Placed<Scorable>>> {
    each_line(source, "texts", own, scorable)
}

/// Texts of JSON lines: a string, `{"text": "..."}` or `{"ids": [...]}` each; otherwise as [`lines`].
///
/// # Errors
///
/// As [`lines`].
pub fn text_lines(source: Source, own: &[&str]) -> Result<Vec<Placed>> {
    each_line(source, "texts", own, text)
}

/// What `read_one` makes of each line that is not blank.
fn each_line<T>(
    mut source: Source,
    what: &str,
    own: &[&str],
    read_one: impl Fn(&mut Row) -> Result<T>,
) -> Result<Vec<Placed<T>>> {
    let mut found = Vec::new();
    while let Some(line) = source.line()? {
        if line.trim().is_empty() {
            continue;
        }
        let read = || {
            let mut row = Row::read(&line)?;
            let item = read_one(&mut row)?;
            Ok((item, row.through(own)?))
        };
        let place = source.place();
        let (item, keys) = read().map_err(|error: Error| error.at(&place))?;
        if found.len() == MAX_LINES {
            return Err(Error::invalid_input(format!(
                "there are more than {MAX_LINES} {what}, the most that are read; split the file"
            ))
            .at(source.name()));
        }
        found.push(Placed { place: Some(place), item, keys });
    }
    if found.is_empty() {
        return Err(Error::invalid_input(format!("there are no {what}; expected one a line")).at(source.name()));
    }
    Ok(found)
}

/// Texts of the command line; `-` is what standard input holds.
///
/// # Errors
///
/// When standard input is named twice, or holds no text.
pub fn words(words: &[String]) -> Result<Vec<String>> {
    if words.iter().filter(|word| *word == "-").count() > 1 {
        return Err(Error::invalid_input("- is given more than once, and standard input can be read only once"));
    }
    words.iter().map(|word| if word == "-" { Source::standard_input().text() } else { Ok(word.clone()) }).collect()
}

/// Prompts of an option `name`: `[[1,2,3],[4,5]]`, or one prompt `[1,2,3]`.
///
/// # Errors
///
/// When `text` is no list of token ids or of such lists.
pub fn ids(name: &str, text: &str) -> Result<Vec<Placed>> {
    let wrong = |error: Error| {
        let example = "expected JSON such as [1,2,3], or [[1,2,3],[4,5]] for two";
        Error::invalid_input(format!("{}; {example}", error.message())).at(name)
    };
    let items = match json::parse(text).map_err(|error| wrong(why(&error)))? {
        Value::Array(items) if !items.is_empty() => items,
        Value::Array(_) => return Err(wrong(Error::invalid_input("there is no prompt in the list"))),
        _ => return Err(wrong(Error::invalid_input("this is no list"))),
    };
    let lists = if items.iter().any(Value::is_array) { items } else { vec![Value::Array(items)] };
    let prompts =
        lists.into_iter().map(|list| token_ids(list).map(Prompt::Ids)).collect::<Result<_>>().map_err(wrong)?;
    Ok(counted(&format!("{name}, prompt"), prompts))
}

/// A line: a text by itself, or an object.
enum Row {
    Text(String),
    Keys(Keys),
}

impl Row {
    fn read(line: &str) -> Result<Self> {
        if line.trim_start().starts_with('{') {
            return Keys::read(line).map(Row::Keys);
        }
        match json::parse(line).map_err(|error| why(&error))? {
            Value::String(text) => Ok(Row::Text(text)),
            _ => Err(Error::invalid_input("expected a JSON string or object")),
        }
    }

    fn through(self, own: &[&str]) -> Result<Keys> {
        match self {
            Row::Text(_) => Ok(Keys::default()),
            Row::Keys(keys) => keys.through(own),
        }
    }
}

fn prompt(row: &mut Row) -> Result<Prompt> {
    let keys = match row {
        Row::Text(text) => return Ok(Prompt::Text(std::mem::take(text))),
        Row::Keys(keys) => keys,
    };
    let found = ["prompt", "ids", "messages"].map(|key| keys.take(key));
    if let (None, Some(key)) = (&found[2], chat::KEYS.iter().find(|key| keys.has(key))) {
        return Err(Error::invalid_input(format!("{key:?} belongs to messages, and there are none")));
    }
    if found.iter().flatten().count() > 1 {
        return Err(Error::invalid_input("prompt, ids and messages exclude each other; give one of them"));
    }
    match found {
        [Some(Value::String(text)), None, None] => Ok(Prompt::Text(text)),
        [None, Some(ids), None] => token_ids(ids).map(Prompt::Ids),
        [None, None, Some(messages)] => chat::chat(messages, keys).map(Prompt::Chat),
        _ => Err(Error::invalid_input(
            "expected a string, {\"prompt\": \"...\"}, {\"ids\": [...]} or {\"messages\": [...]}; settings are options of \
             the command",
        )),
    }
}

fn scorable(row: &mut Row) -> Result<Scorable> {
    let keys = match row {
        Row::Text(text) => return Ok(Scorable::Whole(Prompt::Text(std::mem::take(text)))),
        Row::Keys(keys) => keys,
    };
    match ["text", "ids", "prompt", "continuation", "prompt_ids", "continuation_ids"].map(|key| keys.take(key)) {
        [Some(Value::String(text)), None, None, None, None, None] => Ok(Scorable::Whole(Prompt::Text(text))),
        [None, Some(ids), None, None, None, None] => Ok(Scorable::Whole(Prompt::Ids(token_ids(ids)?))),
        [None, None, Some(Value::String(prompt)), Some(Value::String(continuation)), None, None] => {
            Ok(Scorable::Pair { prompt, continuation })
        }
        [None, None, None, None, Some(prompt), Some(continuation)] => {
            Ok(Scorable::PairIds { prompt: token_ids(prompt)?, continuation: token_ids(continuation)? })
        }
        _ => Err(Error::invalid_input(
            "expected a string, {\"text\": \"...\"}, {\"prompt\": \"...\", \"continuation\": \"...\"}, {\"ids\": [...]} or \
             {\"prompt_ids\": [...], \"continuation_ids\": [...]}",
        )),
    }
}

fn text(row: &mut Row) -> Result<Prompt> {
    let keys = match row {
        Row::Text(text) => return Ok(Prompt::Text(std::mem::take(text))),
        Row::Keys(keys) => keys,
    };
    match ["text", "ids"].map(|key| keys.take(key)) {
        [Some(Value::String(text)), None] => Ok(Prompt::Text(text)),
        [None, Some(ids)] => token_ids(ids).map(Prompt::Ids),
        _ => Err(Error::invalid_input("expected a string, {\"text\": \"...\"} or {\"ids\": [...]}")),
    }
}

fn token_ids(value: Value) -> Result<Vec<TokenId>> {
    let Value::Array(items) = value else {
        return Err(Error::invalid_input(format!("{} is no list of token ids", shown(&value))));
    };
    let id = |item: &Value| item.as_u64().and_then(|id| TokenId::try_from(id).ok());
    let read = |item| {
        id(&item).ok_or_else(|| {
            Error::invalid_input(format!("{} is no token id, an integer from 0 to {}", shown(&item), TokenId::MAX))
        })
    };
    items.into_iter().map(read).collect()
}

/// A value, cut where it is long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
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
        let prompts: Vec<Prompt> = lines(&path, &[]).unwrap().into_iter().map(|placed| placed.item).collect();
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
            let message = lines(&path, &[]).unwrap_err().to_string();
            assert!(message.contains("line 2"), "{bad}: {message}");
        }
    }

    #[test]
    fn reads_every_kind_of_text_to_be_scored() {
        let (_folder, path) = file(
            "\"a\"\n{\"text\":\"b\"}\n{\"ids\":[1]}\n{\"prompt\":\"c\",\"continuation\":\"d\"}\n\
             {\"prompt_ids\":[1],\"continuation_ids\":[2]}\n",
        );
        let texts: Vec<Scorable> =
            scorable_lines(Source::open(&path).unwrap(), &[]).unwrap().into_iter().map(|placed| placed.item).collect();
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
            let message = scorable_lines(Source::open(&path).unwrap(), &[]).unwrap_err().to_string();
            assert!(message.contains("line 3"), "{bad}: {message}");
        }
    }

    #[test]
    fn names_the_line_that_is_no_utf_8_and_passes_over_a_mark_of_the_encoding() {
        let (_folder, path) = file("");
        std::fs::write(&path, b"\xef\xbb\xbf\"fine\"\n\"\xff\"\n").unwrap();
        let message = lines(&path, &[]).unwrap_err().to_string();
        assert!(message.contains("line 2: byte 2 of this line is not UTF-8"), "{message}");
        std::fs::write(&path, b"\xef\xbb\xbf\"fine\"\n").unwrap();
        assert_eq!(lines(&path, &[]).unwrap().len(), 1);
    }

    #[test]
    fn refuses_deep_nesting_and_an_empty_file() {
        let (_folder, path) = file(&"[".repeat(1_000_000));
        assert!(lines(&path, &[]).is_err());
        let (_folder, path) = file("\n\n");
        assert!(lines(&path, &[]).is_err());
    }

    #[test]
    fn reads_one_prompt_or_several_of_ids() {
        assert_eq!(ids("--ids", " [1,2]").unwrap().len(), 1);
        let two = ids("--ids", "[ [1,2],[3]]").unwrap();
        assert_eq!(
            two.iter().map(|one| one.place.as_deref().unwrap()).collect::<Vec<_>>(),
            ["--ids, prompt 0", "--ids, prompt 1"]
        );
        assert_eq!(ids("--ids", "[[]]").unwrap()[0].item, Prompt::Ids(vec![]));
        for (bad, told) in [
            ("", "not JSON"),
            ("{}", "this is no list"),
            ("[]", "no prompt in the list"),
            ("[[1],2]", "2 is no list of token ids"),
            ("[1,[2]]", "1 is no list of token ids"),
            ("[\"a\"]", "\"a\" is no token id"),
            ("[4294967296]", "4294967296 is no token id, an integer from 0 to 4294967295"),
            ("[-1]", "-1 is no token id"),
            ("[1.0]", "1.0 is no token id"),
            ("[1e400]", "\"Infinity\" is no token id"),
            ("[123456789012345678901234567890]", "1.2345678901234568e+29 is no token id"),
            ("[true]", "true is no token id"),
        ] {
            let error = ids("--ids", bad).unwrap_err().to_string();
            assert!(error.starts_with("--ids: ") && error.contains(told), "{bad}: {error}");
        }
    }

    #[test]
    fn other_keys_go_through_and_a_line_is_named_among_several() {
        let (_folder, path) = file("{\"id\":7,\"prompt\":\"a\",\"x\":null}\n\"b\"\n");
        let read = lines(&path, &["index"]).unwrap();
        assert_eq!(serde_json::to_string(&read[0].keys).unwrap(), "{\"id\":7,\"x\":null}");
        assert_eq!(serde_json::to_string(&read[1].keys).unwrap(), "{}");
        let failed = read[1].clone().make(|_| Err::<(), _>(Error::invalid_input("wrong"))).unwrap_err().to_string();
        assert!(failed.ends_with("prompts.jsonl, line 2: wrong"), "{failed}");
        for bad in ["{\"promt\":\"a\"}", "{\"prompt\":\"a\",\"index\":1}", "{\"prompt\":\"a\",\"tools\":[]}"] {
            let (_folder, path) = file(&format!("\"fine\"\n{bad}\n"));
            let message = lines(&path, &["index"]).unwrap_err().to_string();
            assert!(message.contains("line 2"), "{bad}: {message}");
        }
        assert_eq!(counted("prompt", vec![1])[0].place, None);
        assert_eq!(counted("prompt", vec![1, 2])[1].place.as_deref(), Some("prompt 1"));
    }
}
