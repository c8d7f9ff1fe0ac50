//! The membership protocol, without I/O: it opens no socket, reads no clock, and draws random numbers only from the seed it is
//! given. It needs an allocator and nothing else.
//!
//! [`MembershipRuntime`] is the state machine of one node. It is made of the members ([`MembershipTable`]), the updates to
//! spread ([`GossipEngine`]), the failure detector ([`PhiFailureDetector`]) and the quarantines ([`QuarantineTable`]).
//! [`ClusterProjection`] follows its events.

mod book;
pub(crate) mod codec;
mod config;
pub mod document;
mod error;
mod event;
mod event_stream;
mod gossip;
mod hash;
mod identity;
mod identity_table;
mod metadata;
mod phi;
mod projection;
mod quarantine;
mod record;
mod ring;
mod rng;
mod runtime;
mod snapshot;
mod status;
mod table;
mod time;
pub(crate) mod topology;
mod transport;

pub use codec::{
    Envelope, JoinRefusal, MAX_DELTA_QUARANTINES, MAX_DELTA_RECORDS, MAX_ENVELOPE_BYTES,
    MAX_VERSION, MIN_VERSION, Message, Seen,
};
pub use config::{MAX_CLUSTER_NAME_BYTES, MembershipRuntimeConfig};
pub use error::{EnvelopeError, GossipTransportError, MembershipError, MembershipRuntimeError};
pub use event::{ClusterEvent, Departure, DownReason, GoneCause, MembershipEvent};
pub use event_stream::{EventStream, Subscription};
pub use gossip::GossipEngine;
pub use identity::{Authority, MAX_AUTHORITY_BYTES, NodeIdentity, NodeUid};
pub use identity_table::{IdentityTable, ResolveError};
pub use kumi_common::{InvalidName, MAX_NAME_BYTES, Name as NodeName, NameAndLife};
pub use metadata::{MAX_METADATA_BYTES, MemberMetadata};
pub use phi::{DetectorEffect, PhiConfig, PhiFailureDetector};
pub use projection::{ClusterMetrics, ClusterProjection, TopologyError};
pub use quarantine::{
    MAX_QUARANTINE, MAX_REASON_BYTES, OrderTaken, QuarantineEntry, QuarantineReason,
    QuarantineRumor, QuarantineTable, ReasonText,
};
pub use record::{Accusation, Accusations, MAX_ACCUSERS, MemberRecord, Merge};
pub use runtime::{
    Footprint, LocalNode, MembershipMetrics, MembershipRuntime, MembershipRuntimeOutcome,
    MembershipRuntimeState,
};
pub use snapshot::{Member, MemberView, MembershipDelta, MembershipSnapshot};
pub use status::NodeStatus;
pub use table::{Applied, MembershipTable};
pub use time::TimerInstant;
pub use topology::ClusterTopology;
pub use transport::{Delivery, GossipOutbound, GossipTransport, MAX_DATAGRAM_BYTES, MessageKind};
