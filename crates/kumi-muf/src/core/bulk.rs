//! Large values: how many of one kind are on their way at a time.
//!
//! A value over the inline limit takes long on a slow link. If all of them were sent at once, each would take as long as
//! all together, and the requests that they belong to would have to be kept alive for that long. So a few are on their way,
//! and the others wait here in the order they came. A [`Gate`] counts and orders; its owner sends.

use std::collections::VecDeque;

/// Large values of one kind that are on their way at a time: one is transferred while the next one is requested.
const BULK_LIMIT: usize = 2;

/// Places for large values of one kind, and the owners that wait for one. An owner waits at most once, so there are no more
/// entries than owners.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    taken: usize,
    waiting: VecDeque<u64>,
}

impl Gate {
    /// Takes a place, if there is one.
    pub(crate) fn enter(&mut self) -> bool {
        let is_open = self.is_open();
        self.taken += usize::from(is_open);
        is_open
    }

    /// Whether there is a place.
    pub(crate) fn is_open(&self) -> bool {
        self.taken < BULK_LIMIT
    }

    /// Remembers an owner that found no place.
    pub(crate) fn wait(&mut self, owner: u64) {
        self.waiting.push_back(owner);
    }

    /// Gives a place back. Every place is given back when the replies of its commands are here, or are lost.
    pub(crate) fn leave(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// Removes and returns the owner that has waited longest, if there is a place. The caller takes the place for it.
    pub(crate) fn next(&mut self) -> Option<u64> {
        match self.is_open() {
            true => self.waiting.pop_front(),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_enter_in_the_order_they_came_and_a_few_at_a_time() {
        let mut gate = Gate::default();
        assert!((0..BULK_LIMIT).all(|_| gate.enter()));
        assert!(!gate.enter());
        gate.wait(7);
        gate.wait(8);
        assert_eq!(gate.next(), None);
        gate.leave();
        assert_eq!(gate.next(), Some(7));
        assert!(gate.enter());
        assert_eq!(gate.next(), None);
        gate.leave();
        gate.leave();
        assert_eq!(gate.next(), Some(8));
        assert_eq!(gate.next(), None);
    }
}
