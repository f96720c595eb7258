//! Which continuations run on when required words must come; Python's `ConstrainedBeamSearchScorer`.

use super::constraint_state::ConstraintState;
use super::groups::Continuation;
use super::lane::Beam;
use crate::config::Constraint;
use crate::token::TokenId;

/// What a step towards the constraints counts against scores.
const BANK: f32 = 100.0;

/// Replaces the continuations `next`, one per beam, by those that the constraints ask for: every beam also goes on by each
/// token that advances it, and the rows that are kept come from all stages of fulfilment in turn, the furthest first.
///
/// `scores` are the processed log-probabilities, `[lanes, vocab]`.
pub(super) fn reselect(
    constraints: &[Constraint],
    running: &[Beam],
    scores: &[f32],
    vocab: usize,
    next: &mut Vec<Continuation>,
) {
    let row = |going: &Continuation| -> Vec<TokenId> { [running[going.lane].ids.as_slice(), &[going.token]].concat() };
    let mut rows: Vec<Vec<TokenId>> = next.iter().map(row).collect();
    let mut banks: Vec<usize> = rows.iter().map(|row| ConstraintState::of(constraints, row).bank()).collect();
    let kept = next.len();
    for (lane, beam) in running.iter().enumerate() {
        for (token, bank) in ConstraintState::of(constraints, &beam.ids).advanced() {
            let score = beam.score + scores[lane * vocab + token as usize];
            let going = Continuation { score, lane, token };
            let longer = row(&going);
            if !rows.contains(&longer) {
                rows.push(longer);
                banks.push(bank);
                next.push(going);
            }
        }
    }
    if next.len() == kept {
        return;
    }
    let value = |place: usize| banks[place] as f32 * BANK + next[place].score;
    let mut order: Vec<usize> = (0..next.len()).collect();
    order.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
    // The rank of each row among those of its bank; equal ranks keep the order of the banks.
    let mut ranked = Vec::with_capacity(order.len());
    let mut rank = 0;
    for (at, &place) in order.iter().enumerate() {
        rank = if at > 0 && banks[order[at - 1]] == banks[place] { rank + 1 } else { 0 };
        ranked.push((rank, place));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    *next = ranked.into_iter().take(kept).map(|(_, place)| next[place]).collect();
}
