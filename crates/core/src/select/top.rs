//! The best of many scores; Python's `torch.topk`.
//!
//! Nothing is sorted but the few that are kept, and nothing is allocated once the scratch memory is large enough.
//!
//! Equal scores come in the order in which PyTorch returns them on Linux, because beams with equal scores would otherwise
//! take other ways than Python's: `torch.topk` runs the C++ library's `partial_sort` when the kept are few
//! (at most one in 64), else `nth_element` and `sort`, and the order that these leave equal elements in is part of their
//! algorithms (a heap; quickselect with the median of three; insertion sort below 16 elements).

use super::peak::peak;

/// Scores looked at together: a block whose largest score is not among the best costs one comparison.
const BLOCK: usize = 256;

/// Up to this many elements are sorted by insertion.
const FEW: usize = 16;

/// A score and its place among all.
type Entry = (f32, usize);

/// Finds the best scores; keeps its scratch memory from call to call.
///
/// ```
/// use unspool_core::select::Top;
///
/// let mut top = Top::default();
/// assert_eq!(top.best(&[0.5, 2.0, 1.0], 2), [(2.0, 1), (1.0, 2)]);
/// // Two lanes of three scores that start at 0 and -1: places count through both.
/// assert_eq!(top.best_of_lanes(&[0.5, 2.0, 1.0, 0.0, 2.5, 0.0], 3, &[0.0, -1.0], 2), [(2.0, 1), (1.5, 4)]);
/// ```
#[derive(Debug, Default)]
#[doc(alias = "topk")]
pub struct Top {
    entries: Vec<Entry>,
}

impl Top {
    /// The `k` best of `scores`, best first, with their places; all of them when there are fewer.
    pub fn best(&mut self, scores: &[f32], k: usize) -> &[Entry] {
        self.best_of_lanes(scores, scores.len().max(1), &[0.0], k)
    }

    /// The `k` best of `scores[lane][token] + base[lane]`, best first, with their places `lane * vocab + token`; `scores`
    /// is `[lanes, vocab] f32`, `base` is `[lanes] f32`. NaN counts as the best there is, as in PyTorch.
    pub fn best_of_lanes(&mut self, scores: &[f32], vocab: usize, base: &[f32], k: usize) -> &[Entry] {
        self.entries.clear();
        let k = k.min(scores.len());
        if k == 0 {
            return &self.entries;
        }
        let lanes = scores.chunks(vocab).zip(base).enumerate();
        if k * 64 <= scores.len() {
            for (lane, (scores, &base)) in lanes {
                self.offer(scores, base, lane * vocab, k);
            }
            sort_heap(&mut self.entries);
        } else {
            for (lane, (scores, &base)) in lanes {
                let places = lane * vocab..;
                self.entries.extend(scores.iter().map(|score| score + base).zip(places));
            }
            nth_element(&mut self.entries, k - 1);
            self.entries.truncate(k);
            sort(&mut self.entries[..k - 1]);
        }
        &self.entries
    }

    /// Offers the scores of one lane to the heap of the `k` best so far.
    fn offer(&mut self, scores: &[f32], base: f32, first: usize, k: usize) {
        for (number, block) in scores.chunks(BLOCK).enumerate() {
            let first = first + number * BLOCK;
            if self.entries.len() == k {
                let best = peak(block);
                if !best.nan && !better((best.max + base, 0), self.entries[0]) {
                    continue;
                }
            }
            for (&score, place) in block.iter().zip(first..) {
                let entry = (score + base, place);
                if self.entries.len() < k {
                    self.entries.push(entry);
                    if self.entries.len() == k {
                        make_heap(&mut self.entries);
                    }
                } else if better(entry, self.entries[0]) {
                    sift(&mut self.entries, 0, entry);
                }
            }
        }
    }
}

/// The order of all algorithms below; the C++ library's comparator.
fn better(a: Entry, b: Entry) -> bool {
    a.0 > b.0 || (a.0.is_nan() && !b.0.is_nan())
}

/// The worst comes to the front.
fn make_heap(heap: &mut [Entry]) {
    for parent in (0..heap.len() / 2).rev() {
        let entry = heap[parent];
        sift(heap, parent, entry);
    }
}

