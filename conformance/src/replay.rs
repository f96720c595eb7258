//! A recorded call, asked of Unspool.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use unspool_core::config::AssistedSettings;
use unspool_core::config::{GenerationConfig, Layers, ModelFacts, from_folder_json};
use unspool_core::{
    Assist, Assistant, Draft, Error, ErrorKind, Model, Own, Request, Result, Settings, TokenId, generate,
};
use unspool_tasks::Tokenizer;

use crate::compare::{Answer, AnswerRow, first_difference};
use crate::engine::Engine;
use crate::golden::{Case, Golden};
use crate::verdict::Verdict;

/// The folder of the model that drafts, beside the others.
const ASSISTANT: &str = "gpt2-assistant";

/// The seed of sampling cases; their one drawn token is not compared.
const SEED: u64 = 0;

/// The verdicts of one model folder on one engine, in the order of recording.
#[derive(Debug)]
pub struct Replayed {
    /// Case name and verdict.
    pub verdicts: Vec<(String, Verdict)>,
}

/// Replays every case of `folder` on `engine`; `None` when the folder has no recorded cases.
///
/// # Errors
///
/// When the recorded cases cannot be read. A model that cannot be opened is a verdict of its cases, not an error.
pub fn replay_folder(folder: &Path, engine: Engine) -> Result<Option<Replayed>> {
    let Some(golden) = Golden::load(folder)? else { return Ok(None) };
    let opened = engine.open(folder);
    let assistant = || engine.open(&folder.with_file_name(ASSISTANT)).map(Arc::from);
    let tokenizer = Tokenizer::from_folder(folder);
    let verdicts = golden.cases.iter().map(|case| {
        let verdict = match &opened {
            Ok(model) => {
                replay_case(folder, model.as_ref(), &assistant, &tokenizer, case, golden.approximate.is_none())
            }
            Err(error) => cannot(error),
        };
        (case.name.clone(), verdict)
    });
    Ok(Some(Replayed { verdicts: verdicts.collect() }))
}

/// An engine that refuses a graph is no failure of ours; a broken folder is.
fn cannot(error: &Error) -> Verdict {
    match error.kind() {
        ErrorKind::Unsupported => Verdict::Unsupported(error.to_string()),
        _ => Verdict::Fail(error.to_string()),
    }
}

/// Opens the model that drafts.
type OpenAssistant<'a> = dyn Fn() -> Result<Arc<dyn Model>> + 'a;

fn replay_case(
    folder: &Path,
    model: &dyn Model,
    assistant: &OpenAssistant<'_>,
    tokenizer: &Result<Tokenizer>,
    case: &Case,
    numbers: bool,
) -> Verdict {
    if let Some(argument) = case.unknown_argument() {
        return Verdict::NotBuilt(format!("the argument {argument}"));
    }
    let settings = match settings(folder, model, case) {
        Ok(settings) => settings,
        Err(error) if error.kind() == ErrorKind::Unsupported => return Verdict::NotBuilt(error.to_string()),
        Err(error) => return Verdict::Fail(error.to_string()),
    };
    match answer(model, assistant, tokenizer, case, settings) {
        Ok(answer) => match first_difference(case, &answer, numbers) {
            None => Verdict::Pass,
            Some(difference) => Verdict::Fail(difference),
        },
        Err(error) => cannot(&error),
    }
}

fn settings(folder: &Path, model: &dyn Model, case: &Case) -> Result<Settings> {
    let below = if case.from_repository {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        from_folder_json(read("generation_config.json").as_deref(), read("config.json").as_deref())?
    } else {
        GenerationConfig::new()
    };
    let mut call = GenerationConfig::from_json(&Value::Object(case.settings.clone()))?;
    if let Some(key) = call.extra().keys().next() {
        return Err(Error::invalid_input(format!("the case has the setting {key:?}, which is no generation field")));
    }
    call.set("output_scores", (case.expect.scores.is_some() || case.expect.kept.is_some()).into())?;
    call.set("output_logits", case.expect.logits.is_some().into())?;
    let facts = ModelFacts { vocab_size: model.vocab_size(), max_positions: model.max_positions() };
    Settings::resolve(&Layers::new(below).with_call(call), &facts).map(|(settings, _)| settings)
}

fn answer(
    model: &dyn Model,
    assistant: &OpenAssistant<'_>,
    tokenizer: &Result<Tokenizer>,
    case: &Case,
    settings: Settings,
) -> Result<Answer> {
    let stops = !settings.stop_strings.is_empty();
    // The assistant was recorded with the defaults, and without scikit-learn.
    let assisted = case.arguments.get("assistant").and_then(Value::as_bool) == Some(true);
    let assistant = if assisted { Some(assistant()?) } else { None };
    let mut assistant = assistant.map(|small| Assistant::new(small, AssistedSettings::default()).adapts(false));
    let assist = Assist { draft: assistant.as_mut().map(|draft| draft as &mut dyn Draft), always: true, elapsed: None };
    let mut request = Request::new(case.prompts.clone(), settings).seed(SEED).logprobs(true).assist(assist);
    let tokenizer = if case.text.is_some() || case.expect.text.is_some() || stops {
        Some(tokenizer.as_ref().map_err(|error| Error::invalid_model(error.to_string()))?)
    } else {
        None
    };
    if let (true, Some(tokenizer)) = (stops, tokenizer) {
        request = request.vocabulary(Arc::new(tokenizer.clone()));
    }
    if let Some(negative) = case.arguments.get("negative_prompt") {
        let negative: Vec<TokenId> = serde_json::from_value(negative.clone())
            .map_err(|error| Error::invalid_input("negative_prompt is no list of ids").because(error))?;
        request = request.negative_prompts(vec![negative; case.prompts.len()]);
    }
    match case.arguments.get("prefix_allowed_tokens_rule").map(Value::as_str) {
        None => {}
        Some(Some("parity")) => {
            let vocab = model.vocab_size() as TokenId;
            let even = move |id: &TokenId, last: TokenId| (id + last).is_multiple_of(2);
            request = request.own(Own::new().prefix_allowed_tokens_fn(move |_, ids| {
                let last = ids.last().copied().unwrap_or(0);
                (0..vocab).filter(|id| even(id, last)).collect()
            }));
        }
        Some(other) => return Err(Error::invalid_input(format!("the rule {other:?} of allowed tokens is not known"))),
    }
    let output = generate(model, request)?;
    let runs = output.drafts().map(|counts| counts.target_runs);
    let rows = output.prompts.into_iter().flat_map(|prompt| prompt.sequences).map(|sequence| AnswerRow {
        ids: sequence.ids,
        finish: sequence.finish.as_str().to_owned(),
        score: sequence.score,
        beam_indices: sequence.beam_indices,
        logprobs: sequence.logprobs.unwrap_or_default(),
        logits: sequence.logits.unwrap_or_default(),
        scores: sequence.scores.unwrap_or_default(),
    });
    let rows: Vec<_> = rows.collect();
    let text_ids = match (&case.text, tokenizer) {
        (Some(text), Some(tokenizer)) => Some(tokenizer.encode(text, true)?),
        _ => None,
    };
    let text = match (rows.first(), tokenizer) {
        // Stop string cases were recorded with special tokens shown.
        (Some(row), Some(tokenizer)) if case.expect.text.is_some() => Some(tokenizer.decode(&row.ids, !stops)),
        _ => None,
    };
    Ok(Answer { rows, runs, text_ids, text })
}
