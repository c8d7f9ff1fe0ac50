//! Giving back memory that is resident and not used: entries move out of pages that are mostly free.
//!
//! When resident memory exceeds what is accounted for by more than an eighth, a walk through all entries moves those in
//! sparse pages. It takes a tenth of the engine's time, a millisecond at a time. A walk that finds little to move is not
//! repeated at once: the rest is something that it cannot move, such as the nodes of large collections.

use super::Store;
use crate::host::Host;
use crate::keyspace::{Relocated, Walk};

/// A slice of a walk ends after this long.
const SLICE_NS: u64 = 1_000_000;
/// After a slice, so many times as long as it took is left for everything else.
const REST: u64 = 9;
/// The share of the engine's time that this takes, in percent, as INFO shows it.
pub(crate) const SHARE_PERCENT: u64 = 100 / (REST + 1);
/// Waste below this many bytes is left alone ...
const LEAST_WASTE_BYTES: usize = 8 << 20;
/// ... and so is waste below this part of what is used.
const WASTE_PART: usize = 8;
/// Resident memory is looked at this often.
const LOOK_NS: u64 = 100_000_000;
/// The first and the longest pause after a walk that found little.
const PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 60_000_000_000;

/// How far compaction is.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    walk: Option<Walk>,
    /// What the running walk has done.
    done: Relocated,
    /// When the next look or slice is due, by the steady clock.
    next_ns: u64,
    /// How long the next look is put off if the walk finds little.
    pause_ns: u64,
    /// Since when a walk runs, by the steady clock.
    since_ns: u64,
}

impl Compaction {
    /// When a running walk goes on, by the steady clock.
    pub(super) fn next_slice_ns(&self) -> Option<u64> {
        self.walk.is_some().then_some(self.next_ns)
    }
}

impl Store {
    /// For how long a walk has been running, in milliseconds; none when there is none.
    pub(crate) fn compacting_ms(&self) -> Option<u64> {
        let since_ns = self.compaction.since_ns;
        let running = self.compaction.walk.is_some();
        running.then(|| self.now.mono_ns.saturating_sub(since_ns) / 1_000_000)
    }

    /// Begins a walk if memory is wasted, or does the next slice of one that runs.
    pub(super) fn compact(&mut self, host: &mut dyn Host) {
        let start_ns = self.now.mono_ns;
        if start_ns < self.compaction.next_ns {
            return;
        }
        // A snapshot holds memory that is not wasted, and what is being loaded has its final place.
        if self.snapshot.is_some() || self.is_loading() {
            self.compaction.walk = None;
            self.compaction.next_ns = start_ns + LOOK_NS;
            return;
        }
        let mut walk = self.compaction.walk;
        if walk.is_none() {
            if std::mem::take(&mut self.compaction.done).is_much() {
                // An allocator gives pages back when it is used, which may be never.
                host.purge_memory();
            }
            if !self.wastes_memory(host) {
                self.compaction.pause_ns = 0;
                self.compaction.next_ns = start_ns + LOOK_NS;
                return;
            }
            self.compaction.since_ns = start_ns;
            walk = Some(Walk::default());
        }
        let mut done = Relocated::default();
        let mut spent_ns = 0;
        while let Some(at) = walk
            && spent_ns < SLICE_NS
        {
            let mut leave = |block: *const u8| host.is_in_sparse_page(block);
            walk = self.keyspace.relocate_step(at, &mut done, &mut leave);
            self.now = host.now();
            spent_ns = self.now.mono_ns.saturating_sub(start_ns);
        }
        self.telemetry.stats.compaction.add(done);
        self.telemetry.stats.compaction_us += spent_ns / 1000;
        self.compaction.done.add(done);
        self.compaction.walk = walk;
        self.compaction.next_ns = match walk {
            Some(_) => self.now.mono_ns + spent_ns * REST,
            None => self.now.mono_ns + self.pause_ns().max(LOOK_NS),
        };
    }

    /// How long memory is not looked at after a walk, besides the usual time.
    fn pause_ns(&mut self) -> u64 {
        let Compaction { done, pause_ns, .. } = &mut self.compaction;
        if done.is_much() {
            *pause_ns = 0;
        } else {
            *pause_ns = (*pause_ns * 2).clamp(PAUSE_NS, LONGEST_PAUSE_NS);
        }
        *pause_ns
    }

    fn wastes_memory(&self, host: &mut dyn Host) -> bool {
        let used = self.used_memory();
        let wasted = host.resident_bytes().saturating_sub(used);
        wasted > LEAST_WASTE_BYTES.max(used / WASTE_PART)
    }
}

#[cfg(test)]
mod tests;
