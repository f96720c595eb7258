//! Embedding texts on the scripted model.

use unspool_core::embed::{Pooling, embed};
use unspool_core::{HiddenShape, TokenId};
use unspool_testing::ScriptedModel;

/// State 2 of a row is `[its length, its last token]`; the others are wrong on purpose.
fn model() -> ScriptedModel {
    let shape = HiddenShape { last: 2, width: 2, tied: false };
    ScriptedModel::hashed(9).with_hidden(shape, |state, ids| match state {
        2 => vec![ids.len() as f32, ids.last().copied().unwrap_or(0) as f32],
        _ => vec![f32::NAN; 2],
    })
}

#[test]
fn takes_the_last_state_or_the_mean() {
    let texts: [Vec<TokenId>; 2] = [vec![1, 2, 6], vec![4]];
    assert_eq!(embed(&model(), &texts, Pooling::Last, false, 2).unwrap(), [[3.0, 6.0], [1.0, 4.0]]);
    assert_eq!(embed(&model(), &texts, Pooling::Mean, false, 2).unwrap(), [[2.0, 3.0], [1.0, 4.0]]);
    let unit = embed(&model(), &[vec![3, 3, 3, 3]], Pooling::Last, true, 1).unwrap();
    assert_eq!(unit, [[0.8, 0.6]]);
}

#[test]
fn long_texts_run_in_chunks_and_batches_change_nothing() {
    let texts: Vec<Vec<TokenId>> = [300, 1, 129, 17].iter().map(|&len| (0..len).map(|id| id % 9).collect()).collect();
    for pooling in [Pooling::Last, Pooling::Mean] {
        let alone = embed(&model(), &texts, pooling, false, 1).unwrap();
        assert_eq!(embed(&model(), &texts, pooling, false, 3).unwrap(), alone);
        let mean = |len: f32| (len + 1.0) / 2.0;
        let expected = if pooling == Pooling::Last { [300.0, 1.0] } else { [mean(300.0), mean(1.0)] };
        assert_eq!([alone[0][0], alone[1][0]], expected);
    }
    let model = model();
    embed(&model, &texts, Pooling::Mean, false, 4).unwrap();
    assert!(model.log().steps().iter().flatten().all(|tokens| tokens.len() <= 128));
}

#[test]
fn refuses_what_cannot_be_embedded_before_anything_runs() {
    let model = model().with_max_positions(4);
    for (bad, expected) in [(vec![], "no tokens"), (vec![9], "id 9"), (vec![1; 5], "5 tokens")] {
        let error = embed(&model, &[vec![1], bad], Pooling::Last, false, 2).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("text 1"), "{error}");
    }
    assert!(model.log().calls().is_empty());
    let error = embed(&ScriptedModel::hashed(9), &[vec![1]], Pooling::Last, false, 1).unwrap_err().to_string();
    assert!(error.contains("does not give hidden states") && error.contains("import --hidden-states"), "{error}");
}
