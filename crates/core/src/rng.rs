//! One random generator per row: the same seed gives the same draws whatever the batch, the threads or the platform.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021). Its 256
//! bits of state come from SplitMix64, whose own start is mixed from three numbers: the seed of the request, the index
//! of the prompt in the request and the index of the sequence among those of its prompt. Each number passes through
//! SplitMix64's bijection before the next is added, so that for one seed no two rows of a prompt, and no two prompts,
//! start alike. Only integer arithmetic is used.
//!
//! Python draws all rows of a batch from one stream of PyTorch, so its draws depend on the neighbours; ours cannot equal
//! them and are independent of the neighbours instead.

/// The random numbers of one row.
///
/// ```
/// use unspool_core::rng::Rng;
///
/// let mut alone = Rng::for_row(7, 3, 0);
/// let mut in_a_batch = Rng::for_row(7, 3, 0);
/// assert_eq!(alone.uniform(), in_a_batch.uniform());
/// assert_ne!(Rng::for_row(7, 3, 1).uniform(), Rng::for_row(7, 3, 0).uniform());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of sequence `sequence` of prompt `prompt` under `seed`.
    pub fn for_row(seed: u64, prompt: usize, sequence: usize) -> Self {
        let mut start = SplitMix64(seed).next();
        for index in [prompt as u64, sequence as u64] {
            start = SplitMix64(start ^ index).next();
        }
        let mut mix = SplitMix64(start);
        Rng { state: std::array::from_fn(|_| mix.next()) }
    }

    /// A generator of its own, which depends on this one's state and leaves it as it is.
    ///
    /// ```
    /// use unspool_core::rng::Rng;
    ///
    /// let mut rng = Rng::for_row(7, 3, 0);
    /// let mut fork = rng.fork();
    /// assert_eq!(fork, rng.fork());
    /// assert_ne!(fork.next_u64(), rng.next_u64());
    /// ```
    #[must_use]
    pub fn fork(&self) -> Rng {
        let start = self.state.iter().fold(0x0066_6f72_6b65_6421, |start, word| SplitMix64(start ^ word).next());
        let mut mix = SplitMix64(start);
        Rng { state: std::array::from_fn(|_| mix.next()) }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (self.state[1] << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in `[0, 1)`, a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `[0, 1)`, a multiple of 2^-24.
    pub fn uniform_f32(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 * (1.0 / (1u32 << 24) as f32)
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_published_xoshiro256_plus_plus() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected = [
            41943041,
            58720359,
            3588806011781223,
            3591011842654386,
            9228616714210784205,
            9973669472204895162,
            14011001112246962877,
            12406186145184390807,
            15849039046786891736,
            10450023813501588000,
        ];
        for value in expected {
            assert_eq!(rng.next_u64(), value);
        }
    }

    #[test]
    fn equals_the_published_split_mix_64() {
        let mut mix = SplitMix64(1477776061723855037);
        for value in [1985237415132408290, 2979275885539914483, 13511426838097143398, 8488337342461049707] {
            assert_eq!(mix.next(), value);
        }
    }

    #[test]
    fn rows_never_start_alike() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..8 {
            for prompt in 0..32 {
                for sequence in 0..8 {
                    assert!(seen.insert(Rng::for_row(seed, prompt, sequence).next_u64()));
                }
            }
        }
    }

    #[test]
    fn uniform_numbers_lie_below_one_and_spread_evenly() {
        let mut rng = Rng::for_row(1, 0, 0);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            let (wide, narrow) = (rng.uniform(), rng.uniform_f32());
            assert!((0.0..1.0).contains(&wide) && (0.0..1.0).contains(&narrow));
            counts[(wide * 10.0) as usize] += 1;
            counts[(narrow * 10.0) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (1800..2200).contains(&count)), "{counts:?}");
    }
}
