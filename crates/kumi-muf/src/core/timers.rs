//! Timers that are set often and rarely fire: each owner has at most one, and setting it again replaces it.
//!
//! An entry that was replaced stays in the heap until its time and is then skipped, because the owner's own record of
//! its timer is what counts; that is cheaper than finding it. It keeps no clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::command::Time;

/// A heap of (time, owner).
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64)>>,
}

impl Timers {
    /// Remembers to wake `owner` at `at`. The owner keeps `at` too, and ignores being woken at any other time.
    pub(crate) fn set(&mut self, at: Time, owner: u64) {
        self.heap.push(Reverse((at, owner)));
    }

    /// The earliest entry, perhaps one that was replaced.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes an entry that is due.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, u64)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
