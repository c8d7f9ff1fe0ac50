//! This node's own life: its identity, status and metadata, apart from the table so that it survives a fresh one.

use super::clock::Now;
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::rng::ClusterRng;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::{TimerInstant, millis};
use crate::core::state::record::{Accusations, MemberRecord};

#[derive(Clone, Debug)]
pub(crate) struct Own {
    identity: NodeIdentity,
    metadata: MemberMetadata,
    metadata_stamp: u64,
    incarnation: u64,
    status: NodeStatus,
    /// When a node that is leaving has left, in the runtime's own time.
    leave_ends: Option<TimerInstant>,
    /// The last reading of the wall clock, and the driver's clock at that moment.
    epoch: (u64, TimerInstant),
}

impl Own {
    pub(crate) fn new(
        identity: NodeIdentity,
        metadata: MemberMetadata,
        epoch: (u64, TimerInstant),
    ) -> Self {
        Self {
            identity,
            metadata,
            metadata_stamp: 1,
            incarnation: 1,
            status: NodeStatus::Joining,
            leave_ends: None,
            epoch,
        }
    }

    pub(crate) fn identity(&self) -> &NodeIdentity {
        &self.identity
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.identity.authority
    }

    pub(crate) fn uid(&self) -> NodeUid {
        self.identity.uid
    }

    pub(crate) fn metadata(&self) -> &MemberMetadata {
        &self.metadata
    }

    pub(crate) fn metadata_stamp(&self) -> u64 {
        self.metadata_stamp
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub(crate) fn status(&self) -> NodeStatus {
        self.status
    }

    pub(crate) fn set_status(&mut self, status: NodeStatus) {
        self.status = status;
    }

    /// Sets the incarnation. Within one life the caller only raises it.
    pub(crate) fn set_incarnation(&mut self, incarnation: u64) {
        self.incarnation = incarnation;
    }

    /// Whether this life has begun to leave, or has left.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.status, NodeStatus::Leaving | NodeStatus::Removed)
    }

    /// The record that this node publishes of itself.
    pub(crate) fn record(&self) -> MemberRecord {
        MemberRecord {
            authority: self.identity.authority.clone(),
            uid: self.identity.uid,
            // A node that continues a uid which others know in a higher incarnation does not go back to Joining there.
            incarnation: match self.status {
                NodeStatus::Joining => 1,
                _ => self.incarnation,
            },
            status: self.status,
            accusations: Accusations::NONE,
            metadata_stamp: self.metadata_stamp,
            metadata: self.metadata.clone(),
        }
    }

    /// Takes another uid; incarnation and metadata stamp go on.
    pub(crate) fn set_uid(&mut self, uid: NodeUid) {
        self.identity.uid = uid;
    }

    /// Takes another uid whose incarnations and metadata stamps begin anew.
    pub(crate) fn begin_life(&mut self, uid: NodeUid) {
        self.identity.uid = uid;
        self.incarnation = 1;
        self.metadata_stamp = 1;
    }

    /// A uid above every one this node ever had, and above `floor`.
    pub(crate) fn next_uid(
        &self,
        floor: Option<NodeUid>,
        rng: &mut ClusterRng,
        now: Now,
    ) -> NodeUid {
        let clock = NodeUid::new(self.unix_ms(now), rng.word());
        let own = self.identity.uid.successor();
        let above = floor.and_then(NodeUid::successor);
        [own, above].into_iter().flatten().fold(clock, NodeUid::max)
    }

    pub(crate) fn set_metadata(&mut self, metadata: MemberMetadata) {
        self.metadata = metadata;
    }

    /// Gives the metadata a stamp above one that was used; false when this life has none left.
    pub(crate) fn stamp_metadata_above(&mut self, used: u64) -> bool {
        let next = used.checked_add(1);
        self.metadata_stamp = next.unwrap_or(self.metadata_stamp);
        next.is_some()
    }

    /// Sets when the grace of a leaving node ends.
    pub(crate) fn set_leave_ends(&mut self, at: Option<TimerInstant>) {
        self.leave_ends = at;
    }

    pub(crate) fn leave_ends(&self) -> Option<TimerInstant> {
        self.leave_ends
    }

    /// Notes a reading of the wall clock.
    pub(crate) fn set_unix_ms(&mut self, unix_ms: u64, now: TimerInstant) {
        self.epoch = (unix_ms, now);
    }

    /// The wall clock: the last reading, advanced by the driver's clock.
    pub(crate) fn unix_ms(&self, now: Now) -> u64 {
        let (unix_ms, then) = self.epoch;
        unix_ms.saturating_add(millis(now.raw.saturating_since(then)))
    }
}
