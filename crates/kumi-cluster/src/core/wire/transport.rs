//! What the core asks to be sent, and the contract of a transport.
//!
//! The core never sends anything again because a transport failed: whatever matters is repeated by gossip, heartbeats
//! and retries of their own.

use crate::core::base::error::GossipTransportError;
use crate::core::base::identity::Authority;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most bytes in one datagram. Every path carries UDP datagrams of 1200 bytes with QUIC; of these QUIC takes up to 38 and
/// a datagram of Unison up to 12, and the rest is left for a transport that adds more.
pub const MAX_DATAGRAM_BYTES: usize = 1100;

/// How a message is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// At most [`MAX_DATAGRAM_BYTES`]; may be lost, doubled or overtaken.
    Datagram,
    /// Any size; arrives whole or not at all.
    Reliable,
}

/// What a message is for; for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MessageKind {
    /// A heartbeat to a monitor.
    Heartbeat,
    /// The acknowledgement of a heartbeat.
    HeartbeatAck,
    /// Direct and indirect probes and their answers.
    Probe,
    /// Gossip to a few random members.
    Push,
    /// A push-pull exchange.
    PushPull,
    /// Joining and its answers.
    Join,
    /// Telling a member what is known about it.
    Verdict,
}

impl MessageKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Heartbeat,
        Self::HeartbeatAck,
        Self::Probe,
        Self::Push,
        Self::PushPull,
        Self::Join,
        Self::Verdict,
    ];
}

/// A message on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GossipOutbound {
    /// The receiver.
    pub to: Authority,
    /// The encoded envelope; shared, because one heartbeat goes to all monitors.
    pub bytes: Arc<[u8]>,
    /// How it is delivered.
    pub delivery: Delivery,
    /// What it is for.
    pub kind: MessageKind,
}

/// Carries messages between nodes.
pub trait GossipTransport {
    /// Takes a message, or returns why it did not. The message is not offered again.
    fn send(&mut self, outbound: GossipOutbound) -> Result<(), GossipTransportError>;

    /// What has arrived since the last call: from where, and the bytes.
    fn poll_deltas(&mut self) -> Vec<(Authority, Vec<u8>)>;
}
