//! An answer held against Python's.

use unspool_core::TokenId;

use crate::golden::{Case, StepScores};

/// How far two numbers may be apart, and why so far.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// The largest difference that counts as equal, relative to `max(1, |expected|)`.
    pub value: f32,
    /// Where a difference comes from.
    pub why: &'static str,
}

/// For logits, scores and log-probabilities of f32 graphs.
pub const FLOAT_NOISE: Tolerance =
    Tolerance { value: 1e-3, why: "f32 sums in another order than PyTorch's; the goldens keep gaps above 1e-3" };

/// For the scores of whole sequences, which are compared relative to their size.
pub const SEQUENCE_NOISE: Tolerance =
    Tolerance { value: 1e-4, why: "means of log-probabilities, whose noise is below 1e-4" };

/// One row of an answer.
#[derive(Clone, Debug, Default)]
pub struct AnswerRow {
    /// The new tokens, the end token with them.
    pub ids: Vec<TokenId>,
    /// The word of the finish reason.
    pub finish: String,
    /// The score of the whole sequence, with beams.
    pub score: Option<f32>,
    /// The running beam that each token extended, with beams.
    pub beam_indices: Option<Vec<usize>>,
    /// Log-probability of each new token under the processed scores.
    pub logprobs: Vec<f32>,
    /// Raw scores `[step][token]`.
    pub logits: Vec<Vec<f32>>,
    /// Processed scores `[step][token]`.
    pub scores: Vec<Vec<f32>>,
}

/// What a case was answered with.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// One row per returned sequence.
    pub rows: Vec<AnswerRow>,
    /// Runs of the model, where tokens were drafted.
    pub runs: Option<usize>,
    /// The ids of `case.text`, when the case has a text and the folder a tokenizer.
    pub text_ids: Option<Vec<TokenId>>,
    /// The first row's new tokens as text, when the case expects one.
    pub text: Option<String>,
}

/// The first difference between `answer` and what Python returned for `case`, as a sentence; `None` when they are equal.
///
/// With `numbers` off only tokens, finish reasons and texts are compared.
pub fn first_difference(case: &Case, answer: &Answer, numbers: bool) -> Option<String> {
    texts(case, answer)
        .or_else(|| case.expect.new_tokens.as_ref().and_then(|tokens| rows(case, answer, tokens, numbers)))
        .or_else(|| {
            if !numbers {
                return None;
            }
            let expect = &case.expect;
            steps("logits", case, answer, expect.logits.as_ref()?, |row| &row.logits)
        })
        .or_else(|| {
            if !numbers {
                return None;
            }
            steps("scores", case, answer, case.expect.scores.as_ref()?, |row| &row.scores)
        })
        .or_else(|| kept(case, answer))
        .or_else(|| runs(case, answer))
}

/// Drafts that differ from Python's show in how often the model runs.
fn runs(case: &Case, answer: &Answer) -> Option<String> {
    let (expected, got) = (case.expect.model_calls?, answer.runs?);
    (got != expected).then(|| format!("the model ran {got} times, expected {expected}"))
}

fn texts(case: &Case, answer: &Answer) -> Option<String> {
    if case.text.is_some() && answer.text_ids.as_deref() != case.prompts.first().map(Vec::as_slice) {
        return Some(format!("the text becomes {:?}, Python's ids are {:?}", answer.text_ids, case.prompts.first()));
    }
    if case.expect.text.is_some() && answer.text != case.expect.text {
        return Some(format!("the tokens read {:?}, Python's text is {:?}", answer.text, case.expect.text));
    }
    None
}

