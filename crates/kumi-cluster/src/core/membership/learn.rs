//! Merging the records that arrive, and the changes of status that follow from time alone.
//!
//! Every change goes through [`MembershipRuntime::learn`]: the merge decides, and only what changed becomes an
//! event, an update to gossip, a quarantine or a timer.

use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::error::MembershipError;
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::reason::QuarantineReason;
use crate::core::base::status::NodeStatus;
use crate::core::protocol::event::{ClusterEvent, GoneCause};
use crate::core::protocol::rumor_queue::RumorQueue;
use crate::core::state::quarantine::{OrderTaken, QuarantineRumor};
use crate::core::state::record::{Accusations, MemberRecord};
use crate::core::state::snapshot::MembershipDelta;
use crate::core::state::table::{Applied, Slot};
use alloc::vec::Vec;
use kumi_common::Name as NodeName;

impl MembershipRuntime {
    /// Merges all records of a delta; a record that cannot be applied is noted, and the others are applied.
    pub(super) fn learn_all(&mut self, delta: &MembershipDelta, now: Now) {
        for rumor in &delta.quarantines {
            self.learn_order(rumor, now);
        }
        for record in &delta.records {
            self.learn(record, now);
        }
    }

    /// Merges one record; returns whether anything was new.
    pub(super) fn learn(&mut self, record: &MemberRecord, now: Now) -> bool {
        if self.state == MembershipRuntimeState::Stopped {
            return false;
        }
        if self.is_ahead(record.uid, now) {
            self.outbox.refuse(MembershipError::UidAhead {
                authority: record.authority.clone(),
                uid: record.uid,
            });
            return false;
        }
        let own = record.authority == *self.own.authority();
        if own && self.state == MembershipRuntimeState::Member {
            return self.hear_about_self(record, now);
        }
        if record.status.is_active() && self.saw_end_of(&record.authority, record.uid) {
            self.recall(record.identity(), now);
            return true;
        }
        let blocked = record.status.is_active()
            && self
                .quarantine
                .ordered(&record.authority, now.raw)
                .is_some();
        if blocked {
            // A quarantined authority has a record, but an active one is recorded as Dead.
            return self.apply(&ended(record, NodeStatus::Dead), now);
        }
        self.apply(record, now)
    }

    /// Merges a record and queues the events, updates and timers that follow; returns whether anything changed.
    pub(super) fn apply(&mut self, record: &MemberRecord, now: Now) -> bool {
        let slot = self.table.slot_of(&record.authority);
        let before = slot.and_then(|slot| self.table.entry(slot));
        let mut stamp = before.map_or(0, |entry| entry.record.metadata_stamp);
        let untold = before.is_some_and(|entry| entry.untold);
        let replaced = before.filter(|entry| entry.record.uid < record.uid);
        let old_name = replaced.and_then(|entry| entry.record.metadata.name());
        let applied = match self.table.apply(record) {
            Ok(applied) => applied,
            Err(error) => {
                self.outbox.refuse(error);
                return false;
            }
        };
        let Some(slot) = self.table.slot_of(&record.authority) else {
            return false;
        };
        match applied {
            Applied::Known => {
                if self.dissemination.has(slot) {
                    let limit = self.retransmissions();
                    self.dissemination.received_again(slot, limit);
                }
                return false;
            }
            Applied::Older { .. } => return false,
            Applied::Invalid { from, to } => {
                let authority = record.authority.clone();
                self.outbox.refuse(MembershipError::InvalidTransition {
                    authority,
                    from,
                    to,
                });
                self.stepped(slot, from, now);
            }
            Applied::Added => self.arrived(slot, now),
            Applied::Advanced { from } => self.stepped(slot, from, now),
            Applied::Superseded { uid, from } => {
                let old = NodeIdentity {
                    authority: record.authority.clone(),
                    uid,
                };
                // A life that was over before it was known here has no events.
                if !untold {
                    self.ended_life(&old, old_name, from, now);
                }
                self.arrived(slot, now);
                // Stamps are counted by each life for itself: nothing of this one was reported before.
                stamp = 0;
            }
        }
        self.metadata_changed(slot, stamp, now);
        self.spread(slot, stamp);
        true
    }

