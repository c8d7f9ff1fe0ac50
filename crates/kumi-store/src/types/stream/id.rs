//! The id of an entry: milliseconds and a sequence number, as clients write it and as keys sort.

use crate::base::number;
use std::fmt;
use std::ops::Deref;

/// The longest text of an id that is read; Redis copies it into a buffer of this size.
const LONGEST_TEXT: usize = 127;
/// The longest text of an id that is written: two numbers of 20 digits and a dash.
const LONGEST_ID: usize = 41;

/// An entry's id; sorts by time, then by sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId {
    pub(crate) ms: u64,
    pub(crate) seq: u64,
}

impl StreamId {
    /// `0-0`, which no entry has.
    pub(crate) const MIN: Self = Self::new(0, 0);
    pub(crate) const MAX: Self = Self::new(u64::MAX, u64::MAX);

    pub(crate) const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// The id right above.
    pub(crate) fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self::new(self.ms, seq)),
            None => Some(Self::new(self.ms.checked_add(1)?, 0)),
        }
    }

    /// The id right below.
    pub(crate) fn prev(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self::new(self.ms, seq)),
            None => Some(Self::new(self.ms.checked_sub(1)?, u64::MAX)),
        }
    }

    /// Reads `ms-seq`, or `ms` alone with the sequence number given here. The text ends at a NUL byte.
    pub(crate) fn parse(text: &[u8], missing_seq: u64) -> Option<Self> {
        if text.len() > LONGEST_TEXT {
            return None;
        }
        let text = match text.iter().position(|&byte| byte == 0) {
            Some(nul) => &text[..nul],
            None => text,
        };
        match text.iter().position(|&byte| byte == b'-') {
            None => Some(Self::new(parse_part(text)?, missing_seq)),
            Some(dash) => Some(Self::new(
                parse_part(&text[..dash])?,
                parse_part(&text[dash + 1..])?,
            )),
        }
    }

    /// Reads the `ms` of `ms-*`, which asks for any sequence number.
    pub(crate) fn parse_any_seq(text: &[u8]) -> Option<u64> {
        parse_part(text.strip_suffix(b"-*")?)
    }

    /// The id as clients read it.
    pub(crate) fn text(self) -> IdText {
        let (ms, seq) = (number::format_u64(self.ms), number::format_u64(self.seq));
        let mut bytes = [0; LONGEST_ID];
        let len = ms.len() + 1 + seq.len();
        bytes[..ms.len()].copy_from_slice(&ms);
        bytes[ms.len()] = b'-';
        bytes[ms.len() + 1..len].copy_from_slice(&seq);
        IdText { bytes, len }
    }

    /// The distance from another id, as if ids were numbers of 128 bits.
    pub(super) fn distance_from(self, other: Self) -> u128 {
        let bits = |id: Self| u128::from(id.ms) << 64 | u128::from(id.seq);
        bits(self).wrapping_sub(bits(other))
    }

    /// Sixteen bytes that sort as the ids do.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let bits = u128::from_be_bytes(bytes);
        Self::new((bits >> 64) as u64, bits as u64)
    }
}

/// The text of an id, on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdText {
    bytes: [u8; LONGEST_ID],
    len: usize,
}

impl Deref for IdText {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl AsRef<[u8]> for IdText {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}

/// A number as `strtoull` reads it, negative canonical numbers excepted.
fn parse_part(text: &[u8]) -> Option<u64> {
    if let Some(number) = number::parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let digits = text.trim_ascii_start();
    if digits.is_empty() || digits.contains(&0) {
        return None;
    }
    number::parse_cursor(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_ids() {
        let cases: &[(&str, Option<(u64, u64)>)] = &[
            ("0-0", Some((0, 0))),
            ("5", Some((5, 7))),
            ("5-3", Some((5, 3))),
            (
                "18446744073709551615-18446744073709551615",
                Some((u64::MAX, u64::MAX)),
            ),
            ("18446744073709551616", None),
            ("05-007", Some((5, 7))),
            ("", None),
            ("-", None),
            ("5-", None),
            ("-5", None),
            ("5-*", None),
            ("a-1", None),
            ("1-1-1", None),
            ("1-1 ", None),
            ("1-1\0 ", Some((1, 1))),
            ("+", None),
        ];
        for &(text, expected) in cases {
            let expected = expected.map(|(ms, seq)| StreamId::new(ms, seq));
            assert_eq!(StreamId::parse(text.as_bytes(), 7), expected, "{text}");
        }
        assert_eq!(StreamId::parse_any_seq(b"12-*"), Some(12));
        assert_eq!(StreamId::parse_any_seq(b"12-1"), None);
        assert_eq!(StreamId::parse_any_seq(b"*"), None);
    }

    #[test]
    fn neighbours_and_bytes() {
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::MIN.prev(), None);
        let edge = StreamId::new(5, u64::MAX);
        assert_eq!(edge.next(), Some(StreamId::new(6, 0)));
        assert_eq!(StreamId::new(6, 0).prev(), Some(edge));
        assert_eq!(StreamId::from_bytes(edge.to_bytes()), edge);
        assert_eq!(edge.to_string(), "5-18446744073709551615");
        for id in [edge, StreamId::MIN, StreamId::MAX] {
            assert_eq!(&*id.text(), id.to_string().as_bytes());
        }
        assert!(StreamId::new(1, 2).to_bytes() < StreamId::new(2, 1).to_bytes());
    }
}