fn rows(case: &Case, answer: &Answer, tokens: &[Vec<TokenId>], numbers: bool) -> Option<String> {
    if answer.rows.len() != tokens.len() {
        return Some(format!("{} rows came back, expected {}", answer.rows.len(), tokens.len()));
    }
    for (index, (row, expected)) in answer.rows.iter().zip(tokens).enumerate() {
        let alone = alone_tokens(case, index);
        let expected = alone.unwrap_or(expected);
        if row.ids != *expected {
            let step = row.ids.iter().zip(expected).take_while(|(a, b)| a == b).count();
            return Some(format!("row {index} differs from step {step}: got {:?}, expected {expected:?}", row.ids));
        }
        // Padding changed Python's row, so its numbers are those of another text.
        if alone.is_some() {
            continue;
        }
        // Of beams the recording knows end tokens alone: whatever else ended them is written down as "length".
        if let Some(finish) = case.expect.finish.as_ref().and_then(|reasons| reasons.get(index))
            && row.finish != *finish
            && !(case.expect.beam_indices.is_some() && finish == "length" && row.finish == "stop_string")
        {
            return Some(format!("row {index} ended by {}, expected {finish}", row.finish));
        }
        let counted = numbers && !padding_was_counted(case, index);
        if let (true, Some(difference)) = (numbers, beams(case, index, row, counted)) {
            return Some(format!("row {index}, {difference}"));
        }
        // With beams the processed scores themselves are told, which are log-probabilities.
        let logprobs = case.expect.transition_scores.as_ref().or(case.expect.logprobs.as_ref());
        let logprobs = logprobs.and_then(|rows| rows.get(index));
        if let (true, Some(logprobs)) = (counted, logprobs)
            && let Some(difference) = close(&row.logprobs, logprobs)
        {
            return Some(format!("row {index}, log-probability of step {difference}"));
        }
    }
    None
}

/// The first difference in what only beams have.
fn beams(case: &Case, index: usize, row: &AnswerRow, scores: bool) -> Option<String> {
    let path = case.expect.beam_indices.as_ref()?.get(index)?;
    let path: Vec<_> = path.iter().map_while(|lane| usize::try_from(*lane).ok()).collect();
    if row.beam_indices.as_ref() != Some(&path) {
        return Some(format!("beam_indices: got {:?}, expected {path:?}", row.beam_indices));
    }
    let expected = *case.expect.sequences_scores.as_ref()?.get(index)?;
    let near = |score: f32| (score - expected).abs() <= SEQUENCE_NOISE.value * expected.abs();
    (scores && !row.score.is_some_and(near)).then(|| format!("score: got {:?}, expected {expected}", row.score))
}

/// The tokens of row `index` without padding, where padding changed what Python wrote.
fn alone_tokens(case: &Case, index: usize) -> Option<&Vec<TokenId>> {
    let prompts = case.expect.unpadded.as_ref()?;
    // One entry a prompt, with its sequences.
    let sequences = case.expect.new_tokens.as_ref()?.len() / prompts.len().max(1);
    let row = prompts.get(index / sequences.max(1))?;
    if row.same { None } else { row.new_tokens.as_ref()?.get(index % sequences.max(1)) }
}

/// Rules that see Python's left padding: the scores of a padded row differ also where the tokens are the same. The goldens
/// were recorded with transformers 4.57, whose `repetition_penalty` penalises the token of the padding (5.x does not);
/// `min_length` counts columns in both, so that a padded row may end sooner.
fn padding_was_counted(case: &Case, index: usize) -> bool {
    let longest = case.prompts.iter().map(Vec::len).max();
    let padded = case.prompts.get(index).map(Vec::len) < longest;
    padded && ["repetition_penalty", "min_length"].iter().any(|rule| case.settings.contains_key(*rule))
}

fn steps(
    what: &str,
    case: &Case,
    answer: &Answer,
    expected: &StepScores,
    of: impl Fn(&AnswerRow) -> &Vec<Vec<f32>>,
) -> Option<String> {
    for (step, lanes) in expected.iter().enumerate() {
        for (index, row) in answer.rows.iter().enumerate() {
            // Python goes on scoring a finished row; here it has left the batch. A row changed by padding has other scores.
            if step >= row.ids.len() || alone_tokens(case, index).is_some() {
                continue;
            }
            let lane = row.beam_indices.as_ref().map_or(Some(index), |path| path.get(step).copied());
            let Some(expected) = lane.and_then(|lane| lanes.get(lane)) else {
                return Some(format!("{what} of row {index}, step {step} were not recorded for its beam"));
            };
            let Some(got) = of(row).get(step) else {
                return Some(format!("{what} of row {index}, step {step} are missing"));
            };
            if let Some(difference) = close(got, expected) {
                return Some(format!("{what} of row {index}, step {step}, token {difference}"));
            }
        }
    }
    None
}