    /// The metadata of an active member is part of the topology.
    fn metadata_changed(&mut self, slot: Slot, stamp_before: u64, now: Now) {
        let record = self.table.entry(slot).map(|entry| &entry.record);
        if record.is_some_and(|record| {
            record.status.is_active() && record.metadata_stamp != stamp_before
        }) {
            self.topology.changed(now.own);
            self.look_for_namesake(slot, now);
        }
    }

    /// Handles a uid that was not in the table.
    fn arrived(&mut self, slot: Slot, now: Now) {
        self.detection.drop_watch(slot);
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let record = &entry.record;
        let (identity, status) = (record.identity(), record.status);
        if status.is_active() {
            self.addresses.forget(&identity.authority);
            self.status_event(&identity, None, status, now);
            self.topology.changed(now.own);
        }
        if status == NodeStatus::Suspect {
            self.suspects.note(slot, &self.table, now);
        }
        self.schedule(slot, status, now);
    }

    /// Handles a change of status of a known uid.
    pub(super) fn stepped(&mut self, slot: Slot, from: NodeStatus, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let (identity, to) = (entry.record.identity(), entry.record.status);
        if from == to {
            return;
        }
        if entry.untold {
            // A life that was over before it was known here has no events.
            self.schedule(slot, to, now);
            return;
        }
        if from == NodeStatus::Joining && to == NodeStatus::Suspect {
            self.status_event(&identity, Some(from), NodeStatus::Up, now);
            self.status_event(&identity, Some(NodeStatus::Up), to, now);
        } else {
            self.status_event(&identity, Some(from), to, now);
        }
        if from.is_active() && to.is_terminal() {
            let cause = self.cause_of(&identity, from, to, now);
            self.departed(identity.clone(), Some(cause), now);
        }
        match to {
            NodeStatus::Dead => self.died(identity, now),
            NodeStatus::Suspect => {
                self.suspects.note(slot, &self.table, now);
                self.topology.changed(now.own);
            }
            _ if from.is_active() => self.topology.changed(now.own),
            _ => {}
        }
        self.schedule(slot, to, now);
    }

    /// How a life ended that went from an active status to a terminal one.
    fn cause_of(
        &self,
        identity: &NodeIdentity,
        from: NodeStatus,
        to: NodeStatus,
        now: Now,
    ) -> GoneCause {
        let ordered = self.quarantine.ordered(&identity.authority, now.raw);
        match (from, to) {
            (_, NodeStatus::Dead) if ordered.is_some() => GoneCause::Quarantined,
            (_, NodeStatus::Dead) => GoneCause::Died,
            (NodeStatus::Joining | NodeStatus::Suspect, _) => GoneCause::Died,
            _ => GoneCause::Left,
        }
    }

    /// Handles a uid that was declared dead: it is quarantined.
    fn died(&mut self, identity: NodeIdentity, now: Now) {
        let NodeIdentity { authority, uid } = &identity;
        let ttl = self.config.quarantine_ttl;
        // An operator's order has its own event, and its own quarantine.
        let ordered = self.quarantine.ordered(authority, now.raw).is_some();
        let reason = QuarantineReason::Unreachable;
        if !ordered
            && self
                .quarantine
                .quarantine(authority, *uid, reason.clone(), ttl, now.raw)
        {
            self.outbox
                .quarantine_event(ClusterEvent::MemberQuarantined {
                    authority: authority.clone(),
                    node_id: Some(*uid),
                    reason,
                    observed_at: now.raw,
                });
        }
        self.topology.died(identity, now.own);
    }

    /// Queues the end of a life that a later one replaced: Dead, then Removed, as far as it was not reported before.
    fn ended_life(
        &mut self,
        old: &NodeIdentity,
        name: Option<NodeName>,
        from: NodeStatus,
        now: Now,
    ) {
        if old.uid == NodeUid::UNKNOWN {
            // Only a placeholder of a static cluster.
            return;
        }
        if from.is_active() {
            self.status_event(old, Some(from), NodeStatus::Dead, now);
            self.topology.died(old.clone(), now.own);
            // The departure of this node's own life is queued when it begins the next one.
            if old.authority != *self.own.authority()
                || self.state != MembershipRuntimeState::Member
            {
                let cause = match from {
                    NodeStatus::Leaving => GoneCause::Left,
                    _ => GoneCause::Replaced,
                };
                self.outbox.departed(name, old.clone(), Some(cause), now);
            }
        }
        if from != NodeStatus::Removed {
            self.status_event(old, Some(NodeStatus::Dead), NodeStatus::Removed, now);
        }
    }

