//! The events of a cluster.
//!
//! `ClusterEvent`s are for all subscribers; `MembershipEvent`s are notes for this node's own log and tests: things that were
//! refused, recorded and survived.

use crate::core::error::{EnvelopeError, MembershipError};
use crate::core::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::quarantine::{QuarantineReason, ReasonText};
use crate::core::snapshot::Member;
use crate::core::status::NodeStatus;
use crate::core::time::TimerInstant;
use crate::core::topology::ClusterTopology;
use alloc::sync::Arc;
use kumi_common::{Name as NodeName, NameAndLife};

/// Something that happened in the cluster, as seen by this node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// The set of active members differs from the one told last.
    TopologyUpdated {
        /// The difference, and the hash of the set.
        topology: Arc<ClusterTopology>,
        /// All active members, sorted by authority.
        members: Arc<[Member]>,
        /// Lives that were not in the last set.
        joined: Arc<[NodeIdentity]>,
        /// Lives that went by their own will or by order.
        left: Arc<[NodeIdentity]>,
        /// Lives that were given up.
        dead: Arc<[NodeIdentity]>,
        /// Authorities that are quarantined at the moment.
        blocked: Arc<[Authority]>,
        /// When the window closed, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// One life of a node went from one status to another; every step is allowed by [`NodeStatus::may_become`].
    MemberStatusChanged {
        /// The uid of that life.
        node_id: NodeUid,
        /// The address of the node.
        authority: Authority,
        /// Its status before; `None` when this life was not known.
        from: Option<NodeStatus>,
        /// Its status now.
        to: NodeStatus,
        /// When this node learned of it, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// A member is kept out, or was refused because it is kept out.
    MemberQuarantined {
        /// The authority that is kept out.
        authority: Authority,
        /// The uid of the life that is kept out; `None` when all lives of the authority are.
        node_id: Option<NodeUid>,
        /// Why it is kept out: the detector's or an operator's decision.
        reason: QuarantineReason,
        /// When this node learned of it, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// A quarantine has ended.
    QuarantineReleased {
        /// The authority whose quarantine has ended.
        authority: Authority,
        /// When this node learned of it, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// This node found out that the others have given it up.
    SelfDowned {
        /// Its identity before.
        identity: NodeIdentity,
        /// Its identity now; `None` when it stopped instead.
        successor: Option<NodeIdentity>,
        /// What it found out.
        reason: DownReason,
        /// When it found out, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// Two lives of one authority both keep answering: two nodes are configured with one address.
    AuthorityConflict {
        /// The address.
        authority: Authority,
        /// The life that counts.
        current: NodeUid,
        /// The one that should be gone.
        other: NodeUid,
        /// When this node noticed the conflict, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// A peer of another cluster, without a common version, or that sent a message in another node's name; told once per
    /// peer.
    PeerRefused {
        /// The address that the peer introduced itself by.
        authority: Authority,
        /// Why its message was refused.
        reason: EnvelopeError,
        /// When this node refused it, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// A topology could not be applied to the cluster's state. The events around it are not affected.
    TopologyApplyFailed {
        /// What does not fit, escaped and cut to 128 bytes.
        reason: ReasonText,
        /// When it failed, on the driver's clock.
        observed_at: TimerInstant,
    },
}

/// The end of one life of a node, as this node learned of it.
///
/// Of every life that this node told to be active (a [`ClusterEvent::MemberStatusChanged`] without `from`), exactly one of
/// these tells that it is active no more, this node's own former lives included. `Gone` is final: that uid does not come
/// back. `Forgotten` is no verdict: this node was cut off, or an observer lost sight of a member, and the same uid may be
/// told to be active again, and then to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Departure {
    /// The life is over and does not come back.
    Gone {
        /// The life that is over.
        identity: NodeIdentity,
        /// The node's name; `None` when this node knew none.
        name: Option<NodeName>,
        /// How it ended.
        cause: GoneCause,
        /// When this node learned of it, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// This node does not know any more whether the life goes on.
    Forgotten {
        /// The life that this node lost sight of.
        identity: NodeIdentity,
        /// The node's name; `None` when this node knew none.
        name: Option<NodeName>,
        /// When this node forgot it, on the driver's clock.
        observed_at: TimerInstant,
    },
}

impl Departure {
    /// The life that is active no more.
    pub fn identity(&self) -> &NodeIdentity {
        match self {
            Self::Gone { identity, .. } | Self::Forgotten { identity, .. } => identity,
        }
    }

    /// That life as `name~life`, the form of an owner of jobs; `None` for a node without a name.
    pub fn name_and_life(&self) -> Option<NameAndLife> {
        let (Self::Gone { identity, name, .. } | Self::Forgotten { identity, name, .. }) = self;
        name.as_ref().map(|name| name.with_life(identity.uid))
    }
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GoneCause {
    /// Its monitors gave it up, or it announced itself and never arrived.
    Died,
    /// It left by its own will. A node that heard of the end as a tombstone only, and knew the member as up, tells this
    /// too.
    Left,
    /// A later life of the same authority took its place.
    Replaced,
    /// An operator's quarantine ended it.
    Quarantined,
}

/// Why a node has another identity, or has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownReason {
    /// The others hold this life to be dead or removed.
    Dead,
    /// An operator has quarantined this authority.
    Quarantined,
    /// A later life of this authority has taken over. The node stops.
    Superseded,
    /// Other nodes report a later life of this authority that this node looked for and did not meet, or, where peers prove
    /// who they are, that this life is leaving although it is not. The node goes on under a uid above the reported one.
    Claimed,
    /// It received nothing for so long that the others may have forgotten it. Its view starts afresh: members it forgets
    /// get no status events, they are in `left` of its next topology.
    Isolated,
}

/// A note for this node's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MembershipEvent {
    /// Something from a peer or the caller was refused; the rest of it was applied.
    Refused {
        /// What and why.
        error: MembershipError,
    },
    /// Our own suspicion of a subject began.
    Accused {
        /// The subject.
        authority: Authority,
    },
    /// The detector heard an accused subject again and sent it the suspicion, so that it refutes.
    Reachable {
        /// The subject.
        authority: Authority,
    },
    /// This node refuted a suspicion.
    Refuted {
        /// The incarnation it now has.
        incarnation: u64,
    },
    /// This node was late by this much, and moved its deadlines accordingly.
    Late {
        /// By how many microseconds.
        late_us: u64,
    },
    /// A seed answered, and its snapshot was applied.
    Joined {
        /// The seed.
        via: Authority,
    },
}
