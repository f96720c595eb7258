//! `unspool generate`: prompts go in, texts or JSON lines come out.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{ArgMatches, FromArgMatches};
use serde_json::{Value, json};
use unspool::{
    Answers, AttentionMask, Call, FinishReason, Flow, GenerationConfig, Pipeline, Prompt, StreamBy, Streaming,
    TokenEvent, TokenId, TokenSink, random_seed,
};

use super::{notice, reading};
use crate::args::model::ModelArgs;
use crate::args::prompts::PromptArgs;
use crate::args::{assistant, fields};
use crate::batch::results::{HEALED_FROM, Wanted, earlier_run};
use crate::batch::row::Keys;
use crate::failure::Failure;
use crate::interrupt::{self, Mode};
use crate::print::json::{Answer, KEYS, line};
use crate::print::progress::PromptBar;
use crate::print::streamed::Ordered;
use crate::print::summary::Summary;
use crate::print::{out, progress};

/// Prompts of a file that run together when nobody says how many.
const BATCH: usize = 8;

/// Runs the command.
///
/// # Errors
///
/// When an argument, a prompt or the model is not usable, the engine fails, or the user stops it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    let model = ModelArgs::from_arg_matches(matches).map_err(usage)?;
    let prompt_args = PromptArgs::from_arg_matches(matches).map_err(usage)?;
    let target = matches.get_one::<PathBuf>("out");
    let as_json = matches.get_flag("json") || target.is_some();
    let call = Call {
        config: GenerationConfig::from_json(&Value::Object(fields::read(matches)?))?,
        seed: matches.get_one::<u64>("seed").copied(),
        logprobs: matches.get_flag("logprobs"),
        streaming: streaming(matches),
        always_draft: assistant::always(matches),
        ..Call::new()
    };
    // Ids are for who compares with Python's generate(), texts for who would take a pipeline.
    let call = if prompt_args.ids.is_some() { call } else { call.for_texts() };
    check_outputs(&call, as_json)?;
    let force = matches.get_flag("force");
    reading::check_out(target, force, prompt_args.prompts.as_ref(), "--prompts")?;
    let prompts = prompt_args.read(&KEYS)?;
    let negative = prompt_args.negative()?;
    if negative.len() > 1 && negative.len() != prompts.len() {
        return Err(Failure::usage(format!(
            "got {} negative prompts for {} prompts; give one for each, or one for all",
            negative.len(),
            prompts.len()
        )));
    }
    let batch = match matches.get_one::<u32>("batch-size") {
        Some(size) => usize::try_from(*size).unwrap_or(BATCH),
        None if prompt_args.prompts.is_some() => BATCH,
        None => prompts.len(),
    };

    let path = model.path()?;
    let pipeline = assistant::join(notice::open(&path, &model.options_for(&call.config))?, matches, &model)?;
    if !as_json && pipeline.tokenizer().is_err() && prompt_args.ids.is_some() {
        return Err(Failure::usage(
            "this model has no tokenizer, so its answers cannot be shown as text; give --json or --out for their ids",
        ));
    }
    let (settings, warnings) = pipeline.settings(&call)?;
    let plain = prompts.iter().any(|placed| matches!(placed.item, Prompt::Text(_)));
    let (mut ids, mut masks, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for placed in prompts {
        masks.push(placed.item.attention_mask());
        let prompt = placed.make(|prompt| pipeline.encode(&prompt).and_then(|ids| pipeline.check(ids, &settings)))?;
        ids.push(prompt.item);
        keys.push(prompt.keys);
    }
    let negative = negative.into_iter().map(|placed| Ok(placed.make(|prompt| pipeline.encode(&prompt))?.item));
    let mut negative = negative.collect::<Result<Vec<_>, Failure>>()?;
    if let [all] = &negative[..] {
        negative = vec![all.clone(); ids.len()];
    }
    let warned = notice::Warned::default();
    warned.warn(&warnings);
    let verbose = matches.get_flag("verbose");
    if plain && pipeline.chat_template().is_ok() && (verbose || std::io::stderr().is_terminal()) {
        notice::say("This model has a chat template: --chat asks it a question (--raw: no template, no hint).");
    }
    let summary = RefCell::new(Summary::begin());
    let mut work = Work { pipeline: &pipeline, ids, masks, keys, negative, call, batch, warned, summary };
    if settings.do_sample {
        work.call.seed = Some(work.call.seed.or(earlier_seed(target, force)?).unwrap_or_else(random_seed));
    }
    match target {
        Some(target) => {
            let path = path.canonicalize().unwrap_or(path);
            let run = json!({
                "model": path.to_string_lossy(),
                "dtype": model.dtype,
                "engine": pipeline.description().map(|description| &description.engine),
                "weights": format!("{:?}", model.run.weights).to_lowercase(),
                "seed": work.call.seed,
                "logprobs": work.call.logprobs,
                "assistant": matches.get_one::<String>("assistant"),
                "always_draft": work.call.always_draft,
                "negative": work.negative,
                "settings": work.call.config.to_json(),
                "texts": prompt_args.ids.is_none(),
                HEALED_FROM: settings.token_healing.then_some(&work.ids),
            });
            work.to_file(target, &run, force)?;
        }
        None if as_json => work.to_json()?,
        None => work.to_text()?,
    }
    if verbose {
        work.summary.borrow().details(&pipeline).iter().for_each(|line| notice::say(line));
    }
    Ok(())
}

