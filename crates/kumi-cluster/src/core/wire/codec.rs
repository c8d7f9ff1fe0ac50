//! Messages between nodes, as bytes.
//!
//! ```text
//!   0       1      2      3      4      5
//!   +-------+------+------+------+------+-----------+-------------+-----------+--------+
//!   | magic | min  | max  | ver. | kind | cluster   | authority   | uid       | body   |
//!   | 0xC7  | ver. | ver. | here |      | u8, text  | u8, text    | u64 LE    |        |
//!   +-------+------+------+------+------+-----------+-------------+-----------+--------+
//! ```
//!
//! Numbers in bodies are little-endian groups of seven bits (`varint`) unless they are hashes or uids, which are eight
//! bytes. A record is
//!
//! ```text
//!   flags: status in bits 0-2, metadata follows in bit 3, accusers follow in bit 4
//!   authority u8 + text | uid u64 | incarnation varint
//!   [metadata: stamp varint, length varint, bytes] [accusers: count u8, (uid u64, round varint)*, sorted]
//! ```
//!
//! and an operator's order is
//!
//! ```text
//!   authority u8 + text | version u64 | remaining ms varint, 0 lifts | remembered for ms varint | reason u8 + text
//! ```
//!
//! Decoding refuses whatever no sender writes, allocates no more than the bytes that are there can fill, and never
//! panics. The versions come before everything that a later one may change: the range that the sender supports, and the
//! one that all of this message after it is written in, because a sender that does not know its peer yet writes
//! an old one.

mod reader;
mod writer;

use crate::core::base::error::EnvelopeError;
use crate::core::base::identity::{NodeIdentity, NodeUid};
use crate::core::base::reason::ReasonText;
use crate::core::state::quarantine::QuarantineRumor;
use crate::core::state::record::MemberRecord;
use crate::core::state::snapshot::MembershipDelta;
use crate::core::state::table::BUCKETS;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

#[cfg(feature = "driver")]
pub(crate) use writer::envelope_head;
pub(crate) use writer::{encoded_len, encoded_rumor_len};

/// The oldest protocol version this crate understands.
pub const MIN_VERSION: u8 = 1;
/// The newest protocol version this crate understands, and the one it writes.
pub const MAX_VERSION: u8 = 1;
/// The longest envelope.
pub const MAX_ENVELOPE_BYTES: usize = 8 << 20;
/// The most records in one envelope.
pub const MAX_DELTA_RECORDS: usize = 1 << 16;
/// The most quarantines in one envelope.
pub const MAX_DELTA_QUARANTINES: usize = 4096;

const MAGIC: u8 = 0xc7;
/// The version that messages are written in.
const WRITTEN_VERSION: u8 = 1;
/// The version bytes of the envelopes that a runtime sends.
#[cfg(feature = "driver")]
pub(crate) const ENVELOPE_VERSIONS: [u8; 3] = [MIN_VERSION, MAX_VERSION, WRITTEN_VERSION];

/// A message with its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The cluster that the sender belongs to.
    pub cluster: String,
    /// The oldest and the newest version that the sender supports.
    pub versions: (u8, u8),
    /// The sender.
    pub sender: NodeIdentity,
    /// The message.
    pub message: Message,
}

/// A summary of the sender's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The position in its own log.
    pub version: u64,
    /// The digest of its active records.
    pub digest: u64,
}

/// The messages of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// Sent to each monitor every heartbeat interval. Acknowledged only where the monitor suspects the sender or is no
    /// monitor of it.
    Heartbeat {
        /// The number of the heartbeat, counted per uid.
        sequence: u64,
        /// The sender's incarnation.
        incarnation: u64,
    },
    /// The acknowledgement of a heartbeat.
    HeartbeatAck {
        /// The number of the heartbeat.
        sequence: u64,
        /// The sender of the heartbeat is suspected at this incarnation.
        suspected: Option<u64>,
        /// The acknowledging node is not a monitor of the sender in its own view of the ring.
        not_my_monitor: bool,
    },
    /// A direct probe.
    Probe {
        /// The number of the probe, repeated in the reply.
        nonce: u64,
    },
    /// The reply to a direct probe.
    ProbeAck {
        /// The number of the probe.
        nonce: u64,
        /// The incarnation of the probed member.
        incarnation: u64,
    },
    /// An indirect probe: asks the receiver to probe another member for the sender.
    ProbeRequest {
        /// The number of the probe, repeated in the reply.
        nonce: u64,
        /// The member to probe.
        target: NodeIdentity,
    },
    /// The reply to an indirect probe: the target has answered.
    ProbeReply {
        /// The number of the request.
        nonce: u64,
        /// The member that answered.
        target: NodeIdentity,
        /// Its incarnation.
        incarnation: u64,
    },
    /// Gossip: changed records and orders.
    Push {
        /// The summary of the sender's table.
        seen: Seen,
        /// The records and orders.
        delta: MembershipDelta,
    },
    /// The first message of a push-pull exchange.
    PullRequest {
        /// The summary of the sender's table.
        seen: Seen,
        /// The sender is an observer: it is not a member, and sends a bookmark.
        observer: bool,
        /// The position in the receiver's log that the observer has.
        bookmark: u64,
        /// A digest of the operator's quarantines.
        quarantines: u64,
        /// Shortened digests of the buckets of the sender's table.
        buckets: Box<[u32; BUCKETS]>,
    },
    /// A push-pull reply: records the peer is missing, and the buckets whose records this node requests.
    PullReply {
        /// The summary of the sender's table.
        seen: Seen,
        /// The buckets that differ, one bit each; 0 ends the exchange.
        wanted: u64,
        /// The records of those buckets.
        delta: MembershipDelta,
    },
    /// A join request.
    Join {
        /// The joiner's own record.
        record: MemberRecord,
    },
    /// The join is accepted; carries a snapshot.
    Welcome {
        /// The summary of the sender's table.
        seen: Seen,
        /// A snapshot.
        delta: MembershipDelta,
    },
    /// The join is refused.
    JoinRefused {
        /// Why.
        reason: JoinRefusal,
    },
    /// The sender's record of the receiver, sent when the receiver's messages contradict it.
    Verdict {
        /// The receiver's record.
        record: MemberRecord,
        /// The operator's order behind it, if there is one.
        quarantine: Option<QuarantineRumor>,
    },
}

/// Why a joiner is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinRefusal {
    /// A later uid of that authority is known; the joiner may retry once with a higher one.
    Superseded {
        /// The later life.
        current: NodeUid,
    },
    /// An operator has quarantined the authority.
    Quarantined {
        /// By which order.
        version: u64,
        /// For how much longer, in milliseconds.
        remaining_ms: u64,
        /// The operator's reason.
        text: ReasonText,
    },
    /// The table is full.
    Full,
    /// A live member of another authority has the joiner's name.
    NameTaken {
        /// That member.
        holder: NodeIdentity,
    },
}

impl Envelope {
    /// The envelope as bytes.
    pub fn encode(&self) -> Vec<u8> {
        writer::encode(self)
    }

    /// Reads an envelope and nothing after it.
    pub fn decode(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        reader::decode(bytes)
    }
}

#[cfg(test)]
mod tests;
