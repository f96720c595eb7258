//! DoLa: scores are what the last layer knows beyond an earlier one. <https://arxiv.org/abs/2309.03883>.

use crate::config::DolaLayers;
use crate::error::{Error, Result};
use crate::hidden::HiddenShape;
use crate::processor::softmax::log_softmax;
use crate::select::exp::exp;

/// Up to this many layers, the halves are taken whole; of more, this is where they end.
const HALVED: usize = 40;
/// Layers of a half of a deeper model.
const HALF: usize = 20;
/// Tokens below this share of the best one's probability are left out.
const LEAST_SHARE: f64 = 0.1;

/// The hidden states that `layers` name in a model of `shape`, whose last layer is `shape.last`; Python's
/// `candidate_premature_layers`.
///
/// # Errors
///
/// When no layer is left, or one is not there.
pub(super) fn candidates(layers: &DolaLayers, shape: HiddenShape) -> Result<Vec<usize>> {
    let depth = shape.last;
    // With tied embeddings the output matrix only finds the token again that the embedding came from.
    let start = match depth {
        _ if !shape.tied => 0,
        3.. => 2,
        2 => 1,
        _ => 0,
    };
    let every_other = |range: std::ops::Range<usize>| range.step_by(2).collect::<Vec<_>>();
    let found = match layers {
        DolaLayers::Low if start == depth / 2 => vec![start],
        DolaLayers::Low => every_other(start..if depth <= HALVED { depth / 2 } else { HALF }),
        DolaLayers::High => every_other(if depth <= HALVED { depth / 2 } else { depth - HALF }..depth),
        DolaLayers::Listed(listed) => {
            let place = |&layer: &i64| {
                let from_the_end = layer.checked_add(depth as i64 + 1).filter(|_| layer < 0);
                usize::try_from(from_the_end.unwrap_or(layer)).map_err(|_| {
                    Error::invalid_config(format!(
                        "dola_layers has {layer}, and the model has layers 0 to {depth}; name some of these"
                    ))
                })
            };
            listed.iter().filter(|layer| **layer < depth as i64).map(place).collect::<Result<_>>()?
        }
    };
    if found.is_empty() {
        return Err(Error::invalid_config(format!(
            "dola_layers leaves no layer of this model, whose last one is {depth}; list layers below {depth}"
        )));
    }
    Ok(found)
}

/// Makes the last layer's `scores`, `[vocab]`, those of DoLa: of the layers in `early`, `[layers, vocab]`, the one that
/// differs most from the last is taken off, and tokens that the last layer itself thinks unlikely are left out.
pub(super) fn contrast(scores: &mut [f32], early: &mut [f32]) {
    let vocab = scores.len().max(1);
    log_softmax(scores);
    early.chunks_exact_mut(vocab).for_each(log_softmax);
    let mut chosen: (&[f32], f64) = (&[], f64::NEG_INFINITY);
    let several = early.len() > vocab;
    let last: Vec<f32> = if several { scores.iter().map(|&score| exp(score)).collect() } else { Vec::new() };
    for layer in early.chunks_exact(vocab) {
        let differs = if several { divergence(scores, &last, layer) } else { 0.0 };
        // The first layer is taken whatever its divergence.
        if chosen.0.is_empty() || differs > chosen.1 {
            chosen = (layer, differs);
        }
    }
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let limit = best + LEAST_SHARE.ln() as f32;
    for (score, early) in scores.iter_mut().zip(chosen.0) {
        *score = if *score < limit { f32::NEG_INFINITY } else { *score - early };
    }
}

/// The Jensen-Shannon divergence of two rows of log-probabilities, over the number of entries; `masses` are the
/// probabilities of `last`.
fn divergence(last: &[f32], masses: &[f32], early: &[f32]) -> f64 {
    let term = |((&last, &mass), &early): ((&f32, &f32), &f32)| {
        let mean = 0.5 * (mass + exp(early));
        let log = mean.ln();
        if mean > 0.0 { f64::from(mean * (log - last)) + f64::from(mean * (log - early)) } else { 0.0 }
    };
    0.5 * last.iter().zip(masses).zip(early).map(term).sum::<f64>() / last.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(last: usize, tied: bool) -> HiddenShape {
        HiddenShape { last, width: 1, tied }
    }

    fn logs(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn layers_are_pythons() {
        let of = |layers, last, tied| candidates(&layers, shape(last, tied)).unwrap();
        assert_eq!(of(DolaLayers::Low, 30, true), [2, 4, 6, 8, 10, 12, 14]);
        assert_eq!(of(DolaLayers::Low, 12, false), [0, 2, 4]);
        assert_eq!(of(DolaLayers::Low, 2, true), [1]);
        assert_eq!(of(DolaLayers::Low, 1, true), [0]);
        assert_eq!(of(DolaLayers::Low, 5, true), [2]);
        assert_eq!(of(DolaLayers::Low, 48, true), [2, 4, 6, 8, 10, 12, 14, 16, 18]);
        assert_eq!(of(DolaLayers::High, 12, true), [6, 8, 10]);
        assert_eq!(of(DolaLayers::High, 48, true), [28, 30, 32, 34, 36, 38, 40, 42, 44, 46]);
        assert_eq!(of(DolaLayers::Listed(vec![3, 1, 4, -1]), 4, true), [3, 1, 4]);
        for bad in [DolaLayers::Listed(vec![4, 9]), DolaLayers::Listed(vec![]), DolaLayers::Listed(vec![-6])] {
            assert!(candidates(&bad, shape(4, true)).unwrap_err().to_string().contains("dola_layers"), "{bad:?}");
        }
        assert!(candidates(&DolaLayers::Low, shape(3, true)).is_err());
    }

    /// The numbers of Python's own functions.
    #[test]
    fn takes_the_layer_that_differs_most_off_the_last() {
        let last = logs(&[0.7, 0.2, 0.06, 0.04]);
        let (even, near) = (logs(&[0.25; 4]), logs(&[0.6, 0.2, 0.1, 0.1]));
        let masses = [0.7, 0.2, 0.06, 0.04];
        assert!((divergence(&last, &masses, &even) - 0.0380).abs() < 5e-5);
        assert!((divergence(&last, &masses, &near) - 0.0029).abs() < 5e-5);
        let expected = [1.0296, -0.2231, f32::NEG_INFINITY, f32::NEG_INFINITY];
        for early in [even.clone(), [near, even].concat()] {
            let mut scores = last.clone();
            contrast(&mut scores, &mut early.clone());
            let equal = |(got, expected): (&f32, &f32)| got == expected || (got - expected).abs() < 1e-4;
            assert!(scores.iter().zip(&expected).all(equal), "{scores:?}");
        }
    }
}
