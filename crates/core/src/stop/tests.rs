//! Stop strings against the table and the definition, and the small criteria.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::{MaxLength, Settings};
use crate::error::ErrorKind;
use crate::row::Row;
use crate::token::TokenId;
use crate::vocabulary::{TextUnit, Vocabulary};

const NONE: f32 = f32::NEG_INFINITY;

struct Tokens(Vec<Vec<u8>>, TextUnit);

impl Vocabulary for Tokens {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn continuation(&self, id: TokenId) -> Option<Cow<'_, [u8]>> {
        self.0.get(id as usize).map(|text| Cow::Borrowed(text.as_slice()))
    }

    fn unit(&self) -> TextUnit {
        self.1
    }
}

fn row(ids: &[TokenId]) -> Row<'_> {
    Row { ids, prompt_len: 0, prompt: 0 }
}

fn criterion(tokens: &[&[u8]], unit: TextUnit, stops: &[&str]) -> crate::Result<StopStrings> {
    let vocabulary = Tokens(tokens.iter().map(|text| text.to_vec()).collect(), unit);
    StopStrings::new(stops.iter().map(|&stop| stop.to_owned()).collect(), Arc::new(vocabulary))
}

/// Whether the text of these tokens ends the row.
fn stops(tokens: &[&str], stop: &str) -> bool {
    let mut texts: Vec<&[u8]> = tokens.iter().map(|text| text.as_bytes()).collect();
    texts.push(stop.as_bytes());
    let ids: Vec<TokenId> = (0..tokens.len() as TokenId).collect();
    criterion(&texts, TextUnit::Chars, &[stop]).unwrap().check(&row(&ids), &[]).unwrap()
        == Some(FinishReason::StopString)
}

#[test]
fn stop_strings_follow_the_table() {
    let yes: [&[&str]; 12] = [
        &["st", "op"],
        &["xst", "op"],
        &["st", "opy"],
        &["s", "t", "o", "p"],
        &["s", "t", "o", "pp"],
        &["xstopy"],
        &["st", "", "op"],
        &["hi", "stop"],
        &["stopst"],
        &["stopst", "op"],
        &["st", "", "", "op"],
        &["hi", "st", "op"],
    ];
    let no: [&[&str]; 8] = [
        &["op"],
        &["st"],
        &["st", "op", "hi"],
        &["st", "op", ""],
        &["S", "t", "op"],
        &["st", "", "", "", "op"],
        &["p"],
        &[],
    ];
    for tokens in yes {
        assert!(stops(tokens, "stop"), "{tokens:?}");
    }
    for tokens in no {
        assert!(!stops(tokens, "stop"), "{tokens:?}");
    }
    for tokens in [&["p"], &["op"], &["opy"]] {
        assert!(stops(tokens, "p"), "{tokens:?}");
    }
}

#[test]
fn the_window_is_that_of_the_longest_stop_string() {
    let tokens: [&[u8]; 3] = [b"st", b"", b"op"];
    let mut one = criterion(&tokens, TextUnit::Chars, &["stop"]).unwrap();
    let mut two = criterion(&tokens, TextUnit::Chars, &["stop", "longer stop"]).unwrap();
    let ids = row(&[0, 1, 1, 1, 2]);
    assert_eq!(one.check(&ids, &[]).unwrap(), None);
    assert_eq!(two.check(&ids, &[]).unwrap(), Some(FinishReason::StopString));
}

#[test]
fn an_id_without_a_token_never_matches_and_separates() {
    let mut stop = criterion(&[b"st", b"op"], TextUnit::Chars, &["stop"]).unwrap();
    assert_eq!(stop.check(&row(&[0, 9, 1]), &[]).unwrap(), None);
    assert_eq!(stop.check(&row(&[0, 1, 9]), &[]).unwrap(), None);
    assert_eq!(stop.check(&row(&[9, 0, 1]), &[]).unwrap(), Some(FinishReason::StopString));
}

#[test]
fn a_character_split_over_byte_tokens_is_found() {
    let mut stop = criterion(&[b"\xc3", b"\xa9", b"\xa8"], TextUnit::Bytes, &["é"]).unwrap();
    assert_eq!(stop.check(&row(&[0]), &[]).unwrap(), None);
    assert_eq!(stop.check(&row(&[0, 2]), &[]).unwrap(), None);
    assert_eq!(stop.check(&row(&[0, 1]), &[]).unwrap(), Some(FinishReason::StopString));
    // The window counts bytes: three tokens of one byte write one character.
    let mut stop = criterion(&[b"\xe3", b"\x80", b"\x82"], TextUnit::Bytes, &["。"]).unwrap();
    assert_eq!(stop.check(&row(&[0, 1, 2]), &[]).unwrap(), Some(FinishReason::StopString));
}

