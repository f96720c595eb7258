//! `unspool embed`: texts go in, vectors come out.

use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use serde_json::json;
use unspool::{EmbedOptions, OpenOptions, Pooling, Prompt, TokenId, check_embeddable};

use super::{notice, reading};
use crate::args::model::ModelArgs;
use crate::args::texts::TextArgs;
use crate::batch::read;
use crate::failure::Failure;

/// One line: a text's tokens and its vector.
#[derive(Serialize)]
struct Line<'a> {
    index: usize,
    prompt_ids: &'a [TokenId],
    embedding: &'a [f32],
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
    let mean = matches.get_one::<String>("pooling").is_some_and(|pooling| pooling == "mean");
    let options = EmbedOptions {
        pooling: if mean { Pooling::Mean } else { Pooling::Last },
        normalize: matches.get_flag("normalize"),
        batch: usize::try_from(args.batch_size).unwrap_or(1),
    };
    reading::check_out(&args)?;
    let placed = texts(&args)?;
    let path = model.path()?;
    let pipeline = notice::open(&path, &OpenOptions { hidden_states: true, ..model.options() })?;
    if pipeline.model().hidden().is_none() {
        // No text is to blame.
        check_embeddable(pipeline.model(), &[])?;
    }
    let ids = placed.into_iter().map(|(place, text)| {
        let text = match text {
            Prompt::Text(text) if args.raw => Prompt::Raw(text),
            text => text,
        };
        let ids = pipeline.encode(&text).and_then(|ids| check_embeddable(pipeline.model(), &ids).map(|()| ids));
        ids.map_err(|error| error.at(place))
    });
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let path = path.canonicalize().unwrap_or(path);
    let run = json!({
        "command": "embed",
        "model": path.to_string_lossy(),
        "dtype": model.dtype,
        "engine": pipeline.description().map(|description| &description.engine),
        "weights": format!("{:?}", model.run.weights).to_lowercase(),
        "pooling": if mean { "mean" } else { "last" },
        "normalize": options.normalize,
    });
    reading::in_batches(&args, &ids, &ids, &run, |first, ids| {
        let vectors = pipeline.embed_ids(ids, &options)?;
        let numbered = ids.iter().zip(&vectors).enumerate();
        Ok(numbered.map(|(index, (ids, vector))| line(first + index, ids, vector)).collect())
    })
}

fn texts(args: &TextArgs) -> Result<read::Placed, Failure> {
    Ok(match &args.ids {
        Some(json) => read::ids(json)?,
        None if args.text.is_empty() => read::text_lines(reading::source(args))?,
        None => read::arguments(&args.text),
    })
}

fn line(index: usize, prompt_ids: &[TokenId], embedding: &[f32]) -> String {
    // A line holds only numbers and lists, which JSON can always say.
    serde_json::to_string(&Line { index, prompt_ids, embedding }).unwrap_or_default()
}
