//! Locally typical sampling. <https://arxiv.org/abs/2202.00666>.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::processor::Processor;
use crate::processor::softmax::{entropy, find_few, log_mass, softmax, softmax_of_few};
use crate::row::Row;

/// Keeps the tokens whose surprise is nearest to the entropy until they have a mass; Python's `TypicalLogitsWarper`.
/// The most probable token may be removed. Sampling only.
///
/// Tokens are taken by distance, at the same distance the lower index first; all tokens as near as the last one taken stay.
/// The cumulative sum is `f64`, and each value is rounded to `f32` and compared with the mass.
///
/// Cost: one softmax, one entropy and three passes over the vocabulary, which is not sorted: probabilities are summed in
/// buckets of nearly the same distance, and only the bucket in which the mass is reached is looked into. The result is that
/// of the sorted sum: where the sum comes so near to the mass that the order of additions could matter, it decides.
///
/// ```
/// use unspool_core::Row;
/// use unspool_core::processor::{Processor, Typical};
///
/// let mut scores = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
/// Typical::new(0.2, 1)?.apply(&Row { ids: &[0], prompt_len: 1, prompt: 0 }, &mut scores)?;
/// assert!(scores[1] > f32::NEG_INFINITY && scores[0] == f32::NEG_INFINITY);
/// # Ok::<(), unspool_core::Error>(())
/// ```
#[doc(alias = "TypicalLogitsWarper")]
#[derive(Clone, Debug)]
pub struct Typical {
    mass: f32,
    keep: usize,
    few: Vec<u32>,
    probabilities: Vec<f32>,
    /// How far each token's surprise is from the entropy.
    distances: Vec<f32>,
    /// Sum of the probabilities in each bucket of distances.
    sums: Vec<f64>,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    distance: f32,
    probability: f32,
    id: u32,
}

/// Distances whose bits differ only below this place share a bucket: 64 buckets for each power of two.
const SHIFT: u32 = 17;

/// Buckets for every distance.
const BUCKETS: usize = (f32::INFINITY.to_bits() >> SHIFT) as usize + 1;

/// Below this many candidates sorting is as cheap as selecting.
const SMALL: usize = 64;

/// Up to so many candidates (after `top_k`, say) only they are looked at.
const FEW: usize = 1024;

/// Sums of any order agree to far better than this; a boundary that is nearer is decided by the sorted sum.
const DOUBT: f64 = 1e-10;

impl Typical {
    /// A mass above 0 and below 1; `min_tokens_to_keep` tokens always stay (1, or more in beam search).
    ///
    /// # Errors
    ///
    /// A mass outside that range, or `min_tokens_to_keep` of 0.
    pub fn new(mass: f64, min_tokens_to_keep: usize) -> Result<Self> {
        if !(mass > 0.0 && mass < 1.0) {
            return Err(Error::invalid_config(format!("typical_p is {mass}, expected a number between 0 and 1")));
        }
        if min_tokens_to_keep == 0 {
            return Err(Error::invalid_config("min_tokens_to_keep is 0, expected at least 1"));
        }
        Ok(Typical {
            mass: mass as f32,
            keep: min_tokens_to_keep,
            few: Vec::new(),
            probabilities: Vec::new(),
            distances: Vec::new(),
            sums: Vec::new(),
            candidates: Vec::new(),
        })
    }

