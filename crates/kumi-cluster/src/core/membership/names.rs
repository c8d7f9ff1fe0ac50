//! One live node per name.
//!
//! Membership goes by authorities, so a second node with the name of a member would be a member beside it. A node that asks
//! to join under the name of an active member of another authority is therefore answered only after that member was probed:
//!
//! - the member answers: the joiner is refused ([`JoinRefusal::NameTaken`]), and asks again later;
//! - it does not answer three probes, `probe_timeout` apart: the joiner is let in. The member has crashed, and the joiner is
//!   its restart at another authority, or the member is cut off. Either way the failure detector decides about the member.
//!
//! A restart at the same authority is no second node: its uid is higher, and replaces the earlier life at once. A member that
//! is leaving does not keep its name.
//!
//! Two nodes of one name can still become members: through two seeds at once, on two sides of a partition, or while the first
//! one did not run. So a member that learns of an active member with its own name and an earlier uid probes it, at once and
//! every [`NAMESAKE_BEATS`] heartbeat intervals. If that member answers, this node ends its life ([`DownReason::NameTaken`]) and
//! joins again, which is refused while the other one runs. Of two live nodes the one in the earlier life stays. Nodes that reach
//! other members but not each other both stay.

use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::error::MembershipError;
use crate::core::base::identity::{Authority, NodeIdentity};
use crate::core::base::status::NodeStatus;
use crate::core::protocol::event::{ClusterEvent, DownReason};
use crate::core::state::record::MemberRecord;
use crate::core::state::table::Slot;
use crate::core::wire::codec::{JoinRefusal, Message};
use crate::core::wire::transport::Delivery;
use kumi_common::Name as NodeName;

/// How many heartbeat intervals lie between two probes of a member with the name of this node.
const NAMESAKE_BEATS: u32 = 5;

impl MembershipRuntime {
    /// Why this node is not let in, as of the last answer of a seed: a live member has its name. `None` for a node that is not
    /// joining, or was not refused.
    pub fn refusal(&self) -> Option<MembershipError> {
        let holder = self.joining.refused_by()?.clone();
        let name = self.own.metadata().name()?;
        Some(MembershipError::NameTaken { name, holder })
    }

    /// Whether the name of a joiner has to be checked first. If so, the check is begun, unless it is
    /// pending; the joiner is answered when it ends.
    pub(super) fn checks_name_of(&mut self, record: &MemberRecord, now: Now) -> bool {
        let is_member_already = self
            .table
            .record(&record.authority)
            .is_some_and(|known| known.uid == record.uid && known.status.is_active());
        if is_member_already {
            return false;
        }
        let name = record.metadata.name();
        let Some(holder) = name.and_then(|name| self.holder_of(&name, record)) else {
            return false;
        };
        if holder == *self.own.identity() {
            self.refuse_name(record, holder);
            return true;
        }
        self.probe_holder(holder, Some(record), now);
        true
    }

    /// The active member of another authority that has this name, and is not leaving.
    fn holder_of(&self, name: &NodeName, joiner: &MemberRecord) -> Option<NodeIdentity> {
        let mut records = self.table.iter().map(|(_, entry)| &entry.record);
        let has_name = |record: &&MemberRecord| {
            record.authority != joiner.authority
                && keeps_name(record)
                && record.metadata.name().as_ref() == Some(name)
        };
        records.find(has_name).map(MemberRecord::identity)
    }

    /// Begins a check, unless it is pending.
    fn probe_holder(&mut self, holder: NodeIdentity, joiner: Option<&MemberRecord>, now: Now) {
        let authority = holder.authority.clone();
        let asked_by = joiner.map(|record| &record.authority);
        if self.name_checks.is_pending(&holder, asked_by) {
            return;
        }
        let nonce = self.rng.word();
        let timeout = self.config.probe_timeout;
        let has_room = self
            .name_checks
            .begin(nonce, holder, joiner.cloned(), timeout, now);
        if has_room {
            self.probe_for_name(&authority, nonce);
        }
    }

    fn probe_for_name(&mut self, holder: &Authority, nonce: u64) {
        self.send(holder, Message::Probe { nonce }, Delivery::Reliable);
    }

