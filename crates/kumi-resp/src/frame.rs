//! Replies, decoded into owned values for tools and tests.
//!
//! This decodes what [`encode`](crate::encode) writes. Servers do not use it: it allocates for every
//! element and starts over when a reply was incomplete. Streamed strings and aggregates (`$?`,
//! `*?`), which no server sends, are errors.

use crate::ProtocolError;
use crate::number;

/// One reply, of any RESP2 or RESP3 type.
///
/// ```
/// use kumi_resp::{Frame, ReplyLimits, decode_reply};
///
/// let (frame, _) = decode_reply(b"%1\r\n+a\r\n:1\r\n", &ReplyLimits::default())?.unwrap();
/// assert_eq!(frame, Frame::Map(vec![(Frame::Simple(b"a".to_vec()), Frame::Integer(1))]));
/// # Ok::<(), kumi_resp::ProtocolError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Frame {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR text`
    Error(Vec<u8>),
    /// `:7`
    Integer(i64),
    /// `$3`, then three bytes.
    Bulk(Vec<u8>),
    /// `$-1`, RESP2's null string.
    NullBulk,
    /// `*2`, then two frames.
    Array(Vec<Frame>),
    /// `*-1`, RESP2's null array.
    NullArray,
    /// `_`, RESP3's null.
    Null,
    /// `#t` or `#f`
    Boolean(bool),
    /// `,1.5`
    Double(f64),
    /// `(` and the digits of an integer of any size.
    BigNumber(Vec<u8>),
    /// `!3`, then the three bytes of an error.
    BulkError(Vec<u8>),
    /// `=7`, then a format, a colon and the text.
    Verbatim {
        /// Three letters, such as `txt`.
        format: [u8; 3],
        /// The text without the format.
        text: Vec<u8>,
    },
    /// `%1`, then a key and a value.
    Map(Vec<(Frame, Frame)>),
    /// `~2`, then two frames.
    Set(Vec<Frame>),
    /// `>2`, then two frames.
    Push(Vec<Frame>),
    /// `|1`, then a key and a value, then the reply they belong to.
    Attribute {
        /// The attributes of the reply.
        pairs: Vec<(Frame, Frame)>,
        /// The reply itself.
        reply: Box<Frame>,
    },
}

impl Frame {
    /// Whether this is one of the three nulls.
    ///
    /// ```
    /// use kumi_resp::Frame;
    ///
    /// assert!(Frame::NullBulk.is_null());
    /// ```
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullBulk | Self::NullArray)
    }
}

/// Limits for decoding replies.
///
/// ```
/// use kumi_resp::{ProtocolError, ReplyLimits, decode_reply};
///
/// let limits = ReplyLimits { max_depth: 1, ..ReplyLimits::default() };
/// assert!(decode_reply(b"*1\r\n:7\r\n", &limits)?.is_some());
/// let error = decode_reply(b"*1\r\n*1\r\n:7\r\n", &limits).unwrap_err();
/// assert_eq!(error, ProtocolError::ReplyTooDeep);
/// # Ok::<(), ProtocolError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// The longest line or string, in bytes.
    pub max_len: usize,
    /// The most elements (or pairs) one aggregate may claim.
    pub max_elements: usize,
    /// How deep aggregates may be nested. Decoding recurses this deep.
    pub max_depth: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            max_len: 512 * 1024 * 1024,
            max_elements: i32::MAX as usize,
            max_depth: 64,
        }
    }
}

/// Decodes the reply at the start of `buf` and returns it with its length in bytes; `None` if it is
/// incomplete.
///
/// ```
/// use kumi_resp::{Frame, ReplyLimits, decode_reply};
///
/// let limits = ReplyLimits::default();
/// assert_eq!(decode_reply(b"$5\r\nval", &limits)?, None);
/// let decoded = decode_reply(b"$5\r\nvalue\r\n+OK\r\n", &limits)?;
/// assert_eq!(decoded, Some((Frame::Bulk(b"value".to_vec()), 11)));
/// # Ok::<(), kumi_resp::ProtocolError>(())
/// ```
pub fn decode_reply(
    buf: &[u8],
    limits: &ReplyLimits,
) -> Result<Option<(Frame, usize)>, ProtocolError> {
    let mut reader = Reader {
        buf,
        pos: 0,
        limits: *limits,
    };
    match reader.frame(limits.max_depth) {
        Ok(frame) => Ok(Some((frame, reader.pos))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Broken(error)) => Err(error),
    }
}

