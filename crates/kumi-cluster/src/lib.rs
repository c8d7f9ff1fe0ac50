//! Membership: which nodes form the cluster, and which of them are alive.
//!
//! The core is a state machine without I/O: [`MembershipRuntime`] takes what arrived and the time, and returns
//! what to send and what to publish. It needs an allocator and nothing else. Whatever runs it over real connections is
//! in the `driver` module, behind the feature of that name.
//!
//! `docs/cluster.md` says how to run it, what holds whatever happens, and how to tune it; `docs/cluster-protocol.md`
//! describes the protocol.

#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "driver", feature = "simulation"))]
extern crate std;

mod book;
mod cluster_core;
mod codec;
mod config;
#[cfg(feature = "driver")]
mod driver;
mod error;
mod event;
mod event_stream;
mod gossip;
mod hash;
mod identity;
mod identity_table;
mod metadata;
mod phi;
mod quarantine;
mod record;
mod ring;
mod rng;
mod runtime;
#[cfg(feature = "simulation")]
pub mod sim;
mod snapshot;
mod status;
mod table;
mod time;
mod topology;
mod transport;

pub use cluster_core::{ClusterCore, ClusterMetrics, TopologyError};
pub use codec::{
    Envelope, JoinRefusal, MAX_DELTA_QUARANTINES, MAX_DELTA_RECORDS, MAX_ENVELOPE_BYTES,
    MAX_VERSION, MIN_VERSION, Message, Seen,
};
pub use config::{MAX_CLUSTER_NAME_BYTES, MembershipRuntimeConfig};
#[cfg(feature = "driver")]
pub use driver::*;
pub use error::{EnvelopeError, GossipTransportError, MembershipError, MembershipRuntimeError};
pub use event::{ClusterEvent, Departure, DownReason, GoneCause, MembershipEvent};
pub use event_stream::{EventStream, Subscription};
pub use gossip::GossipEngine;
pub use identity::{Authority, MAX_AUTHORITY_BYTES, NodeIdentity, NodeUid};
pub use identity_table::{IdentityTable, ResolveError};
pub use kumi_common::{InvalidName, MAX_NAME_BYTES, Name as NodeName, NameAndLife};
pub use metadata::{MAX_METADATA_BYTES, MemberMetadata};
pub use phi::{DetectorEffect, PhiConfig, PhiFailureDetector};
pub use quarantine::{
    MAX_QUARANTINE, MAX_REASON_BYTES, OrderTaken, QuarantineEntry, QuarantineReason,
    QuarantineRumor, QuarantineTable, ReasonText,
};
pub use record::{Accusation, Accusations, MAX_ACCUSERS, MemberRecord, Merge};
pub use runtime::{
    Footprint, LocalNode, MembershipMetrics, MembershipRuntime, MembershipRuntimeOutcome,
    MembershipRuntimePort, MembershipRuntimeState,
};
pub use snapshot::{Member, MemberView, MembershipDelta, MembershipSnapshot};
pub use status::NodeStatus;
pub use table::{Applied, MembershipTable};
pub use time::TimerInstant;
pub use topology::ClusterTopology;
pub use transport::{
    Delivery, GossipOutbound, GossipTransport, MAX_DATAGRAM_BYTES, MessageKind, Pumped, pump,
};
