//! Scores over the vocabulary, lent by a session for one step.

/// `[kept, vocab] f32`, row-major: the scores of the positions a step was asked to keep, in the order of the step's rows
/// (and of the positions within a row for [`Keep::All`](crate::Keep::All)).
///
/// The memory belongs to the session and is overwritten by its next step. It is lent mutably so that processors can work
/// in place and no row of the vocabulary is copied per token.
#[derive(Debug)]
pub struct Logits<'a> {
    data: &'a mut [f32],
    vocab: usize,
}

impl<'a> Logits<'a> {
    /// Wraps `data` of `kept * vocab` scores.
    ///
    /// # Panics
    ///
    /// If `vocab` is 0 or `data.len()` is not a multiple of `vocab`: a mistake in the session, not in its input.
    pub fn new(data: &'a mut [f32], vocab: usize) -> Self {
        assert!(vocab > 0 && data.len().is_multiple_of(vocab), "{} scores, vocabulary of {vocab}", data.len());
        Logits { data, vocab }
    }

    /// How many positions were kept.
    pub fn kept(&self) -> usize {
        self.data.len() / self.vocab
    }

    /// Entries of the vocabulary.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// The scores of kept position `index`, `[vocab]`.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.data[index * self.vocab..][..self.vocab]
    }

    /// The scores of kept position `index`, `[vocab]`, to be changed in place.
    pub fn row_mut(&mut self, index: usize) -> &mut [f32] {
        &mut self.data[index * self.vocab..][..self.vocab]
    }

    /// The scores of `count` kept positions from `first` on, `[count, vocab]`, to be changed in place.
    pub fn rows_mut(&mut self, first: usize, count: usize) -> &mut [f32] {
        &mut self.data[first * self.vocab..][..count * self.vocab]
    }
}
