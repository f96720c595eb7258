//! Prompt lookup beside plain decoding: `unspool-assisted FOLDER [options]`.
//!
//! Runs every prompt of `benches/assisted_prompts.json` both ways, in turns, in one process, and prints one JSON line for each:
//! tokens a second of both (medians), their ratio, whether the tokens are the same, and what the drafts did. Prompts of the
//! kind `copy` ask for text that stands in the prompt; those of the kind `open` do not. Options: `--engine rten|ort`,
//! `--new-tokens N` (128), `--turns N` (3), `--lookup N` (10), `--threads N`. `benches/assisted.py` does the same with
//! Python.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use serde_json::{Value, json};
use unspool_core::config::{MaxLength, Settings};
use unspool_core::{DraftCounts, Error, Model, Request, Result, TokenId, generate};
use unspool_onnx::{EngineChoice, OnnxModel, OnnxOptions};
use unspool_tasks::Tokenizer;

const PROMPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assisted_prompts.json");

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("unspool-assisted: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let usage = || Error::invalid_input("usage: unspool-assisted FOLDER [options]; see the head of the file");
    let [folder, options @ ..] = arguments else { return Err(usage()) };
    let mut onnx = OnnxOptions::default();
    let (mut new_tokens, mut turns, mut lookup) = (128, 3, 10);
    for option in options.chunks(2) {
        let [name, value] = option else { return Err(usage()) };
        let number = || value.parse::<usize>().ok().filter(|number| *number > 0).ok_or_else(usage);
        match name.as_str() {
            "--engine" if value == "rten" => onnx.engine = EngineChoice::Rten,
            "--engine" if value == "ort" => onnx.engine = EngineChoice::Ort,
            "--new-tokens" => new_tokens = number()?,
            "--turns" => turns = number()?,
            "--lookup" => lookup = number()?,
            "--threads" => onnx.threads = Some(number()?),
            _ => return Err(usage()),
        }
    }
    let model = OnnxModel::open(Path::new(folder), &onnx)?;
    let tokenizer = Tokenizer::from_folder(Path::new(folder))?;
    let unreadable = |error: std::io::Error| Error::io("the prompts cannot be read").at(PROMPTS).because(error);
    let prompts: Vec<Value> = serde_json::from_str(&fs::read_to_string(PROMPTS).map_err(unreadable)?)
        .map_err(|error| Error::invalid_input("the prompts are no JSON").at(PROMPTS).because(error))?;
    let eos: Vec<TokenId> = tokenizer.special_token_id("eos_token").into_iter().collect();
    let plain = Settings { max_length: MaxLength::New(new_tokens), eos_token_id: eos, ..Settings::default() };
    let mut assisted = plain.clone();
    assisted.assisted.prompt_lookup_num_tokens = Some(lookup);
    for prompt in &prompts {
        let ids = tokenizer.encode(prompt["text"].as_str().unwrap_or_default(), false)?;
        let (mut slow, mut fast) = (Vec::new(), Vec::new());
        let mut same = true;
        let mut counts = DraftCounts::default();
        let mut written = 0;
        for _ in 0..turns {
            let (first, plain_ids, _) = once(&model, &ids, &plain)?;
            let (second, assisted_ids, drafts) = once(&model, &ids, &assisted)?;
            slow.push(first);
            fast.push(second);
            same &= plain_ids == assisted_ids;
            counts = drafts.unwrap_or_default();
            written = plain_ids.len();
        }
        let (slow, fast) = (median(slow), median(fast));
        let line = json!({
            "prompt": prompt["name"], "kind": prompt["kind"], "prompt_tokens": ids.len(), "new_tokens": written,
            "plain": slow, "lookup": fast, "ratio": fast / slow, "same_tokens": same,
            "drafted": counts.drafted, "accepted": counts.accepted, "target_runs": counts.target_runs,
        });
        println!("{line}");
    }
    Ok(())
}

/// New tokens a second after the prompt, and the tokens.
fn once(model: &dyn Model, ids: &[TokenId], settings: &Settings) -> Result<(f64, Vec<TokenId>, Option<DraftCounts>)> {
    let output = generate(model, Request::new(vec![ids.to_vec()], settings.clone()))?;
    let drafts = output.drafts();
    let rate = output.timing.new_tokens.saturating_sub(1) as f64 / output.timing.decode_s.max(f64::MIN_POSITIVE);
    let sequences = output.prompts.into_iter().flat_map(|prompt| prompt.sequences);
    Ok((rate, sequences.flat_map(|sequence| sequence.ids).collect(), drafts))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
