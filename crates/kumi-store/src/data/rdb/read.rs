//! The primitives: lengths, strings and doubles.
//!
//! ```text
//! 00LLLLLL                   length of 6 bits
//! 01LLLLLL LLLLLLLL          length of 14 bits, high byte first
//! 10000000 4 bytes           length of 32 bits, high byte first
//! 10000001 8 bytes           length of 64 bits, high byte first
//! 11000000 .. 11000010       instead of a string's length: an integer of 1, 2 or 4 bytes follows, low byte first
//! 11000011                   a compressed string: compressed length, length, bytes
//! ```

use super::RdbError;
use crate::base::{crc64, lzf, number};
use std::io::Read;

/// Where the bytes come from. A source that reads a file returns bytes of its buffer.
pub(crate) trait Input {
    /// The next `length` bytes. Must not allocate more than a bounded amount beyond what is really there.
    fn take(&mut self, length: usize) -> Result<&[u8], RdbError>;
}

impl Input for &[u8] {
    fn take(&mut self, length: usize) -> Result<&[u8], RdbError> {
        let (taken, rest) = self.split_at_checked(length).ok_or(RdbError::Truncated)?;
        *self = rest;
        Ok(taken)
    }
}

/// A file or any other stream, read through a buffer. Counts and sums up what was taken.
#[derive(Debug)]
pub(crate) struct FileInput<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where the bytes that were not taken yet begin.
    start: usize,
    offset: u64,
    /// Of the bytes that have left the buffer.
    checksum: u64,
}

impl<R: Read> FileInput<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            checksum: 0,
        }
    }

    /// Bytes taken so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The CRC-64 of the bytes taken so far.
    pub(crate) fn checksum(&self) -> u64 {
        crc64::update(self.checksum, &self.buffer[..self.start])
    }

    /// Reads until `length` bytes are there. The buffer grows with what really comes.
    fn fill(&mut self, length: usize) -> Result<(), RdbError> {
        self.checksum = self.checksum();
        self.buffer.drain(..self.start);
        self.start = 0;
        while self.buffer.len() < length {
            let read = (&mut self.source)
                .take(READ_BYTES)
                .read_to_end(&mut self.buffer);
            match read {
                Ok(0) => return Err(RdbError::Truncated),
                Ok(_) => {}
                Err(error) => return Err(RdbError::Io(error.kind())),
            }
        }
        Ok(())
    }
}

/// How much is read at a time.
const READ_BYTES: u64 = 256 * 1024;

impl<R: Read> Input for FileInput<R> {
    fn take(&mut self, length: usize) -> Result<&[u8], RdbError> {
        if self.buffer.len() - self.start < length {
            self.fill(length)?;
        }
        let taken = &self.buffer[self.start..][..length];
        self.start += length;
        self.offset += length as u64;
        Ok(taken)
    }
}

/// Reads primitives from an input.
#[derive(Debug)]
pub(crate) struct Reader<I> {
    input: I,
    /// A string that is not in the input as such: an integer's text, or what was compressed.
    scratch: Vec<u8>,
}

/// What stands before the bytes of a string.
enum Header {
    Length(u64),
    /// The integer of so many bytes that follows.
    Integer(usize),
    Compressed,
}

impl<I: Input> Reader<I> {
    pub(crate) fn new(input: I) -> Self {
        Self {
            input,
            scratch: Vec::new(),
        }
    }

    pub(crate) fn input(&self) -> &I {
        &self.input
    }

    /// What is left of the input.
    pub(crate) fn into_input(self) -> I {
        self.input
    }

    pub(crate) fn byte(&mut self) -> Result<u8, RdbError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// So many bytes as they are.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        self.input
            .take(N)?
            .try_into()
            .map_err(|_| RdbError::Truncated)
    }

    /// A length, or any other number that is not negative.
    pub(crate) fn length(&mut self) -> Result<u64, RdbError> {
        let first = self.byte()?;
        match self.header(first)? {
            Header::Length(length) => Ok(length),
            _ => Err(RdbError::UnknownEncoding(first)),
        }
    }

    /// The next string, borrowed until the next one is read.
    pub(crate) fn string(&mut self) -> Result<&[u8], RdbError> {
        let first = self.byte()?;
        match self.header(first)? {
            Header::Length(length) => self.input.take(to_usize(length)?),
            Header::Integer(bytes) => {
                let bytes = self.input.take(bytes)?;
                let integer = match *bytes {
                    [a] => i64::from(a as i8),
                    [a, b] => i64::from(i16::from_le_bytes([a, b])),
                    [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
                    _ => return Err(RdbError::Truncated),
                };
                self.scratch.clear();
                self.scratch.extend_from_slice(&number::format_i64(integer));
                Ok(&self.scratch)
            }
            Header::Compressed => {
                let compressed = to_usize(self.length()?)?;
                let length = to_usize(self.length()?)?;
                let bytes = self.input.take(compressed)?;
                self.scratch.clear();
                lzf::decompress(bytes, length, &mut self.scratch)
                    .map_err(|lzf::Corrupt| RdbError::Lzf)?;
                Ok(&self.scratch)
            }
        }
    }

    /// The next string, in place of what `out` held.
    pub(crate) fn string_into(&mut self, out: &mut Vec<u8>) -> Result<(), RdbError> {
        let string = self.string()?;
        out.clear();
        out.extend_from_slice(string);
        Ok(())
    }

    /// A double of the first sorted sets: a text with its length, or a mark. Not a number is refused.
    pub(crate) fn text_double(&mut self) -> Result<f64, RdbError> {
        let number = match self.byte()? {
            255 => f64::NEG_INFINITY,
            254 => f64::INFINITY,
            253 => f64::NAN,
            length => parse_score(self.input.take(usize::from(length))?)?,
        };
        checked_score(number)
    }

    /// A double as its eight bytes, low byte first. Not a number is refused.
    pub(crate) fn binary_double(&mut self) -> Result<f64, RdbError> {
        checked_score(f64::from_le_bytes(self.array()?))
    }

    /// A time in milliseconds.
    pub(crate) fn milliseconds(&mut self) -> Result<i64, RdbError> {
        self.array().map(i64::from_le_bytes)
    }

    fn header(&mut self, first: u8) -> Result<Header, RdbError> {
        let low = first & 0x3f;
        let header = match (first >> 6, low) {
            (0, _) => Header::Length(u64::from(low)),
            (1, _) => Header::Length(u64::from(low) << 8 | u64::from(self.byte()?)),
            (2, 0) => Header::Length(u64::from(u32::from_be_bytes(self.array()?))),
            (2, 1) => Header::Length(u64::from_be_bytes(self.array()?)),
            (3, 0..=2) => Header::Integer(1 << low),
            (3, 3) => Header::Compressed,
            _ => return Err(RdbError::UnknownEncoding(first)),
        };
        Ok(header)
    }
}

/// A score in text form.
pub(super) fn parse_score(text: &[u8]) -> Result<f64, RdbError> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    checked_score(number.ok_or(RdbError::Corrupt("a score is no number"))?)
}

fn checked_score(score: f64) -> Result<f64, RdbError> {
    match score.is_nan() {
        true => Err(RdbError::Corrupt("a score is not a number")),
        false => Ok(score),
    }
}

fn to_usize(length: u64) -> Result<usize, RdbError> {
    usize::try_from(length).map_err(|_| RdbError::Truncated)
}