    /// Handles the answer of a member that was probed because of its name.
    pub(super) fn name_holder_answered(&mut self, nonce: u64, by: &NodeIdentity, now: Now) {
        let Some((holder, joiner)) = self.name_checks.answered(nonce, by) else {
            return;
        };
        match joiner {
            Some(joiner) => self.refuse_name(&joiner, holder),
            None => self.give_up_name(now),
        }
    }

    fn refuse_name(&mut self, joiner: &MemberRecord, holder: NodeIdentity) {
        let reason = JoinRefusal::NameTaken { holder };
        let message = Message::JoinRefused { reason };
        self.send(&joiner.authority, message, Delivery::Reliable);
    }

    /// Lets joiners in whose name's holder did not answer, and probes the member that has this node's own name.
    pub(super) fn poll_names(&mut self, now: Now) {
        if self.name_checks.deadline().is_none_or(|at| now.own < at) {
            return;
        }
        for joiner in self.name_checks.take_unanswered(now) {
            self.let_in(&joiner, now);
        }
        for (nonce, holder) in self.name_checks.due_probes(self.config.probe_timeout, now) {
            self.probe_for_name(&holder, nonce);
        }
        if let Some(namesake) = self.name_checks.due_namesake(now).cloned() {
            if !self.is_namesake(&namesake) {
                self.name_checks.clear_namesake();
                // It may have hidden another one.
                self.look_for_namesakes(now);
                return;
            }
            let next = now.own + self.config.heartbeat_interval * NAMESAKE_BEATS;
            self.name_checks.set_namesake(namesake.clone(), next);
            self.probe_holder(namesake, None, now);
        }
    }

    /// Called when the metadata of a member became known or changed.
    pub(super) fn look_for_namesake(&mut self, slot: Slot, now: Now) {
        let record = self.table.entry(slot).map(|entry| &entry.record);
        let identity = record.map(MemberRecord::identity);
        if let Some(identity) = identity.filter(|identity| self.is_namesake(identity)) {
            self.name_checks.set_namesake(identity, now.own);
        }
    }

    /// Called when this node becomes Up, and when the member that had its name is gone: looks for a member with its name among
    /// those that it knows.
    pub(super) fn look_for_namesakes(&mut self, now: Now) {
        let identities = self.table.iter().map(|(_, entry)| entry.record.identity());
        let mut identities = identities.filter(|identity| self.is_namesake(identity));
        if let Some(identity) = identities.next() {
            self.name_checks.set_namesake(identity, now.own);
        }
    }

    /// Whether this life is active, has the name of this node at another authority, and began before this node's life.
    fn is_namesake(&self, identity: &NodeIdentity) -> bool {
        let is_up = self.state == MembershipRuntimeState::Member
            && self.config.gossip_enabled
            && self.own.status() == NodeStatus::Up;
        let is_earlier =
            identity.authority != *self.own.authority() && identity.uid < self.own.uid();
        if !is_up || !is_earlier {
            return false;
        }
        let record = self.table.record(&identity.authority);
        let record = record.filter(|record| record.uid == identity.uid && keeps_name(record));
        let name = record.and_then(|record| record.metadata.name());
        name.is_some() && name == self.own.metadata().name()
    }

    /// A live member in an earlier life has this node's name: this life ends, which the others are told, and the node joins
    /// again.
    fn give_up_name(&mut self, now: Now) {
        if self.own.status() != NodeStatus::Up {
            return;
        }
        self.name_checks.clear_namesake();
        self.announce_own_end(NodeStatus::Removed, None);
        self.downed_below(DownReason::NameTaken, None, now);
    }

    /// A seed refused this node because a live member has its name.
    pub(super) fn name_refused(&mut self, holder: &NodeIdentity, now: Now) {
        let Some(name) = self.own.metadata().name() else {
            return;
        };
        let error = MembershipError::NameTaken {
            name: name.clone(),
            holder: holder.clone(),
        };
        self.outbox.refuse(error);
        if self.joining.refused(holder) {
            self.outbox.member_event(ClusterEvent::NameTaken {
                name,
                holder: holder.clone(),
                observed_at: now.raw,
            });
        }
    }
}

/// Whether a member keeps its name from others. One that leaves does not, so that its restart need not wait for it.
fn keeps_name(record: &MemberRecord) -> bool {
    record.status.is_active() && record.status != NodeStatus::Leaving
}
