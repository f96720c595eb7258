//! Texts that end a row.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::row::Row;
use crate::stop::{Criterion, FinishReason};
use crate::token::TokenId;
use crate::vocabulary::{TextUnit, Vocabulary};

/// Ends a row when a stop string occurs in its text and ends inside the newest token; Python's `StopStringCriteria`.
///
/// The string may begin in any earlier token, the prompt's included, and the newest token may go on after it; the
/// whole token stays in the row. Texts are compared byte by byte, so a character split over several tokens is found.
/// Only the last `m` tokens are read, `m` being the length of the longest stop string in the vocabulary's
/// [`TextUnit`]; an id that names no token never matches and separates what stands before it.
///
/// Cost per token: a search in at most the length of a stop string plus the newest token's text.
#[doc(alias = "StopStringCriteria")]
#[derive(Clone)]
pub struct StopStrings {
    vocabulary: Arc<dyn Vocabulary>,
    stop_strings: Vec<String>,
    /// Tokens that are read.
    window: usize,
    /// Bytes of the longest stop string.
    longest: usize,
    /// The end of the row's text; kept to save its memory from step to step.
    text: Vec<u8>,
}

impl StopStrings {
    /// Ends rows at any of `stop_strings`, read with the token texts of `vocabulary`.
    ///
    /// # Errors
    ///
    /// No string, an empty string, or when no token of the vocabulary can hold the end of any of them, so that nothing
    /// would ever stop.
    pub fn new(stop_strings: Vec<String>, vocabulary: Arc<dyn Vocabulary>) -> Result<Self> {
        let length = |text: &String| match vocabulary.unit() {
            TextUnit::Bytes => text.len(),
            TextUnit::Chars => text.chars().count(),
        };
        let window = stop_strings.iter().map(length).max().unwrap_or(0);
        if window == 0 || stop_strings.iter().any(String::is_empty) {
            return Err(Error::invalid_config(
                "stop_strings has an empty text, expected at least one character in each",
            ));
        }
        let ids = 0..TokenId::try_from(vocabulary.size()).unwrap_or(TokenId::MAX);
        let mut texts = ids.filter_map(|id| vocabulary.continuation(id));
        if !texts.any(|text| stop_strings.iter().any(|stop| holds_end(&text, stop.as_bytes()))) {
            return Err(Error::invalid_config(format!(
                "stop_strings: no token of the vocabulary can hold the end of {}, so it would never stop anything; \
                 check the spelling",
                stop_strings.iter().map(|stop| format!("{stop:?}")).collect::<Vec<_>>().join(" or ")
            )));
        }
        let longest = stop_strings.iter().map(String::len).max().unwrap_or(0);
        Ok(StopStrings { vocabulary, stop_strings, window, longest, text: Vec::new() })
    }
}

/// Whether a row could be done on a token of this text: it holds the whole stop string, or begins with an end of it.
fn holds_end(text: &[u8], stop: &[u8]) -> bool {
    (1..=stop.len()).any(|n| text.starts_with(&stop[stop.len() - n..])) || contains(text, stop)
}

fn contains(text: &[u8], stop: &[u8]) -> bool {
    text.windows(stop.len()).any(|part| part == stop)
}

impl Criterion for StopStrings {
    fn check(&mut self, row: &Row<'_>, _scores: &[f32]) -> Result<Option<FinishReason>> {
        let recent = &row.ids[row.ids.len().saturating_sub(self.window)..];
        let Some((&newest, earlier)) = recent.split_last() else { return Ok(None) };
        let Some(newest) = self.vocabulary.continuation(newest) else { return Ok(None) };
        if newest.is_empty() {
            return Ok(None);
        }
        // How many of the earlier tokens can share a stop string with the newest one.
        let mut bytes = 0;
        let reach = earlier.iter().rev().take_while(|&&id| {
            let wanted = bytes < self.longest - 1;
            self.vocabulary.continuation(id).is_some_and(|text| {
                bytes += text.len();
                wanted
            })
        });
        let reach = reach.count();
        self.text.clear();
        for &id in &earlier[earlier.len() - reach..] {
            self.text.extend(self.vocabulary.continuation(id).as_deref().unwrap_or_default());
        }
        let before = self.text.len();
        self.text.extend_from_slice(&newest);
        let done = self.stop_strings.iter().any(|stop| {
            // An occurrence must use at least one byte of the newest token.
            contains(&self.text[(before + 1).saturating_sub(stop.len())..], stop.as_bytes())
        });
        Ok(done.then_some(FinishReason::StopString))
    }
}

impl fmt::Debug for StopStrings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopStrings").field("stop_strings", &self.stop_strings).finish_non_exhaustive()
    }
}
