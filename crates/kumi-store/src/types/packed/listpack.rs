//! Packed blocks as Redis listpacks, the form they have in a DUMP payload and in an RDB file.
//!
//! ```text
//!  4 bytes total size, 2 bytes count (65,535: count them), entries, 11111111
//! ```
//!
//! An entry is an encoded element and its encoded size. Bytes from elsewhere are checked entry by
//! entry, and elements that Redis would have written in another encoding are written in that one.

use super::elem::{back_len, decode, read_back, write_back};
use super::{Block, Elem, LISTPACK_FRAME, View};

const END: u8 = 0xff;
const COUNT_UNKNOWN: usize = u16::MAX as usize;
/// Total size and count.
const LISTPACK_HEADER: usize = 6;

impl<const TWO_WAY: bool> View<'_, TWO_WAY> {
    /// Appends the listpack with these elements to a buffer.
    ///
    /// # Panics
    /// The listpack would have 4 GiB or more. Lists, hashes, sorted sets and streams see to it that none has; a file with
    /// a truncated size could not be read, so that a snapshot that fails is better.
    pub(crate) fn write_listpack(self, out: &mut Vec<u8>) {
        let size = self.listpack_bytes();
        let size_field = u32::try_from(size).expect("no value has a listpack of 4 GiB");
        let len = self.len().min(COUNT_UNKNOWN) as u16;
        out.reserve(size);
        out.extend_from_slice(&size_field.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        if TWO_WAY {
            out.extend_from_slice(self.0.get(self.start().0..).unwrap_or_default());
        } else {
            let mut pos = self.start();
            while let Some(next) = self.next(pos) {
                let element = &self.0[pos.0..next.0];
                out.extend_from_slice(element);
                let at = out.len();
                out.resize(at + back_len(element.len()), 0);
                write_back(element.len(), &mut out[at..]);
                pos = next;
            }
        }
        out.push(END);
    }
}

impl<const TWO_WAY: bool> Block<TWO_WAY> {
    /// Reads a listpack; none if it is malformed or has more elements than a block can hold.
    pub(crate) fn from_listpack(bytes: &[u8]) -> Option<Self> {
        let mut block = Block::new();
        each_listpack_element(bytes, |elem| {
            let room = block.len() < Self::MAX_LEN;
            if room {
                block.push_back(elem);
            }
            room
        })?;
        Some(block)
    }
}

/// Calls `visit` with each element of a listpack until it returns false. None if the listpack is
/// malformed or `visit` ended it; what was visited before that must be thrown away.
pub(crate) fn each_listpack_element(
    bytes: &[u8],
    mut visit: impl FnMut(Elem<'_>) -> bool,
) -> Option<()> {
    let (header, rest) = bytes.split_first_chunk::<LISTPACK_HEADER>()?;
    let &[a, b, c, d, low, high] = header;
    if u32::from_le_bytes([a, b, c, d]) as usize != bytes.len() || bytes.len() < LISTPACK_FRAME {
        return None;
    }
    let (mut rest, mut seen) = (rest, 0);
    while *rest != [END] {
        let (elem, size) = decode(rest)?;
        let back = back_len(size);
        let entry = rest.get(..size + back)?;
        if read_back(entry)? != (size, back) || !visit(Elem::parse(&elem.text())) {
            return None;
        }
        rest = &rest[size + back..];
        seen += 1;
    }
    let count = usize::from(u16::from_le_bytes([low, high]));
    (count == seen || count == COUNT_UNKNOWN).then_some(())
}
