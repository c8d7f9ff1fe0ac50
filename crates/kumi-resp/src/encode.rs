//! Replies, appended to a byte vector one element at a time.
//!
//! Calls are not checked against each other: a caller that writes the header of an array of three
//! writes three elements after it. Types that RESP2 lacks are written as Redis writes them in RESP2,
//! so a command does not depend on its client's protocol. No function allocates, except that `out`
//! grows.

mod double;

use crate::number::{self, MAX_DIGITS};
use crate::{Protocol, ProtocolError};

/// A status such as `OK`. A line break in it becomes a space, because it would end the reply.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::simple(&mut out, "PONG");
/// assert_eq!(out, b"+PONG\r\n");
/// ```
pub fn simple(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    out.push(b'+');
    one_line(out, text.as_ref());
    out.extend_from_slice(b"\r\n");
}

/// The reply `+OK`.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::ok(&mut out);
/// assert_eq!(out, b"+OK\r\n");
/// ```
#[inline]
pub fn ok(out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
}

/// An error; `text` starts with its code, such as `ERR` or `WRONGTYPE`. Line breaks at the end are
/// dropped and others become spaces, so a text that quotes a client's bytes cannot forge a reply.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::error(&mut out, "ERR unknown command 'a\r\nb'");
/// assert_eq!(out, b"-ERR unknown command 'a  b'\r\n");
/// ```
pub fn error(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    let mut text = text.as_ref();
    while let [rest @ .., b'\r' | b'\n'] = text {
        text = rest;
    }
    out.push(b'-');
    one_line(out, text);
    out.extend_from_slice(b"\r\n");
}