/// Decodes the array of `N` strings at the start of `buf`, without copying them, and returns them with their length in
/// bytes; `None` if it is incomplete. Anything else is an error. RESP2's pub/sub messages are such arrays.
///
/// ```
/// use kumi_resp::{ReplyLimits, decode_strings};
///
/// let message = b"*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$2\r\nhi\r\n";
/// let decoded = decode_strings(message, &ReplyLimits::default())?;
/// assert_eq!(decoded, Some(([&b"message"[..], b"ch", b"hi"], message.len())));
/// # Ok::<(), kumi_resp::ProtocolError>(())
/// ```
#[expect(clippy::type_complexity, reason = "as `decode_reply`, with slices")]
pub fn decode_strings<'a, const N: usize>(
    buf: &'a [u8],
    limits: &ReplyLimits,
) -> Result<Option<([&'a [u8]; N], usize)>, ProtocolError> {
    let mut reader = Reader {
        buf,
        pos: 0,
        limits: *limits,
    };
    match reader.strings() {
        Ok(strings) => Ok(Some((strings, reader.pos))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Broken(error)) => Err(error),
    }
}

/// Why reading ended early.
enum Stop {
    Incomplete,
    Broken(ProtocolError),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Self::Broken(error)
    }
}

struct Reader<'a> {
    buf: &'a [u8],
    pos: usize,
    limits: ReplyLimits,
}

impl<'a> Reader<'a> {
    /// Reads one frame that may hold `depth` more levels of aggregates.
    fn frame(&mut self, depth: usize) -> Result<Frame, Stop> {
        let &kind = self.buf.get(self.pos).ok_or(Stop::Incomplete)?;
        if !b"+-:$*_#,(!=%~>|".contains(&kind) {
            return Err(ProtocolError::UnknownReplyType(kind).into());
        }
        self.pos += 1;
        let line = self.line()?;
        match kind {
            b'+' => Ok(Frame::Simple(line.to_vec())),
            b'-' => Ok(Frame::Error(line.to_vec())),
            b':' => integer(line).map(Frame::Integer).ok_or_else(malformed),
            b'_' if line.is_empty() => Ok(Frame::Null),
            b'#' if line == b"t" => Ok(Frame::Boolean(true)),
            b'#' if line == b"f" => Ok(Frame::Boolean(false)),
            b',' => double(line).map(Frame::Double).ok_or_else(malformed),
            b'(' if is_big_number(line) => Ok(Frame::BigNumber(line.to_vec())),
            b'$' if line == b"-1" => Ok(Frame::NullBulk),
            b'$' => Ok(Frame::Bulk(self.payload(line)?.to_vec())),
            b'!' => Ok(Frame::BulkError(self.payload(line)?.to_vec())),
            b'=' => match self.payload(line)? {
                [a, b, c, b':', text @ ..] => Ok(Frame::Verbatim {
                    format: [*a, *b, *c],
                    text: text.to_vec(),
                }),
                _ => Err(malformed()),
            },
            b'*' if line == b"-1" => Ok(Frame::NullArray),
            b'*' => self.elements(line, depth).map(Frame::Array),
            b'~' => self.elements(line, depth).map(Frame::Set),
            b'>' => self.elements(line, depth).map(Frame::Push),
            b'%' => self.pairs(line, depth).map(Frame::Map),
            b'|' => {
                let pairs = self.pairs(line, depth)?;
                // Attributes of attributes recurse as well, so they count as a level.
                let reply = Box::new(self.frame(depth - 1)?);
                Ok(Frame::Attribute { pairs, reply })
            }
            _ => Err(malformed()),
        }
    }