fn kept(case: &Case, answer: &Answer) -> Option<String> {
    let expected = case.expect.kept.as_ref()?;
    for (index, row) in answer.rows.iter().enumerate() {
        let lane = row.beam_indices.as_ref().map_or(Some(index), |path| path.first().copied());
        let expected = lane.and_then(|lane| expected.get(lane));
        let got = row.scores.first().map(|scores| scores.iter().filter(|score| score.is_finite()).count());
        if got.as_ref() != expected {
            return Some(format!("row {index} keeps {got:?} tokens, expected {expected:?}"));
        }
    }
    None
}

/// The place and the numbers of the first pair that differs by more than [`FLOAT_NOISE`].
fn close(got: &[f32], expected: &[Option<f32>]) -> Option<String> {
    if got.len() != expected.len() {
        return Some(format!("count: got {}, expected {}", got.len(), expected.len()));
    }
    got.iter().zip(expected).enumerate().find_map(|(index, (&got, expected))| {
        let expected = expected.unwrap_or(f32::NEG_INFINITY);
        let near = || (got - expected).abs() <= FLOAT_NOISE.value * expected.abs().max(1.0);
        let equal = got == expected || (expected.is_finite() && near());
        (!equal).then(|| format!("{index}: got {got}, expected {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(json: &str) -> Case {
        serde_json::from_str(json).unwrap()
    }

    fn row(ids: &[TokenId], finish: &str, logprobs: &[f32]) -> Answer {
        let row =
            AnswerRow { ids: ids.to_vec(), finish: finish.into(), logprobs: logprobs.to_vec(), ..Default::default() };
        Answer { rows: vec![row], ..Default::default() }
    }

    const GREEDY: &str = r#"{"name": "greedy", "group": "greedy", "prompts": [[1]], "settings": {},
        "expect": {"new_tokens": [[5, 2]], "finish": ["eos"], "logprobs": [[-0.5, -1.5]]}}"#;

    #[test]
    fn equal_answers_have_no_difference() {
        assert_eq!(first_difference(&case(GREEDY), &row(&[5, 2], "eos", &[-0.5001, -1.5]), true), None);
    }

    #[test]
    fn names_the_step_that_differs() {
        let difference = first_difference(&case(GREEDY), &row(&[5, 3], "eos", &[-0.5, -1.5]), true).unwrap();
        assert!(difference.contains("step 1"), "{difference}");
    }

    #[test]
    fn numbers_count_only_when_asked() {
        let answer = row(&[5, 2], "eos", &[-0.7, -1.5]);
        assert!(first_difference(&case(GREEDY), &answer, true).unwrap().contains("log-probability"));
        assert_eq!(first_difference(&case(GREEDY), &answer, false), None);
    }

    #[test]
    fn a_row_changed_by_padding_equals_its_prompt_alone() {
        let padded = case(
            r#"{"name": "batch", "group": "batch", "prompts": [[1]], "settings": {},
            "expect": {"new_tokens": [[5, 2]], "finish": ["eos"], "unpadded": [{"same": false, "new_tokens": [[9]]}]}}"#,
        );
        assert_eq!(first_difference(&padded, &row(&[9], "length", &[]), true), None);
        assert!(first_difference(&padded, &row(&[5, 2], "eos", &[]), true).is_some());
    }

    #[test]
    fn a_penalty_on_padding_excuses_the_numbers_of_padded_rows_only() {
        let padded = |lengths: &str| {
            let json = format!(
                r#"{{"name": "batch", "group": "batch", "prompts": {lengths}, "settings": {{"repetition_penalty": 1.5}},
                "expect": {{"new_tokens": [[5], [6]], "logprobs": [[-0.5], [-0.5]]}}}}"#
            );
            case(&json)
        };
        let row = |id, logprob| AnswerRow { ids: vec![id], logprobs: vec![logprob], ..Default::default() };
        let answer = Answer { rows: vec![row(5, -0.6), row(6, -0.5)], ..Default::default() };
        assert_eq!(first_difference(&padded("[[1], [1, 2]]"), &answer, true), None);
        assert!(first_difference(&padded("[[1, 2], [1]]"), &answer, true).is_some());
        assert!(first_difference(&padded("[[1], [1]]"), &answer, true).is_some());
    }

    #[test]
    fn a_forbidden_token_is_minus_infinity() {
        assert_eq!(close(&[f32::NEG_INFINITY, 1.0], &[None, Some(1.0)]), None);
        assert!(close(&[-1e9, 1.0], &[None, Some(1.0)]).is_some());
        assert!(close(&[f32::NAN], &[Some(1.0)]).is_some());
    }
}
