//! How much of the constraints a row fulfils; Python's `ConstraintListState` with `PhrasalConstraint` and
//! `DisjunctiveConstraint`.

use crate::config::Constraint;
use crate::token::TokenId;

/// The state of one row. Constraints are named by their place in the list.
#[derive(Clone, Debug)]
pub(super) struct ConstraintState<'c> {
    constraints: &'c [Constraint],
    completed: usize,
    /// A constraint that has begun, and the ids of it that came.
    begun: Option<(usize, Vec<TokenId>)>,
    pending: Vec<usize>,
}

impl<'c> ConstraintState<'c> {
    /// The state after the tokens of `row`, the prompt included.
    pub(super) fn of(constraints: &'c [Constraint], row: &[TokenId]) -> Self {
        let pending = (0..constraints.len()).collect();
        let mut state = ConstraintState { constraints, completed: 0, begun: None, pending };
        for &id in row {
            if state.is_complete() {
                break;
            }
            state.add(id);
        }
        state
    }

    /// Whether every constraint is fulfilled; what comes afterwards changes nothing.
    pub(super) fn is_complete(&self) -> bool {
        self.pending.is_empty() && self.begun.is_none()
    }

    /// Takes one more token.
    pub(super) fn add(&mut self, id: TokenId) {
        if self.is_complete() {
            return;
        }
        let (which, mut ids) = match self.begun.take() {
            Some((which, ids)) if next(&self.constraints[which], &ids).any(|next| next == id) => (which, ids),
            Some((which, _)) => {
                // The token breaks what had begun: it starts anew behind the others, and the token counts for none.
                self.pending.push(which);
                return;
            }
            None => {
                let begins = |which: &usize| next(&self.constraints[*which], &[]).any(|next| next == id);
                let Some(place) = self.pending.iter().position(begins) else { return };
                (self.pending.remove(place), Vec::new())
            }
        };
        ids.push(id);
        if next(&self.constraints[which], &ids).next().is_none() {
            self.completed += 1;
        } else {
            self.begun = Some((which, ids));
        }
    }

    /// Tokens that come nearer to the end: of the constraint that has begun, else of every one that is pending.
    fn advancing(&self) -> Vec<TokenId> {
        match &self.begun {
            Some((which, ids)) => next(&self.constraints[*which], ids).collect(),
            None => self.pending.iter().flat_map(|which| next(&self.constraints[*which], &[])).collect(),
        }
    }

    /// The tokens that come nearer to the end, each with the bank of the row that it makes.
    ///
    /// Python's copies of a `DisjunctiveConstraint` that has begun share one list of ids: every token but the first is
    /// judged as if those before it had come too, and mostly breaks what had begun. It decides which rows are kept.
    pub(super) fn advanced(&self) -> Vec<(TokenId, usize)> {
        let mut shared =
            self.begun.clone().filter(|(which, _)| matches!(self.constraints[*which], Constraint::Disjunctive(_)));
        let bank = |token| {
            let mut state = self.clone();
            if let Some((which, ids)) = &mut shared {
                state.begun = Some((*which, ids.clone()));
                if next(&self.constraints[*which], ids).any(|next| next == token) {
                    ids.push(token);
                }
            }
            state.add(token);
            (token, state.bank())
        };
        self.advancing().into_iter().map(bank).collect()
    }

    /// How far the row is; rows are chosen from all banks in turn.
    pub(super) fn bank(&self) -> usize {
        let longest = self.constraints.iter().map(length).max().unwrap_or(0);
        let begun = self.begun.as_ref().map_or(0, |(which, ids)| {
            let remaining = length(&self.constraints[*which]) - ids.len();
            longest - remaining
        });
        self.completed * longest + begun
    }
}

/// Ids of the longest way to fulfil a constraint.
fn length(constraint: &Constraint) -> usize {
    match constraint {
        Constraint::Phrasal(ids) => ids.len(),
        Constraint::Disjunctive(words) => words.iter().map(Vec::len).max().unwrap_or(0),
    }
}

/// The ids that may follow after `ids` of a constraint, each once; none when it is fulfilled.
fn next<'c>(constraint: &'c Constraint, ids: &[TokenId]) -> impl Iterator<Item = TokenId> + use<'c> {
    let words = match constraint {
        Constraint::Phrasal(word) => std::slice::from_ref(word),
        Constraint::Disjunctive(words) => words.as_slice(),
    };
    let mut next: Vec<TokenId> = Vec::new();
    for id in words.iter().filter(|word| word.starts_with(ids)).filter_map(|word| word.get(ids.len())) {
        if !next.contains(id) {
            next.push(*id);
        }
    }
    next.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_phrase_starts_anew_behind_the_others() {
        let all = [Constraint::Phrasal(vec![1, 2, 3]), Constraint::Phrasal(vec![5])];
        let state = ConstraintState::of(&all, &[1, 2]);
        assert_eq!((state.advancing(), state.bank()), (vec![3], 2));
        let state = ConstraintState::of(&all, &[1, 2, 5]);
        assert_eq!((state.advancing(), state.bank()), (vec![5, 1], 0));
        let state = ConstraintState::of(&all, &[1, 2, 5, 5, 1, 2]);
        assert_eq!((state.advancing(), state.bank()), (vec![3], 5));
        assert!(ConstraintState::of(&all, &[1, 2, 5, 5, 1, 2, 3, 9]).is_complete());
    }

    #[test]
    fn any_one_of_several_words_is_enough() {
        let all = [Constraint::Disjunctive(vec![vec![1, 2], vec![1, 3, 4], vec![5]])];
        assert_eq!(ConstraintState::of(&all, &[]).advancing(), [1, 5]);
        let state = ConstraintState::of(&all, &[1]);
        assert_eq!((state.advancing(), state.bank()), (vec![2, 3], 1));
        assert!(ConstraintState::of(&all, &[1, 2]).is_complete());
        assert!(ConstraintState::of(&all, &[5]).is_complete());
        assert!(!ConstraintState::of(&all, &[1, 3]).is_complete());
        // Both lead on, and only the first is told so.
        assert_eq!(state.advanced(), [(2, 3), (3, 0)]);
    }
}
