//! What is asked of prompts before any work is done.

use std::borrow::Cow;

use super::padding::AttentionMask;
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::token::{TokenId, check_ids};

/// Rows of one request, beams included: far above what is written together in any sensible time.
const MAX_ROWS: usize = 1 << 16;

/// Room that is asked for at once when neither the settings nor the model bound a row; caches grow beyond it.
pub(crate) const OPEN_END: usize = 32_768;

/// A checked prompt.
#[derive(Debug)]
pub(crate) struct Prompt<'a> {
    /// What rules, criteria and streams see: at least one id, all inside the vocabulary.
    pub ids: Cow<'a, [TokenId]>,
    /// What the model reads: `ids` without padding; at least one id, no more than the model's positions.
    pub read: Cow<'a, [TokenId]>,
    /// The length, prompt included, at which a row of this prompt ends: the limit of the settings, or the model's last
    /// position and the token that it gives; above the prompt's own length.
    pub max_length: usize,
}

impl Prompt<'_> {
    /// How many tokens the model does not read.
    pub(crate) fn hidden(&self) -> usize {
        self.ids.len() - self.read.len()
    }
}

/// Checks all prompts; an empty one becomes the beginning-of-sequence token, as in Python.
///
/// # Errors
///
/// No prompts, no sequences, or more rows than can be; `token_healing`; settings of beams that contradict each other; an
/// empty prompt without `bos_token_id`; an id outside the vocabulary; a prompt above the model's
/// positions or of padding alone; a prompt that leaves no room below `max_length`. The message names the prompt's index.
pub(crate) fn check<'a>(
    prompts: &'a [Vec<TokenId>],
    masks: &[AttentionMask],
    settings: &Settings,
    model: &dyn Model,
) -> Result<Vec<Prompt<'a>>> {
    if prompts.is_empty() {
        return Err(Error::invalid_input("no prompts were given; give at least one prompt"));
    }
    if settings.token_healing {
        return Err(Error::invalid_config(
            "token_healing reads the text of the prompt, and there is no tokenizer here; use a pipeline that has one (not a \
             conversation), or leave token_healing out",
        ));
    }
    if settings.num_return_sequences == 0 {
        return Err(Error::invalid_config("num_return_sequences is 0; give at least 1"));
    }
    settings.beams.check(settings, model.vocab_size())?;
    let rows = prompts.len().saturating_mul(settings.num_return_sequences.max(settings.beams.num_beams));
    if rows > MAX_ROWS {
        return Err(Error::invalid_input(format!(
            "{} prompts with num_return_sequences {} and num_beams {} make {rows} rows, at most {MAX_ROWS} are written at \
             once; give fewer, in several requests",
            prompts.len(),
            settings.num_return_sequences,
            settings.beams.num_beams
        )));
    }
    let positions = model.max_positions().into_iter().chain(settings.max_positions).min();
    let check_one = |(index, ids): (usize, &'a Vec<TokenId>)| {
        let mask = masks.get(index).copied().unwrap_or_default();
        check_one(ids, mask, settings, model.vocab_size(), positions)
            .map_err(|error| error.at_one_of("prompt", index, prompts.len()))
    };
    prompts.iter().enumerate().map(check_one).collect()
}

fn check_one<'a>(
    ids: &'a [TokenId],
    mask: AttentionMask,
    settings: &Settings,
    vocab: usize,
    positions: Option<usize>,
) -> Result<Prompt<'a>> {
    let ids = match (ids, settings.bos_token_id) {
        ([], Some(bos)) => Cow::Owned(vec![bos]),
        ([], None) => {
            return Err(Error::invalid_input(
                "the prompt is empty and the model names no bos_token_id to begin with; give at least one token, or set \
                 bos_token_id",
            ));
        }
        (ids, _) => Cow::Borrowed(ids),
    };
    check_ids(&ids, vocab)?;
    let read = match &ids {
        Cow::Borrowed(ids) => mask.read(ids, settings),
        // The first token of an empty prompt is none that padded it.
        Cow::Owned(bos) => Cow::Owned(bos.clone()),
    };
    if read.is_empty() {
        return Err(Error::invalid_input(format!(
            "the prompt holds nothing but the padding token {}, which the model does not read; give at least one other token",
            ids[0]
        )));
    }
    if let Some(positions) = positions.filter(|positions| read.len() > *positions) {
        return Err(Error::too_long(format!(
            "the prompt has {} tokens and the model takes at most {positions} positions; shorten the prompt",
            read.len()
        )));
    }
    let max_length = settings.max_length_for(ids.len())?;
    let hidden = ids.len() - read.len();
    let last = |positions: usize| positions.saturating_add(hidden).saturating_add(1);
    let max_length = positions.map_or(max_length, |positions| max_length.min(last(positions)));
    Ok(Prompt { ids, read, max_length })
}
