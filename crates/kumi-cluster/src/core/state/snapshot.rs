//! Views of the table that leave it: for readers, and for other nodes.

use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::state::quarantine::QuarantineRumor;
use crate::core::state::record::MemberRecord;
use alloc::sync::Arc;
use alloc::vec::Vec;
use kumi_common::NameAndLife;

/// A member as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its address.
    pub authority: Authority,
    /// Its uid.
    pub uid: NodeUid,
    /// Its status.
    pub status: NodeStatus,
    /// Its incarnation.
    pub incarnation: u64,
    /// Its metadata.
    pub metadata: MemberMetadata,
}

impl Member {
    pub(crate) fn of(record: &MemberRecord) -> Self {
        Self {
            authority: record.authority.clone(),
            uid: record.uid,
            status: record.status,
            incarnation: record.incarnation,
            metadata: record.metadata.clone(),
        }
    }

    /// Which life it is, by the name that events have for it.
    pub fn node_id(&self) -> NodeUid {
        self.uid
    }

    /// Its name and life, `name~life`; `None` for a member that announces no name.
    pub fn name_and_life(&self) -> Option<NameAndLife> {
        self.metadata.name_and_life(self.uid)
    }

    /// Authority and uid.
    pub fn identity(&self) -> NodeIdentity {
        NodeIdentity {
            authority: self.authority.clone(),
            uid: self.uid,
        }
    }
}

/// The active members at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MembershipSnapshot {
    /// The position in the local log.
    pub version: u64,
    /// Active members, sorted by authority.
    pub members: Arc<[Member]>,
    /// The hash over their authorities, uids and statuses: equal on nodes that agree.
    pub hash: u64,
}

/// One record with what this node alone knows about it: for operators and for tests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberView<'a> {
    /// The record, tombstones included.
    pub record: &'a MemberRecord,
    /// When this node last got anything from that very uid.
    pub heard_at: Option<TimerInstant>,
    /// Whether this node watches it.
    pub watched: bool,
}

/// Changes of a table, as they travel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipDelta {
    /// The position in the sender's log after which the changes were made; 0 for a snapshot.
    pub from_version: u64,
    /// The position in the sender's log that they lead to.
    pub to_version: u64,
    /// The changed records.
    pub records: Vec<MemberRecord>,
    /// Operators' quarantines.
    pub quarantines: Vec<QuarantineRumor>,
}

impl MembershipDelta {
    /// Whether it has no records and no quarantines.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.quarantines.is_empty()
    }
}
