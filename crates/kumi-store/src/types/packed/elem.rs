//! One element of a packed block: a byte string or an integer, and its encoding.
//!
//! The encoding is that of a Redis listpack entry without its trailing length, so the size a block
//! would have as a listpack follows from the block, and a conversion copies element by element.
//!
//! ```text
//!  0xxxxxxx                    unsigned integer of 7 bits
//!  10xxxxxx + bytes            string of up to 63 bytes
//!  110xxxxx x                  signed integer of 13 bits, high bits first
//!  1110xxxx x + bytes          string of up to 4,095 bytes, high bits of the length first
//!  11110000 xxxx + bytes       string with a 32-bit length, low byte first
//!  11110001 .. 11110100        signed integer of 16, 24, 32 or 64 bits, low byte first
//! ```
//!
//! Other first bytes, 11111111 (the end of a listpack) among them, encode nothing.

use std::ops::Deref;

use crate::base::number;

/// The longest text of a 64-bit integer.
const LONGEST_INT: usize = 20;
/// The longest string with a one-byte header.
const SHORT_STRING: usize = 63;
/// The longest string with a two-byte header.
const MEDIUM_STRING: usize = 4095;

const STRING_32: u8 = 0xf0;
const INT_16: u8 = 0xf1;
const INT_24: u8 = 0xf2;
const INT_32: u8 = 0xf3;
const INT_64: u8 = 0xf4;

/// An element as a caller sees it. Two elements are equal exactly if their texts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elem<'a> {
    /// A text that is the canonical form of this number.
    Int(i64),
    /// Any other text. A caller that stores the text of a number as bytes breaks `find`.
    Bytes(&'a [u8]),
}

impl<'a> Elem<'a> {
    /// The element for a text: a number if the text is exactly the number's canonical form.
    #[inline]
    pub(crate) fn parse(text: &'a [u8]) -> Self {
        let numeric = matches!(text.first(), Some(b'0'..=b'9' | b'-'));
        if numeric
            && text.len() <= LONGEST_INT
            && let Some(number) = number::parse_i64(text)
        {
            return Elem::Int(number);
        }
        Elem::Bytes(text)
    }

    /// The text of the element.
    #[inline]
    pub(crate) fn text(self) -> Text<'a> {
        match self {
            Elem::Int(number) => Text::Decimal(number::format_i64(number)),
            Elem::Bytes(bytes) => Text::Bytes(bytes),
        }
    }

    /// The number an integer element holds.
    pub(crate) fn int(self) -> Option<i64> {
        match self {
            Elem::Int(number) => Some(number),
            Elem::Bytes(_) => None,
        }
    }

    /// What the element takes in a listpack, its trailing length included.
    pub(crate) fn listpack_bytes(self) -> usize {
        let size = self.encode().size();
        size + back_len(size)
    }

    /// The bytes of the encoded element.
    #[inline]
    pub(super) fn encode(self) -> Encoded<'a> {
        let mut encoded = Encoded {
            head: [0; 9],
            head_len: 0,
            payload: &[],
        };
        match self {
            Elem::Int(number) => encoded.put_int(number),
            Elem::Bytes(bytes) => {
                encoded.payload = bytes;
                match bytes.len() {
                    len @ ..=SHORT_STRING => encoded.put_head(&[0x80 | len as u8]),
                    len @ ..=MEDIUM_STRING => {
                        encoded.put_head(&[0xe0 | (len >> 8) as u8, len as u8]);
                    }
                    len => {
                        let [a, b, c, d] = (len as u32).to_le_bytes();
                        encoded.put_head(&[STRING_32, a, b, c, d]);
                    }
                }
            }
        }
        encoded
    }
}

/// The text of an element, which an integer has on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
    Bytes(&'a [u8]),
    Decimal(number::Decimal),
}

impl Deref for Text<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Text::Bytes(bytes) => bytes,
            Text::Decimal(decimal) => decimal,
        }
    }
}

impl AsRef<[u8]> for Text<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// An encoded element before it is written: the head on the stack, the string where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoded<'a> {
    head: [u8; 9],
    head_len: usize,
    payload: &'a [u8],
}

impl Encoded<'_> {
    /// Bytes of the encoded element.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.head_len + self.payload.len()
    }

    /// Writes the element to a place of exactly its size.
    #[inline]
    pub(super) fn write(&self, to: &mut [u8]) {
        let (head, payload) = to.split_at_mut(self.head_len);
        head.copy_from_slice(&self.head[..self.head_len]);
        payload.copy_from_slice(self.payload);
    }

    /// Writes the element behind the bytes of a buffer.
    #[inline]
    pub(super) fn append_to(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.head[..self.head_len]);
        to.extend_from_slice(self.payload);
    }

    /// Whether this element is what the bytes begin with.
    #[inline]
    pub(super) fn starts(&self, bytes: &[u8]) -> bool {
        if bytes.first() != Some(&self.head[0]) {
            return false;
        }
        // Comparing one byte costs less than a call, and most heads have no more.
        let same_head = self.head_len == 1 || bytes.starts_with(&self.head[..self.head_len]);
        let payload = bytes.get(self.head_len..self.size());
        same_head && payload.is_some_and(|payload| same(payload, self.payload))
    }

    #[inline]
    fn put_head(&mut self, head: &[u8]) {
        self.head[..head.len()].copy_from_slice(head);
        self.head_len = head.len();
    }

    fn put_int(&mut self, number: i64) {
        let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
        match number {
            0..=127 => self.put_head(&[a]),
            -4096..=4095 => self.put_head(&[0xc0 | b & 0x1f, a]),
            -0x8000..=0x7fff => self.put_head(&[INT_16, a, b]),
            -0x80_0000..=0x7f_ffff => self.put_head(&[INT_24, a, b, c]),
            -0x8000_0000..=0x7fff_ffff => self.put_head(&[INT_32, a, b, c, d]),
            _ => self.put_head(&[INT_64, a, b, c, d, e, f, g, h]),
        }
    }
}

