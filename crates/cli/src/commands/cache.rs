//! `unspool cache`: what is kept on this machine, and how it is freed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ArgMatches;
use serde_json::{Value, json};
use unspool::cache::{Caches, Entry, PruneOptions};

use crate::failure::Failure;
use crate::print::line::one_line;
use crate::print::{out, table};

const DAY: u64 = 86_400;

/// Runs the command.
///
/// # Errors
///
/// When the caches cannot be read, a name is none of theirs, or something cannot be removed.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let caches = Caches::here()?;
    let Some((name, own)) = matches.subcommand() else {
        return Err(Failure::usage("expected list, rm or prune"));
    };
    let (entries, verb) = match name {
        "rm" => (remove(&caches, own)?, "Removed"),
        "prune" => {
            let days = own.get_one::<u64>("older-than");
            let older_than = days.map(|days| Duration::from_secs(days.saturating_mul(DAY)));
            (caches.prune(PruneOptions { older_than })?, "Removed")
        }
        _ => (caches.list()?, "In all"),
    };
    if own.get_flag("json") {
        for entry in &entries {
            out::line(&told(entry).to_string())?;
        }
        return Ok(());
    }
    for line in lines(&entries) {
        out::line(&line)?;
    }
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    let count = if entries.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", entries.len()) };
    out::line(&format!("{verb} {count}, {}", table::bytes(bytes)))
}

/// Removes all names, or none when one of them is unknown.
fn remove(caches: &Caches, matches: &ArgMatches) -> Result<Vec<Entry>, Failure> {
    let names: Vec<&String> = matches.get_many("name").into_iter().flatten().collect();
    let known = caches.list()?;
    if let Some(unknown) = names.iter().find(|name| !known.iter().any(|entry| entry.name == ***name)) {
        return Err(Failure::usage(format!(
            "there is no {unknown:?} in the cache; `unspool cache list` shows the names"
        )));
    }
    let mut removed = Vec::new();
    for entry in known.iter().filter(|entry| names.contains(&&entry.name)) {
        removed.push(caches.remove(&entry.name)?);
    }
    Ok(removed)
}

fn told(entry: &Entry) -> Value {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
    json!({
        "name": entry.name,
        "kind": entry.kind.name(),
        "bytes": entry.bytes,
        "last_used": entry.last_used.and_then(seconds),
        "paths": entry.paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "fault": entry.fault,
    })
}

fn lines(entries: &[Entry]) -> Vec<String> {
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let line = |entry: &Entry| {
        let age = entry.last_used.and_then(|used| used.elapsed().ok());
        let used = match age.map(|age| age.as_secs() / DAY) {
            Some(0) => "used today".to_owned(),
            Some(1) => "used yesterday".to_owned(),
            Some(days) => format!("used {days} days ago"),
            None => String::new(),
        };
        let fault = entry.fault.as_ref().map_or_else(String::new, |fault| format!("  ({fault})"));
        let line = format!(
            "{:width$}  {:8}  {:>10}  {used}{fault}",
            one_line(&entry.name),
            entry.kind.name(),
            table::bytes(entry.bytes)
        );
        line.trim_end().to_owned()
    };
    entries.iter().map(line).collect()
}