/// The reply to bytes that broke the protocol, after which the connection closes.
///
/// ```
/// use kumi_resp::{ProtocolError, encode};
///
/// let mut out = Vec::new();
/// encode::protocol_error(&mut out, &ProtocolError::ExpectedDollar(0xff));
/// assert_eq!(out, b"-ERR Protocol error: expected '$', got '\xff'\r\n");
/// ```
pub fn protocol_error(out: &mut Vec<u8>, error: &ProtocolError) {
    out.extend_from_slice(b"-ERR ");
    match *error {
        // Redis sends the byte unchanged, and a `Display` text cannot contain every byte.
        ProtocolError::ExpectedDollar(byte) => {
            out.extend_from_slice(b"Protocol error: expected '$', got '");
            one_line(out, &[byte]);
            out.push(b'\'');
        }
        other => {
            let mut text = Text(out);
            // Writing to a vector cannot fail.
            let _ = std::fmt::Write::write_fmt(&mut text, format_args!("{other}"));
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// An error that may span lines: `!` in RESP3; in RESP2 the same as [`error`].
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::bulk_error(&mut out, Protocol::Resp3, "ERR a\nb");
/// assert_eq!(out, b"!7\r\nERR a\nb\r\n");
/// ```
pub fn bulk_error(out: &mut Vec<u8>, protocol: Protocol, text: impl AsRef<[u8]>) {
    match protocol {
        Protocol::Resp2 => error(out, text),
        Protocol::Resp3 => payload(out, b'!', text.as_ref()),
    }
}

/// A 64-bit integer.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::integer(&mut out, -42);
/// assert_eq!(out, b":-42\r\n");
/// ```
#[inline]
pub fn integer(out: &mut Vec<u8>, value: i64) {
    header(out, b':', value);
}

/// A bulk string.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::bulk(&mut out, b"value");
/// assert_eq!(out, b"$5\r\nvalue\r\n");
/// ```
#[inline]
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    payload(out, b'$', bytes);
}

/// The header of a bulk string; the caller appends its `len` bytes and a line end.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::bulk_header(&mut out, 5);
/// assert_eq!(out, b"$5\r\n");
/// ```
#[inline]
pub fn bulk_header(out: &mut Vec<u8>, len: usize) {
    length(out, b'$', len);
}

/// The decimal digits of an integer as a string of bytes.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::bulk_integer(&mut out, -42);
/// assert_eq!(out, b"$3\r\n-42\r\n");
/// ```
pub fn bulk_integer(out: &mut Vec<u8>, value: i64) {
    let mut buf = [0; MAX_DIGITS];
    let end = number::write_at(&mut buf, 0, value);
    payload(out, b'$', &buf[..end]);
}

/// Null in place of a value.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::null(&mut out, Protocol::Resp2);
/// encode::null(&mut out, Protocol::Resp3);
/// assert_eq!(out, b"$-1\r\n_\r\n");
/// ```
#[inline]
pub fn null(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"$-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// Null in place of an array. RESP3 has only one null.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::null_array(&mut out, Protocol::Resp2);
/// encode::null_array(&mut out, Protocol::Resp3);
/// assert_eq!(out, b"*-1\r\n_\r\n");
/// ```
#[inline]
pub fn null_array(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"*-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// The header of an array; its `len` elements follow.
///
/// ```
/// use kumi_resp::encode;
///
/// let mut out = Vec::new();
/// encode::array(&mut out, 1);
/// encode::integer(&mut out, 7);
/// assert_eq!(out, b"*1\r\n:7\r\n");
/// ```
#[inline]
pub fn array(out: &mut Vec<u8>, len: usize) {
    length(out, b'*', len);
}

/// The header of a map; `len` keys follow, each with its value. In RESP2 it is a flat array.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::map(&mut out, Protocol::Resp2, 3);
/// encode::map(&mut out, Protocol::Resp3, 3);
/// assert_eq!(out, b"*6\r\n%3\r\n");
/// ```
#[inline]
pub fn map(out: &mut Vec<u8>, protocol: Protocol, len: usize) {
    match protocol {
        Protocol::Resp2 => length(out, b'*', len.saturating_mul(2)),
        Protocol::Resp3 => length(out, b'%', len),
    }
}

/// The header of a set; its `len` elements follow. In RESP2 it is an array.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::set(&mut out, Protocol::Resp2, 3);
/// encode::set(&mut out, Protocol::Resp3, 3);
/// assert_eq!(out, b"*3\r\n~3\r\n");
/// ```
#[inline]
pub fn set(out: &mut Vec<u8>, protocol: Protocol, len: usize) {
    match protocol {
        Protocol::Resp2 => length(out, b'*', len),
        Protocol::Resp3 => length(out, b'~', len),
    }
}

/// The header of a push, such as a published message; its `len` elements follow. In RESP2 it is an
/// array.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::push(&mut out, Protocol::Resp2, 3);
/// encode::push(&mut out, Protocol::Resp3, 3);
/// assert_eq!(out, b"*3\r\n>3\r\n");
/// ```
#[inline]
pub fn push(out: &mut Vec<u8>, protocol: Protocol, len: usize) {
    match protocol {
        Protocol::Resp2 => length(out, b'*', len),
        Protocol::Resp3 => length(out, b'>', len),
    }
}

/// The header of attributes: `len` keys with their values follow, then the reply they belong to.
/// RESP2 has no attributes, so a caller writes neither the header nor the pairs there.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::attribute(&mut out, 1);
/// assert_eq!(out, b"|1\r\n");
/// ```
pub fn attribute(out: &mut Vec<u8>, len: usize) {
    length(out, b'|', len);
}

/// A floating point number, with the fewest digits that read back as the same number. In RESP2 it
/// is a string of bytes.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::double(&mut out, Protocol::Resp2, 0.1);
/// encode::double(&mut out, Protocol::Resp3, -3.0);
/// encode::double(&mut out, Protocol::Resp3, f64::INFINITY);
/// assert_eq!(out, b"$3\r\n0.1\r\n,-3\r\n,inf\r\n");
/// ```
pub fn double(out: &mut Vec<u8>, protocol: Protocol, value: f64) {
    let text = double::Text::new(value);
    match protocol {
        Protocol::Resp2 => bulk(out, text.as_bytes()),
        Protocol::Resp3 => {
            out.push(b',');
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The bare text of a floating point number, with the fewest digits that read back as the same number and an exponent
/// where it saves many zeros: what Redis 7.2 computes digests from. No reply is written this way.
///
/// ```
/// use kumi_resp::encode;
///
/// let mut out = Vec::new();
/// encode::shortest(&mut out, 100000000.0);
/// assert_eq!(out, b"1e+8");
/// ```
pub fn shortest(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(double::Text::shortest_of(value).as_bytes());
}

/// The text of a double as a bulk string would hold it, without a header.
///
/// ```
/// let mut out = Vec::new();
/// kumi_resp::encode::double_text(&mut out, 1.5);
/// assert_eq!(out, b"1.5");
/// ```
pub fn double_text(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(double::Text::new(value).as_bytes());
}

/// True or false. In RESP2 it is the integer 1 or 0.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::boolean(&mut out, Protocol::Resp2, true);
/// encode::boolean(&mut out, Protocol::Resp3, false);
/// assert_eq!(out, b":1\r\n#f\r\n");
/// ```
pub fn boolean(out: &mut Vec<u8>, protocol: Protocol, value: bool) {
    out.extend_from_slice(match (protocol, value) {
        (Protocol::Resp2, true) => b":1\r\n",
        (Protocol::Resp2, false) => b":0\r\n",
        (Protocol::Resp3, true) => b"#t\r\n",
        (Protocol::Resp3, false) => b"#f\r\n",
    });
}

/// An integer of any size, given as its decimal digits. In RESP2 it is a string of bytes.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::big_number(&mut out, Protocol::Resp3, "18446744073709551616");
/// assert_eq!(out, b"(18446744073709551616\r\n");
/// ```
pub fn big_number(out: &mut Vec<u8>, protocol: Protocol, digits: &str) {
    match protocol {
        Protocol::Resp2 => bulk(out, digits.as_bytes()),
        Protocol::Resp3 => {
            out.push(b'(');
            one_line(out, digits.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A verbatim string with its format of three letters, such as `txt`. In RESP2 it is a bulk string,
/// without the format.
///
/// ```
/// use kumi_resp::{Protocol, encode};
///
/// let mut out = Vec::new();
/// encode::verbatim(&mut out, Protocol::Resp3, b"txt", b"# Server");
/// assert_eq!(out, b"=12\r\ntxt:# Server\r\n");
/// ```
pub fn verbatim(out: &mut Vec<u8>, protocol: Protocol, format: &[u8; 3], text: &[u8]) {
    match protocol {
        Protocol::Resp2 => bulk(out, text),
        Protocol::Resp3 => {
            length(out, b'=', text.len() + format.len() + 1);
            out.extend_from_slice(format);
            out.push(b':');
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The decimal digits of an integer, without the type byte and line end of a reply.
///
/// ```
/// let mut out = b"db".to_vec();
/// kumi_resp::encode::decimal(&mut out, 15);
/// assert_eq!(out, b"db15");
/// ```
#[inline]
pub fn decimal(out: &mut Vec<u8>, value: i64) {
    let mut buf = [0; MAX_DIGITS];
    let end = number::write_at(&mut buf, 0, value);
    append_short(out, &buf, end);
}

#[inline]
fn payload(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.reserve(bytes.len() + MAX_HEADER + 2);
    length(out, kind, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The length of a type byte, the longest integer and the line end.
const MAX_HEADER: usize = 1 + MAX_DIGITS + 2;

#[inline]
fn length(out: &mut Vec<u8>, kind: u8, len: usize) {
    // No slice in memory is longer than `isize::MAX`.
    header(out, kind, i64::try_from(len).unwrap_or(i64::MAX));
}

/// One line: a type byte and a number. Most numbers have one or two digits, so these lines are
/// written with a fixed size.
#[inline]
fn header(out: &mut Vec<u8>, kind: u8, value: i64) {
    match value {
        0..10 => out.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']),
        10..100 => {
            let tens = b'0' + (value / 10) as u8;
            let ones = b'0' + (value % 10) as u8;
            out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
        }
        _ => long_header(out, kind, value),
    }
}

fn long_header(out: &mut Vec<u8>, kind: u8, value: i64) {
    let start = out.len();
    // Written in its place: a copy of bytes that were just written one by one waits for them.
    out.extend_from_slice(&[0; MAX_HEADER]);
    let Some(line) = out.last_chunk_mut::<MAX_HEADER>() else {
        return;
    };
    line[0] = kind;
    let end = number::write_at(line, 1, value);
    line[end..end + 2].copy_from_slice(b"\r\n");
    out.truncate(start + end + 2);
}

/// Appends `buf[..len]`. Copying a fixed size and cutting it back is a few stores, where a copy of
/// unknown size is a call.
#[inline]
fn append_short<const N: usize>(out: &mut Vec<u8>, buf: &[u8; N], len: usize) {
    let start = out.len();
    out.extend_from_slice(buf);
    out.truncate(start + len);
}

/// Appends `text` with every line break replaced by a space.
fn one_line(out: &mut Vec<u8>, text: &[u8]) {
    let start = out.len();
    out.extend_from_slice(text);
    for byte in &mut out[start..] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
}

/// Writes `Display` texts into the reply without an intermediate string.
struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        one_line(self.0, text.as_bytes());
        Ok(())
    }
}
