//! The file of `--out`: written beside its place line by line, continued after a cut, and renamed when it is whole. What it
//! was made with stays beside it, so that the same request knows its result, and another one does not replace it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool::{Error, Result, TokenId, file, json};

use super::row::Keys;
use crate::print::file::{place, refuse_existing};

/// How to replace a result.
const FORCE: &str = "give --force";

/// Most bytes of the description of a run: it may hold every prompt.
const MAX_DESCRIPTION: u64 = 1 << 30;

/// A result file being written.
#[derive(Debug)]
pub struct Results {
    target: PathBuf,
    part: PathBuf,
    file: File,
    done: usize,
    force: bool,
}

/// What a result file is to hold.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Where it is to be.
    pub target: &'a Path,
    /// What the run depends on besides the prompts. Where healing gives answers other prompt ids than `prompts`, it holds
    /// the prompts under [`HEALED_FROM`].
    pub run: &'a Value,
    /// The prompts.
    pub prompts: &'a [Vec<TokenId>],
    /// Keys that go through to the line of each prompt.
    pub keys: &'a [Keys],
    /// Whether a file that is there is replaced, and the partial result of another run too.
    pub force: bool,
}

/// `path` with `end` appended to its name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Where the partial result of `target` is, and where the description of a whole or of a partial result.
fn part_of(target: &Path) -> PathBuf {
    beside(target, ".part")
}

fn run_of(path: &Path) -> PathBuf {
    beside(path, ".run")
}

/// Checks, before any work, that a result may be put at `target`.
///
/// # Errors
///
/// When something is there that is not known for a result, unless `force` says to replace it; or no result can be there.
pub fn check_place(target: &Path, force: bool) -> Result<()> {
    let target = place(target)?;
    if !force && !run_of(&target).is_file() {
        refuse_existing(&target, FORCE)?;
    }
    Ok(())
}

/// What the run said of itself that left a partial result which can be continued, or else a whole one unless `force` says
/// to replace it.
///
/// # Errors
///
/// When it is there and cannot be read.
pub fn earlier_run(target: &Path, force: bool) -> Result<Option<Value>> {
    let target = place(target)?;
    let part = part_of(&target);
    if part.is_file() {
        return described(&part);
    }
    if target.is_file() && !force { described(&target) } else { Ok(None) }
}

/// The description of a whole or partial result, if there is one.
fn described(result: &Path) -> Result<Option<Value>> {
    let path = run_of(result);
    match file::read_text(&path, MAX_DESCRIPTION)? {
        Some(text) => json::parse(&text).map(Some).map_err(|error| error.at(path.display())),
        None => Ok(None),
    }
}

fn stale(part: &Path, why: &str) -> Error {
    Error::invalid_input(format!(
        "this partial result cannot be continued: {why}; {FORCE} to start again, or another name"
    ))
    .at(part.display())
}

/// The key of a run's description that holds the prompts of a run with token healing.
pub const HEALED_FROM: &str = "healed_from";