/// The pieces that text is written in.
fn streaming(matches: &ArgMatches) -> Streaming {
    let by = match matches.get_one::<String>("stream").map(String::as_str) {
        Some("word") => StreamBy::Word,
        _ => StreamBy::Token,
    };
    Streaming { by, skip_prompt: !matches.get_flag("show-prompt"), ..Streaming::default() }
}

/// What only JSON can show is refused without it.
fn check_outputs(call: &Call, as_json: bool) -> Result<(), Failure> {
    let instead = "needs --json or --out to be shown";
    match as_json {
        true => Ok(()),
        false if call.logprobs => Err(Failure::usage(format!("--logprobs {instead}"))),
        false => fields::refuse_outputs(&call.config, instead),
    }
}

/// The seed of an earlier result, so that a run that drew at random goes on with the same draws, or is known.
fn earlier_seed(target: Option<&PathBuf>, force: bool) -> Result<Option<u64>, Failure> {
    let Some(target) = target else { return Ok(None) };
    Ok(earlier_run(target, force)?.and_then(|run| run.get("seed").and_then(Value::as_u64)))
}

struct Work<'a> {
    pipeline: &'a Pipeline,
    ids: Vec<Vec<TokenId>>,
    masks: Vec<AttentionMask>,
    keys: Vec<Keys>,
    negative: Vec<Vec<TokenId>>,
    call: Call,
    batch: usize,
    warned: notice::Warned,
    summary: RefCell<Summary>,
}

