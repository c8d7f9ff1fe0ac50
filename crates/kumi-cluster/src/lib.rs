//! Membership: which nodes form the cluster, and which of them are alive.
//!
//! [`core`] is a state machine without I/O: [`core::MembershipRuntime`] takes what arrived and the time, and returns
//! what to send and what to publish. It needs an allocator and nothing else. [`wire`] is the format of its messages. The
//! feature `driver` adds the module of that name, which runs the core over real connections.
//!
//! What a program needs to run a node and to follow the membership is at the root of the crate.
//!
//! `docs/cluster.md` says how to run it, what holds whatever happens, and how to tune it; `docs/cluster-protocol.md`
//! describes the protocol.

#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "driver", feature = "simulation"))]
extern crate std;

pub mod core;
#[cfg(feature = "driver")]
pub mod driver;
#[cfg(feature = "simulation")]
pub mod sim;

/// The format of the messages between nodes: the envelope, what it carries, and its limits.
pub mod wire {
    pub use crate::core::wire::codec::{
        Envelope, JoinRefusal, MAX_DELTA_QUARANTINES, MAX_DELTA_RECORDS, MAX_ENVELOPE_BYTES,
        MAX_VERSION, MIN_VERSION, Message, Seen,
    };
    pub use crate::core::{EnvelopeError, MAX_DATAGRAM_BYTES, MembershipDelta};
}

pub use crate::core::{
    Authority, ClusterEvent, ClusterTopology, Departure, DownReason, GoneCause, MAX_QUARANTINE,
    Member, MemberMetadata, MembershipError, MembershipEvent, MembershipRuntimeConfig,
    MembershipRuntimeError, MembershipSnapshot, NameAndLife, NodeIdentity, NodeName, NodeStatus,
    NodeUid, QuarantineEntry, QuarantineReason, TimerInstant,
};
#[cfg(feature = "driver")]
pub use driver::{
    AdminClient, AdminError, AdminEvent, AdminEvents, AdminWatch, ClusterNode, ClusterView,
    ClusterWatch, DriverError, DriverMetrics, LifeNotice, LifeWatch, MemberRow, MemoryNetwork,
    NodeChannels, NodeOptions, Notice, OwnLife, OwnLifeWatch, Peer, PeerConnection, PeerError,
    QuarantineRow, Security, Transport,
};
