//! Timers that are set often and rarely fire: each owner has at most one, and setting it again replaces it.
//!
//! An entry that was replaced stays until its time and is then skipped, because the owner's own record of its timer is
//! what counts; that is cheaper than finding it. Owners that are due in one millisecond share an entry of the tree, so
//! setting a timer is an append most of the time, however many there are. It keeps no clock.

use std::collections::{BTreeMap, VecDeque};

use super::command::Time;

/// Owners by the time they want to be woken, in the order they asked.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    owners: BTreeMap<Time, VecDeque<u64>>,
}

impl Timers {
    /// Remembers to wake `owner` at `at`. The owner keeps `at` too, and ignores being woken at any other time.
    pub(crate) fn set(&mut self, at: Time, owner: u64) {
        self.owners.entry(at).or_default().push_back(owner);
    }

    /// The earliest entry, perhaps one that was replaced.
    pub(crate) fn next(&self) -> Option<Time> {
        self.owners.first_key_value().map(|(at, _)| *at)
    }

    /// Takes an entry that is due.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(Time, u64)> {
        loop {
            let mut first = self
                .owners
                .first_entry()
                .filter(|first| *first.key() <= now)?;
            match first.get_mut().pop_front() {
                Some(owner) => return Some((*first.key(), owner)),
                None => {
                    first.remove();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_woken_by_time_and_then_in_the_order_they_asked() {
        let mut timers = Timers::default();
        for (at, owner) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            timers.set(Time(at), owner);
        }
        assert_eq!(timers.next(), Some(Time(10)));
        let mut due = |now| std::iter::from_fn(|| timers.pop_due(Time(now))).collect::<Vec<_>>();
        assert_eq!(due(9), []);
        assert_eq!(due(20), [(Time(10), 2), (Time(20), 4)]);
        assert_eq!(due(99), [(Time(30), 1), (Time(30), 3)]);
        assert_eq!(due(u64::MAX), []);
    }
}