#[test]
fn texts_that_the_vocabulary_cannot_end_are_refused() {
    let tokens: [&[u8]; 3] = [b"st", b"op", b""];
    assert!(criterion(&tokens, TextUnit::Chars, &["stop", "zzz"]).is_ok());
    for stops in [&["zzz"][..], &["stoz"], &[""], &["stop", ""], &[]] {
        let error = criterion(&tokens, TextUnit::Chars, stops).err().unwrap_or_else(|| panic!("accepted: {stops:?}"));
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().starts_with("stop_strings"), "{error}");
    }
}

/// The definition: the last tokens as one text, an occurrence that ends inside the newest.
fn literal(texts: &[&str], stop: &str) -> bool {
    let texts = &texts[texts.len().saturating_sub(stop.len())..];
    let (all, newest) = (texts.concat(), texts.last().map_or(0, |text| text.len()));
    (0..all.len()).any(|at| all[at..].starts_with(stop) && at + stop.len() > all.len() - newest)
}

proptest! {
    #[test]
    fn stop_strings_equal_their_definition(
        texts in prop::collection::vec("[ab]{0,4}", 1..9),
        stop in "[ab]{1,5}",
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        prop_assert_eq!(stops(&texts, &stop), literal(&texts, &stop));
    }
}

#[test]
fn any_end_token_ends_a_row_and_a_prompt_of_one_does_not_matter() {
    let mut eos = Eos::new(vec![3, 5]);
    assert_eq!(eos.check(&row(&[3, 1]), &[]).unwrap(), None);
    assert_eq!(eos.check(&row(&[1, 5]), &[]).unwrap(), Some(FinishReason::Eos));
    assert_eq!(eos.check(&row(&[]), &[]).unwrap(), None);
}

#[test]
fn length_counts_from_each_rows_own_prompt() {
    let ends = |max_length, prompt_len, len| {
        let ids = vec![0; len];
        let settings = Settings { max_length, ..Settings::default() };
        let reason = Length::new(&settings).check(&Row { ids: &ids, prompt_len, prompt: 0 }, &[]).unwrap();
        reason == Some(FinishReason::Length)
    };
    assert!(!ends(MaxLength::New(2), 3, 4));
    assert!(ends(MaxLength::New(2), 3, 5));
    assert!(!ends(MaxLength::New(2), 4, 5));
    assert!(ends(MaxLength::Total(4), 1, 4));
    assert!(!ends(MaxLength::Default, 1, 20));
    assert!(ends(MaxLength::Default, 1, 21));
}

#[test]
fn time_is_over_when_more_than_the_limit_has_passed() {
    let now = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now);
    let mut time =
        Time::with_clock(Duration::from_millis(5), move || Duration::from_millis(clock.load(Ordering::Relaxed)));
    for (elapsed, reason) in [(4, None), (5, None), (6, Some(FinishReason::Time))] {
        now.store(elapsed, Ordering::Relaxed);
        assert_eq!(time.check(&row(&[1]), &[]).unwrap(), reason);
    }
    let mut at_once = Time::new(Duration::ZERO);
    std::thread::sleep(Duration::from_millis(1));
    assert_eq!(at_once.check(&row(&[1]), &[]).unwrap(), Some(FinishReason::Time));
}

#[test]
fn confidence_is_the_newest_tokens_own_probability() {
    let ends = |threshold, ids: &[u32], scores: &[f32]| {
        let reason = Confidence::new(threshold).unwrap().check(&row(ids), scores).unwrap();
        assert!(reason.is_none() || reason == Some(FinishReason::Confidence));
        reason.is_some()
    };
    assert!(ends(0.5, &[0, 2], &[0.0; 3]));
    // The comparison is strict: exactly the threshold is sure enough.
    assert!(!ends(0.5, &[0, 1], &[0.0; 2]));
    assert!(!ends(0.25, &[0, 1], &[0.0; 4]));
    let scores = [0.1f32.ln(), 0.1f32.ln(), 0.7f32.ln(), 0.1f32.ln()];
    assert!(!ends(0.65, &[2], &scores) && ends(0.65, &[1], &scores) && ends(0.75, &[2], &scores));
    assert!(ends(1e-9, &[1], &[0.0, NONE]), "a forbidden token is never sure");
    assert!(!ends(0.5, &[1], &[f32::NAN, 0.0]), "as in Python nothing is compared with NaN");
    assert!(ends(2.0, &[1], &[NONE, 0.0]) && !ends(0.0, &[0], &[NONE, 0.0]));
    assert!(Confidence::new(f64::NAN).unwrap_err().message().starts_with("assistant_confidence_threshold is NaN"));
}

#[test]
fn the_first_of_several_reasons_is_told_and_all_are_asked() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let mut all = AnyOf::new(vec![Box::new(Eos::new(vec![1]))]);
    all.push(move |_: &Row<'_>, _: &[f32]| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Some(FinishReason::Custom("mine".into())))
    });
    assert_eq!(all.check(&row(&[1]), &[]).unwrap(), Some(FinishReason::Eos));
    assert_eq!(all.check(&row(&[2]), &[]).unwrap(), Some(FinishReason::Custom("mine".into())));
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}
