//! The lines of `--json` and of `--out`.

use serde::Serialize;
use unspool::{PromptOutput, StepStates, Timing, TokenId};

use crate::batch::row::Keys;

/// The keys of a line.
pub const KEYS: [&str; 5] = ["index", "prompt_ids", "sequences", "timing", "seed"];

/// One line: everything about one prompt. Numbers are written so that reading them back as f32 gives the same value;
/// minus infinity is `null`.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    index: usize,
    #[serde(flatten)]
    keys: &'a Keys,
    prompt_ids: &'a [TokenId],
    sequences: Vec<Sequence<'a>>,
    timing: Times,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Sequence<'a> {
    ids: &'a [TokenId],
    text: Option<&'a str>,
    finish_reason: &'a str,
    score: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beam_indices: Option<&'a [usize]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<&'a [Vec<f32>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logits: Option<&'a [Vec<f32>]>,
    /// `[step][state][position][width]`
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_states: Option<Vec<Vec<Vec<&'a [f32]>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drafts: Option<Drafts>,
}

#[derive(Debug, Serialize)]
struct Drafts {
    drafted: usize,
    accepted: usize,
    target_runs: usize,
}

#[derive(Debug, Serialize)]
struct Times {
    prompt_tokens: usize,
    prompt_s: f64,
    new_tokens: usize,
    decode_s: f64,
}

/// What a line is made of.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The prompt's place in the request.
    pub index: usize,
    /// Keys of its line that go through.
    pub keys: &'a Keys,
    /// Its tokens.
    pub prompt_ids: &'a [TokenId],
    /// What was written.
    pub output: &'a PromptOutput,
    /// The text of each sequence; empty without a tokenizer.
    pub texts: &'a [String],
    /// Times of the batch the prompt was in.
    pub timing: &'a Timing,
    /// The seed, when tokens were drawn.
    pub seed: Option<u64>,
}

/// The line of `answer`, without its end. The token counts are the prompt's own, the seconds those of its batch.
pub fn line(answer: &Answer<'_>) -> String {
    let sequences: Vec<Sequence<'_>> = answer
        .output
        .sequences
        .iter()
        .enumerate()
        .map(|(index, sequence)| Sequence {
            ids: &sequence.ids,
            text: answer.texts.get(index).map(String::as_str),
            finish_reason: sequence.finish.as_str(),
            score: sequence.score,
            beam_indices: sequence.beam_indices.as_deref(),
            logprobs: sequence.logprobs.as_deref(),
            scores: sequence.scores.as_deref(),
            logits: sequence.logits.as_deref(),
            hidden_states: sequence.hidden_states.as_ref().map(|steps| steps.iter().map(positions).collect()),
            drafts: sequence.drafts.map(|counts| Drafts {
                drafted: counts.drafted,
                accepted: counts.accepted,
                target_runs: counts.target_runs,
            }),
        })
        .collect();
    let line = Line {
        index: answer.index,
        keys: answer.keys,
        prompt_ids: answer.prompt_ids,
        timing: Times {
            prompt_tokens: answer.prompt_ids.len(),
            prompt_s: answer.timing.prompt_s,
            new_tokens: answer.output.sequences.iter().map(|sequence| sequence.ids.len()).sum(),
            decode_s: answer.timing.decode_s,
        },
        sequences,
        seed: answer.seed,
    };
    // A line holds only numbers, texts and lists, which JSON can always say.
    serde_json::to_string(&line).unwrap_or_default()
}

/// The states of a step, each by its positions.
fn positions(step: &StepStates) -> Vec<Vec<&[f32]>> {
    step.states.iter().map(|state| state.chunks(step.width.max(1)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool::FinishReason;

    fn output(scores: Option<Vec<Vec<f32>>>, logprobs: Option<Vec<f32>>) -> PromptOutput {
        PromptOutput {
            sequences: vec![unspool::Sequence {
                ids: vec![5, 2],
                finish: FinishReason::Eos,
                score: None,
                beam_indices: None,
                logprobs,
                scores,
                logits: None,
                hidden_states: None,
                drafts: None,
            }],
        }
    }

    fn text(output: &PromptOutput, seed: Option<u64>) -> String {
        let timing = Timing { prompt_s: 0.5, decode_s: 0.25, ..Timing::default() };
        let keys = &Keys::default();
        line(&Answer { index: 3, keys, prompt_ids: &[1, 4], output, texts: &["hi".into()], timing: &timing, seed })
    }

    #[test]
    fn every_key_of_a_line_is_among_its_keys_and_those_of_the_prompt_go_through() {
        let keys = &Keys::read(r#"{"id": "a", "n": 12345678901234567890}"#).unwrap();
        let timing = Timing::default();
        let (output, texts) = (&output(None, None), &[][..]);
        let line = line(&Answer { index: 0, keys, prompt_ids: &[1], output, texts, timing: &timing, seed: Some(1) });
        assert!(line.starts_with(r#"{"index":0,"id":"a","n":12345678901234567890,"prompt_ids":[1],"#), "{line}");
        let read: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
        let own: Vec<&String> = read.keys().filter(|key| !["id", "n"].contains(&key.as_str())).collect();
        assert_eq!(own, KEYS);
    }

    #[test]
    fn has_the_keys_in_their_order() {
        assert_eq!(
            text(&output(None, None), None),
            r#"{"index":3,"prompt_ids":[1,4],"sequences":[{"ids":[5,2],"text":"hi","finish_reason":"eos","score":null}],"timing":{"prompt_tokens":2,"prompt_s":0.5,"new_tokens":2,"decode_s":0.25}}"#
        );
    }

    #[test]
    fn hidden_states_are_told_by_step_state_and_position() {
        let mut output = output(None, None);
        let step = |states| StepStates { width: 2, states };
        output.sequences[0].hidden_states =
            Some(vec![step(vec![vec![1.0, 2.0, 3.0, 4.0], vec![5.0; 4]]), step(vec![vec![6.0, 7.0], vec![8.0, 9.0]])]);
        let read: serde_json::Value = serde_json::from_str(&text(&output, None)).unwrap();
        let expected =
            serde_json::json!([[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 5.0], [5.0, 5.0]]], [[[6.0, 7.0]], [[8.0, 9.0]]]]);
        assert_eq!(read["sequences"][0]["hidden_states"], expected);
    }

    #[test]
    fn prints_f32_so_that_it_survives_and_minus_infinity_as_null() {
        let values = vec![0.1f32, -1.0e-7, f32::NEG_INFINITY, 16_777_217.0, f32::MIN_POSITIVE];
        let json = text(&output(Some(vec![values.clone()]), Some(vec![-0.3])), Some(7));
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let scores = read["sequences"][0]["scores"][0].as_array().unwrap();
        for (value, read) in values.iter().zip(scores) {
            match read.as_f64() {
                Some(read) => assert_eq!(read as f32, *value),
                None => assert!(read.is_null() && value.is_infinite()),
            }
        }
        assert!(json.contains("[0.1,"), "{json}");
        assert!(json.contains(r#""logprobs":[-0.3]"#), "{json}");
        assert!(json.ends_with(r#","seed":7}"#), "{json}");
    }
}
