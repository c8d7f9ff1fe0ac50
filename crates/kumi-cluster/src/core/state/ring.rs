//! The ring of monitors: every member computes from it which members watch which.
//!
//! Members sit at the hash of their authority, and each is watched by the next `k` after it. A restart keeps its place,
//! a join or leave changes the monitors of `k` neighbours only, and two nodes with the same members compute the same ring.
//!
//! Long-standing suspects are passed over when monitors are chosen. They are watched like all others, by the next `k` members
//! that are not passed over.

use crate::core::state::table::Slot;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};

/// The members that watch and are watched, in ring order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    places: BTreeSet<(u64, Slot)>,
    /// Those that watch no member.
    passed_over: BTreeSet<Slot>,
    /// Counts changes, so that users of the ring notice one cheaply.
    epoch: u64,
}

impl Ring {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Puts a member on the ring or takes it off.
    pub(crate) fn set(&mut self, place: u64, slot: Slot, present: bool) {
        let changed = if present {
            self.places.insert((place, slot))
        } else {
            self.passed_over.remove(&slot);
            self.places.remove(&(place, slot))
        };
        self.epoch += u64::from(changed);
    }

    /// Passes a member of the ring over from now on, or no longer.
    pub(crate) fn pass_over(&mut self, slot: Slot, passed: bool) {
        let changed = if passed {
            self.passed_over.insert(slot)
        } else {
            self.passed_over.remove(&slot)
        };
        self.epoch += u64::from(changed);
    }

    /// The next `count` others after this member: those that watch it.
    pub(crate) fn after(&self, place: u64, slot: Slot, count: usize) -> Vec<Slot> {
        let here = (place, slot);
        let behind = self.places.range((Excluded(here), Unbounded));
        let around = behind.chain(self.places.range(..here));
        let around = around.map(|&(_, slot)| slot);
        let watching = around.filter(|slot| !self.passed_over.contains(slot));
        watching.take(count).collect()
    }

    /// The others before this member for which it is one of the next `count`: those that it watches.
    pub(crate) fn before(&self, place: u64, slot: Slot, count: usize) -> Vec<Slot> {
        let here = (place, slot);
        let ahead = self.places.range(..here).rev();
        let around = ahead.chain(self.places.range((Excluded(here), Unbounded)).rev());
        let mut between = 0;
        let watched = around.map(|&(_, slot)| slot).take_while(|slot| {
            let near = between < count;
            between += usize::from(!self.passed_over.contains(slot));
            near
        });
        watched.collect()
    }
}
