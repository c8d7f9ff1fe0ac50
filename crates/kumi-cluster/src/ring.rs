//! The ring on which everybody knows who watches whom.
//!
//! Members sit at the hash of their authority, and each is watched by the next `k` after it. A restart keeps its place,
//! a join or leave changes the watch of `k` neighbours only, and two nodes with the same members agree without a word.

use crate::table::Slot;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};

/// The members that watch and are watched, in ring order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    places: BTreeSet<(u64, Slot)>,
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
            self.places.remove(&(place, slot))
        };
        self.epoch += u64::from(changed);
    }

    /// The next `count` others after this member: those that watch it.
    pub(crate) fn after(&self, place: u64, slot: Slot, count: usize) -> Vec<Slot> {
        let here = (place, slot);
        let behind = self.places.range((Excluded(here), Unbounded));
        let around = behind.chain(self.places.range(..here));
        around.take(count).map(|&(_, slot)| slot).collect()
    }

    /// The previous `count` others before this member: those that it watches.
    pub(crate) fn before(&self, place: u64, slot: Slot, count: usize) -> Vec<Slot> {
        let here = (place, slot);
        let ahead = self.places.range(..here).rev();
        let around = ahead.chain(self.places.range((Excluded(here), Unbounded)).rev());
        around.take(count).map(|&(_, slot)| slot).collect()
    }
}
