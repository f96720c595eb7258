//! The file of `--out`: written beside its place line by line, continued after a cut, and renamed when it is whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use unspool::{Error, Result, TokenId};

use crate::print::file::place;

/// A result file being written.
#[derive(Debug)]
pub struct Results {
    target: PathBuf,
    part: PathBuf,
    run: PathBuf,
    file: File,
    done: usize,
}

#[derive(Deserialize)]
struct Head {
    index: usize,
    prompt_ids: Vec<TokenId>,
    /// Of a scored text: the tokens behind the prompt, which belong to the input too.
    #[serde(default)]
    ids: Vec<TokenId>,
}

/// `path` with `end` appended to its name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// What the run that left a partial result said of itself, if there is one that can be continued.
///
/// # Errors
///
/// When it is there and cannot be read.
pub fn earlier_run(target: &Path) -> Result<Option<Value>> {
    let (part, run) = (beside(target, ".part"), beside(target, ".part.run"));
    if !part.is_file() || !run.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&run)
        .map_err(|error| Error::io("the partial result could not be read").at(run.display()).because(error))?;
    serde_json::from_str(&text).map(Some).map_err(|error| stale(&part, "its description is not JSON").because(error))
}

fn stale(part: &Path, why: &str) -> Error {
    Error::invalid_input(format!("this partial result cannot be continued: {why}; delete it to begin anew"))
        .at(part.display())
}

/// The key of a run's description that holds the prompts of a run with token healing.
pub const HEALED_FROM: &str = "healed_from";

impl Results {
    /// Opens the partial result of `target`, or begins one. `run` says what the run depends on besides the prompts; it
    /// must be the same when a run is continued. Where healing gives answers other prompt ids than `prompts`, it holds the
    /// prompts under [`HEALED_FROM`].
    ///
    /// # Errors
    ///
    /// When the partial result is of another run or other prompts, or a file cannot be written.
    pub fn open(target: &Path, run: &Value, prompts: &[Vec<TokenId>]) -> Result<Self> {
        let target = &place(target)?;
        let (part, run_path) = (beside(target, ".part"), beside(target, ".part.run"));
        let failed =
            |error: std::io::Error| Error::io("the result file could not be written").at(part.display()).because(error);
        let begun = part.is_file();
        if !begun && part.symlink_metadata().is_ok() {
            return Err(Error::invalid_input(
                "this is in the place of the partial result, and no regular file; remove it",
            )
            .at(part.display()));
        }
        let file = OpenOptions::new().create(true).append(true).open(&part).map_err(failed)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::invalid_input("another run is writing this result").at(part.display()));
        }
        let done = match earlier_run(target)? {
            Some(earlier) if earlier != *run => {
                return Err(stale(&part, &format!("it was written with {}", difference(&earlier, run))));
            }
            Some(_) => {
                let healed = run.get(HEALED_FROM).is_some_and(|prompts| !prompts.is_null());
                let (done, length) = check(&part, prompts, healed)?;
                // A line that was cut in the middle is written again.
                file.set_len(length).map_err(failed)?;
                done
            }
            None if begun => return Err(stale(&part, "the file that describes its run is gone")),
            None => {
                fs::write(&run_path, format!("{run}\n")).map_err(failed)?;
                0
            }
        };
        Ok(Results { target: target.clone(), part, run: run_path, file, done })
    }

    /// How many prompts were answered before.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Adds lines.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add(&mut self, lines: &[String]) -> Result<()> {
        let mut text = lines.join("\n");
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|error| {
            Error::io("the result file could not be written").at(self.part.display()).because(error)
        })?;
        self.done += lines.len();
        Ok(())
    }

    /// Puts the whole file in its place.
    ///
    /// # Errors
    ///
    /// When it cannot be renamed.
    pub fn finish(self) -> Result<()> {
        self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.target)).map_err(|error| {
            Error::io("the result file could not be put in place").at(self.target.display()).because(error)
        })?;
        let _ = fs::remove_file(&self.run);
        Ok(())
    }
}

