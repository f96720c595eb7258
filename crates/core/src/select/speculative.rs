//! Speculative sampling: a drafted token is kept as often as leaves the model's own distribution.
//! <https://arxiv.org/abs/2211.17192>, algorithm 1.

use super::argmax::argmax;
use super::multinomial::Multinomial;
use crate::error::Result;
use crate::processor::softmax::softmax;
use crate::rng::Rng;
use crate::token::TokenId;

/// Judges drafted tokens against the model's distribution; keeps its memory from token to token.
#[derive(Debug, Default)]
pub(crate) struct Speculative {
    probabilities: Vec<f32>,
}

impl Speculative {
    /// The token to write where `token` was drawn from `drafted`, `[vocab]`, and the model's processed scores are `scores`:
    /// with the probability `min(1, p / q)` the token itself, else one drawn from what the model gives more than the draft,
    /// `max(p - q, 0)`. All in all each token comes as often as the softmax of `scores` says.
    ///
    /// With a `weight` below 1 the drafted token is kept with `1 - weight + weight * p / q`, more often than the
    /// model would (Python's `assistant_ensemble_weight`).
    ///
    /// # Errors
    ///
    /// As [`Multinomial::pick`].
    pub(crate) fn draw(
        &mut self,
        scores: &[f32],
        token: TokenId,
        drafted: &[f32],
        weight: f64,
        rng: &mut Rng,
        draw: &mut Multinomial,
    ) -> Result<TokenId> {
        if softmax(scores, &mut self.probabilities).is_none() {
            return draw.pick(scores, rng.uniform());
        }
        let at = |shares: &[f32]| shares.get(token as usize).copied().map_or(0.0, f64::from);
        let (own, theirs) = (at(&self.probabilities), at(drafted));
        // A draft that proposes what it never draws gives 0 / 0 or more than anything.
        if rng.uniform() <= 1.0 - weight + weight * (own / theirs) {
            return Ok(token);
        }
        let excess = || self.probabilities.iter().zip(drafted).map(|(own, theirs)| f64::from((own - theirs).max(0.0)));
        let total: f64 = excess().sum();
        if total <= f64::from(f32::MIN_POSITIVE) {
            return draw.pick(scores, rng.uniform());
        }
        let (mut left, mut chosen) = (rng.uniform() * total, 0);
        for (id, share) in excess().enumerate().filter(|(_, share)| *share > 0.0) {
            chosen = id;
            if left < share {
                break;
            }
            left -= share;
        }
        Ok(chosen as TokenId)
    }

    /// The best token of `weight` of the model and the rest of the draft.
    pub(crate) fn best_of_both(&mut self, scores: &[f32], drafted: &[f32], weight: f64) -> TokenId {
        if softmax(scores, &mut self.probabilities).is_none() {
            return argmax(scores);
        }
        let (own, theirs) = (weight as f32, (1.0 - weight) as f32);
        for (probability, drafted) in self.probabilities.iter_mut().zip(drafted) {
            *probability = own * *probability + theirs * drafted;
        }
        argmax(&self.probabilities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: [f32; 3] = [0.6, 0.3, 0.1];
    const Q: [f32; 3] = [0.2, 0.7, 0.1];

    fn scores() -> Vec<f32> {
        P.iter().map(|p| p.ln()).collect()
    }

    #[test]
    fn each_token_comes_as_often_as_the_model_says() {
        let (scores, drafts) = (scores(), Q.map(f32::ln));
        let (mut rng, mut draw, mut speculative) =
            (Rng::for_row(3, 0, 0), Multinomial::default(), Speculative::default());
        let (mut counts, mut kept) = ([0u32; 3], 0);
        for _ in 0..30_000 {
            let token = draw.pick(&drafts, rng.uniform()).unwrap();
            let written = speculative.draw(&scores, token, &Q, 1.0, &mut rng, &mut draw).unwrap();
            counts[written as usize] += 1;
            kept += u32::from(written == token);
        }
        for (count, share) in counts.into_iter().zip(P) {
            assert!((f64::from(count) - 30_000.0 * f64::from(share)).abs() < 300.0, "{counts:?}");
        }
        // The sum of min(p, q): nothing that keeps the distribution accepts more.
        assert!((f64::from(kept) - 18_000.0).abs() < 300.0, "{kept}");
    }

    #[test]
    fn a_rejected_token_gives_way_to_what_the_draft_gave_too_little_of() {
        let (scores, mut speculative, mut draw) = (scores(), Speculative::default(), Multinomial::default());
        let mut rejected = 0;
        for seed in 0..200 {
            let mut rng = Rng::for_row(seed, 0, 0);
            let accepts = rng.clone().uniform() <= 0.3 / 0.7;
            let token = speculative.draw(&scores, 1, &Q, 1.0, &mut rng, &mut draw).unwrap();
            assert_eq!(token, if accepts { 1 } else { 0 });
            rejected += usize::from(!accepts);
        }
        assert!(rejected > 80, "{rejected}");
    }

    #[test]
    fn equal_distributions_keep_every_draft() {
        let (scores, mut speculative, mut draw) = (scores(), Speculative::default(), Multinomial::default());
        let mut own = Vec::new();
        softmax(&scores, &mut own);
        for seed in 0..100 {
            let mut rng = Rng::for_row(seed, 0, 0);
            assert_eq!(speculative.draw(&scores, 2, &own, 1.0, &mut rng, &mut draw).unwrap(), 2);
        }
    }

    #[test]
    fn a_weight_mixes_both() {
        let mut speculative = Speculative::default();
        assert_eq!(speculative.best_of_both(&scores(), &Q, 0.9), 0);
        assert_eq!(speculative.best_of_both(&scores(), &Q, 0.1), 1);
        let mut draw = Multinomial::default();
        for seed in 0..100 {
            let mut rng = Rng::for_row(seed, 0, 0);
            let accepts = rng.clone().uniform() <= 0.5 + 0.5 * f64::from(P[1] / Q[1]);
            let token = speculative.draw(&scores(), 1, &Q, 0.5, &mut rng, &mut draw).unwrap();
            assert_eq!(token == 1, accepts);
        }
    }

    #[test]
    fn scores_without_a_distribution_are_refused_as_in_plain_draws() {
        let (mut speculative, mut draw) = (Speculative::default(), Multinomial::default());
        let mut rng = Rng::for_row(0, 0, 0);
        assert!(speculative.draw(&[f32::NEG_INFINITY; 3], 1, &Q, 1.0, &mut rng, &mut draw).is_err());
    }
}
