//! `unspool-conformance`: recorded answers of Python, replayed.
//!
//! ```text
//! unspool-conformance cases [--models DIR] [--engine rten|ort] [--model NAME] [--case TEXT] [--verbose] [--write-baseline]
//! unspool-conformance smollm2 --model FOLDER [--engine rten|ort] [--batch N]
//! unspool-conformance perplexity --model FOLDER [--against FOLDER] [--engine rten|ort] [--step TOKENS]
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use unspool_conformance::baseline::Change;
use unspool_conformance::compare::FLOAT_NOISE;
use unspool_conformance::perplexity::{PAGE, PROMPT_STEP, perplexity};
use unspool_conformance::smollm2::{Comparison, Recording};
use unspool_conformance::{Baseline, Engine, Verdict, replay};
use unspool_core::{Error, Result};
use unspool_tasks::Tokenizer;

const USAGE: &str =
    "usage: unspool-conformance cases|smollm2|perplexity [options]; see the head of conformance/src/main.rs";

/// How far the perplexity of one import may be from another's.
const SAME_PERPLEXITY: f64 = 0.01;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("unspool-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether what was asked for holds.
fn run(arguments: &[String]) -> Result<bool> {
    let (command, rest) = arguments.split_first().ok_or_else(|| Error::invalid_input(USAGE))?;
    match command.as_str() {
        "cases" => cases(&options(rest, &["models", "engine", "model", "case"], &["verbose", "write-baseline"])?),
        "smollm2" => smollm2(&options(rest, &["model", "engine", "batch"], &[])?),
        "perplexity" => compare_perplexity(&options(rest, &["model", "against", "engine", "step"], &[])?),
        _ => Err(Error::invalid_input(USAGE)),
    }
}

type Options = HashMap<String, String>;

fn options(arguments: &[String], values: &[&str], flags: &[&str]) -> Result<Options> {
    let mut options = Options::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let name = argument.strip_prefix("--").ok_or_else(|| Error::invalid_input(USAGE))?;
        let value = if flags.contains(&name) {
            String::new()
        } else if values.contains(&name) {
            arguments.next().cloned().ok_or_else(|| Error::invalid_input(format!("--{name} wants a value")))?
        } else {
            return Err(Error::invalid_input(format!("no option is called --{name}; {USAGE}")));
        };
        options.insert(name.to_owned(), value);
    }
    Ok(options)
}

