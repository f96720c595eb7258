//! `unspool score`: texts go in, the log-probability of every token comes out.

use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use serde_json::json;
use unspool::{Scorable, ScoreOptions, ScoredText, TextScore, TokenId};

use super::{notice, reading};
use crate::args::model::ModelArgs;
use crate::args::texts::TextArgs;
use crate::batch::read;
use crate::failure::Failure;

/// One line: everything about one text. Numbers that are not finite are `null`.
#[derive(Serialize)]
struct Line<'a> {
    index: usize,
    prompt_ids: &'a [TokenId],
    ids: &'a [TokenId],
    logprobs: &'a [f32],
    greedy: &'a [bool],
    sum: f64,
    is_greedy: bool,
    perplexity: f64,
}

/// Runs the command.
///
/// # Errors
///
/// When an argument, a text or the model is not usable, the engine fails, or the user stops it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    let model = ModelArgs::from_arg_matches(matches).map_err(usage)?;
    let args = TextArgs::from_arg_matches(matches).map_err(usage)?;
    let options = ScoreOptions {
        add_bos: matches.get_flag("add-bos"),
        raw: args.raw,
        batch: usize::try_from(args.batch_size).unwrap_or(1),
    };
    reading::check_out(&args)?;
    let placed = texts(&args)?;
    let path = model.path()?;
    let pipeline = notice::open(&path, &model.options())?;
    let scorable =
        placed.iter().map(|(place, text)| pipeline.scorable(text, &options).map_err(|error| error.at(place)));
    let scorable = scorable.collect::<Result<Vec<ScoredText>, _>>()?;
    let ids: Vec<Vec<TokenId>> =
        scorable.iter().map(|text| text.context.iter().chain(&text.continuation).copied().collect()).collect();
    let path = path.canonicalize().unwrap_or(path);
    let run = json!({
        "command": "score",
        "model": path.to_string_lossy(),
        "dtype": model.dtype,
        "engine": pipeline.description().map(|description| &description.engine),
        "weights": format!("{:?}", model.run.weights).to_lowercase(),
        "prompts": scorable.iter().map(|text| text.context.len()).collect::<Vec<_>>(),
    });
    reading::in_batches(&args, &scorable, &ids, &run, |first, texts| {
        let scores = unspool::score(pipeline.model(), texts, options.batch, None)?;
        let numbered = texts.iter().zip(&scores).enumerate();
        Ok(numbered.map(|(index, (text, score))| line(first + index, text, score)).collect())
    })
}

fn texts(args: &TextArgs) -> Result<Vec<(String, Scorable)>, Failure> {
    let whole = |placed: read::Placed| placed.into_iter().map(|(place, prompt)| (place, Scorable::Whole(prompt)));
    Ok(match &args.ids {
        Some(json) => whole(read::ids(json)?).collect(),
        None if args.text.is_empty() => read::scorable_lines(reading::source(args))?,
        None => whole(read::arguments(&args.text)).collect(),
    })
}

fn line(index: usize, text: &ScoredText, score: &TextScore) -> String {
    let line = Line {
        index,
        prompt_ids: &text.context,
        ids: &text.continuation,
        logprobs: &score.logprobs,
        greedy: &score.greedy,
        sum: score.sum(),
        is_greedy: score.is_greedy(),
        perplexity: score.perplexity(),
    };
    // A line holds only numbers and lists, which JSON can always say.
    serde_json::to_string(&line).unwrap_or_default()
}