impl Wanted<'_> {
    /// Opens the partial result, or begins one. `None` when the whole result is there already.
    ///
    /// # Errors
    ///
    /// When a file is there that is not this result, the partial result is of another run or other prompts, or a file
    /// cannot be written.
    pub fn open(&self) -> Result<Option<Results>> {
        let target = place(self.target)?;
        if self.is_finished(&target)? {
            return Ok(None);
        }
        let part = part_of(&target);
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
        let continued = if begun { self.continued(&part) } else { Ok((0, 0)) };
        let (done, length) = match continued {
            // What another run left.
            Err(_) if self.force => (0, 0),
            other => other?,
        };
        // A line that was cut in the middle is written again.
        file.set_len(length).map_err(failed)?;
        if done == 0 {
            let description = run_of(&part);
            fs::write(&description, format!("{}\n", self.run)).map_err(|error| {
                Error::io("the description of the run could not be written").at(description.display()).because(error)
            })?;
        }
        Ok(Some(Results { target, part, file, done, force: self.force }))
    }

    /// Whether `target` is the whole result already.
    fn is_finished(&self, target: &Path) -> Result<bool> {
        if self.force || target.symlink_metadata().is_err() {
            return Ok(false);
        }
        let other = |why: String| {
            let message = format!("this file is there already, and {why}; give another name, or {FORCE} to replace it");
            Err(Error::invalid_input(message).at(target.display()))
        };
        match described(target)? {
            None => refuse_existing(target, FORCE).map(|()| false),
            Some(earlier) if earlier != *self.run => {
                other(format!("was written with {}", difference(&earlier, self.run)))
            }
            Some(_) => match self.check(target) {
                Ok((done, _)) if done == self.prompts.len() => Ok(true),
                Ok((done, _)) => other(format!("holds {done} of {} results", self.prompts.len())),
                Err(Mismatch::Io(error)) => Err(error),
                Err(Mismatch::Other(why)) => other(why),
            },
        }
    }

    /// Whole lines of the partial result, and their length in bytes.
    fn continued(&self, part: &Path) -> Result<(usize, u64)> {
        match described(part)? {
            Some(earlier) if earlier != *self.run => {
                Err(stale(part, &format!("it was written with {}", difference(&earlier, self.run))))
            }
            None => Err(stale(part, "the file that describes its run is gone")),
            Some(_) => self.check(part).map_err(|mismatch| match mismatch {
                Mismatch::Io(error) => error,
                Mismatch::Other(why) => stale(part, &why),
            }),
        }
    }

    /// Whole lines of the result at `path`, all of which answer the prompts, and their length in bytes.
    fn check(&self, path: &Path) -> std::result::Result<(usize, u64), Mismatch> {
        let failed = |error: std::io::Error| {
            Mismatch::Io(Error::io("the result could not be read").at(path.display()).because(error))
        };
        // Lines of healed prompts hold other ids than the prompts.
        let healed = self.run.get(HEALED_FROM).is_some_and(|prompts| !prompts.is_null());
        let mut reader = BufReader::new(File::open(path).map_err(failed)?);
        let (mut done, mut length) = (0, 0u64);
        let mut line = Vec::new();
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(failed)?;
            if line.last() != Some(&b'\n') {
                return Ok((done, length));
            }
            match self.answers(&line, done, healed) {
                None => return Err(Mismatch::Other(format!("line {} is not a result", done + 1))),
                Some(false) => return Err(Mismatch::Other(format!("line {} answers another prompt", done + 1))),
                Some(true) => {}
            }
            done += 1;
            length += line.len() as u64;
        }
    }

    /// Whether `line` is the result of prompt `index`; `None` when it is no result at all.
    fn answers(&self, line: &[u8], index: usize, healed: bool) -> Option<bool> {
        let through = self.keys.get(index);
        let own = ["index", "prompt_ids", "ids"];
        let wanted = |key: &str| own.contains(&key) || through.is_some_and(|keys| keys.has(key));
        let mut found = Keys::find(line, wanted)?;
        let [at, prompt, scored] = own.map(|key| found.take(key));
        let ids = |value: Option<Value>| value.map(serde_json::from_value::<Vec<TokenId>>).transpose();
        // Of a scored text: the tokens behind the prompt, which belong to the input too.
        let ids = [ids(prompt).ok()??, ids(scored).ok()?.unwrap_or_default()].concat();
        let keys = through.is_none_or(|keys| keys.are_in(&found));
        let same = healed || self.prompts.get(index) == Some(&ids);
        Some(at?.as_u64() == u64::try_from(index).ok() && index < self.prompts.len() && keys && same)
    }
}

/// Why a file is not the result, or not a part of it.
enum Mismatch {
    Io(Error),
    Other(String),
}

