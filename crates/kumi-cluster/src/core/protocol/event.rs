//! The events of a cluster.
//!
//! `ClusterEvent`s are for all subscribers; `MembershipEvent`s are notes for this node's own log and for tests.

use crate::core::base::error::{EnvelopeError, MembershipError};
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::reason::{QuarantineReason, ReasonText};
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::protocol::topology::ClusterTopology;
use crate::core::state::snapshot::Member;
use alloc::sync::Arc;
use kumi_common::{Name as NodeName, NameAndLife};

/// A change in the cluster, as this node learned of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// The set of active members differs from that of the last such event.
    TopologyUpdated {
        /// The difference, and the hash of the set.
        topology: Arc<ClusterTopology>,
        /// All active members, sorted by authority.
        members: Arc<[Member]>,
        /// Lives that were not in the last set.
        joined: Arc<[NodeIdentity]>,
        /// Lives that left, or that this node forgot.
        left: Arc<[NodeIdentity]>,
        /// Lives that were declared dead or replaced.
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
    /// A member is quarantined, or was refused because it is.
    MemberQuarantined {
        /// The authority that is quarantined.
        authority: Authority,
        /// The uid of the life that is quarantined; `None` when all lives of the authority are.
        node_id: Option<NodeUid>,
        /// Whether the detector or an operator decided it.
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
    /// A life of this node ended while its process runs: the others declared it dead, or it was quarantined, replaced or
    /// isolated.
    SelfDowned {
        /// The life that ended.
        identity: NodeIdentity,
        /// The next life; `None` when the node stopped instead.
        successor: Option<NodeIdentity>,
        /// Why it ended.
        reason: DownReason,
        /// When this node learned of it, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// Two lives of one authority both send messages: two nodes are configured with one address.
    AuthorityConflict {
        /// The address.
        authority: Authority,
        /// The later life, which is the member.
        current: NodeUid,
        /// The earlier life, which still sends.
        other: NodeUid,
        /// When this node noticed the conflict, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// This node was refused because a live member has its name. It asks again, and is let in when that member has ended or does
    /// not answer. One event per member.
    NameTaken {
        /// The name.
        name: NodeName,
        /// The member that has it.
        holder: NodeIdentity,
        /// When a seed answered so, on the driver's clock.
        observed_at: TimerInstant,
    },
    /// Messages of a peer are refused: it is of another cluster, has no common version, or named another node as the sender.
    /// One event per peer.
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
/// There is exactly one departure for every life that this node reported as active (a
/// [`ClusterEvent::MemberStatusChanged`] without `from`), this node's own former lives included. `Gone` is final: that uid does
/// not become active again. `Forgotten` is not: this node was cut off, or an observer lost sight of a member, and the same uid may
/// be reported as active again, and then as gone.
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
    /// Its monitors declared it dead, or it was Joining and did not become Up in time.
    Died,
    /// It left. A node that knew the member as Up and received only its tombstone reports this too.
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
    /// A live member in an earlier life has the name of this node. The node joins again, which is refused while that member
    /// runs.
    NameTaken,
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
    /// This node began to suspect a member: it added its accusation to the member's record.
    Suspected {
        /// The member.
        authority: Authority,
    },
    /// This node received from a member that it suspected, withdrew its accusation, and sent the member the suspicion, so that
    /// the member refutes it.
    Reachable {
        /// The member.
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