    /// Queues a changed record for gossip, unless it is a tombstone that is not passed on.
    pub(super) fn spread(&mut self, slot: Slot, stamp_before: u64) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        if entry.quiet || !self.tells() {
            return;
        }
        let with_metadata = entry.record.metadata_stamp != stamp_before;
        self.dissemination.enqueue_member(slot, with_metadata);
        self.wake_push();
    }

    pub(super) fn retransmissions(&self) -> u32 {
        RumorQueue::retransmissions(self.table.active_len())
    }

    pub(super) fn status_event(
        &mut self,
        identity: &NodeIdentity,
        from: Option<NodeStatus>,
        to: NodeStatus,
        now: Now,
    ) {
        self.outbox.member_event(ClusterEvent::MemberStatusChanged {
            node_id: identity.uid,
            authority: identity.authority.clone(),
            from,
            to,
            observed_at: now.raw,
        });
    }

    /// An operator's order, from here or from gossip.
    pub(super) fn learn_order(&mut self, rumor: &QuarantineRumor, now: Now) -> OrderTaken {
        let taken = self.quarantine.order(rumor, now.raw);
        match taken {
            OrderTaken::Known | OrderTaken::Full => return taken,
            OrderTaken::Imposed => {
                self.outbox
                    .quarantine_event(ClusterEvent::MemberQuarantined {
                        authority: rumor.authority.clone(),
                        node_id: None,
                        reason: QuarantineReason::Operator(rumor.text.clone()),
                        observed_at: now.raw,
                    });
                // A topology event lists blocked authorities, but a quarantine alone does not cause one.
                self.end_life_of(&rumor.authority, now);
            }
            OrderTaken::Lifted => self
                .outbox
                .quarantine_event(ClusterEvent::QuarantineReleased {
                    authority: rumor.authority.clone(),
                    observed_at: now.raw,
                }),
            OrderTaken::Noted => {}
        }
        let own = rumor.authority == *self.own.authority();
        if own && self.joining.is_in_progress() {
            // Nothing keeps this node out any more, or for another time than it knew of.
            self.joining.retry_at(now.own);
        }
        if self.tells() {
            self.dissemination.enqueue_order(rumor.authority.clone());
            self.wake_push();
        }
        taken
    }

    /// Whether this node gossips.
    fn tells(&self) -> bool {
        self.config.gossip_enabled && self.state == MembershipRuntimeState::Member
    }

    /// Ends the current life of an authority.
    fn end_life_of(&mut self, authority: &Authority, now: Now) {
        if authority == self.own.authority() {
            // A node that is joining has no life that could end by it: it waits.
            let member = self.state == MembershipRuntimeState::Member;
            if member && self.own.status() != NodeStatus::Joining {
                self.quarantined(now);
            }
            return;
        }
        let record = self.table.record(authority);
        let Some(record) = record.filter(|record| record.status.is_active()) else {
            return;
        };
        let verdict = ended(record, NodeStatus::Dead);
        self.apply(&verdict, now);
    }

    /// When the status of a member changes by the passing of time alone.
    fn schedule(&mut self, slot: Slot, status: NodeStatus, now: Now) {
        self.timeouts.clear(slot);
        let config = &self.config;
        let wait = match status {
            NodeStatus::Joining => config.join_timeout,
            NodeStatus::Leaving => config.leave_grace + config.suspect_timeout * 2,
            NodeStatus::Dead | NodeStatus::Removed => config.dead_timeout,
            NodeStatus::Up | NodeStatus::Suspect => return,
        };
        self.timeouts.set(slot, wait, now);
    }

    pub(super) fn poll_timeouts(&mut self, now: Now) {
        while let Some(slot) = self.timeouts.pop_due(now) {
            self.timed_out(slot, now);
        }
    }

    fn timed_out(&mut self, slot: Slot, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let record = &entry.record;
        if Some(slot) == self.own_slot() {
            return;
        }
        match record.status {
            NodeStatus::Joining => self.join_timed_out(slot, now),
            NodeStatus::Leaving => {
                let record = ended(record, NodeStatus::Removed);
                self.apply(&record, now);
            }
            NodeStatus::Dead => self.remove_dead(slot, now),
            // Only this node remembers which lives of it are over.
            NodeStatus::Removed if self.addresses.is_named(&record.authority) => {
                self.schedule(slot, NodeStatus::Removed, now);
            }
            NodeStatus::Removed => self.collect(slot),
            NodeStatus::Up | NodeStatus::Suspect => {}
        }
    }

    /// A member was Joining for `join_timeout`: it is removed, unless this node receives nothing, was just suspended, or received
    /// from the joiner lately.
    fn join_timed_out(&mut self, slot: Slot, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let join_timeout = self.config.join_timeout;
        let heard = entry
            .heard_at
            .is_some_and(|at| now.raw.saturating_since(at) < join_timeout);
        if heard || self.receives_nothing(now) || self.is_waking() {
            self.timeouts.set(slot, join_timeout, now);
            return;
        }
        let record = ended(&entry.record, NodeStatus::Removed);
        self.apply(&record, now);
    }

    /// Every node does this at its own time, so it is not gossiped.
    fn remove_dead(&mut self, slot: Slot, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let (record, untold) = (ended(&entry.record, NodeStatus::Removed), entry.untold);
        let identity = record.identity();
        if self.table.apply(&record).is_ok() {
            if !untold {
                self.status_event(&identity, Some(NodeStatus::Dead), NodeStatus::Removed, now);
            }
            self.schedule(slot, NodeStatus::Removed, now);
        }
    }

    /// Removes the record; only the address is kept.
    pub(super) fn collect(&mut self, slot: Slot) {
        self.dissemination.forget(slot);
        self.detection.drop_watch(slot);
        self.timeouts.clear(slot);
        let record = self.table.entry(slot).map(|entry| &entry.record);
        let ended = record.and_then(|record| record.status.is_terminal().then_some(record.uid));
        if let Some(authority) = self.table.collect(slot) {
            self.detection.forget_intervals(&authority);
            self.outbox.forget_conflict(&authority);
            self.addresses.remember(authority, ended);
        }
    }

    /// Whether this node saw this life end, and has collected its tombstone since.
    pub(super) fn saw_end_of(&self, authority: &Authority, uid: NodeUid) -> bool {
        let watching = self.state == MembershipRuntimeState::Client;
        // The address book first: it rarely has an entry, and the table is large.
        self.addresses.saw_end_of(authority, uid)
            && !watching
            && self.config.gossip_enabled
            && self.table.slot_of(authority).is_none()
    }

    /// Handles a record of a life whose tombstone was collected here, as after a partition that was longer than tombstones are
    /// kept. The tombstone is made again and gossiped, so that the others learn that this life is over.
    pub(super) fn recall(&mut self, identity: NodeIdentity, now: Now) {
        let authority = identity.authority.clone();
        let record = MemberRecord {
            metadata_stamp: 0,
            ..MemberRecord::new(identity, NodeStatus::Removed, MemberMetadata::EMPTY)
        };
        self.apply(&record, now);
        let slot = self.table.slot_of(&authority);
        if let Some(entry) = slot.and_then(|slot| self.table.entry_mut(slot)) {
            entry.quiet = false;
        }
    }

    /// The records that make up a snapshot, and the orders in force.
    pub(super) fn full_delta(&self, now: Now) -> MembershipDelta {
        MembershipDelta {
            quarantines: self.quarantine.rumors(now.raw),
            ..self.table.delta_since(0)
        }
    }

    /// Records of the differing buckets.
    pub(super) fn bucket_records(&self, wanted: u64) -> Vec<MemberRecord> {
        self.table.in_buckets(wanted).cloned().collect()
    }
}

/// The record as it is when its life is over.
pub(super) fn ended(record: &MemberRecord, status: NodeStatus) -> MemberRecord {
    MemberRecord {
        status,
        accusations: Accusations::NONE,
        ..record.clone()
    }
}
