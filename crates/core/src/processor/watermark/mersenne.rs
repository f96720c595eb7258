//! The generator that PyTorch seeds its random permutations with: MT19937.
//!
//! Matsumoto and Nishimura, 1998. A watermark is only found by who draws the same numbers.

const SIZE: usize = 624;
const SHIFT: usize = 397;

/// The 32-bit Mersenne Twister.
pub(super) struct Mersenne {
    state: [u32; SIZE],
    next: usize,
}

impl Mersenne {
    /// Of a seed the low 32 bits count.
    pub(super) fn new(seed: u64) -> Self {
        let mut state = [0u32; SIZE];
        let mut last = seed as u32;
        for (index, word) in (0u32..).zip(state.iter_mut()) {
            if index > 0 {
                last = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(index);
            }
            *word = last;
        }
        Mersenne { state, next: SIZE }
    }

    fn turn(&mut self) {
        for index in 0..SIZE {
            let both = (self.state[index] & 0x8000_0000) | (self.state[(index + 1) % SIZE] & 0x7fff_ffff);
            let odd = if both & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[index] = self.state[(index + SHIFT) % SIZE] ^ (both >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// The next 32 bits.
    pub(super) fn next(&mut self) -> u32 {
        if self.next == SIZE {
            self.turn();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// The first `count` entries of a random permutation of `0..size`; PyTorch's `randperm(size)[:count]`.
    pub(super) fn permutation(&mut self, size: u32, count: u32) -> Vec<u32> {
        let mut entries: Vec<u32> = (0..size).collect();
        let fixed = count.min(size);
        for index in 0..fixed.min(size.saturating_sub(1)) {
            let other = index + self.next() % (size - index);
            entries.swap(index as usize, other as usize);
        }
        entries.truncate(fixed as usize);
        entries
    }

    /// Whether `item` is among the first `count` entries of that permutation. The same draws, without the entries: only the
    /// item's own place is followed.
    pub(super) fn permutation_has(&mut self, size: u32, count: u32, item: u32) -> bool {
        let fixed = count.min(size);
        let mut place = item;
        for index in 0..fixed.min(size.saturating_sub(1)) {
            let other = index + self.next() % (size - index);
            if other == place {
                return true;
            }
            if index == place {
                place = other;
            }
        }
        place < fixed
    }
}