fn engines(options: &Options) -> Result<Vec<Engine>> {
    options.get("engine").map_or_else(|| Ok(Engine::ALL.to_vec()), |name| Ok(vec![name.parse()?]))
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cases(options: &Options) -> Result<bool> {
    let models = options.get("models").map_or_else(|| home().join("models"), PathBuf::from);
    let path = home().join("baseline.json");
    let mut baseline = Baseline::load(&path)?;
    let write = options.contains_key("write-baseline");
    let mut good = true;
    println!("numbers are equal within {} ({})", FLOAT_NOISE.value, FLOAT_NOISE.why);
    for engine in engines(options)? {
        for folder in folders(&models)? {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if options.get("model").is_some_and(|wanted| *wanted != name) {
                continue;
            }
            let Some(replayed) = replay::replay_folder(&folder, engine)? else { continue };
            let chosen = |case: &str| options.get("case").is_none_or(|wanted| case.contains(wanted));
            let verdicts: Vec<_> = replayed.verdicts.into_iter().filter(|(case, _)| chosen(case)).collect();
            good &= report(engine, &name, &verdicts, &baseline, options.contains_key("verbose"), write);
            if write {
                for (case, verdict) in &verdicts {
                    baseline.set(engine.name(), &name, case, verdict);
                }
            }
        }
    }
    if write {
        baseline.save(&path)?;
        println!("wrote {}", path.display());
    }
    Ok(good || write)
}

fn folders(models: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |e| Error::io("cannot list the models").at(models.display()).because(e);
    let entries = fs::read_dir(models).map_err(unreadable)?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// Prints one model's counts, what got better or worse, and why cases were left out.
fn report(
    engine: Engine,
    model: &str,
    verdicts: &[(String, Verdict)],
    baseline: &Baseline,
    verbose: bool,
    writing: bool,
) -> bool {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, verdict) in verdicts {
        *counts.entry(verdict.word()).or_default() += 1;
        if let (Verdict::NotBuilt(_) | Verdict::Unsupported(_), Some(reason)) = (verdict, verdict.reason()) {
            // A refusal begins with the setting and its value: count by the setting.
            let reason = if matches!(verdict, Verdict::NotBuilt(_)) { reason.split('=').next() } else { Some(reason) };
            *reasons.entry(reason.unwrap_or_default()).or_default() += 1;
        }
    }
    let counts: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    println!("{engine} {model}: {}", counts.join(", "));
    if verbose {
        for (reason, count) in reasons {
            println!("    {count} left out: {reason}");
        }
    }
    let mut good = true;
    for (case, verdict) in verdicts {
        let change = baseline.judge(engine.name(), model, case, verdict);
        let reason = verdict.reason().unwrap_or("equals Python's answer");
        match change {
            Change::Worse => {
                good = false;
                println!("    WORSE {case}: {}: {reason}", verdict.word());
            }
            Change::Better => println!("    better {case}: {} (write the baseline anew)", verdict.word()),
            Change::New if verbose && !writing => println!("    new {case}: {}", verdict.word()),
            Change::Same if matches!(verdict, Verdict::Fail(_)) => println!("    known fail {case}: {reason}"),
            Change::New | Change::Same => {}
        }
    }
    good
}

fn smollm2(options: &Options) -> Result<bool> {
    let folder = PathBuf::from(required(options, "model")?);
    let batch = options.get("batch").map_or(Ok(8), |batch| batch.parse());
    let batch = batch.map_err(|e| Error::invalid_input("--batch wants a number").because(e))?;
    let recording = Recording::load(&home().join("smollm2_greedy.json"))?;
    let tokenizer = Tokenizer::from_folder(&folder)?;
    let mut good = true;
    for case in &recording.cases {
        let ids = tokenizer.encode(&case.text, false)?;
        if ids != case.prompt {
            good = false;
            println!("DIFFERENT ids of {:?}: got {ids:?}, expected {:?}", case.text, case.prompt);
        }
    }
    for engine in engines(options)? {
        let comparisons = recording.compare(engine.open(&folder)?.as_ref(), batch)?;
        for (case, comparison) in recording.cases.iter().zip(&comparisons) {
            match comparison {
                Comparison::Same => {}
                Comparison::NearTie { step, gap } => {
                    println!("{engine}: may differ from step {step} on, Python's gap is {gap}: {:?}", case.text);
                }
                Comparison::Different { step, gap } => {
                    good = false;
                    println!("{engine}: DIFFERENT from step {step} on, Python's gap is {gap}: {:?}", case.text);
                }
            }
        }
        let same = comparisons.iter().filter(|comparison| **comparison == Comparison::Same).count();
        println!(
            "{engine}: {same} of {} prompts have all {} tokens of Python",
            comparisons.len(),
            recording.new_tokens
        );
    }
    Ok(good)
}

fn compare_perplexity(options: &Options) -> Result<bool> {
    let folder = PathBuf::from(required(options, "model")?);
    let step = options.get("step").map_or(Ok(PROMPT_STEP), |step| step.parse());
    let step = step.map_err(|e| Error::invalid_input("--step wants a number of tokens").because(e))?;
    let mut good = true;
    for engine in engines(options)? {
        let measure = |folder: &Path| {
            let ids = Tokenizer::from_folder(folder)?.encode(PAGE, true)?;
            perplexity(engine.open(folder)?.as_ref(), &ids, step)
        };
        let measured = measure(&folder)?;
        println!("{engine}: perplexity {measured:.4} of {}", folder.display());
        if let Some(other) = options.get("against") {
            let reference = measure(Path::new(other))?;
            let apart = measured / reference - 1.0;
            println!("{engine}: perplexity {reference:.4} of {other}; apart by {:+.3} %", apart * 100.0);
            good &= apart.abs() <= SAME_PERPLEXITY;
        }
    }
    Ok(good)
}

fn required<'a>(options: &'a Options, name: &str) -> Result<&'a str> {
    options.get(name).map(String::as_str).ok_or_else(|| Error::invalid_input(format!("--{name} is needed")))
}
