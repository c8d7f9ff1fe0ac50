//! The few pieces of RESP2 that a unit needs: commands are packed, replies and pushes read from a buffer that may end
//! anywhere.
//!
//! The hot path stays here, off the `redis` crate's general parser: a reply is looked over before anything is built, so
//! that half of one costs nothing, and a push is handed on as slices of the buffer. RESP3 is not spoken: a connection
//! that does not say HELLO gets none of it. What is longer or deeper than any reply to our commands is refused.

use redis::Value;

/// Longest value that a server can hold.
const BULK_LIMIT: usize = 512 * 1024 * 1024;
/// Most elements of an array. SCAN and CLUSTER SLOTS stay far below.
const ARRAY_LIMIT: usize = 1024 * 1024;
/// Deepest nesting: CLUSTER SLOTS has four levels.
const DEPTH_LIMIT: usize = 8;
/// Longest line: a count, a status or an error.
const LINE_LIMIT: usize = 64 * 1024;

/// What was sent is not RESP2. The connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Why nothing was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The rest is still on its way.
    Short,
    Malformed,
}

/// What a subscribed connection said.
#[derive(Debug, PartialEq)]
pub(super) enum Said<'a> {
    /// A push, and the pattern that it came by.
    Message {
        pattern: &'a [u8],
        channel: &'a [u8],
        payload: &'a [u8],
    },
    /// Something that was asked for: a confirmation or a pong.
    Reply(Value),
}

/// Begins a command of `count` words.
pub(super) fn command(out: &mut Vec<u8>, count: usize) {
    out.push(b'*');
    decimal(out, count as u64);
}

/// A word of a command.
pub(super) fn word(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    decimal(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A number as a word.
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    word(out, write_digits(&mut digits, number));
}

fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    out.extend_from_slice(write_digits(&mut digits, number));
    out.extend_from_slice(b"\r\n");
}

fn write_digits(digits: &mut [u8; 20], mut number: u64) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// The reply that `bytes` begins with, and its length; none while it is not whole.
pub(super) fn reply(bytes: &[u8]) -> Result<Option<(Value, usize)>, Malformed> {
    let mut cursor = Cursor { bytes, at: 0 };
    match cursor.skip(0) {
        Ok(()) => {}
        Err(Stop::Short) => return Ok(None),
        Err(Stop::Malformed) => return Err(Malformed),
    }
    cursor.at = 0;
    match cursor.value() {
        Ok(value) => Ok(Some((value, cursor.at))),
        Err(_) => Err(Malformed),
    }
}

/// What a subscribed connection's `bytes` begin with, and its length; none while it is not whole.
pub(super) fn said(bytes: &[u8]) -> Result<Option<(Said<'_>, usize)>, Malformed> {
    let mut cursor = Cursor { bytes, at: 0 };
    match cursor.message() {
        Ok(Some(message)) => Ok(Some((message, cursor.at))),
        Ok(None) => Ok(reply(bytes)?.map(|(value, length)| (Said::Reply(value), length))),
        Err(Stop::Short) => Ok(None),
        Err(Stop::Malformed) => Err(Malformed),
    }
}

/// A place in a buffer.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Passes over one reply. What it has passed, [`Cursor::value`] can build.
    fn skip(&mut self, depth: usize) -> Result<(), Stop> {
        let (kind, line) = self.line()?;
        match kind {
            b'+' | b'-' => {}
            b':' => {
                integer(line)?;
            }
            b'$' => {
                self.bulk(line)?;
            }
            b'*' => {
                let count = integer(line)?.max(0) as usize;
                if depth == DEPTH_LIMIT || count > ARRAY_LIMIT {
                    return Err(Stop::Malformed);
                }
                for _ in 0..count {
                    self.skip(depth + 1)?;
                }
            }
            _ => return Err(Stop::Malformed),
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Value, Stop> {
        let from = self.at;
        let (kind, line) = self.line()?;
        Ok(match kind {
            b'+' if line == b"OK" => Value::Okay,
            b'+' => Value::SimpleString(String::from_utf8_lossy(line).into_owned()),
            b':' => Value::Int(integer(line)?),
            b'$' => match self.bulk(line)? {
                Some(bytes) => Value::BulkString(bytes.to_vec()),
                None => Value::Nil,
            },
            b'*' => match usize::try_from(integer(line)?) {
                Ok(count) => {
                    Value::Array((0..count).map(|_| self.value()).collect::<Result<_, _>>()?)
                }
                Err(_) => Value::Nil,
            },
            // Errors are rare, and the `redis` crate knows their kinds.
            _ => {
                redis::parse_redis_value(&self.bytes[from..self.at]).map_err(|_| Stop::Malformed)?
            }
        })
    }

    /// A push by a pattern; none if the bytes begin with anything else.
    ///
    /// ```text
    /// *4 $8 pmessage $n pattern $n channel $n payload
    /// ```
    fn message(&mut self) -> Result<Option<Said<'a>>, Stop> {
        const BEGINNING: &[u8] = b"*4\r\n$8\r\npmessage\r\n";
        let common = self.bytes.len().min(BEGINNING.len());
        if self.bytes[..common] != BEGINNING[..common] {
            return Ok(None);
        }
        if common < BEGINNING.len() {
            return Err(Stop::Short);
        }
        self.at = BEGINNING.len();
        Ok(Some(Said::Message {
            pattern: self.text()?,
            channel: self.text()?,
            payload: self.text()?,
        }))
    }

    /// A bulk string that is not nil.
    fn text(&mut self) -> Result<&'a [u8], Stop> {
        match self.line()? {
            (b'$', line) => self.bulk(line)?.ok_or(Stop::Malformed),
            _ => Err(Stop::Malformed),
        }
    }

    /// The rest of a bulk string whose first line has been read; none for nil.
    fn bulk(&mut self, line: &[u8]) -> Result<Option<&'a [u8]>, Stop> {
        let Ok(length) = usize::try_from(integer(line)?) else {
            return Ok(None);
        };
        if length > BULK_LIMIT {
            return Err(Stop::Malformed);
        }
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Err(Stop::Short);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(Stop::Malformed);
        }
        self.at += length + 2;
        Ok(Some(&rest[..length]))
    }

    /// The first byte of a line, and what follows up to its end.
    fn line(&mut self) -> Result<(u8, &'a [u8]), Stop> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.iter().take(LINE_LIMIT).position(|byte| *byte == b'\n') else {
            return Err(match rest.len() < LINE_LIMIT {
                true => Stop::Short,
                false => Stop::Malformed,
            });
        };
        match &rest[..end] {
            [kind, line @ .., b'\r'] => {
                self.at += end + 1;
                Ok((*kind, line))
            }
            _ => Err(Stop::Malformed),
        }
    }
}

fn integer(line: &[u8]) -> Result<i64, Stop> {
    let text = std::str::from_utf8(line).map_err(|_| Stop::Malformed)?;
    text.parse().map_err(|_| Stop::Malformed)
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
        let nested = b"*1\r\n".repeat(DEPTH_LIMIT + 2);
        let wrong: [&[u8]; 7] = [
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

    #[test]
    fn commands_are_packed_as_the_redis_crate_packs_them() {
        let mut out = Vec::new();
        command(&mut out, 3);
        word(&mut out, b"SET");
        word(&mut out, b"");
        number(&mut out, 1_000_000);
        let mut expected = redis::cmd("SET");
        expected.arg("").arg(1_000_000);
        assert_eq!(out, expected.get_packed_command());
    }
}
