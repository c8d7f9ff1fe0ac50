//! Long-standing suspects: a member that has been suspected for `suspect_timeout` and has not refuted does not count as a
//! monitor.
//!
//! When most of a cluster dies at once, most monitors of dead members are dead themselves: a member whose monitors are all
//! gone is not suspected, against one with few monitors left there is no quorum, and live members send their heartbeats to dead
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

use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::identity::Authority;
use crate::core::base::status::NodeStatus;
use crate::core::state::table::Slot;
use alloc::vec::Vec;
use core::time::Duration;

/// How often a node compares at most while it waits for an end of suspicions, or receives nothing.
const COMPARE_IN_TROUBLE: Duration = Duration::from_secs(2);
/// With how many it compares then, of those it heard lately and of all.
const COMPARED_IN_TROUBLE: usize = 2;

impl MembershipRuntime {
    /// A push-pull exchange with this member is complete: this node has every newer record that the member had.
    pub(super) fn in_touch_with(&mut self, peer: &Authority, now: Now) {
        let record = self.table.record(peer);
        if record.is_some_and(|record| record.status == NodeStatus::Up) {
            self.suspects.in_touch(now);
        }
    }

    /// Called at every heartbeat interval: sets which suspects are passed over when monitors are chosen, and moves the next
    /// comparison forward if a verdict is overdue.
    pub(super) fn review_suspects(&mut self, now: Now) {
        let timeout = self.config.suspect_timeout;
        let stands_after = timeout * self.local_health.multiplier();
        let overdue = self
            .suspects
            .review(&mut self.table, timeout, stands_after, now);
        let member = self.state == MembershipRuntimeState::Member
            && self.own.status() != NodeStatus::Joining;
        if member && (overdue || self.in_trouble(now)) {
            let compared_at = self.dissemination.compared_at();
            let soon = (compared_at + COMPARE_IN_TROUBLE).max(now.own);
            self.dissemination.push_pull_by(soon);
        }
    }

    fn in_trouble(&self, now: Now) -> bool {
        self.suspects.is_waiting() || self.table.active_len() > 1 && self.receives_nothing(now)
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
