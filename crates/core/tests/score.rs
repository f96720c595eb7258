//! Scoring texts on the scripted model.

use unspool_core::score::{ScoredText, score};
use unspool_core::{ErrorKind, TokenId};
use unspool_testing::{ScriptedModel, tables};

fn text(context: &[TokenId], continuation: &[TokenId]) -> ScoredText {
    ScoredText { context: context.to_vec(), continuation: continuation.to_vec() }
}

#[test]
fn tells_each_tokens_probability_and_whether_it_is_the_best() {
    let model = ScriptedModel::table(&tables::C);
    let scores = score(&model, &[text(&[0], &[1, 2, 0])], 1, None).unwrap();
    let expected = [0.7f32.ln(), 0.7f32.ln(), 0.1f32.ln()];
    assert!(scores[0].logprobs.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6));
    assert_eq!(scores[0].greedy, [true, true, false]);
    assert!(!scores[0].is_greedy());
    let sum: f64 = expected.iter().map(|&logprob| f64::from(logprob)).sum();
    assert!((scores[0].sum() - sum).abs() < 1e-6);
    assert!((scores[0].perplexity() - (-sum / 3.0).exp()).abs() < 1e-6);
}

#[test]
fn neither_batches_nor_chunks_change_a_score() {
    let ids: Vec<TokenId> = (0..40).map(|id| id * 7 % 11).collect();
    let texts =
        [text(&ids[..1], &ids[1..]), text(&ids[..20], &ids[20..21]), text(&ids[..20], &ids[20..]), text(&[3, 1], &[2])];
    let model = ScriptedModel::hashed(11);
    let alone = score(&model, &texts, 1, Some(64)).unwrap();
    for (batch, chunk) in [(4, None), (3, Some(5)), (2, Some(1))] {
        assert_eq!(score(&model, &texts, batch, chunk).unwrap(), alone, "{batch}, {chunk:?}");
    }
}

#[test]
fn a_context_of_several_texts_runs_once_and_no_last_token_runs() {
    let model = ScriptedModel::hashed(9);
    let context = [1, 2, 3, 4];
    let texts = [text(&context, &[5, 6]), text(&context, &[7]), text(&context, &[8, 1, 2])];
    score(&model, &texts, 3, None).unwrap();
    assert_eq!(
        model.log().steps(),
        [vec![vec![1, 2, 3]], vec![vec![4, 5], vec![4], vec![4, 8, 1]]],
        "the context's last token gives the first scores of each text"
    );
    assert_eq!(model.log().reorders(), [[0, 0, 0]]);
}

#[test]
fn refuses_what_cannot_be_scored_with_its_index() {
    let model = ScriptedModel::hashed(9).with_max_positions(3);
    for (bad, expected) in [
        (text(&[], &[1]), "nothing comes before"),
        (text(&[1], &[]), "no token is left"),
        (text(&[1], &[9]), "id 9 at position 1 is outside the vocabulary"),
        (text(&[1, 2], &[3, 4, 5]), "has 5 tokens and the model can score at most 4"),
    ] {
        let error = score(&model, &[text(&[1], &[2]), bad], 8, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expected) && error.to_string().contains("text 1"), "{error}");
    }
    assert!(model.log().calls().is_empty(), "nothing runs before every text is checked");
    assert!(score(&model, &[text(&[1, 2], &[3, 4])], 1, None).is_ok(), "the last token needs no position");
}

#[test]
fn no_step_holds_more_than_bounded_scores() {
    // 400 000 entries: 16 positions of one row are 6.4 million scores.
    let model = ScriptedModel::from_fn(400_000, |_| vec![0.0; 400_000]);
    score(&model, &vec![text(&[1], &[2; 18]); 2], 2, None).unwrap();
    for step in model.log().steps() {
        let positions: usize = step.iter().map(Vec::len).sum();
        assert!(positions * 400_000 <= 8 << 20, "{positions} positions in one step");
    }
}