    /// The distance at which the mass is reached, looked for in buckets; infinite when it is never reached, `None` when the
    /// mass is too near to a sum to tell.
    fn select(&mut self) -> Option<f32> {
        // A sum rounds to at least `mass` exactly when it lies above the midpoint to the f32 before.
        let bound = (f64::from(self.mass) + f64::from(self.mass.next_down())) / 2.0;
        self.sums.clear();
        self.sums.resize(BUCKETS, 0.0);
        for (distance, &probability) in self.distances.iter().zip(&self.probabilities) {
            if probability > 0.0 {
                self.sums[(distance.to_bits() >> SHIFT) as usize] += f64::from(probability);
            }
        }
        let mut sum = 0.0f64;
        let inside = self.sums.iter().position(|bucket| {
            let below = sum + bucket < bound - DOUBT;
            sum += if below { *bucket } else { 0.0 };
            !below
        });
        let Some(inside) = inside else { return Some(f32::INFINITY) };
        self.collect(|distance| (distance.to_bits() >> SHIFT) as usize == inside);
        // The mass is reached in candidates[first..end]; `sum` is that of everything nearer than candidates[first].
        let (mut first, mut end) = (0, self.candidates.len());
        while end - first > SMALL {
            let open = &mut self.candidates[first..end];
            let middle = open.len() / 2;
            open.select_nth_unstable_by(middle, nearer);
            let reached = sum + open[..middle].iter().map(|one| f64::from(one.probability)).sum::<f64>();
            if (reached - bound).abs() < DOUBT {
                return None;
            }
            if reached < bound {
                sum = reached;
                first += middle;
            } else {
                end = first + middle;
            }
        }
        self.candidates[first..end].sort_unstable_by(nearer);
        for one in &self.candidates[first..end] {
            sum += f64::from(one.probability);
            if (sum - bound).abs() < DOUBT {
                return None;
            }
            if sum > bound {
                return Some(one.distance);
            }
        }
        None
    }

    /// Makes the tokens of a finite score whose distance is wanted the candidates.
    fn collect(&mut self, wanted: impl Fn(f32) -> bool) {
        self.candidates.clear();
        for (id, (&distance, &probability)) in (0..).zip(self.distances.iter().zip(&self.probabilities)) {
            if wanted(distance) && probability > 0.0 {
                self.candidates.push(Candidate { distance, probability, id });
            }
        }
    }

    /// The same distance by the sorted sum of the definition, over the candidates.
    fn sort(&mut self) -> f32 {
        self.candidates.sort_unstable_by(nearer);
        let mut sum = 0.0f64;
        let reached = self.candidates.iter().find(|one| {
            sum += f64::from(one.probability);
            sum as f32 >= self.mass
        });
        reached.map_or(f32::INFINITY, |one| one.distance)
    }

    /// The `keep`-th nearest token's distance and id: no token up to it falls.
    fn kept(&mut self, scores: &[f32]) -> (f32, u32) {
        if self.keep == 1 {
            // The nearest token is never beyond the bound.
            return (f32::NEG_INFINITY, 0);
        }
        self.candidates.clear();
        let all = (0..).zip(scores.iter().zip(&self.distances));
        let finite = all.filter(|(_, (score, _))| **score > f32::NEG_INFINITY);
        self.candidates.extend(finite.map(|(id, (_, &distance))| Candidate { distance, probability: 0.0, id }));
        if self.keep > self.candidates.len() {
            return (f32::INFINITY, u32::MAX);
        }
        let (_, last, _) = self.candidates.select_nth_unstable_by(self.keep - 1, nearer);
        (last.distance, last.id)
    }
}

/// The order in which tokens are kept: by distance, and at the same distance the lower index first.
fn nearer(a: &Candidate, b: &Candidate) -> Ordering {
    a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id))
}

impl Processor for Typical {
    fn apply(&mut self, _row: &Row<'_>, scores: &mut [f32]) -> Result<()> {
        let few = find_few(scores, FEW, &mut self.few);
        if few {
            softmax_of_few(scores, &self.few, &mut self.probabilities);
        } else if softmax(scores, &mut self.probabilities).is_none() {
            return Ok(());
        }
        let log_mass = log_mass(scores);
        let entropy = entropy(scores, log_mass) as f32;
        // A forbidden token is infinitely far away.
        let distance = |score: &f32| ((log_mass - f64::from(*score)) as f32 - entropy).abs();
        self.distances.clear();
        self.distances.extend(scores.iter().map(distance));
        let bound = if few {
            let of = self.few.iter().zip(&self.probabilities);
            self.candidates.clear();
            self.candidates.extend(of.map(|(&id, &probability)| {
                let distance = self.distances.get(id as usize).copied().unwrap_or(f32::INFINITY);
                Candidate { distance, probability, id }
            }));
            self.sort()
        } else if let Some(bound) = self.select() {
            bound
        } else {
            self.collect(|_| true);
            self.sort()
        };
        let (kept, last) = self.kept(scores);
        for (id, (score, &distance)) in (0..).zip(scores.iter_mut().zip(&self.distances)) {
            let falls = distance > bound && (distance > kept || (distance == kept && id > last));
            *score = if falls { f32::NEG_INFINITY } else { *score };
        }
        Ok(())
    }
}
