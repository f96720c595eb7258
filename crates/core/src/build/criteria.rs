//! What ends the rows of a generation, in order.

use std::sync::Arc;

use crate::config::Settings;
use crate::error::{Error, Result};
use crate::stop::{Confidence, Criterion, Eos, Length, StopStrings, Time};
use crate::vocabulary::Vocabulary;

/// The criteria that `settings` ask for. A caller's own criteria come after them.
///
/// Any of them ends a row, so the order decides only which reason is told when several fire on one token: eos, stop
/// string, length, time, confidence. The clock of `max_time` starts here: call this when the inputs are ready, right before the
/// first step.
///
/// # Errors
///
/// `stop_strings` without a vocabulary, or with texts that the vocabulary cannot write.
#[doc(alias = "_get_stopping_criteria")]
pub fn criteria(settings: &Settings, vocabulary: Option<Arc<dyn Vocabulary>>) -> Result<Vec<Box<dyn Criterion>>> {
    let mut criteria: Vec<Box<dyn Criterion>> = Vec::new();
    if !settings.eos_token_id.is_empty() {
        criteria.push(Box::new(Eos::new(settings.eos_token_id.clone())));
    }
    if !settings.stop_strings.is_empty() {
        let vocabulary = vocabulary.ok_or_else(|| {
            Error::invalid_config(
                "stop_strings is set, but there is no tokenizer to read token texts from; open the model with its tokenizer",
            )
        })?;
        criteria.push(Box::new(StopStrings::new(settings.stop_strings.clone(), vocabulary)?));
    }
    criteria.push(Box::new(Length::new(settings)));
    if let Some(limit) = settings.max_time {
        criteria.push(Box::new(Time::new(limit)));
    }
    if let Some(threshold) = settings.assistant_confidence_threshold {
        criteria.push(Box::new(Confidence::new(threshold)?));
    }
    Ok(criteria)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MaxLength;
    use crate::error::ErrorKind;
    use crate::row::Row;
    use crate::stop::{AnyOf, FinishReason};

    #[test]
    fn eos_is_told_before_length() {
        let settings = Settings { eos_token_id: vec![7], max_length: MaxLength::New(1), ..Settings::default() };
        let mut all = AnyOf::new(criteria(&settings, None).unwrap());
        let mut check = |ids: &[u32]| all.check(&Row { ids, prompt_len: 1, prompt: 0 }, &[]).unwrap();
        assert_eq!(check(&[7, 7]), Some(FinishReason::Eos));
        assert_eq!(check(&[7, 3]), Some(FinishReason::Length));
    }

    #[test]
    fn a_drafting_model_stops_where_it_is_not_sure() {
        let settings = Settings { assistant_confidence_threshold: Some(0.5), ..Settings::default() };
        let mut all = AnyOf::new(criteria(&settings, None).unwrap());
        let mut check = |scores: &[f32]| all.check(&Row { ids: &[7, 0], prompt_len: 1, prompt: 0 }, scores).unwrap();
        assert_eq!(check(&[0.0; 3]), Some(FinishReason::Confidence));
        assert_eq!(check(&[3.0, 0.0, 0.0]), None);
    }

    #[test]
    fn stop_strings_need_a_vocabulary() {
        let settings = Settings { stop_strings: vec!["x".into()], ..Settings::default() };
        let error = criteria(&settings, None).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().starts_with("stop_strings"), "{error}");
    }
}
