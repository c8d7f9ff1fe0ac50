//! Long-standing suspects: a member that has been suspected for `suspect_timeout` and has not refuted does not count as a
//! monitor.
//!
//! When most of a cluster dies at once, most monitors of dead members are dead themselves: a member whose monitors are all
//! gone is not accused, one with few monitors left does not get a quorum, and live members send their heartbeats to dead
//! ones. So a suspicion that has stood for `suspect_timeout` at one incarnation takes its subject out of the choice of
//! monitors, though not out of the members that are watched: round by round, live members become the monitors of further
//! dead members, and of each other.
//!
//! A node that does not receive refutations, through a fault of its own, would suspect every member, and declare them dead
//! alone once it counts no other monitor. Therefore the time is not enough: after it, a comparison with a member that is Up
//! has to be completed. It would have brought the refutation.
//!
//! A suspicion that stands longer than a verdict takes may be one whose end this node has missed: a rumour misses a few
//! members of a million, and the comparisons that follow it do not reach every member. Such a node compares with another
//! member once the verdict is overdue, and again after each further `suspect_timeout`, instead of waiting for its next
//! regular comparison.

use super::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::identity::{Authority, NodeUid};
use crate::core::status::NodeStatus;
use crate::core::table::Slot;
use crate::core::time::TimerInstant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// How often a node compares at most while it waits for an end of suspicions, or receives nothing.
const COMPARE_IN_TROUBLE: Duration = Duration::from_secs(2);
/// With how many it compares then, of those it heard lately and of all.
const COMPARED_IN_TROUBLE: usize = 2;

/// One suspicion, as long as it is about the same incarnation.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    uid: NodeUid,
    incarnation: u64,
    since: TimerInstant,
}

/// The suspects that this node knows of.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspects {
    of: BTreeMap<Slot, Suspicion>,
    /// When a comparison with a member that was Up last came to its end.
    in_touch_at: TimerInstant,
    /// Whether some suspicion has stood long enough, and only a comparison is missing.
    waiting: bool,
}

impl Suspects {
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

impl MembershipRuntime {
    /// A member became a suspect just now.
    pub(super) fn note_suspect(&mut self, slot: Slot, now: Now) {
        let Some(record) = self.table.entry(slot).map(|entry| &entry.record) else {
            return;
        };
        let suspicion = Suspicion {
            uid: record.uid,
            incarnation: record.incarnation,
            since: now.own,
        };
        self.suspects.of.insert(slot, suspicion);
    }

    /// A push-pull exchange with this member is complete: this node has every newer record that the member had.
    pub(super) fn in_touch_with(&mut self, peer: &Authority, now: Now) {
        let record = self.table.record(peer);
        if record.is_some_and(|record| record.status == NodeStatus::Up) {
            self.suspects.in_touch_at = now.own;
        }
    }

    /// Every heartbeat interval: who is passed over from now on when monitors are chosen, and who no longer is.
    pub(super) fn review_suspects(&mut self, now: Now) {
        let timeout = self.config.suspect_timeout;
        let suspect_timeout = timeout * self.health.multiplier();
        let in_touch_at = self.suspects.in_touch_at;
        let (mut waiting, mut overdue) = (false, false);
        let Self {
            suspects, table, ..
        } = self;
        suspects.of.retain(|&slot, suspicion| {
            let record = table.entry(slot).map(|entry| &entry.record);
            let record = record.filter(|record| {
                record.status == NodeStatus::Suspect && record.uid == suspicion.uid
            });
            let Some(incarnation) = record.map(|record| record.incarnation) else {
                return false;
            };
            if incarnation != suspicion.incarnation {
                // It has refuted in between.
                suspicion.incarnation = incarnation;
                suspicion.since = now.own;
            }
            let stood = suspicion.since + suspect_timeout;
            table.pass_over(slot, in_touch_at >= stood);
            waiting |= now.own >= stood && in_touch_at < stood;
            // One comparison serves all suspicions whose verdict is overdue.
            let due = verdict_due(suspicion.since, timeout);
            let compare_at = if in_touch_at >= due {
                in_touch_at + timeout
            } else {
                due
            };
            overdue |= now.own >= compare_at;
            true
        });
        self.suspects.waiting = waiting;
        let member =
            self.state == MembershipRuntimeState::Member && self.own.status != NodeStatus::Joining;
        if let Some(next) = self.timers.push_pull.filter(|_| member)
            && (overdue || self.in_trouble(now))
        {
            let soon = (self.compared_at + COMPARE_IN_TROUBLE).max(now.own);
            self.timers.push_pull = Some(next.min(soon));
        }
    }

    fn in_trouble(&self, now: Now) -> bool {
        self.suspects.waiting || self.table.active_len() > 1 && self.receives_nothing(now)
    }

    /// Further peers to compare with when something is wrong. Most of the known members may be gone, so members that were heard
    /// lately come first; and a node has to have tried before it considers itself isolated.
    pub(super) fn peers_in_trouble(&mut self, now: Now) -> Vec<Authority> {
        if !self.in_trouble(now) {
            return Vec::new();
        }
        let lately = self.config.dead_timeout;
        let own = self.own_slot();
        let entries = self.table.active().iter().filter_map(|&slot| {
            let entry = self.table.entry(slot).filter(|_| Some(slot) != own)?;
            let heard = now.raw.saturating_since(entry.heard_at?) < lately;
            (heard && entry.record.status == NodeStatus::Up).then_some(slot)
        });
        let mut heard: Vec<Slot> = entries.collect();
        let mut chosen = Vec::new();
        while chosen.len() < COMPARED_IN_TROUBLE && !heard.is_empty() {
            chosen.push(heard.swap_remove(self.rng.below(heard.len())));
        }
        let mut peers = self.authorities(&chosen);
        peers.extend(self.random_peers(COMPARED_IN_TROUBLE, None));
        peers
    }
}

/// When a verdict on a member that has been suspected since `since` should have arrived. It takes `suspect_timeout` from
/// the quorum on; half of that is added for the accusations and the verdict to spread.
fn verdict_due(since: TimerInstant, suspect_timeout: Duration) -> TimerInstant {
    since + suspect_timeout + suspect_timeout / 2
}
