//! A reader of RESP2 and RESP3 replies that keeps the bytes it read.
//!
//! It is written apart from `kumi-resp` on purpose: a test that judged the server with the server's own codec would
//! overlook any mistake the two share. It is slow and allocates freely, and it reads replies only, never requests.
//!
//! Messages of pub/sub are out-of-band, and Redis 7.0 writes those a client sends to itself wherever its output
//! happens to be, even between the elements of an EXEC reply. [`split`] therefore lifts them out of what it reads and
//! hands them back beside the reply.

/// How deep replies may nest before the reader calls them malformed.
const MAX_DEPTH: usize = 32;

/// One decoded reply value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `$-1`.
    NullBulk,
    /// `*-1`.
    NullArray,
    Array(Vec<Frame>),
    /// `_` of RESP3.
    Null,
    Boolean(bool),
    /// A double in the digits it came in, because the digits are what is compared.
    Double(Vec<u8>),
    BigNumber(Vec<u8>),
    BulkError(Vec<u8>),
    /// With the three-letter format and its colon in front.
    Verbatim(Vec<u8>),
    Map(Vec<(Frame, Frame)>),
    Set(Vec<Frame>),
    Push(Vec<Frame>),
}

/// A reply with the bytes it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) frame: Frame,
    pub(crate) raw: Vec<u8>,
}

/// What one call of [`split`] took from the front of a buffer.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The frame that came first, without any message that was written into its middle.
    pub(crate) reply: Reply,
    /// Messages found between the elements of `reply`.
    pub(crate) messages: Vec<Reply>,
    pub(crate) consumed: usize,
}

/// The bytes are no reply, and never will be by adding more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

/// Takes one reply off the front of `buffer`; `None` when it is not complete yet.
pub(crate) fn split(buffer: &[u8]) -> Result<Option<Taken>, Malformed> {
    let mut reader = Reader {
        buffer,
        position: 0,
        messages: Vec::new(),
        cuts: Vec::new(),
    };
    let Some(frame) = reader.frame(0)? else {
        return Ok(None);
    };
    let consumed = reader.position;
    let mut raw = Vec::with_capacity(consumed);
    let mut kept = 0;
    for &(from, to) in &reader.cuts {
        raw.extend_from_slice(&buffer[kept..from]);
        kept = to;
    }
    raw.extend_from_slice(&buffer[kept..consumed]);
    Ok(Some(Taken {
        reply: Reply { frame, raw },
        messages: reader.messages,
        consumed,
    }))
}

impl Frame {
    /// Whether this is a message of pub/sub, as opposed to an answer to a command.
    pub(crate) fn is_message(&self) -> bool {
        let (Frame::Array(items) | Frame::Push(items)) = self else {
            return false;
        };
        let kind = items.first().and_then(Frame::text);
        match kind {
            Some(b"message" | b"smessage") => items.len() == 3,
            Some(b"pmessage") => items.len() == 4,
            // Pushes of client-side caching.
            Some(b"invalidate" | b"tracking-redir-broken") => {
                matches!(self, Frame::Push(_)) && items.len() == 2
            }
            _ => false,
        }
    }

    /// Whether this confirms a subscription or its end, and for what channel (`None` where the channel is null).
    pub(crate) fn confirmation(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (Frame::Array(items) | Frame::Push(items)) = self else {
            return None;
        };
        let [kind, channel, Frame::Integer(_)] = items.as_slice() else {
            return None;
        };
        let kind = kind.text()?;
        kind.ends_with(b"subscribe").then(|| (kind, channel.text()))
    }

