//! `unspool embed`: texts go in, vectors come out.

use clap::{ArgMatches, FromArgMatches};
use serde::Serialize;
use serde_json::json;
use unspool::{EmbedOptions, OpenOptions, Pooling, Prompt, TokenId, check_embeddable};

use super::{notice, reading};
use crate::args::model::ModelArgs;
use crate::args::texts::TextArgs;
use crate::batch::read;
use crate::batch::row::Keys;
use crate::failure::Failure;

/// The keys of a line.
const KEYS: [&str; 3] = ["index", "prompt_ids", "embedding"];

/// One line: a text's tokens and its vector.
#[derive(Serialize)]
struct Line<'a> {
    index: usize,
    #[serde(flatten)]
    keys: &'a Keys,
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
    reading::check_out(args.out.as_ref(), args.force, args.which.texts.as_ref(), "--texts")?;
    let texts = args.which.read(|source| read::text_lines(source, &KEYS))?;
    read::check_texts(&texts, |text| matches!(text, Prompt::Text(_)), &[("--raw", args.raw)])?;
    let path = model.path()?;
    let pipeline = notice::open(&path, &OpenOptions { hidden_states: true, ..model.options() })?;
    if pipeline.model().hidden().is_none() {
        // No text is to blame.
        check_embeddable(pipeline.model(), &[])?;
    }
    reading::warn_of_padding(&pipeline, texts.iter().map(|placed| &placed.item))?;
    let (mut ids, mut keys) = (Vec::new(), Vec::new());
    for placed in texts {
        let text = placed.make(|text| {
            let text = match text {
                Prompt::Text(text) if args.raw => Prompt::Raw(text),
                text => text,
            };
            let ids = pipeline.tokens_read(&text)?;
            check_embeddable(pipeline.model(), &ids).map(|()| ids)
        })?;
        ids.push(text.item);
        keys.push(text.keys);
    }
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
    reading::in_batches(&args, &ids, &keys, &ids, &run, |first, ids| {
        let vectors = pipeline.embed_ids(ids, &options)?;
        let embedded = (first..).zip(ids).zip(&vectors).zip(keys.iter().skip(first));
        Ok(embedded.map(|(((index, ids), vector), keys)| line(index, keys, ids, vector)).collect())
    })
}

fn line(index: usize, keys: &Keys, prompt_ids: &[TokenId], embedding: &[f32]) -> String {
    // A line holds only numbers and lists, which JSON can always say.
    serde_json::to_string(&Line { index, keys, prompt_ids, embedding }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_line_is_among_its_keys() {
        let line: serde_json::Value = serde_json::from_str(&line(0, &Keys::default(), &[1], &[0.5])).unwrap();
        assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), KEYS);
    }
}
