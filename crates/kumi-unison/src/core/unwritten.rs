//! What a channel's output takes of the connection's budget, from when a message is queued until it is written.
//!
//! The budget's counters are shared by all channels of a connection, so they are changed per KiB and not per message.
//! Nothing that is queued is refused here: a channel that finds the budget used up stops adding to its output. One whose
//! output is empty may always add a message, so that each channel goes on, however much the others have queued.

use std::cell::Cell;
use std::sync::Arc;

use super::budget::Budget;

/// What is charged is rounded up to a multiple of this.
const STEP_BYTES: usize = 1024;

pub(super) struct Unwritten {
    budget: Arc<Budget>,
    /// Bytes that the writer has not taken.
    queued: usize,
    /// Bytes that the writer took and has not written.
    writing: usize,
    /// Bytes of events that are kept for want of credit.
    kept: usize,
    /// Bytes charged to the budget: the sum of the three, rounded up.
    charged: usize,
    /// A sender found no room because the budget was used up.
    starved: Cell<bool>,
    /// There was such a sender before the last write, which made room.
    made_room: bool,
}

impl Unwritten {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            queued: 0,
            writing: 0,
            kept: 0,
            charged: 0,
            starved: Cell::new(false),
            made_room: false,
        }
    }

    /// Whether the channel may add to its output. If not, the write that makes room is noted.
    pub(super) fn has_room(&self) -> bool {
        let has_room = self.queued + self.writing == 0 || !self.is_over();
        if !has_room {
            self.starved.set(true);
        }
        has_room
    }

    /// Whether the connection's budget, or the endpoint's, is used up.
    pub(super) fn is_over(&self) -> bool {
        self.budget.is_over()
    }

    pub(super) fn queue(&mut self, bytes: usize) {
        self.queued += bytes;
        self.settle();
    }

    /// The writer took what is queued.
    pub(super) fn take(&mut self) {
        self.writing += std::mem::take(&mut self.queued);
    }

    /// The writer has written what it took.
    pub(super) fn written(&mut self) {
        if self.writing > 0 {
            self.writing = 0;
            self.made_room |= self.starved.take();
            self.settle();
        }
    }

    /// Whether senders that found no room should try again, once.
    pub(super) fn take_made_room(&mut self) -> bool {
        std::mem::take(&mut self.made_room)
    }

    pub(super) fn keep(&mut self, bytes: usize) {
        self.kept += bytes;
        self.settle();
    }

    pub(super) fn release_kept(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_sub(bytes);
        self.settle();
    }

    /// The output was dropped. Kept events are not part of it.
    pub(super) fn clear_output(&mut self) {
        self.queued = 0;
        self.writing = 0;
        self.settle();
    }

    fn settle(&mut self) {
        let needed = (self.queued + self.writing + self.kept).next_multiple_of(STEP_BYTES);
        if needed > self.charged {
            self.budget.add(needed - self.charged);
        } else if needed < self.charged {
            self.budget.give_back(self.charged - needed);
        }
        self.charged = needed;
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.budget.give_back(self.charged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_counts_until_it_is_written() {
        let budget = Arc::new(Budget::new(10 * STEP_BYTES));
        let mut unwritten = Unwritten::new(&budget);
        unwritten.queue(1);
        unwritten.queue(STEP_BYTES);
        unwritten.keep(STEP_BYTES);
        assert_eq!(budget.used_bytes(), 3 * STEP_BYTES);
        unwritten.take();
        unwritten.queue(STEP_BYTES);
        assert_eq!(budget.used_bytes(), 4 * STEP_BYTES);
        unwritten.written();
        assert_eq!(budget.used_bytes(), 2 * STEP_BYTES);
        unwritten.release_kept(STEP_BYTES);
        unwritten.clear_output();
        assert_eq!(budget.used_bytes(), 0);
        unwritten.queue(1);
        drop(unwritten);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_channel_without_output_has_room_and_others_learn_of_the_write_that_makes_it() {
        let budget = Arc::new(Budget::new(STEP_BYTES));
        let (mut first, mut second) = (Unwritten::new(&budget), Unwritten::new(&budget));
        first.queue(STEP_BYTES + 1);
        assert!(!first.has_room() && second.has_room());
        second.queue(1);
        assert!(!second.has_room());
        first.take();
        assert!(!first.has_room() && !first.take_made_room());
        first.written();
        assert!(first.take_made_room() && !first.take_made_room());
        assert!(first.has_room() && second.has_room());
        second.take();
        second.written();
        assert!(second.take_made_room());
    }
}
