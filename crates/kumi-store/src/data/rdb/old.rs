//! The packed forms that older versions of Redis wrote inside a string: ziplist, zipmap and intset.
//!
//! Each function calls `visit` with the elements in order until it returns false. `None` means that the bytes are
//! malformed or that `visit` ended it. Elements are checked as they are visited, so what was visited before a `None` is
//! to be thrown away.

use crate::types::packed::Elem;

/// The byte that ends a ziplist or a zipmap.
const END: u8 = 0xff;

/// Reads a ziplist.
///
/// ```text
/// 4 bytes size | 4 bytes offset of the last entry | 2 bytes count (65,535: count them) | entries | 11111111
///
/// entry: size of the entry before it (1 byte, or 11111110 and 4 bytes), then
/// 00LLLLLL                   string of up to 63 bytes
/// 01LLLLLL LLLLLLLL          string of up to 16,383 bytes
/// 10______ 4 bytes           string with a length of 32 bits, high byte first
/// 11000000, 11010000, 11100000, 11110000, 11111110     integer of 2, 4, 8, 3 or 1 bytes, low byte first
/// 1111vvvv                   the integer v - 1, for v from 1 to 13
/// ```
pub(super) fn each_ziplist_element(
    bytes: &[u8],
    mut visit: impl FnMut(Elem<'_>) -> bool,
) -> Option<()> {
    const HEADER: usize = 10;
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if word(0) as usize != bytes.len() || bytes.len() == HEADER || bytes.last() != Some(&END) {
        return None;
    }
    let (mut at, mut last, mut before, mut count) = (HEADER, HEADER, 0, 0usize);
    while *bytes.get(at)? != END {
        let (previous, width) = match bytes[at] {
            254 => (le_u32(bytes.get(at + 1..at + 5)?)? as usize, 5),
            short => (usize::from(short), 1),
        };
        if previous != before {
            return None;
        }
        let (elem, size) = ziplist_element(bytes.get(at + width..bytes.len() - 1)?)?;
        if !visit(elem) {
            return None;
        }
        (last, before) = (at, width + size);
        at += before;
        count += 1;
    }
    let claimed = usize::from(u16::from_le_bytes([header[8], header[9]]));
    let whole = at + 1 == bytes.len();
    let right_count = claimed == count || claimed == usize::from(u16::MAX);
    (whole && right_count && word(4) as usize == last).then_some(())
}

/// The element behind an entry's first field, and its size.
fn ziplist_element(bytes: &[u8]) -> Option<(Elem<'_>, usize)> {
    let string = |head: usize, length: usize| {
        let end = head.checked_add(length)?;
        Some((Elem::parse(bytes.get(head..end)?), end))
    };
    let integer = |value: i64, size: usize| Some((Elem::Int(value), size));
    match *bytes {
        [first @ 0..=0x3f, ..] => string(1, usize::from(first)),
        [first @ 0x40..=0x7f, low, ..] => {
            string(2, usize::from(first & 0x3f) << 8 | usize::from(low))
        }
        [0x80..=0xbf, a, b, c, d, ..] => string(5, u32::from_be_bytes([a, b, c, d]) as usize),
        [0xc0, a, b, ..] => integer(i64::from(i16::from_le_bytes([a, b])), 3),
        [0xd0, a, b, c, d, ..] => integer(i64::from(i32::from_le_bytes([a, b, c, d])), 5),
        [0xe0, a, b, c, d, e, f, g, h, ..] => {
            integer(i64::from_le_bytes([a, b, c, d, e, f, g, h]), 9)
        }
        [0xf0, a, b, c, ..] => integer(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8), 4),
        [0xfe, a, ..] => integer(i64::from(a as i8), 2),
        [first @ 0xf1..=0xfd, ..] => integer(i64::from(first & 0x0f) - 1, 1),
        _ => None,
    }
}

/// Reads a zipmap, the small hash of Redis up to 2.4: fields and values in turn.
///
/// ```text
/// 1 byte count of pairs (254 or more: count them) | length field | length unused value, unused bytes | .. | 11111111
/// length: 1 byte, or 11111110 and 4 bytes, low byte first
/// ```
pub(super) fn each_zipmap_element(
    bytes: &[u8],
    mut visit: impl FnMut(&[u8]) -> bool,
) -> Option<()> {
    let (&claimed, mut rest) = bytes.split_first()?;
    let mut pairs = 0usize;
    while *rest.first()? != END {
        let length = zipmap_length(&mut rest)?;
        if !visit(cut(&mut rest, length)?) {
            return None;
        }
        let length = zipmap_length(&mut rest)?;
        let unused = usize::from(*cut(&mut rest, 1)?.first()?);
        if !visit(cut(&mut rest, length)?) {
            return None;
        }
        cut(&mut rest, unused)?;
        pairs += 1;
    }
    let right_count = usize::from(claimed) == pairs || claimed >= 254;
    (rest.len() == 1 && right_count).then_some(())
}

fn zipmap_length(rest: &mut &[u8]) -> Option<usize> {
    match *cut(rest, 1)?.first()? {
        254 => le_u32(cut(rest, 4)?).map(|length| length as usize),
        END => None,
        short => Some(usize::from(short)),
    }
}

/// Reads an intset: integers of one width, strictly ascending, at least one.
///
/// ```text
/// 4 bytes width (2, 4 or 8) | 4 bytes count | integers, low byte first
/// ```
pub(super) fn each_intset_member(bytes: &[u8], mut visit: impl FnMut(i64) -> bool) -> Option<()> {
    let mut rest = bytes;
    let width = le_u32(cut(&mut rest, 4)?)? as usize;
    let count = le_u32(cut(&mut rest, 4)?)? as usize;
    if !matches!(width, 2 | 4 | 8) || count == 0 || count.checked_mul(width)? != rest.len() {
        return None;
    }
    let mut before = None;
    for integer in rest.chunks_exact(width) {
        let value = match *integer {
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => i64::from_le_bytes(integer.try_into().ok()?),
        };
        if before >= Some(value) || !visit(value) {
            return None;
        }
        before = Some(value);
    }
    Some(())
}

fn cut<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(taken)
}

fn le_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_le_bytes)
}
