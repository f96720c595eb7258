//! Groups of beams avoid the tokens that the groups before them chose. <https://arxiv.org/abs/1610.02424>.

use crate::token::TokenId;

/// Lowers a token by `penalty` for every beam of an earlier group that took it in this step; Python's
/// `HammingDiversityLogitsProcessor`. Group beam search applies it after all other rules.
#[doc(alias = "HammingDiversityLogitsProcessor")]
#[derive(Clone, Copy, Debug)]
pub struct HammingDiversity {
    penalty: f32,
}

impl HammingDiversity {
    /// `penalty` is above 0.
    pub fn new(penalty: f64) -> Self {
        HammingDiversity { penalty: penalty as f32 }
    }

    /// Changes `scores`, `[vocab] f32`, of a beam; `earlier` are the tokens that the beams of the groups before chose.
    pub fn apply(&self, earlier: &[TokenId], scores: &mut [f32]) {
        // One subtraction of the whole, as in Python: subtracting beam by beam would round otherwise.
        for (place, token) in earlier.iter().enumerate().filter(|(place, token)| !earlier[..*place].contains(token)) {
            let count = earlier[place..].iter().filter(|other| *other == token).count();
            if let Some(score) = scores.get_mut(*token as usize) {
                *score -= self.penalty * count as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowers_a_token_once_for_every_beam_that_took_it() {
        let mut scores = [0.0, 0.0, -1.0];
        HammingDiversity::new(0.5).apply(&[1, 1, 7], &mut scores);
        assert_eq!(scores, [0.0, -1.0, -1.0]);
        HammingDiversity::new(0.5).apply(&[], &mut scores);
        assert_eq!(scores, [0.0, -1.0, -1.0]);
    }
}