impl Results {
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
    /// When a file came there meanwhile, or it cannot be renamed.
    pub fn finish(self) -> Result<()> {
        if !self.force {
            refuse_existing(&self.target, FORCE)?;
        }
        let (new, old) = (run_of(&self.part), run_of(&self.target));
        // A result without a description is only ever refused; one with another's would be taken for what it is not.
        let forgotten = match fs::remove_file(&old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        forgotten
            .and_then(|()| self.file.sync_all())
            .and_then(|()| fs::rename(&self.part, &self.target))
            .and_then(|()| fs::rename(&new, &old))
            .map_err(|error| {
                Error::io("the result file could not be put in place").at(self.target.display()).because(error)
            })
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

    fn open_with(target: &Path, run: &Value, prompts: &[Vec<TokenId>], force: bool) -> Result<Option<Results>> {
        Wanted { target, run, prompts, keys: &[], force }.open()
    }

    /// Opens a result that is not whole yet.
    fn open(target: &Path, run: &Value, prompts: &[Vec<TokenId>]) -> Result<Results> {
        open_with(target, run, prompts, false).map(|results| results.expect("this is not finished"))
    }

    fn line(index: usize, ids: &[TokenId]) -> String {
        json!({"index": index, "prompt_ids": ids, "sequences": []}).to_string()
    }

    #[test]
    fn continues_after_a_cut_line() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let prompts = [vec![1], vec![2], vec![3]];
        let mut results = open(&target, &json!({"seed": 1}), &prompts).unwrap();
        results.add(&[line(0, &[1])]).unwrap();
        results.file.write_all(b"{\"index\":1,\"prom").unwrap();
        drop(results);
        assert_eq!(earlier_run(&target, false).unwrap(), Some(json!({"seed": 1})));
        let mut results = open(&target, &json!({"seed": 1}), &prompts).unwrap();
        assert_eq!(results.done(), 1);
        results.add(&[line(1, &[2]), line(2, &[3])]).unwrap();
        results.finish().unwrap();
        let expected = [line(0, &[1]), line(1, &[2]), line(2, &[3])].join("\n") + "\n";
        assert_eq!(fs::read_to_string(&target).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the result and what it was made with");
    }

    #[test]
    fn a_scored_text_is_known_by_its_prompt_and_the_tokens_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let mut results = open(&target, &json!({}), &[vec![1, 2, 3]]).unwrap();
        results.add(&[json!({"index": 0, "prompt_ids": [1], "ids": [2, 3]}).to_string()]).unwrap();
        drop(results);
        assert_eq!(open(&target, &json!({}), &[vec![1, 2, 3]]).unwrap().done(), 1);
        assert!(open(&target, &json!({}), &[vec![1, 2, 4]]).is_err());
    }

    #[test]
    fn replaces_regular_files_only_and_one_run_writes_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(folder.path(), &json!({}), &[vec![1]]).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
        assert!(open(Path::new("-"), &json!({}), &[vec![1]]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let target = folder.path().join("out.jsonl");
        let first = open(&target, &json!({}), &[vec![1]]).unwrap();
        let error = open(&target, &json!({}), &[vec![1]]).unwrap_err().to_string();
        assert!(error.contains("another run is writing"), "{error}");
        drop(first);
        assert!(open(&target, &json!({}), &[vec![1]]).is_ok());
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(open(&link, &json!({}), &[vec![1]]).unwrap_err().to_string().contains("there already"));
        let mut results = open_with(&link, &json!({}), &[vec![1]], true).unwrap().unwrap();
        results.add(&[line(0, &[1])]).unwrap();
        results.finish().unwrap();
        assert!(link.is_symlink() && fs::read_to_string(&real).unwrap().contains("prompt_ids"));
    }

    #[test]
    fn refuses_the_partial_result_of_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let mut results = open(&target, &json!({"seed": 1}), &[vec![1]]).unwrap();
        results.add(&[line(0, &[1])]).unwrap();
        drop(results);
        let error = open(&target, &json!({"seed": 2}), &[vec![1]]).unwrap_err().to_string();
        assert!(error.contains("seed = 1, and now it is 2"), "{error}");
        let error = open(&target, &json!({"seed": 1}), &[vec![7]]).unwrap_err().to_string();
        assert!(error.contains("line 1 answers another prompt"), "{error}");
    }

    #[test]
    fn a_finished_result_is_known_and_nothing_is_replaced_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let (run, prompts) = (json!({"seed": 1}), [vec![1], vec![2]]);
        fs::write(&target, "mine\n").unwrap();
        for refused in [check_place(&target, false).map(drop), open_with(&target, &run, &prompts, false).map(drop)] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("there already; give another name, or give --force to replace it"), "{error}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was begun");

        let mut results = open_with(&target, &run, &prompts, true).unwrap().unwrap();
        results.add(&[line(0, &[1]), line(1, &[2])]).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n", "it is replaced at the end");
        results.finish().unwrap();
        let whole = fs::read_to_string(&target).unwrap();
        assert!(check_place(&target, false).is_ok());
        assert_eq!(earlier_run(&target, false).unwrap(), Some(run.clone()));
        assert_eq!(earlier_run(&target, true).unwrap(), None);
        assert!(open_with(&target, &run, &prompts, false).unwrap().is_none(), "it is finished");

        let told =
            |run: &Value, prompts: &[Vec<TokenId>]| open_with(&target, run, prompts, false).unwrap_err().to_string();
        assert!(told(&json!({"seed": 2}), &prompts).contains("was written with seed = 1, and now it is 2"));
        assert!(told(&run, &[vec![1], vec![3]]).contains("line 2 answers another prompt"));
        assert!(told(&run, &[vec![1], vec![2], vec![3]]).contains("holds 2 of 3 results"));
        assert_eq!(fs::read_to_string(&target).unwrap(), whole);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);

        // A partial result of another run gives way too.
        drop(open_with(&target, &json!({"seed": 2}), &prompts, true).unwrap());
        let results = open_with(&target, &json!({"seed": 3}), &prompts, true).unwrap().unwrap();
        assert_eq!(results.done(), 0);
    }

    #[test]
    fn keys_that_went_through_belong_to_the_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.jsonl");
        let keys = |id: u32| [Keys::read(&json!({"id": id}).to_string()).unwrap()];
        let open =
            |keys: &[Keys]| Wanted { target: &target, run: &json!({}), prompts: &[vec![1]], keys, force: false }.open();
        let mut results = open(&keys(7)).unwrap().unwrap();
        results.add(&[json!({"index": 0, "id": 7, "prompt_ids": [1]}).to_string()]).unwrap();
        drop(results);
        assert!(open(&keys(8)).unwrap_err().to_string().contains("line 1 answers another prompt"));
        open(&keys(7)).unwrap().unwrap().finish().unwrap();
        assert!(open(&keys(7)).unwrap().is_none());
    }
}