/// Puts `entry` at `hole` or below: the hole first sinks to the bottom, then the entry rises from there.
fn sift(heap: &mut [Entry], hole: usize, entry: Entry) {
    let (top, len) = (hole, heap.len());
    let mut hole = hole;
    while 2 * hole + 2 < len {
        let right = 2 * hole + 2;
        let child = if better(heap[right], heap[right - 1]) { right - 1 } else { right };
        heap[hole] = heap[child];
        hole = child;
    }
    if 2 * hole + 2 == len {
        heap[hole] = heap[len - 1];
        hole = len - 1;
    }
    while hole > top && better(heap[(hole - 1) / 2], entry) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = entry;
}

/// A heap becomes a list, best first.
fn sort_heap(heap: &mut [Entry]) {
    for last in (1..heap.len()).rev() {
        let entry = heap[last];
        heap[last] = heap[0];
        sift(&mut heap[..last], 0, entry);
    }
}

/// The `k` best of `entries` come to its front as a heap.
fn heap_select(entries: &mut [Entry], k: usize) {
    make_heap(&mut entries[..k]);
    for place in k..entries.len() {
        let entry = entries[place];
        if better(entry, entries[0]) {
            entries[place] = entries[0];
            sift(&mut entries[..k], 0, entry);
        }
    }
}

/// Rounds that quickselect and quicksort get before a heap takes over.
fn depth_limit(len: usize) -> usize {
    len.checked_ilog2().unwrap_or(0) as usize * 2
}

/// What sorting would put at `nth` comes there, with nothing better after it.
fn nth_element(entries: &mut [Entry], nth: usize) {
    let (mut first, mut last, mut rounds) = (0, entries.len(), depth_limit(entries.len()));
    while last - first > 3 {
        if rounds == 0 {
            heap_select(&mut entries[first..last], nth + 1 - first);
            entries.swap(first, nth);
            return;
        }
        rounds -= 1;
        let cut = first + partition(&mut entries[first..last]);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(&mut entries[first..last], 0);
}

/// Splits at the median of three; returns where the second part begins.
fn partition(entries: &mut [Entry]) -> usize {
    let (a, b, c) = (1, entries.len() / 2, entries.len() - 1);
    let before = |x: usize, y: usize| better(entries[x], entries[y]);
    let median = if before(a, b) {
        if before(b, c) {
            b
        } else if before(a, c) {
            c
        } else {
            a
        }
    } else if before(a, c) {
        a
    } else if before(b, c) {
        c
    } else {
        b
    };
    entries.swap(0, median);
    let pivot = entries[0];
    let (mut first, mut last) = (1, entries.len());
    loop {
        // The median is neither the best nor the worst of its three, so both walks end inside.
        while better(entries[first], pivot) {
            first += 1;
        }
        last -= 1;
        while better(pivot, entries[last]) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        entries.swap(first, last);
        first += 1;
    }
}

/// Sorts, best first.
fn sort(entries: &mut [Entry]) {
    let rounds = depth_limit(entries.len());
    sort_roughly(entries, rounds);
    let few = entries.len().min(FEW);
    insertion_sort(&mut entries[..few], 0);
    insertion_sort(entries, few);
}

/// Sorts down to parts of [`FEW`] elements.
fn sort_roughly(entries: &mut [Entry], mut rounds: usize) {
    let mut last = entries.len();
    while last > FEW {
        if rounds == 0 {
            make_heap(&mut entries[..last]);
            sort_heap(&mut entries[..last]);
            return;
        }
        rounds -= 1;
        let cut = partition(&mut entries[..last]);
        sort_roughly(&mut entries[cut..last], rounds);
        last = cut;
    }
}

/// Sorts by insertion; the first `sorted` are in order.
fn insertion_sort(entries: &mut [Entry], sorted: usize) {
    for place in sorted.max(1)..entries.len() {
        let entry = entries[place];
        let mut hole = place;
        while hole > 0 && better(entry, entries[hole - 1]) {
            entries[hole] = entries[hole - 1];
            hole -= 1;
        }
        entries[hole] = entry;
    }
}

#[cfg(test)]
mod tests;
