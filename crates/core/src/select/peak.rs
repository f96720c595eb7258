//! The largest score of a row, in one pass that compilers turn into vector code.

/// Lanes that are compared apart and joined at the end; a fixed number, so that every platform does the same work.
const LANES: usize = 16;

/// What one pass over the scores finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Peak {
    /// The largest number, minus infinity for an empty row or one that holds nothing else.
    pub max: f32,
    /// Whether any score is NaN.
    pub nan: bool,
}

/// The largest of `scores`, `[vocab]`.
pub(crate) fn peak(scores: &[f32]) -> Peak {
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut nan = [false; LANES];
    let (blocks, rest) = scores.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            max[lane] = if block[lane] > max[lane] { block[lane] } else { max[lane] };
            nan[lane] |= block[lane].is_nan();
        }
    }
    for (lane, &score) in rest.iter().enumerate() {
        max[lane] = if score > max[lane] { score } else { max[lane] };
        nan[lane] |= score.is_nan();
    }
    Peak { max: max.into_iter().fold(f32::NEG_INFINITY, f32::max), nan: nan.contains(&true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_largest_in_every_place() {
        for len in [1, 2, 15, 16, 17, 33, 100] {
            for place in 0..len {
                let mut scores = vec![-3.0; len];
                scores[place] = -1.0;
                assert_eq!(peak(&scores), Peak { max: -1.0, nan: false });
                scores[place] = f32::NAN;
                assert!(peak(&scores).nan);
            }
        }
    }

    #[test]
    fn an_empty_row_has_none() {
        assert_eq!(peak(&[]), Peak { max: f32::NEG_INFINITY, nan: false });
    }
}
