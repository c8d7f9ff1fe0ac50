//! Virtual time: a heap of events.
//!
//! Events of one instant are returned in the order in which they were added, so that a run is a function of its seed. Events
//! are never removed: the receiver ignores one that is out of date.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events in the order of virtual microseconds.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Pending<E>>,
    now_us: u64,
    pushed: u64,
}

#[derive(Debug)]
struct Pending<E> {
    at_us: u64,
    order: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// An empty queue, at time 0.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            now_us: 0,
            pushed: 0,
        }
    }

    /// The present.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Adds an event for that time, or for now when that has passed.
    pub fn push(&mut self, at_us: u64, event: E) {
        self.pushed += 1;
        let at_us = at_us.max(self.now_us);
        self.heap.push(Pending {
            at_us,
            order: self.pushed,
            event,
        });
    }

    /// The next event up to and including `until_us`. Without one, time moves on to there.
    pub fn pop_until(&mut self, until_us: u64) -> Option<E> {
        if self.heap.peek().is_none_or(|next| next.at_us > until_us) {
            self.now_us = self.now_us.max(until_us);
            return None;
        }
        let next = self.heap.pop()?;
        self.now_us = next.at_us;
        Some(next.event)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

// The heap gives the greatest first, so the earliest has to be the greatest.
impl<E> Ord for Pending<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.order).cmp(&(self.at_us, self.order))
    }
}

impl<E> PartialOrd for Pending<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Pending<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Pending<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_then_of_their_making() {
        let mut queue = EventQueue::new();
        for (at_us, name) in [(30, 'd'), (10, 'a'), (20, 'b'), (20, 'c')] {
            queue.push(at_us, name);
        }
        let order: std::string::String = core::iter::from_fn(|| queue.pop_until(25)).collect();
        assert_eq!(
            (order.as_str(), queue.now_us(), queue.len()),
            ("abc", 25, 1)
        );
        assert_eq!(queue.pop_until(99), Some('d'));
        assert_eq!(queue.now_us(), 30);
    }

    #[test]
    fn what_is_overdue_happens_now() {
        let mut queue = EventQueue::new();
        assert_eq!(queue.pop_until(50), None);
        queue.push(10, 'x');
        assert_eq!((queue.pop_until(50), queue.now_us()), (Some('x'), 50));
        assert!(queue.is_empty());
    }
}
