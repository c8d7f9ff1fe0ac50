//! The membership protocol, without I/O: it opens no socket, reads no clock, and draws random numbers only from the seed it is
//! given. It needs an allocator and nothing else.
//!
//! [`MembershipRuntime`] is the state machine of one node. It is made of the members ([`MembershipTable`]), the updates to
//! spread ([`RumorQueue`]), the failure detector ([`PhiFailureDetector`]) and the quarantines ([`QuarantineTable`]).
//! [`ClusterProjection`] follows its events.
//!
//! The folders are layers. A folder imports only those before it in this list, and a test checks it: `base` (instants,
//! identities, errors), `state` (records, table, quarantines), `wire` (messages), `protocol` (detector, queue of updates,
//! configuration, events), `membership` (the state machine), `views` (what follows its events).

pub(crate) mod base;
pub(crate) mod membership;
pub(crate) mod protocol;
pub(crate) mod state;
pub(crate) mod views;
pub(crate) mod wire;

pub use base::error::{
    EnvelopeError, GossipTransportError, MembershipError, MembershipRuntimeError,
};
pub use base::identity::{
    Authority, MAX_AUTHORITY_BYTES, MAX_CLUSTER_NAME_BYTES, NodeIdentity, NodeUid,
};
pub use base::metadata::{MAX_METADATA_BYTES, MemberMetadata};
pub use base::reason::{MAX_REASON_BYTES, QuarantineReason, ReasonText};
pub use base::status::NodeStatus;
pub use base::time::TimerInstant;
pub use kumi_common::{InvalidName, MAX_NAME_BYTES, Name as NodeName, NameAndLife};
pub use membership::{
    Footprint, LocalNode, MembershipMetrics, MembershipRuntime, MembershipRuntimeOutcome,
    MembershipRuntimeState,
};
pub use protocol::config::MembershipRuntimeConfig;
pub use protocol::event::{ClusterEvent, Departure, DownReason, GoneCause, MembershipEvent};
pub use protocol::phi::{DetectorEffect, PhiConfig, PhiFailureDetector};
pub use protocol::rumor_queue::RumorQueue;
pub use protocol::topology::ClusterTopology;
pub use state::quarantine::{
    MAX_QUARANTINE, OrderTaken, QuarantineEntry, QuarantineRumor, QuarantineTable,
};
pub use state::record::{Accusation, Accusations, MAX_ACCUSERS, MemberRecord, Merge};
pub use state::snapshot::{Member, MemberView, MembershipDelta, MembershipSnapshot};
pub use state::table::{Applied, MembershipTable};
pub use views::document;
pub use views::event_stream::{EventStream, Subscription};
pub use views::identity_table::{IdentityTable, ResolveError};
pub use views::projection::{ClusterMetrics, ClusterProjection, TopologyError};
pub use wire::codec::{
    Envelope, JoinRefusal, MAX_DELTA_QUARANTINES, MAX_DELTA_RECORDS, MAX_ENVELOPE_BYTES,
    MAX_VERSION, MIN_VERSION, Message, Seen,
};
pub use wire::transport::{
    Delivery, GossipOutbound, GossipTransport, MAX_DATAGRAM_BYTES, MessageKind,
};
