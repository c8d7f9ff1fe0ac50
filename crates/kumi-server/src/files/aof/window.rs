//! A window that moves over a file of requests and finds its elements: whole requests and comment lines.

use std::io::{self, Read};

/// Read at once.
pub(super) const CHUNK: usize = 1024 * 1024;
/// The longest comment line, as in Redis.
const MAX_COMMENT: usize = 1024;

/// A file, or bytes in its place, that can be read from any position on.
pub(crate) trait Source {
    fn open(&self, at: u64) -> io::Result<Box<dyn Read + Send + '_>>;
}

impl Source for &[u8] {
    fn open(&self, at: u64) -> io::Result<Box<dyn Read + Send + '_>> {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        Ok(Box::new(&self[at..]))
    }
}

/// A part of the file, in memory.
pub(super) struct Window<'s> {
    reader: Box<dyn Read + Send + 's>,
    /// The length of the file.
    len: u64,
    pub(super) buffer: Vec<u8>,
    /// The position of the buffer's first byte in the file.
    pub(super) start: u64,
    /// Where the next element begins in the buffer.
    pub(super) at: usize,
}

/// One thing in a file.
pub(super) enum Element {
    Request {
        len: usize,
        transaction: Option<Edge>,
    },
    Comment(usize),
    /// The file has to be read on.
    More,
    /// The file ends before it does.
    Endless,
    Bad(Flaw),
}

/// Why bytes are neither a request nor a comment.
pub(super) struct Flaw {
    /// The first wrong byte, counted from where the element begins.
    pub(super) at: usize,
    pub(super) reason: String,
}

impl Element {
    fn bad(at: usize, reason: &str) -> Self {
        Element::Bad(Flaw {
            at,
            reason: reason.into(),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Begin,
    End,
}

impl<'s> Window<'s> {
    /// Begins at a position of a file of `len` bytes.
    pub(super) fn open(source: &'s dyn Source, len: u64, at: u64) -> io::Result<Self> {
        Ok(Self {
            reader: source.open(at)?,
            len,
            buffer: Vec::new(),
            start: at,
            at: 0,
        })
    }

    /// The position in the file of the next element.
    pub(super) fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    /// Forgets the first bytes of the buffer.
    pub(super) fn forget(&mut self, count: usize) {
        self.buffer.drain(..count);
        self.start += count as u64;
        self.at -= count;
    }

    /// Reads more of the file; false at its end.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        let have = self.buffer.len();
        // As much again, so that a long request is looked at a few times only.
        let want = CHUNK.max(have);
        self.buffer.reserve(want);
        let read = (&mut self.reader)
            .take(want as u64)
            .read_to_end(&mut self.buffer)?;
        Ok(read > 0)
    }

    /// Hands what was not read yet to `stops` in pieces, until it returns true; returns whether it did.
    pub(super) fn read_rest(&mut self, mut stops: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let mut reader = (&mut self.reader).take(CHUNK as u64);
            if reader.read_to_end(&mut piece)? == 0 {
                return Ok(false);
            }
            if stops(&piece) {
                return Ok(true);
            }
        }
    }

    /// Looks at what begins at `at`.
    pub(super) fn element(&self) -> Element {
        let bytes = &self.buffer[self.at..];
        match bytes.first() {
            None => Element::More,
            Some(b'#') => match bytes
                .iter()
                .take(MAX_COMMENT)
                .position(|&byte| byte == b'\n')
            {
                Some(end) => Element::Comment(end + 1),
                None if bytes.len() >= MAX_COMMENT => {
                    let zero = bytes.iter().position(|&byte| byte == 0);
                    Element::bad(zero.unwrap_or(0), "a comment line is too long")
                }
                None => Element::More,
            },
            Some(b'*') => request(bytes, self.len.saturating_sub(self.position())),
            Some(&byte) => Element::Bad(Flaw {
                at: 0,
                reason: format!(
                    "a request begins with '*', here is '{}'",
                    byte.escape_ascii()
                ),
            }),
        }
    }
}

/// Looks at a request. `left` is how many bytes the file has from here on.
pub(super) fn request(bytes: &[u8], left: u64) -> Element {
    let (count, mut at) = match number(bytes, b'*') {
        Number::Is(0, _) => return Element::bad(1, "the number of arguments is malformed"),
        Number::Is(count, len) => (count, len),
        Number::More => return Element::More,
        Number::Bad(at) => return Element::bad(at, "the number of arguments is malformed"),
    };
    let mut transaction = None;
    for index in 0..count {
        let (len, header) = match number(&bytes[at..], b'$') {
            Number::Is(len, header) => (len, header),
            Number::More => return Element::More,
            Number::Bad(wrong) => {
                return Element::bad(at + wrong, "the length of an argument is malformed");
            }
        };
        let start = at + header;
        let Some(end) = usize::try_from(len)
            .ok()
            .and_then(|len| start.checked_add(len))
        else {
            return Element::bad(at, "the length of an argument is malformed");
        };
        if end as u64 >= left {
            return Element::Endless;
        }
        match bytes.get(end..end + 2) {
            None => return Element::More,
            Some(b"\r\n") => {}
            Some(wrong) => {
                let wrong = end + usize::from(wrong[0] == b'\r');
                return Element::bad(wrong, "an argument is not as long as it says");
            }
        }
        if count == 1 && index == 0 {
            let word = &bytes[start..end];
            if word.eq_ignore_ascii_case(b"MULTI") {
                transaction = Some(Edge::Begin);
            } else if word.eq_ignore_ascii_case(b"EXEC") {
                transaction = Some(Edge::End);
            }
        }
        at = end + 2;
    }
    Element::Request {
        len: at,
        transaction,
    }
}

enum Number {
    /// The number, and the length of its line.
    Is(u64, usize),
    More,
    /// The first wrong byte.
    Bad(usize),
}

/// Reads `<sign><digits>\r\n`.
fn number(bytes: &[u8], sign: u8) -> Number {
    const DIGITS: usize = 18;
    match bytes.first() {
        None => return Number::More,
        Some(&byte) if byte != sign => return Number::Bad(0),
        Some(_) => {}
    }
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            b'0'..=b'9' if index <= DIGITS => value = value * 10 + u64::from(byte - b'0'),
            b'\r' if index > 1 => {
                return match bytes.get(index + 1) {
                    None => Number::More,
                    Some(b'\n') => Number::Is(value, index + 2),
                    Some(_) => Number::Bad(index + 1),
                };
            }
            _ => return Number::Bad(index),
        }
    }
    Number::More
}
