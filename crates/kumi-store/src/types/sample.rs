//! Random choices among the entries of a collection.

use std::collections::HashSet;

/// Where drawing distinct entries one by one beats going through all of them.
const SPARSE: usize = 4;

/// Whether `count` of `len` entries are best drawn one by one.
pub(super) fn is_sparse(len: usize, count: usize) -> bool {
    count <= len / SPARSE
}

/// Chooses exactly `count` of the next `len` entries, every subset with the same probability: the
/// entry at hand is taken with the probability (still wanted) / (still to come).
#[derive(Debug)]
pub(super) struct Selection {
    left: usize,
    wanted: usize,
}

impl Selection {
    pub(super) fn new(len: usize, count: usize) -> Self {
        Selection {
            left: len,
            wanted: count.min(len),
        }
    }

    /// Whether to take the next entry.
    pub(super) fn takes(&mut self, rng: &mut fastrand::Rng) -> bool {
        if self.left == 0 {
            return false;
        }
        let taken = rng.usize(..self.left) < self.wanted;
        self.left -= 1;
        self.wanted -= usize::from(taken);
        taken
    }
}

/// Calls `draw` until it has put `count` different numbers into the set. `draw` must be able to find so many.
pub(super) fn draw_distinct(count: usize, mut draw: impl FnMut(&mut HashSet<usize>)) {
    let mut seen = HashSet::with_capacity(count);
    while seen.len() < count {
        draw(&mut seen);
    }
}