/// Whole lines of `part` and their length in bytes. Lines of `healed` prompts hold other ids than the prompts.
fn check(part: &Path, prompts: &[Vec<TokenId>], healed: bool) -> Result<(usize, u64)> {
    let failed =
        |error: std::io::Error| Error::io("the partial result could not be read").at(part.display()).because(error);
    let mut reader = BufReader::new(File::open(part).map_err(failed)?);
    let (mut done, mut length) = (0, 0u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(failed)?;
        if line.last() != Some(&b'\n') {
            return Ok((done, length));
        }
        let mut head: Head = serde_json::from_slice(&line)
            .map_err(|error| stale(part, &format!("line {} is not a result", done + 1)).because(error))?;
        head.prompt_ids.append(&mut head.ids);
        if head.index != done || prompts.get(done).is_none_or(|ids| !healed && *ids != head.prompt_ids) {
            return Err(stale(part, &format!("line {} answers another prompt", done + 1)));
        }
        done += 1;
        length += line.len() as u64;
    }
}

/// The first thing in which two descriptions differ.
fn difference(earlier: &Value, now: &Value) -> String {
    let (Some(before), Some(after)) = (earlier.as_object(), now.as_object()) else { return "other settings".into() };
    for key in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(key).unwrap_or(&Value::Null), after.get(key).unwrap_or(&Value::Null));
        if old != new && key == HEALED_FROM {
            return "other prompts, or without healing them".into();
        }
        let long = |value: &Value| value.as_array().is_some_and(|entries| entries.len() > 8);
        if old != new && (long(old) || long(new)) {
            return format!("other {key}");
        }
        if old != new {
            return format!("{key} = {old}, and now it is {new}");
        }
    }
    "other settings".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(index: usize, ids: &[TokenId]) -> String {
        json!({"index": index, "prompt_ids": ids, "sequences": []}).to_string()
    }

    #[test]
    fn continues_after_a_cut_line() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let prompts = [vec![1], vec![2], vec![3]];
        let mut results = Results::open(&target, &json!({"seed": 1}), &prompts).unwrap();
        results.add(&[line(0, &[1])]).unwrap();
        results.file.write_all(b"{\"index\":1,\"prom").unwrap();
        drop(results);
        assert_eq!(earlier_run(&target).unwrap(), Some(json!({"seed": 1})));
        let mut results = Results::open(&target, &json!({"seed": 1}), &prompts).unwrap();
        assert_eq!(results.done(), 1);
        results.add(&[line(1, &[2]), line(2, &[3])]).unwrap();
        results.finish().unwrap();
        let expected = [line(0, &[1]), line(1, &[2]), line(2, &[3])].join("\n") + "\n";
        assert_eq!(fs::read_to_string(&target).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_scored_text_is_known_by_its_prompt_and_the_tokens_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let mut results = Results::open(&target, &json!({}), &[vec![1, 2, 3]]).unwrap();
        results.add(&[json!({"index": 0, "prompt_ids": [1], "ids": [2, 3]}).to_string()]).unwrap();
        drop(results);
        assert_eq!(Results::open(&target, &json!({}), &[vec![1, 2, 3]]).unwrap().done(), 1);
        assert!(Results::open(&target, &json!({}), &[vec![1, 2, 4]]).is_err());
    }

    #[test]
    fn replaces_regular_files_only_and_one_run_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let error = Results::open(folder.path(), &json!({}), &[vec![1]]).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
        assert!(Results::open(Path::new("-"), &json!({}), &[vec![1]]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let target = folder.path().join("out.jsonl");
        let first = Results::open(&target, &json!({}), &[vec![1]]).unwrap();
        let error = Results::open(&target, &json!({}), &[vec![1]]).unwrap_err().to_string();
        assert!(error.contains("another run is writing"), "{error}");
        drop(first);
        assert!(Results::open(&target, &json!({}), &[vec![1]]).is_ok());
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut results = Results::open(&link, &json!({}), &[vec![1]]).unwrap();
        results.add(&[line(0, &[1])]).unwrap();
        results.finish().unwrap();
        assert!(link.is_symlink() && fs::read_to_string(&real).unwrap().contains("prompt_ids"));
    }

    #[test]
    fn refuses_the_partial_result_of_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let mut results = Results::open(&target, &json!({"seed": 1}), &[vec![1]]).unwrap();
        results.add(&[line(0, &[1])]).unwrap();
        drop(results);
        let error = Results::open(&target, &json!({"seed": 2}), &[vec![1]]).unwrap_err().to_string();
        assert!(error.contains("seed = 1, and now it is 2"), "{error}");
        let error = Results::open(&target, &json!({"seed": 1}), &[vec![7]]).unwrap_err().to_string();
        assert!(error.contains("line 1 answers another prompt"), "{error}");
    }
}
