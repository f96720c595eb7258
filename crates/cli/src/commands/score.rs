//! `unspool score`: texts go in, the log-probability of every token comes out.

use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use serde_json::json;
use unspool::{Prompt, Scorable, ScoreOptions, ScoredText, TextScore, TokenId};

use super::{notice, reading};
use crate::args::model::ModelArgs;
use crate::args::texts::TextArgs;
use crate::batch::read;
use crate::batch::row::Keys;
use crate::failure::Failure;

/// The keys of a line.
const KEYS: [&str; 8] = ["index", "prompt_ids", "ids", "logprobs", "greedy", "sum", "is_greedy", "perplexity"];

/// One line: everything about one text. Numbers that are not finite are `null`.
#[derive(Serialize)]
struct Line<'a> {
    index: usize,
    #[serde(flatten)]
    keys: &'a Keys,
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
    reading::check_out(args.out.as_ref(), args.force, args.which.texts.as_ref(), "--texts")?;
    let texts = args.which.read(|source| read::scorable_lines(source, &KEYS))?;
    let is_text = |text: &Scorable| matches!(text, Scorable::Whole(Prompt::Text(_)) | Scorable::Pair { .. });
    read::check_texts(&texts, is_text, &[("--raw", args.raw)])?;
    let path = model.path()?;
    let pipeline = notice::open(&path, &model.options())?;
    let whole = texts.iter().filter_map(|placed| match &placed.item {
        Scorable::Whole(prompt) => Some(prompt),
        _ => None,
    });
    reading::warn_of_padding(&pipeline, whole)?;
    let (mut scorable, mut keys) = (Vec::new(), Vec::new());
    for placed in texts {
        let text = placed.make(|text| pipeline.scorable(&text, &options))?;
        scorable.push(text.item);
        keys.push(text.keys);
    }
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
    reading::in_batches(&args, &scorable, &keys, &ids, &run, |first, texts| {
        let scores = unspool::score(pipeline.model(), texts, options.batch, None)?;
        let scored = (first..).zip(texts).zip(&scores).zip(keys.iter().skip(first));
        Ok(scored.map(|(((index, text), score), keys)| line(index, keys, text, score)).collect())
    })
}

fn line(index: usize, keys: &Keys, text: &ScoredText, score: &TextScore) -> String {
    let line = Line {
        index,
        keys,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_line_is_among_its_keys() {
        let text = ScoredText { context: vec![1], continuation: vec![2] };
        let score = TextScore { logprobs: vec![-0.5], greedy: vec![true] };
        let line: serde_json::Value = serde_json::from_str(&line(0, &Keys::default(), &text, &score)).unwrap();
        assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), KEYS);
    }
}