    /// Reads an array of exactly `N` strings.
    fn strings<const N: usize>(&mut self) -> Result<[&'a [u8]; N], Stop> {
        let count = self.header(b'*')?;
        if length(count, self.limits.max_elements)? != N {
            return Err(malformed());
        }
        let mut strings = [&b""[..]; N];
        for string in &mut strings {
            let count = self.header(b'$')?;
            *string = self.payload(count)?;
        }
        Ok(strings)
    }

    /// What follows the first byte of a line, which has to be `kind`.
    fn header(&mut self, kind: u8) -> Result<&'a [u8], Stop> {
        match self.buf.get(self.pos) {
            Some(&found) if found == kind => {}
            Some(_) => return Err(malformed()),
            None => return Err(Stop::Incomplete),
        }
        self.pos += 1;
        self.line()
    }

    /// What is left of the line that a frame's first byte began.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.buf[self.pos..];
        let Some(end) = memchr::memchr(b'\r', rest) else {
            return Err(self.unless_longer(rest.len()));
        };
        if end > self.limits.max_len {
            return Err(ProtocolError::ReplyTooLong.into());
        }
        match rest.get(end + 1) {
            Some(b'\n') => {
                self.pos += end + 2;
                Ok(&rest[..end])
            }
            Some(_) => Err(malformed()),
            None => Err(Stop::Incomplete),
        }
    }

    fn unless_longer(&self, len: usize) -> Stop {
        if len > self.limits.max_len {
            ProtocolError::ReplyTooLong.into()
        } else {
            Stop::Incomplete
        }
    }

    /// As many bytes as `line` says, and the line end after them.
    fn payload(&mut self, line: &[u8]) -> Result<&'a [u8], Stop> {
        let len = length(line, self.limits.max_len)?;
        let rest = &self.buf[self.pos..];
        let Some((bytes, after)) = rest.split_at_checked(len) else {
            return Err(Stop::Incomplete);
        };
        match after {
            [b'\r', b'\n', ..] => {
                self.pos += len + 2;
                Ok(bytes)
            }
            [] | [b'\r'] => Err(Stop::Incomplete),
            _ => Err(malformed()),
        }
    }

    fn elements(&mut self, line: &[u8], depth: usize) -> Result<Vec<Frame>, Stop> {
        let (len, inner) = self.aggregate(line, depth)?;
        let mut elements = Vec::with_capacity(self.room_for(len));
        for _ in 0..len {
            elements.push(self.frame(inner)?);
        }
        Ok(elements)
    }

    fn pairs(&mut self, line: &[u8], depth: usize) -> Result<Vec<(Frame, Frame)>, Stop> {
        let (len, inner) = self.aggregate(line, depth)?;
        let mut pairs = Vec::with_capacity(self.room_for(len));
        for _ in 0..len {
            let key = self.frame(inner)?;
            pairs.push((key, self.frame(inner)?));
        }
        Ok(pairs)
    }

    /// How many elements an aggregate has, and how deep each of them may nest.
    fn aggregate(&self, line: &[u8], depth: usize) -> Result<(usize, usize), Stop> {
        let len = length(line, self.limits.max_elements)?;
        let inner = depth.checked_sub(1).ok_or(ProtocolError::ReplyTooDeep)?;
        Ok((len, inner))
    }

    /// A capacity for `claimed` elements, bounded by the number of bytes received.
    fn room_for(&self, claimed: usize) -> usize {
        const SHORTEST_FRAME: usize = b"_\r\n".len();
        claimed.min((self.buf.len() - self.pos) / SHORTEST_FRAME)
    }
}

fn malformed() -> Stop {
    Stop::Broken(ProtocolError::MalformedReply)
}

fn length(line: &[u8], limit: usize) -> Result<usize, Stop> {
    let len = number::parse(line)
        .and_then(|len| usize::try_from(len).ok())
        .ok_or_else(malformed)?;
    if len > limit {
        return Err(ProtocolError::ReplyTooLong.into());
    }
    Ok(len)
}

/// An integer reply may have a plus sign, unlike a length.
fn integer(line: &[u8]) -> Option<i64> {
    number::parse(line.strip_prefix(b"+").unwrap_or(line))
}

fn double(line: &[u8]) -> Option<f64> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

fn is_big_number(line: &[u8]) -> bool {
    let digits = match line {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}
