//! What rows of a cache have in common, and in which order rows move.

/// Above so many rows nothing is remembered: the table has a number for each pair.
const MOST_ROWS: usize = 256;

/// For each two rows: how many of their first columns are known to be equal, because both continue one row.
///
/// Beams of one prompt share at least the prompt, so that moving one to the place of another copies only what was written
/// since they parted.
#[derive(Clone, Debug)]
pub struct Lineage {
    rows: usize,
    /// `[rows, rows]`; empty when nothing is remembered.
    shared: Vec<usize>,
}

impl Lineage {
    /// Rows that share nothing.
    pub fn new(rows: usize) -> Self {
        let shared = if rows <= MOST_ROWS { vec![0; rows * rows] } else { Vec::new() };
        Lineage { rows, shared }
    }

    /// Columns that two different rows share.
    pub fn shared(&self, a: usize, b: usize) -> usize {
        self.shared.get(a * self.rows + b).copied().unwrap_or(0)
    }

    /// New row `i` continues old row `from[i]`, whose first `valid(from[i])` columns stay as they are.
    #[must_use]
    pub fn reordered(&self, from: &[usize], valid: impl Fn(usize) -> usize) -> Self {
        let mut new = Lineage::new(from.len());
        if self.rows > MOST_ROWS || from.len() > MOST_ROWS {
            return new;
        }
        for (row, &a) in from.iter().enumerate() {
            for (other, &b) in from.iter().enumerate() {
                new.shared[row * from.len() + other] = if a == b { valid(a) } else { self.shared(a, b) };
            }
        }
        new
    }

    /// What `row` holds from column `len` on will be written anew.
    pub fn crop(&mut self, row: usize, len: usize) {
        for other in 0..self.rows {
            for at in [row * self.rows + other, other * self.rows + row] {
                if let Some(shared) = self.shared.get_mut(at) {
                    *shared = len.min(*shared);
                }
            }
        }
    }
}

/// One move between places of the same buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Row `from` is copied to row `to`.
    Copy {
        /// The row that is read.
        from: usize,
        /// The row that is written.
        to: usize,
    },
    /// Row `row` is put aside, before it is overwritten.
    Save {
        /// The row that is read.
        row: usize,
    },
    /// What was put aside, row `from`, is written to row `to`.
    Restore {
        /// The row that was put aside.
        from: usize,
        /// The row that is written.
        to: usize,
    },
}

/// The moves that make row `i` what row `from[i]` is, for every `i`; rows that stay do not move, and no row is overwritten
/// while another still wants it. At most one row is put aside at a time.
pub fn moves(from: &[usize]) -> Vec<Move> {
    let mut readers = vec![0usize; from.len()];
    let mut open: Vec<bool> = from.iter().enumerate().map(|(to, &from)| to != from).collect();
    for (_, &from) in from.iter().enumerate().filter(|(to, from)| to != *from) {
        readers[from] += 1;
    }
    let mut free: Vec<usize> = (0..from.len()).filter(|&row| open[row] && readers[row] == 0).collect();
    let mut moves = Vec::new();
    let mut saved = None;
    let mut next = 0;
    loop {
        while let Some(to) = free.pop() {
            let source = from[to];
            open[to] = false;
            if saved == Some(source) {
                moves.push(Move::Restore { from: source, to });
                saved = None;
                continue;
            }
            moves.push(Move::Copy { from: source, to });
            readers[source] -= 1;
            if readers[source] == 0 && open[source] {
                free.push(source);
            }
        }
        // Only rings are left: each of their rows has one reader.
        while next < from.len() && !open[next] {
            next += 1;
        }
        if next == from.len() {
            return moves;
        }
        moves.push(Move::Save { row: next });
        saved = Some(next);
        free.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_that_stays_does_not_move() {
        assert_eq!(moves(&[0, 1, 2]), []);
        assert_eq!(moves(&[0, 0, 2]), [Move::Copy { from: 0, to: 1 }]);
        assert_eq!(moves(&[1, 1, 0]), [Move::Copy { from: 0, to: 2 }, Move::Copy { from: 1, to: 0 }]);
        let ring = [Move::Save { row: 0 }, Move::Copy { from: 1, to: 0 }, Move::Restore { from: 0, to: 1 }];
        assert_eq!(moves(&[1, 0]), ring);
    }

    proptest! {
        #[test]
        fn moves_make_every_row_what_it_should_be(from in (1usize..9).prop_flat_map(|n| prop::collection::vec(0..n, n))) {
            let mut rows: Vec<usize> = (0..from.len()).collect();
            let mut aside = None;
            for step in moves(&from) {
                match step {
                    Move::Copy { from, to } => rows[to] = rows[from],
                    Move::Save { row } => {
                        prop_assert!(aside.replace((row, rows[row])).is_none());
                    }
                    Move::Restore { from, to } => {
                        let (row, value) = aside.take().unwrap();
                        prop_assert_eq!(row, from);
                        rows[to] = value;
                    }
                }
            }
            prop_assert!(aside.is_none());
            prop_assert_eq!(rows, from);
        }

        #[test]
        fn what_rows_share_is_equal(walk in prop::collection::vec((prop::collection::vec(0usize..4, 4), 0usize..4), 1..20)) {
            let mut rows: Vec<Vec<usize>> = vec![Vec::new(); 4];
            let (mut lineage, mut next) = (Lineage::new(4), 0);
            for (from, cropped) in walk {
                lineage = lineage.reordered(&from, |row| rows[row].len());
                rows = from.iter().map(|&row| rows[row].clone()).collect();
                let len = rows[cropped].len() / 2;
                lineage.crop(cropped, len);
                rows[cropped].truncate(len);
                for row in &mut rows {
                    row.push(next);
                    next += 1;
                }
                for a in 0..4 {
                    for b in (0..4).filter(|b| *b != a) {
                        let shared = lineage.shared(a, b);
                        prop_assert_eq!(&rows[a][..shared], &rows[b][..shared]);
                    }
                }
            }
        }
    }
}
