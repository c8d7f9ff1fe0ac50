//! Everything that can be refused, one enum per boundary.
//!
//! No variant carries raw text from outside: names are authorities, which are printable by construction, and reasons
//! are escaped and capped.

use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::reason::QuarantineReason;
use crate::core::base::status::NodeStatus;
use core::time::Duration;
use kumi_common::Name;

/// Why a member was not taken, changed or let go. Nothing was changed unless the variant's text says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The caller asked before starting, or after stopping.
    #[error("membership is not started")]
    NotStarted,
    /// A client watches the cluster; it has no part in it.
    #[error("a client may not change the membership")]
    ClientMayNot,
    /// The authority is quarantined by an operator, or this uid by the detector. The refusal is also queued as a
    /// `MemberQuarantined` event for the next outcome.
    #[error("{authority} is quarantined for another {} s: {reason}", remaining.as_secs())]
    Quarantined {
        /// The authority that was refused.
        authority: Authority,
        /// Why it is quarantined.
        reason: QuarantineReason,
        /// How much longer.
        remaining: Duration,
    },
    /// One life of a node cannot go this way. Recorded, and the rest of what came with it is applied.
    #[error("{authority} cannot go from {from} to {to}")]
    InvalidTransition {
        /// The member.
        authority: Authority,
        /// What it is.
        from: NodeStatus,
        /// What it was asked to become.
        to: NodeStatus,
    },
    /// A later life of this authority is known already.
    #[error("{authority} has a later life {current}")]
    Superseded {
        /// The member whose life is over.
        authority: Authority,
        /// The later life.
        current: NodeUid,
    },
    /// No active member has that authority.
    #[error("{authority} is not a member")]
    UnknownMember {
        /// The authority that was asked for.
        authority: Authority,
    },
    /// The table is full; a limit of the configuration.
    #[error("the table already holds {limit} members")]
    TableFull {
        /// The limit.
        limit: usize,
    },
    /// A live member of another authority has the name of this node. The node asks again, and is let in when that member has
    /// ended or does not answer.
    #[error("the name {name} is taken by the node at {}, which is alive", holder.authority)]
    NameTaken {
        /// The name.
        name: Name,
        /// The member that has it.
        holder: NodeIdentity,
    },
    /// Not an address this crate can carry.
    #[error("an authority is 1 to 255 visible ASCII characters")]
    InvalidAuthority,
    /// The uid begins more than a day ahead of this node's clock. Only a node that checks identities refuses it.
    #[error("{authority} has the uid {uid}, more than a day ahead of this node's clock")]
    UidAhead {
        /// The member whose record was refused.
        authority: Authority,
        /// Its uid.
        uid: NodeUid,
    },
    /// More metadata than travels with a record.
    #[error(
        "{len} bytes of metadata, at most {} are carried",
        crate::core::MAX_METADATA_BYTES
    )]
    MetadataTooLarge {
        /// How much there was.
        len: usize,
    },
}

/// Why the runtime did not start or stop. Its state is what it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipRuntimeError {
    /// Stopping what does not run.
    #[error("membership is not started")]
    NotStarted,
    /// Starting what runs.
    #[error("membership is started already")]
    AlreadyStarted,
    /// The configuration contradicts itself; the text names the rule that is broken.
    #[error("{0}")]
    InvalidConfig(&'static str),
    /// A superseded node does not come back by itself: it has to be made anew, under another authority or after the
    /// other one is gone.
    #[error("a later life of this authority has taken over")]
    Superseded,
}

/// Why an envelope was refused. Nothing of it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The bytes end before the message does.
    #[error("the message is cut off")]
    Truncated,
    /// Bytes follow the end of the message.
    #[error("{0} bytes follow the message")]
    TrailingBytes(usize),
    /// Not a message of this protocol.
    #[error("not a membership message")]
    BadMagic,
    /// No common protocol version.
    #[error("the peer supports versions {min} to {max}")]
    Version {
        /// The oldest version that the peer supports.
        min: u8,
        /// The newest version that the peer supports.
        max: u8,
    },
    /// The message belongs to another cluster.
    #[error("the message belongs to another cluster")]
    WrongCluster,
    /// A field has a value that no sender writes.
    #[error("{0} is out of range")]
    BadField(&'static str),
    /// A count or a length is past its limit.
    #[error("{0} is past its limit")]
    TooLarge(&'static str),
    /// The message claims to come from this very node.
    #[error("the message claims to come from this node")]
    OwnIdentity,
    /// Peers prove who they are, and the message names another authority as its sender than that of the peer.
    #[error("the message names another sender than the peer that sent it")]
    SenderMismatch,
    /// Peers prove who they are, and the sender's uid begins more than a day ahead of this node's clock: one of the two
    /// clocks is wrong, or the uid is made up.
    #[error("the sender's uid is more than a day ahead of this node's clock; compare the clocks")]
    SenderAhead,
    /// The runtime is stopped and takes no messages.
    #[error("membership is not started")]
    NotStarted,
}

/// Why a transport did not take a message. The core does not send it again: gossip repeats itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GossipTransportError {
    /// The queue towards that peer is full.
    #[error("the queue towards {0} is full")]
    QueueFull(Authority),
    /// There is no way to that peer at the moment.
    #[error("{0} is not reachable")]
    Unreachable(Authority),
    /// The transport is closed.
    #[error("the transport is closed")]
    Closed,
}
