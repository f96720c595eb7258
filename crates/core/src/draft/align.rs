//! Where the end of one tokenisation is found in another of nearly the same text.

use crate::token::TokenId;

/// How `new`, the re-tokenised end of a text with more after it, continues `old`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aligned<'a> {
    /// Tokens at the end of `old` that read otherwise now.
    pub replaced: usize,
    /// What stands in their place; may be fewer.
    pub instead: &'a [TokenId],
    /// What comes after.
    pub added: &'a [TokenId],
}

/// Lays `new` along the longest run that both have; of several the one that begins first in `new`, then in `old`. `None` when
/// they have no token in common. Python's `_get_tokens_diag`.
pub(super) fn align<'a>(old: &[TokenId], new: &'a [TokenId]) -> Option<Aligned<'a>> {
    let mut longest = (0, 0, 0);
    for (place, token) in new.iter().enumerate() {
        for at in (0..old.len()).filter(|at| old[*at] == *token) {
            if place > 0 && at > 0 && new[place - 1] == old[at - 1] {
                // Inside a run that was seen from its beginning.
                continue;
            }
            let run = new[place..].iter().zip(&old[at..]).take_while(|(a, b)| a == b).count();
            if run > longest.2 {
                longest = (place, at, run);
            }
        }
    }
    let (place, at, run) = longest;
    if run == 0 {
        return None;
    }
    let (after, replaced) = (&new[place + run..], old.len() - (at + run));
    let (instead, added) = after.split_at(replaced.min(after.len()));
    Some(Aligned { replaced, instead, added })
}

/// `old` with its end replaced and what is new after it; all of `new` when they have nothing in common.
pub(super) fn extend(old: &mut Vec<TokenId>, window: usize, new: &[TokenId]) {
    let from = old.len().saturating_sub(window);
    match align(&old[from..], new) {
        Some(Aligned { replaced, instead, added }) => {
            // Nothing in the place of what reads otherwise: it is left, as in Python.
            if !instead.is_empty() {
                old.truncate(old.len() - replaced);
                old.extend_from_slice(instead);
            }
            old.extend_from_slice(added);
        }
        None => old.extend_from_slice(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_python_finds() {
        let aligned = |old: &[TokenId], new: &[TokenId]| {
            align(old, new).map(|aligned| (aligned.replaced, aligned.instead.to_vec(), aligned.added.to_vec()))
        };
        assert_eq!(aligned(&[1, 2, 3, 4, 5], &[4, 5, 6]), Some((0, vec![], vec![6])));
        assert_eq!(aligned(&[1, 2, 3, 4, 5], &[3, 4, 9, 6]), Some((1, vec![9], vec![6])));
        assert_eq!(aligned(&[1, 2, 3, 4], &[1, 2, 7, 8, 9]), Some((2, vec![7, 8], vec![9])));
        assert_eq!(aligned(&[1, 2], &[3, 4]), None);
        assert_eq!(aligned(&[], &[3]), None);
    }

    #[test]
    fn the_first_longest_run_counts() {
        // 1 2 stands twice in the old text; the earlier place leaves two tokens that read otherwise.
        assert_eq!(align(&[1, 2, 1, 2], &[1, 2, 5, 6, 7]).unwrap().replaced, 2);
    }

    #[test]
    fn fewer_tokens_take_the_place_of_more() {
        let mut ids = vec![1, 2, 3, 4];
        extend(&mut ids, 4, &[1, 2, 9]);
        assert_eq!(ids, [1, 2, 9]);
        extend(&mut ids, 2, &[5]);
        assert_eq!(ids, [1, 2, 9, 5]);
        extend(&mut ids, 2, &[9]);
        assert_eq!(ids, [1, 2, 9, 5]);
    }
}
