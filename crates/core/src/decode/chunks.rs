//! How the tokens of a prompt are cut into steps.
//!
//! Chunks are powers of two, largest first, so that memory stays bounded and an engine that prepares itself per shape
//! meets few shapes. Once at most 17 tokens are left they run in one piece: splitting 15 into 8, 4, 2 and 1 would read all
//! weights four times to save a handful of shapes, and steps that small cost little more than one token. No chunk leaves a
//! single token behind: engines may round activations in steps of one token, and a prompt's scores should not depend on
//! whether its length is a power of two plus one.

/// A rest of at most this many tokens runs in one piece.
const PIECE: usize = 17;

/// The largest chunk for `left` tokens that leaves no single one behind.
fn largest(left: usize, max: usize) -> usize {
    let size = 1 << left.min(max).ilog2();
    if left - size == 1 && size > 1 { size / 2 } else { size }
}

/// The chunk sizes in which `len` tokens run when no chunk may be larger than `max` (0 counts as 1).
///
/// ```
/// use unspool_core::decode::chunks;
///
/// assert_eq!(chunks(100, 512).collect::<Vec<_>>(), [64, 32, 4]);
/// assert_eq!(chunks(127, 512).collect::<Vec<_>>(), [64, 32, 16, 15]);
/// assert_eq!(chunks(65, 512).collect::<Vec<_>>(), [32, 16, 17]);
/// assert_eq!(chunks(100, 32).collect::<Vec<_>>(), [32, 32, 32, 4]);
/// ```
#[doc(alias = "prefill_chunk_size")]
pub fn chunks(len: usize, max: usize) -> impl Iterator<Item = usize> {
    let (mut left, max) = (len, max.max(1));
    std::iter::from_fn(move || {
        let size = if left <= PIECE && left <= max { left } else { largest(left, max) };
        left -= size;
        (size > 0).then_some(size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chunks_are_powers_of_two_and_a_small_rest_stays_whole() {
        for (len, max, expected) in [
            (0, 512, vec![]),
            (1, 512, vec![1]),
            (15, 512, vec![15]),
            (16, 512, vec![16]),
            (31, 512, vec![16, 15]),
            (100, 512, vec![64, 32, 4]),
            (127, 512, vec![64, 32, 16, 15]),
            (1100, 512, vec![512, 512, 64, 12]),
            (7, 3, vec![2, 2, 3]),
            (40, 24, vec![16, 16, 8]),
            (3, 1, vec![1, 1, 1]),
            (2, 0, vec![1, 1]),
        ] {
            assert_eq!(chunks(len, max).collect::<Vec<_>>(), expected, "{len} by {max}");
        }
    }

    proptest! {
        #[test]
        fn chunks_add_up_and_keep_the_limit(len in 0usize..5000, max in 1usize..600) {
            let sizes: Vec<_> = chunks(len, max).collect();
            prop_assert_eq!(sizes.iter().sum::<usize>(), len);
            prop_assert!(sizes.iter().all(|&size| size <= max));
        }
    }
}
