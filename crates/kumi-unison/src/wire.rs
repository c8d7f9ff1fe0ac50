//! The bytes of Unison: frames, packets and messages, in and out.
//!
//! Nothing here waits, reads a clock or knows a socket: bytes go in, packets come out, and the other way round. What a
//! message means (whether an answer has a question, whether an event has credit) is decided in `core`.
//!
//! ```text
//! stream   | frame | frame | frame | ...
//! frame    | length u32 big-endian | packet, `length` bytes |
//! packet   | header, 56 bytes little-endian | payload as sent, perhaps compressed |
//! payload  | metadata, 16 bytes, if METADATA | trace, 32 bytes, if TRACE | archived ProtocolMessage |
//! ```

mod compress;
mod datagram;
mod encode;
mod error;
mod frame;
mod header;
mod message;

pub use compress::{COMPRESSION_SAMPLE, COMPRESSION_THRESHOLD, Codec};
pub(crate) use datagram::{decode_short, encode_short, is_short};
pub(crate) use encode::{Outgoing, Output, Prepared, check};
pub use encode::{encode_frame, encode_unframed};
pub use error::WireError;
pub use frame::{FrameReader, Packet};
pub use header::{HEADER_LEN, PacketFlags, PacketHeader, PacketType};
pub use message::{ArchivedProtocolMessage, ContentType, MessageType, Metadata, ProtocolMessage};

/// The longest packet, header included. A length prefix above it is refused as soon as its four bytes are in.
pub const MAX_MESSAGE_SIZE: usize = 8 * 1024 * 1024;

/// The version in a header's first byte.
pub const PROTOCOL_VERSION: u8 = 1;

/// The protocol's name in the TLS handshake. The legacy form has the same name.
pub const ALPN: &[u8] = b"unison/1";

/// Bytes of the length prefix.
pub(crate) const PREFIX_LEN: usize = 4;

/// Bytes of the metadata block.
pub(crate) const METADATA_LEN: usize = 16;

/// Bytes of the trace block.
pub(crate) const TRACE_LEN: usize = 32;

/// The longest payload a packet can announce, before or after compression.
pub(crate) const MAX_PAYLOAD: usize = MAX_MESSAGE_SIZE - HEADER_LEN;

/// Reserved method names. Applications' names do not begin with two underscores.
pub(crate) mod methods {
    pub(crate) const CHANNEL: &str = "__channel:";
    pub(crate) const CANCEL: &str = "__cancel";
    pub(crate) const CREDIT: &str = "__credit";
    pub(crate) const ERROR: &str = "__error";
    pub(crate) const CLOSED: &str = "__closed";
    pub(crate) const RESUMED: &str = "__resumed";
    pub(crate) const RESERVED: &str = "__";
}