    /// The bytes of any kind of string.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Frame::Simple(text) | Frame::Bulk(text) => Some(text),
            Frame::Verbatim(text) => text.get(4..),
            _ => None,
        }
    }

    /// The text of an error.
    pub(crate) fn error(&self) -> Option<&[u8]> {
        match self {
            Frame::Error(text) | Frame::BulkError(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of anything that is a sequence.
    pub(crate) fn items(&self) -> Option<&[Frame]> {
        match self {
            Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => Some(items),
            _ => None,
        }
    }

    /// The pairs of a RESP3 map, or of the flat array that stands for it in RESP2.
    pub(crate) fn pairs(&self) -> Option<Vec<(&Frame, &Frame)>> {
        match self {
            Frame::Map(pairs) => Some(pairs.iter().map(|(key, value)| (key, value)).collect()),
            Frame::Array(items) if items.len().is_multiple_of(2) => {
                Some(items.chunks(2).map(|pair| (&pair[0], &pair[1])).collect())
            }
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Frame::Null | Frame::NullBulk | Frame::NullArray)
    }
}

struct Reader<'a> {
    buffer: &'a [u8],
    position: usize,
    messages: Vec<Reply>,
    /// Byte ranges of `messages` inside `buffer`.
    cuts: Vec<(usize, usize)>,
}

impl Reader<'_> {
    fn frame(&mut self, depth: usize) -> Result<Option<Frame>, Malformed> {
        if depth > MAX_DEPTH {
            return Err(Malformed("nested too deep".into()));
        }
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        let Some((&kind, rest)) = line.split_first() else {
            return Err(Malformed("an empty line where a reply should start".into()));
        };
        let rest = rest.to_vec();
        let frame = match kind {
            b'+' => Frame::Simple(rest),
            b'-' => Frame::Error(rest),
            b':' => Frame::Integer(number(&rest)?),
            b'_' => Frame::Null,
            b'#' => Frame::Boolean(rest == b"t"),
            b',' => Frame::Double(rest),
            b'(' => Frame::BigNumber(rest),
            b'$' if rest == b"-1" => Frame::NullBulk,
            b'*' if rest == b"-1" => Frame::NullArray,
            b'$' | b'=' | b'!' => {
                let Some(body) = self.body(length(&rest)?)? else {
                    return Ok(None);
                };
                match kind {
                    b'$' => Frame::Bulk(body),
                    b'!' => Frame::BulkError(body),
                    _ => Frame::Verbatim(body),
                }
            }
            b'*' | b'~' | b'>' | b'%' => {
                let count = length(&rest)? * if kind == b'%' { 2 } else { 1 };
                let Some(mut items) = self.elements(count, depth)? else {
                    return Ok(None);
                };
                match kind {
                    b'*' => Frame::Array(items),
                    b'~' => Frame::Set(items),
                    b'>' => Frame::Push(items),
                    _ => {
                        let mut pairs = Vec::with_capacity(count / 2);
                        while let (Some(value), Some(key)) = (items.pop(), items.pop()) {
                            pairs.push((key, value));
                        }
                        pairs.reverse();
                        Frame::Map(pairs)
                    }
                }
            }
            other => {
                return Err(Malformed(format!(
                    "unknown reply type {:?}",
                    char::from(other)
                )));
            }
        };
        Ok(Some(frame))
    }

    fn elements(&mut self, count: usize, depth: usize) -> Result<Option<Vec<Frame>>, Malformed> {
        let mut items = Vec::with_capacity(count.min(1024));
        while items.len() < count {
            let from = self.position;
            let Some(item) = self.frame(depth + 1)? else {
                return Ok(None);
            };
            if item.is_message() {
                self.cuts.push((from, self.position));
                self.messages.push(Reply {
                    frame: item,
                    raw: self.buffer[from..self.position].to_vec(),
                });
            } else {
                items.push(item);
            }
        }
        Ok(Some(items))
    }

    fn line(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let rest = &self.buffer[self.position..];
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        self.position += end + 2;
        Ok(Some(&rest[..end]))
    }

    fn body(&mut self, length: usize) -> Result<Option<Vec<u8>>, Malformed> {
        let rest = &self.buffer[self.position..];
        if rest.len() < length + 2 {
            return Ok(None);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(Malformed("a string does not end with CRLF".into()));
        }
        self.position += length + 2;
        Ok(Some(rest[..length].to_vec()))
    }
}

fn number(text: &[u8]) -> Result<i64, Malformed> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            Malformed(format!(
                "{:?} is no number",
                text.escape_ascii().to_string()
            ))
        })
}

fn length(text: &[u8]) -> Result<usize, Malformed> {
    usize::try_from(number(text)?).map_err(|_| Malformed("a negative length".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_cut_anywhere_is_incomplete() {
        let whole = b"%1\r\n$1\r\na\r\n*2\r\n:1\r\n=7\r\ntxt:abc\r\n";
        for cut in 0..whole.len() {
            assert!(matches!(split(&whole[..cut]), Ok(None)), "cut at {cut}");
        }
        let taken = split(whole).unwrap().unwrap();
        assert_eq!(taken.consumed, whole.len());
        assert_eq!(taken.reply.raw, whole);
    }

    #[test]
    fn a_message_inside_an_array_is_lifted_out() {
        let bytes = b"*2\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\ny\r\n:1\r\n+OK\r\n";
        let taken = split(bytes).unwrap().unwrap();
        assert_eq!(taken.reply.raw, b"*2\r\n:1\r\n+OK\r\n");
        assert_eq!(taken.messages.len(), 1);
        assert_eq!(taken.consumed, bytes.len());
    }

    #[test]
    fn bytes_that_are_no_reply_are_malformed() {
        for bytes in [b"?\r\n".as_slice(), b":x\r\n", b"$1\r\nabc", b"\r\n"] {
            assert!(split(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