impl Work<'_> {
    /// Batches from prompt `from` on, with the index of their first prompt.
    fn batches(&self, from: usize) -> impl Iterator<Item = (usize, Vec<Vec<TokenId>>)> + '_ {
        let batch = self.batch.max(1);
        let rest = self.ids.get(from..).unwrap_or_default();
        rest.chunks(batch).enumerate().map(move |(index, ids)| (from + index * batch, ids.to_vec()))
    }

    /// The call of a batch of `count` prompts from prompt `first` on.
    fn call_of(&self, first: usize, count: usize) -> Call {
        let negative_prompts = self.negative.iter().skip(first).take(count).cloned().collect();
        let attention_mask = self.masks.iter().skip(first).take(count).copied().collect();
        Call { first_prompt: first, negative_prompts, attention_mask, ..self.call.clone() }
    }

    fn to_text(&self) -> Result<(), Failure> {
        for (first, ids) in self.batches(0) {
            let _listening = interrupt::listen(Mode::SecondEnds);
            let call = self.call_of(first, ids.len());
            let mut sink = Ordered::default();
            let answers = self.pipeline.stream_ids(ids, &call, &mut sink);
            sink.result()?;
            let answers = answers?;
            self.warned.warn(&answers.warnings);
            self.summary.borrow_mut().add(&answers, sink.first_token());
            if interrupt::pressed() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Result<(), Failure> {
        for (first, ids) in self.batches(0) {
            let _listening = interrupt::listen(Mode::SecondEnds);
            let call = self.call_of(first, ids.len());
            let mut sink = UntilPressed::showing();
            let answers = self.pipeline.generate_ids(ids, &call, Some(&mut sink))?;
            self.warned.warn(&answers.warnings);
            self.summary.borrow_mut().add(&answers, sink.first);
            for line in self.lines(first, &answers) {
                out::line(&line)?;
            }
            if interrupt::pressed() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(())
    }

    fn to_file(&self, target: &Path, run: &Value, force: bool) -> Result<(), Failure> {
        let wanted = Wanted { target, run, prompts: &self.ids, keys: &self.keys, force };
        let Some(mut results) = wanted.open()? else {
            notice::finished(target);
            return Ok(());
        };
        let bar = progress::prompts(self.ids.len() as u64, results.done() as u64);
        for (first, ids) in self.batches(results.done()) {
            let _listening = interrupt::listen(Mode::SecondEnds);
            let call = self.call_of(first, ids.len());
            let mut sink = UntilPressed::default();
            let answers = self.pipeline.generate_ids(ids, &call, Some(&mut sink))?;
            self.warned.warn(&answers.warnings);
            if interrupt::pressed() {
                bar.abandon();
                notice::say(&format!(
                    "stopped after {} of {} prompts; run the same command again to continue",
                    results.done(),
                    self.ids.len()
                ));
                return Err(Failure::Interrupted);
            }
            self.summary.borrow_mut().add(&answers, sink.first);
            results.add(&self.lines(first, &answers))?;
            bar.set_position(results.done() as u64);
        }
        bar.finish_and_clear();
        results.finish()?;
        notice::say(&format!("{}, written to {}", self.summary.borrow().line(), target.display()));
        Ok(())
    }

    fn lines(&self, first: usize, answers: &Answers) -> Vec<String> {
        let numbered = (first..).zip(&answers.answers).zip(self.keys.iter().skip(first));
        let lines = numbered.map(|((index, answer), keys)| {
            line(&Answer {
                index,
                keys,
                prompt_ids: &answer.prompt_ids,
                output: &answer.output,
                texts: &answer.texts,
                timing: &answers.timing,
                seed: answers.seed,
            })
        });
        lines.collect()
    }
}

/// A sink that hears Ctrl-C and when the first token came, and may show how much of the prompt has run.
#[derive(Default)]
struct UntilPressed {
    first: Option<Instant>,
    reading: Option<PromptBar>,
}

impl UntilPressed {
    fn showing() -> Self {
        UntilPressed { first: None, reading: Some(PromptBar::default()) }
    }
}

impl TokenSink for UntilPressed {
    fn prefill(&mut self, done: usize, total: usize) {
        if let Some(reading) = &mut self.reading {
            reading.at(done, total);
        }
    }

    fn put(&mut self, _event: &TokenEvent) -> Flow {
        self.first.get_or_insert_with(Instant::now);
        self.poll()
    }

    fn poll(&mut self) -> Flow {
        if interrupt::pressed() { Flow::Stop } else { Flow::Continue }
    }

    fn end(&mut self, _row: usize, _reason: &FinishReason) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::help::Page;

    #[test]
    fn the_flags_say_in_which_pieces_text_is_written() {
        let read = |arguments: &[&str]| {
            let words = ["unspool", "generate", "m", "p"].iter().chain(arguments);
            let matches = crate::args::command::command(Page::Long).try_get_matches_from(words).unwrap();
            streaming(matches.subcommand_matches("generate").unwrap())
        };
        assert_eq!(read(&[]), Streaming::default());
        assert_eq!(read(&["--stream", "token"]), Streaming::default());
        let words = Streaming { by: StreamBy::Word, skip_prompt: false, skip_special_tokens: true };
        assert_eq!(read(&["--stream", "word", "--show-prompt"]), words);
    }
}