/// Equality of two texts of the same length. Most texts that differ do so in their last bytes, and
/// one comparison of a word there costs less than a call.
#[inline]
fn same(left: &[u8], right: &[u8]) -> bool {
    match (left.last_chunk::<8>(), right.last_chunk::<8>()) {
        (Some(left_end), Some(right_end)) => left_end == right_end && left == right,
        _ => left == right,
    }
}

/// Sizes by the first byte, head included, of the encodings that need no other byte to know theirs;
/// 0 for those with a longer length, and for bytes that encode nothing.
const SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut first = 0;
    while first < 256 {
        sizes[first] = match first {
            0..=0x7f => 1,
            0x80..=0xbf => first as u8 - 0x80 + 1,
            0xc0..=0xdf => 2,
            0xf1 => 3,
            0xf2 => 4,
            0xf3 => 5,
            0xf4 => 9,
            _ => 0,
        };
        first += 1;
    }
    sizes
};

/// The size of the encoded element at the start of these bytes; none if no element begins there.
/// The bytes may still be too short for it.
#[inline]
pub(super) fn size(bytes: &[u8]) -> Option<usize> {
    match SIZES[usize::from(*bytes.first()?)] {
        0 => string_size(bytes),
        size => Some(usize::from(size)),
    }
}

fn string_size(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [first @ 0xe0..=0xef, low, ..] => Some(2 + (usize::from(first & 0x0f) << 8 | low as usize)),
        [STRING_32, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize).checked_add(5),
        _ => None,
    }
}

/// The element at the start of these bytes, and its size.
#[inline]
pub(super) fn decode(bytes: &[u8]) -> Option<(Elem<'_>, usize)> {
    let size = size(bytes)?;
    let elem = match *bytes.get(..size)? {
        [first @ 0..=0x7f] => Elem::Int(i64::from(first)),
        [0x80..=0xbf, ref string @ ..] => Elem::Bytes(string),
        [first @ 0xc0..=0xdf, low] => {
            // Shifted up and back, so that the sign fills the three bits of the mark.
            let bits = u16::from_be_bytes([first & 0x1f, low]) << 3;
            Elem::Int(i64::from(bits as i16 >> 3))
        }
        [0xe0..=0xef, _, ref string @ ..] => Elem::Bytes(string),
        [STRING_32, _, _, _, _, ref string @ ..] => Elem::Bytes(string),
        [INT_16, a, b] => Elem::Int(i64::from(i16::from_le_bytes([a, b]))),
        [INT_24, a, b, c] => Elem::Int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8)),
        [INT_32, a, b, c, d] => Elem::Int(i64::from(i32::from_le_bytes([a, b, c, d]))),
        [INT_64, a, b, c, d, e, f, g, h] => Elem::Int(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
        _ => return None,
    };
    Some((elem, size))
}

/// What an integer takes in a listpack, its trailing length included.
#[inline]
pub(crate) fn int_bytes(number: i64) -> usize {
    match number {
        0..=0x7f => 2,
        -0x1000..=0xfff => 3,
        -0x8000..=0x7fff => 4,
        -0x80_0000..=0x7f_ffff => 5,
        -0x8000_0000..=0x7fff_ffff => 6,
        _ => 10,
    }
}

/// How many bytes the trailing length of a listpack entry takes whose encoded element has this
/// size. The limits of Redis's encoder leave the largest number of each width unused.
#[inline]
pub(super) fn back_len(size: usize) -> usize {
    match size {
        ..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Writes the trailing length of an encoded element of this size into a place of its own length:
/// seven bits a byte, high bits first, and a mark on all bytes but the first.
#[inline]
pub(super) fn write_back(size: usize, to: &mut [u8]) {
    let mut rest = size;
    for byte in to.iter_mut().rev() {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    if let Some(first) = to.first_mut() {
        *first &= 0x7f;
    }
}

/// Reads the trailing length that ends these bytes: the size of the element before it, and the
/// bytes the length itself takes.
#[inline]
pub(super) fn read_back(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut size = 0;
    for (index, &byte) in bytes.iter().rev().take(5).enumerate() {
        size |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((size, index + 1));
        }
    }
    None
}
