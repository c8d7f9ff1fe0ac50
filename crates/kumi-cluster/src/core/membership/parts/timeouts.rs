//! When the status of each member changes by time alone: at most one timeout per record.

use super::clock::Now;
use crate::core::base::time::TimerInstant;
use crate::core::state::table::Slot;
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

/// The timeouts of records, in the runtime's own time.
#[derive(Debug, Default)]
pub(crate) struct StatusTimeouts {
    by_time: BTreeSet<(TimerInstant, Slot)>,
    of: BTreeMap<Slot, TimerInstant>,
}

impl StatusTimeouts {
    /// Sets the timeout of a record, in place of the one that it has.
    pub(crate) fn set(&mut self, slot: Slot, wait: Duration, now: Now) {
        self.clear(slot);
        let at = now.own + wait;
        self.of.insert(slot, at);
        self.by_time.insert((at, slot));
    }

    pub(crate) fn clear(&mut self, slot: Slot) {
        if let Some(at) = self.of.remove(&slot) {
            self.by_time.remove(&(at, slot));
        }
    }

    /// Removes and returns a record whose timeout has passed.
    pub(crate) fn pop_due(&mut self, now: Now) -> Option<Slot> {
        let &(at, slot) = self.by_time.first()?;
        if at > now.own {
            return None;
        }
        self.clear(slot);
        Some(slot)
    }

    /// The earliest timeout.
    pub(crate) fn next(&self) -> Option<TimerInstant> {
        self.by_time.first().map(|&(at, _)| at)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_time.len()
    }
}
