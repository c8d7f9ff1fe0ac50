//! What a server says, read by `kumi-resp` from a buffer that may end anywhere.
//!
//! A push is handed on as slices of the buffer. RESP3 is not spoken: a connection that does not send HELLO gets none of it.
//! A reply that is longer or deeper than any reply to our commands is an error.

use kumi_resp::{Frame, ProtocolError, ReplyLimits, decode_reply, decode_strings};
use redis::Value;

/// Longest value that a server can hold. Most elements of an array: SCAN and CLUSTER SLOTS stay far below. Deepest
/// nesting: CLUSTER SLOTS has four levels.
const LIMITS: ReplyLimits = ReplyLimits {
    max_len: 512 * 1024 * 1024,
    max_elements: 1024 * 1024,
    max_depth: 8,
};

/// The bytes are not RESP2, or over a limit. The connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<ProtocolError> for Malformed {
    fn from(_: ProtocolError) -> Self {
        Self
    }
}

/// What a subscribed connection sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Said<'a> {
    /// A push, and the pattern that it came by.
    Message {
        pattern: &'a [u8],
        channel: &'a [u8],
        payload: &'a [u8],
    },
    /// The reply to a command: a confirmation or a pong.
    Reply(Value),
}

/// The reply that `bytes` begins with, and its length; none while it is incomplete.
pub(crate) fn reply(bytes: &[u8]) -> Result<Option<(Value, usize)>, Malformed> {
    match decode_reply(bytes, &LIMITS)? {
        Some((frame, length)) => Ok(Some((value(frame)?, length))),
        None => Ok(None),
    }
}

/// What a subscribed connection's `bytes` begin with, and its length; none while it is incomplete.
///
/// ```text
/// *4 $8 pmessage $n pattern $n channel $n payload
/// ```
pub(crate) fn said(bytes: &[u8]) -> Result<Option<(Said<'_>, usize)>, Malformed> {
    const BEGINNING: &[u8] = b"*4\r\n$8\r\npmessage\r\n";
    let common = bytes.len().min(BEGINNING.len());
    if bytes[..common] != BEGINNING[..common] {
        return Ok(reply(bytes)?.map(|(value, length)| (Said::Reply(value), length)));
    }
    let decoded = decode_strings(bytes, &LIMITS)?;
    Ok(decoded.map(|([_, pattern, channel, payload], length)| {
        let message = Said::Message {
            pattern,
            channel,
            payload,
        };
        (message, length)
    }))
}

/// A reply as the `redis` crate has it, for its conversions.
fn value(frame: Frame) -> Result<Value, Malformed> {
    Ok(match frame {
        Frame::Simple(text) if text == b"OK" => Value::Okay,
        Frame::Simple(text) => Value::SimpleString(String::from_utf8_lossy(&text).into_owned()),
        Frame::Integer(number) => Value::Int(number),
        Frame::Bulk(bytes) => Value::BulkString(bytes),
        Frame::NullBulk | Frame::NullArray => Value::Nil,
        Frame::Array(frames) => {
            Value::Array(frames.into_iter().map(value).collect::<Result<_, _>>()?)
        }
        // Errors are rare, and only the parser of the `redis` crate makes one of a known kind.
        Frame::Error(text) => {
            let line = [b"-", &text[..], b"\r\n"].concat();
            redis::parse_redis_value(&line).map_err(|_| Malformed)?
        }
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn replies_are_read_as_the_redis_crate_reads_them() {
        let replies: [&[u8]; 10] = [
            b"+OK\r\n",
            b"+PONG\r\n",
            b":-12\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"$0\r\n\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"*3\r\n$1\r\na\r\n$-1\r\n*1\r\n:1\r\n",
            b"-ERR no\r\n",
            b"-MOVED 12 127.0.0.1:7001\r\n",
        ];
        for bytes in replies {
            let expected = redis::parse_redis_value(bytes).expect("a reply");
            assert_eq!(reply(bytes), Ok(Some((expected, bytes.len()))));
        }
    }

    #[test]
    fn half_a_reply_is_waited_for_and_what_follows_is_left() {
        let whole = b"*2\r\n$2\r\nab\r\n-ERR x\r\n";
        for end in 0..whole.len() {
            assert_eq!(reply(&whole[..end]), Ok(None), "{end} bytes");
        }
        let longer = [&whole[..], b"+OK\r\n"].concat();
        assert!(matches!(reply(&longer), Ok(Some((_, length))) if length == whole.len()));
    }

    #[test]
    fn pushes_are_slices_and_the_rest_are_replies() {
        let bytes = b"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$2\r\nch\r\n$3\r\nset\r\n";
        for end in 0..bytes.len() {
            assert_eq!(said(&bytes[..end]), Ok(None), "{end} bytes");
        }
        let message = Said::Message {
            pattern: b"*",
            channel: b"ch",
            payload: b"set",
        };
        assert_eq!(said(bytes), Ok(Some((message, bytes.len()))));
        let confirmation = b"*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n";
        let values = Value::Array(vec![bulk("psubscribe"), bulk("*"), Value::Int(1)]);
        let expected = Ok(Some((Said::Reply(values), confirmation.len())));
        assert_eq!(said(confirmation), expected);
    }

    #[test]
    fn what_is_no_reply_ends_the_connection() {
        let nested = b"*1\r\n".repeat(LIMITS.max_depth + 2);
        let wrong: [&[u8]; 8] = [
            b"_\r\n",
            b"hello\r\n",
            b":x\r\n",
            b"$3\r\nabcd\r\n",
            b"$99999999999\r\n",
            b"*99999999\r\n",
            b"\n",
            &nested,
        ];
        for bytes in wrong {
            assert_eq!(reply(bytes), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let mut rng = fastrand::Rng::with_seed(7);
        let pieces: [&[u8]; 12] = [
            b"*",
            b"$",
            b":",
            b"+",
            b"-",
            b"\r\n",
            b"1",
            b"2",
            b"-1",
            b"OK",
            b"pmessage",
            b"*4\r\n$8\r\npmessage\r\n",
        ];
        for _ in 0..100_000 {
            let bytes: Vec<u8> = (0..rng.usize(..12))
                .flat_map(|_| pieces[rng.usize(..pieces.len())])
                .copied()
                .collect();
            let _ = (reply(&bytes), said(&bytes));
        }
    }
}
