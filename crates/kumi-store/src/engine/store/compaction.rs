//! Giving back memory that is resident and not used: entries move out of pages that are mostly free.
//!
//! When resident memory exceeds what is accounted for by more than an eighth, a walk through all entries moves those in
//! sparse pages. It takes a tenth of the engine's time, about a millisecond at a time. A walk that moves little, or after
//! which as much is wasted as before, is repeated after a pause: what is left may be something that it cannot move, such
//! as the nodes of large collections, or memory of a program that the server is a part of.

use super::Store;
use crate::data::keyspace::{Relocated, Walk};
use crate::engine::host::Host;

/// A slice of a walk ends after this long.
const SLICE_NS: u64 = 1_000_000;
/// The clock is read after so many moved blocks. A block that shares its page with others has some 100 KiB at most.
const BLOCKS_PER_READING: u64 = 16;
/// After a slice, so many times as long as it took is left for everything else ...
const REST: u64 = 9;
/// ... and no longer than this, however long the process was stopped in the middle of a slice.
const LONGEST_REST_NS: u64 = 1_000_000_000;
/// The share of the engine's time that this takes, in percent, as INFO shows it.
pub(crate) const SHARE_PERCENT: u64 = 100 / (REST + 1);
/// Waste below this many bytes is left alone ...
const LEAST_WASTE_BYTES: usize = 8 << 20;
/// ... and so is waste below this part of what is used.
const WASTE_PART: usize = 8;
/// Resident memory is looked at this often.
const LOOK_NS: u64 = 100_000_000;
/// The first pause after a walk that moved little, and the longest pause.
const PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 60_000_000_000;

/// How far compaction is.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    walk: Option<Walk>,
    /// What the running walk has done, or the one that has just ended.
    done: Relocated,
    /// What was wasted when that walk began; none once it is judged.
    wasted_before: Option<usize>,
    /// When the next look or slice is due, by the steady clock.
    next_ns: u64,
    /// How long the last walk was to be followed by none, besides the usual time.
    pause_ns: u64,
    /// Since when a walk runs, by the steady clock.
    since_ns: u64,
}

impl Compaction {
    /// When a running walk goes on, by the steady clock.
    pub(super) fn next_slice_ns(&self) -> Option<u64> {
        self.walk.is_some().then_some(self.next_ns)
    }

    /// Decides how long no walk begins after the last one.
    fn judge(&mut self, before: usize, wasted: usize) {
        self.pause_ns = match (self.done.is_much(), wasted < before - before / 8) {
            (true, true) => 0,
            (true, false) => (self.pause_ns * 2).clamp(LOOK_NS, LONGEST_PAUSE_NS),
            (false, _) => (self.pause_ns * 2).clamp(PAUSE_NS, LONGEST_PAUSE_NS),
        };
    }
}

impl Store {
    /// For how long a walk has been running, in milliseconds; none when there is none.
    pub(crate) fn compacting_ms(&self) -> Option<u64> {
        let since_ns = self.upkeep.compaction.since_ns;
        let running = self.upkeep.compaction.walk.is_some();
        running.then(|| self.now.mono_ns.saturating_sub(since_ns) / 1_000_000)
    }

    /// Looks whether memory is wasted, and begins a walk then; or does the next slice of one that runs.
    pub(super) fn compact(&mut self, host: &mut dyn Host) {
        let start_ns = self.now.mono_ns;
        if start_ns < self.upkeep.compaction.next_ns {
            return;
        }
        // A snapshot holds memory that is not wasted, and what is being loaded has its final place.
        if self.persistence.snapshot.is_some() || self.is_loading() {
            self.upkeep.compaction.next_ns = start_ns + LOOK_NS;
            return;
        }
        let pause_ns = match self.upkeep.compaction.walk {
            Some(walk) => self.walk_on(walk, start_ns, host),
            None => self.look(host),
        };
        let spent_ns = self.now.mono_ns.saturating_sub(start_ns);
        let rest_ns = spent_ns.saturating_mul(REST).min(LONGEST_REST_NS);
        self.upkeep.compaction.next_ns = self.now.mono_ns + pause_ns.max(rest_ns);
    }

    /// Begins a walk if memory is wasted. Returns how long to wait.
    fn look(&mut self, host: &mut dyn Host) -> u64 {
        let before = self.upkeep.compaction.wasted_before.take();
        if before.is_some() {
            // An allocator gives pages back when it is used, which may be never. A walk that moved little says nothing
            // about them: they may be free since the one before.
            host.purge_memory();
            self.now = host.now();
        }
        let used = self.used_memory();
        let wasted = host.resident_bytes().saturating_sub(used);
        if let Some(before) = before {
            self.upkeep.compaction.judge(before, wasted);
            if self.upkeep.compaction.pause_ns > 0 {
                return self.upkeep.compaction.pause_ns;
            }
        }
        if wasted <= LEAST_WASTE_BYTES.max(used / WASTE_PART) {
            self.upkeep.compaction.pause_ns /= 2;
            return LOOK_NS;
        }
        self.upkeep.compaction.walk = Some(Walk::default());
        self.upkeep.compaction.wasted_before = Some(wasted);
        self.upkeep.compaction.done = Relocated::default();
        self.upkeep.compaction.since_ns = self.now.mono_ns;
        0
    }

    /// Does a slice of a walk. Returns how long to wait.
    fn walk_on(&mut self, walk: Walk, start_ns: u64, host: &mut dyn Host) -> u64 {
        let mut next = Some(walk);
        let mut done = Relocated::default();
        while let Some(walk) = next
            && self.now.mono_ns.saturating_sub(start_ns) < SLICE_NS
        {
            let (mut moved, mut is_late) = (0, false);
            let mut is_sparse = |block: *const u8| {
                let is_sparse = !is_late && host.is_in_sparse_page(block);
                moved += u64::from(is_sparse);
                if is_sparse && moved.is_multiple_of(BLOCKS_PER_READING) {
                    is_late = host.now().mono_ns.saturating_sub(start_ns) >= SLICE_NS;
                }
                is_sparse
            };
            next = self.keyspace.relocate_step(walk, &mut done, &mut is_sparse);
            self.now = host.now();
        }
        self.telemetry.stats.compaction.add(done);
        self.upkeep.compaction.done.add(done);
        if next.is_none() {
            self.telemetry.stats.compaction_ms += self.compacting_ms().unwrap_or(0);
        }
        self.upkeep.compaction.walk = next;
        if next.is_none() { LOOK_NS } else { 0 }
    }
}

#[cfg(test)]
mod tests;
