//! Protocol errors in requests and replies.
//!
//! The texts of the request errors are what Redis sends for the same bytes, without the leading
//! `-ERR `. No error here is recoverable: once the framing is lost, the connection has to close
//! after the reply is flushed.

use std::fmt;

/// Bytes that violate the protocol: the sender's fault. Nothing was executed for them.
///
/// [`Display`](fmt::Display) gives the text for a log line.
/// [`encode::protocol_error`](crate::encode::protocol_error) writes the reply for the client.
///
/// ```
/// use kumi_resp::{Decoder, Limits};
///
/// let error = Decoder::new().decode(b"*1\r\n$-1\r\n", &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "Protocol error: invalid bulk length");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The line with the number of arguments goes on past 64 KiB.
    #[error("Protocol error: too big mbulk count string")]
    MultibulkLineTooLong,
    /// The number of arguments is not a number, or is above [`Limits::max_args`](crate::Limits).
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// More than 10 arguments before the client authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// The line with an argument's length goes on past 64 KiB.
    #[error("Protocol error: too big bulk count string")]
    BulkLineTooLong,
    /// An argument does not start with `$` but with this byte.
    #[error("Protocol error: expected '$', got '{}'", Shown(*.0))]
    ExpectedDollar(u8),
    /// An argument's length is not a number, negative, or above
    /// [`Limits::max_bulk_len`](crate::Limits).
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// An argument of more than 16 KiB before the client authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// An inline request goes on past [`Limits::max_inline_len`](crate::Limits).
    #[error("Protocol error: too big inline request")]
    InlineTooLong,
    /// An inline request opens a quote it does not close, or goes on right after closing one.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A reply starts with a byte that names no type.
    #[error("Protocol error: unknown reply type '{}'", Shown(*.0))]
    UnknownReplyType(u8),
    /// A reply's line or payload is not what its type asks for.
    #[error("Protocol error: malformed reply")]
    MalformedReply,
    /// A reply is longer than [`ReplyLimits`](crate::ReplyLimits) allows.
    #[error("Protocol error: reply too long")]
    ReplyTooLong,
    /// A reply is nested deeper than [`ReplyLimits::max_depth`](crate::ReplyLimits).
    #[error("Protocol error: reply nested too deeply")]
    ReplyTooDeep,
}

/// A byte in a text of one line: a line break becomes a space, what is not ASCII a replacement
/// character.
struct Shown(u8);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.0 {
            b'\r' | b'\n' => ' ',
            byte if byte.is_ascii() => char::from(byte),
            _ => char::REPLACEMENT_CHARACTER,
        };
        fmt::Write::write_char(f, shown)
    }
}
