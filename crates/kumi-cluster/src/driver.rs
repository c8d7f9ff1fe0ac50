//! The driver: runs the core over Unison channels, on tokio.
//!
//! ```text
//!   ClusterNode ── core task ── MembershipRuntimeShared (the core behind a lock, events outside of it)
//!        │              │
//!        │           Carrier ── Link ── cluster.gossip  (reliable: snapshots, push-pull, what is too large)
//!        │              │        └───── cluster.packets (datagrams: heartbeats, probes, pushes)
//!        ├─ Admin ── cluster.admin (JSON requests and events, for operators)
//!        └─ Peers ── cluster.peer  (who opens the channels of the program, which share the port)
//! ```
//!
//! The driver decides nothing about members. It has clocks, sockets, queues and limits, and the core has everything else.

mod admin;
mod carrier;
mod clock;
mod compact;
mod counters;
mod departures;
mod error;
mod inbound;
mod link;
mod link_table;
mod memory;
mod node;
mod own_life;
mod parts;
mod peers;
mod quic;
mod resolve;
mod shared;
#[cfg(test)]
mod tests;
mod transport;
mod watch;

pub use admin::{
    ADMIN_CHANNEL, AdminClient, AdminError, AdminEvent, AdminEvents, AdminWatch, ClusterView,
    MemberRow, QuarantineRow,
};
pub use counters::DriverMetrics;
pub use departures::{DEPARTURE_BUFFER, LifeNotice, LifeWatch};
pub use error::DriverError;
pub use link_table::MAX_LINKS;
pub use memory::MemoryNetwork;
pub use node::{ClusterNode, NodeOptions};
pub use own_life::{OwnLife, OwnLifeWatch};
pub use peers::{NodeChannels, Peer, PeerConnection, PeerError};
pub use quic::Security;
pub use shared::{MembershipRuntimeShared, Turn};
pub use transport::Transport;
pub use watch::{ClusterWatch, Notice, WATCH_BUFFER};
