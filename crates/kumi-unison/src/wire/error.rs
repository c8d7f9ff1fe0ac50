//! What can be wrong with bytes that arrived, or with a message that is to leave.
//!
//! Every variant but [`WireError::TooLarge`] and [`WireError::Compressor`] is the peer's fault or damage on the way;
//! none leaves anything changed, and after any of them the stream cannot be read further.

/// A frame, packet or message that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The length prefix exceeds the limit. Nothing was allocated for it.
    #[error("frame of {len} bytes exceeds the limit of {max}")]
    FrameTooLarge {
        /// The length that was claimed.
        len: usize,
        /// The limit it exceeds.
        max: usize,
    },
    /// The length prefix is not the header's length plus what the header announces.
    #[error("frame length {frame} does not fit the header, which wants {header}")]
    LengthMismatch {
        /// The prefix, or the bytes that came in the legacy form.
        frame: usize,
        /// Header plus payload by the header's own fields.
        header: usize,
    },
    /// The header's version is not ours.
    #[error("packet version {0} is not supported")]
    Version(u8),
    /// The header's type is unknown.
    #[error("packet type {0} is unknown")]
    PacketType(u8),
    /// A flag is set that this version refuses: encryption, fragments or an unknown bit.
    #[error("packet flags {0:#06x} are not supported")]
    Flags(u16),
    /// The checksum does not fit the bytes.
    #[error("packet checksum does not fit")]
    Checksum,
    /// The compressed payload is damaged or does not yield the announced length.
    #[error("compressed payload is invalid: {0}")]
    Decompress(&'static str),
    /// The message archive is not valid.
    #[error("message is invalid: {0}")]
    Message(&'static str),
    /// Header and message say different things about what this is.
    #[error("header and message disagree: {0}")]
    Disagreement(&'static str),
    /// The packets of a stream are numbered from 0 without gaps, and this one is not next.
    #[error("packet {got} came where {expected} was due")]
    Sequence {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// The stream ended inside a frame.
    #[error("stream ended inside a frame")]
    Truncated,
    /// A message of ours is longer than a packet may be. It was not sent.
    #[error("message of {len} bytes exceeds the limit of {max}")]
    TooLarge {
        /// Its length, archived.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The compressor failed, for want of memory. The message was not sent.
    #[error("compression failed: {0}")]
    Compressor(String),
}
