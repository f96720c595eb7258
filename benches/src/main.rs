//! One measurement in one process: `unspool-bench rten|ort|rten-generate FOLDER PROMPT.json [options]`.
//!
//! `FOLDER` is a model folder (for `rten-generate` too: the peer gets the same graph), `PROMPT.json` an array of token
//! ids. Options: `--new-tokens N` (128), `--threads N` (physical cores), `--prepack` (rten-generate: weights are packed at
//! loading). Prints one JSON line; `benches/peers.py` runs it beside the other engines.

mod peer;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};
use unspool_core::config::{MaxLength, Settings};
use unspool_core::{Error, Request, Result, TokenId, generate};
use unspool_onnx::{EngineChoice, OnnxModel, OnnxOptions};

/// What is measured.
struct Task {
    folder: PathBuf,
    prompt: Vec<TokenId>,
    new_tokens: usize,
    threads: Option<usize>,
    prepack: bool,
}

/// What came out.
struct Measured {
    load: Duration,
    prompt: Duration,
    decode: Duration,
    model_share: Option<f64>,
    ids: Vec<TokenId>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("unspool-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<Value> {
    let [what, folder, prompt, options @ ..] = arguments else {
        return Err(Error::invalid_input("usage: unspool-bench rten|ort|rten-generate FOLDER PROMPT.json [options]"));
    };
    let mut task =
        Task { folder: folder.into(), prompt: read_prompt(prompt)?, new_tokens: 128, threads: None, prepack: false };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut number = || {
            let value = options.next().and_then(|value| value.parse().ok()).filter(|value| *value > 0);
            value.ok_or_else(|| Error::invalid_input(format!("{option} wants a number above 0")))
        };
        match option.as_str() {
            "--new-tokens" => task.new_tokens = number()?,
            "--threads" => task.threads = Some(number()?),
            "--prepack" => task.prepack = true,
            _ => return Err(Error::invalid_input(format!("unknown option {option:?}"))),
        }
    }
    let measured = match what.as_str() {
        "rten" => ours(&task, EngineChoice::Rten)?,
        "ort" => ours(&task, EngineChoice::Ort)?,
        "rten-generate" => peer::rten_generate(&task)?,
        _ => {
            return Err(Error::invalid_input(format!(
                "nothing is called {what:?}; there are rten, ort and rten-generate"
            )));
        }
    };
    let decoded = measured.ids.len().saturating_sub(1);
    Ok(json!({
        "engine": what,
        "load_s": measured.load.as_secs_f64(),
        "prompt_s": measured.prompt.as_secs_f64(),
        "decode_s": measured.decode.as_secs_f64(),
        "prompt_tokens_per_s": task.prompt.len() as f64 / measured.prompt.as_secs_f64(),
        "decode_tokens_per_s": decoded as f64 / measured.decode.as_secs_f64(),
        "model_share": measured.model_share,
        "ids": measured.ids,
    }))
}

fn read_prompt(path: &str) -> Result<Vec<TokenId>> {
    let text = fs::read_to_string(path).map_err(|e| Error::io("cannot read the prompt").at(path).because(e))?;
    let ids: Vec<TokenId> = serde_json::from_str(&text)
        .map_err(|e| Error::invalid_input("not an array of token ids").at(path).because(e))?;
    if ids.is_empty() { Err(Error::invalid_input("the prompt is empty").at(path)) } else { Ok(ids) }
}

/// The whole loop, rules, selection and stops included.
fn ours(task: &Task, engine: EngineChoice) -> Result<Measured> {
    let start = Instant::now();
    let model =
        OnnxModel::open(&task.folder, &OnnxOptions { engine, threads: task.threads, ..OnnxOptions::default() })?;
    let load = start.elapsed();
    let settings = Settings { max_length: MaxLength::New(task.new_tokens), ..Settings::default() };
    let output = generate(&model, Request::new(vec![task.prompt.clone()], settings))?;
    let timing = output.timing;
    let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let sequence = output.prompts.into_iter().flat_map(|prompt| prompt.sequences).next();
    Ok(Measured {
        load,
        prompt: seconds(timing.prompt_s),
        decode: seconds(timing.decode_s),
        model_share: Some(timing.model_share()),
        ids: sequence.map(|sequence| sequence.ids).unwrap_or_default(),
    })
}

/// The graph of a model folder.
fn graph(folder: &Path) -> PathBuf {
    let inner = folder.join("onnx").join("model.onnx");
    if inner.exists() { inner } else { folder.join("model.onnx") }
}
