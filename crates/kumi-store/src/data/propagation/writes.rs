//! Encoded writes on their way to an AOF: bytes, and references to large arguments between them.
//!
//! ```text
//! chunks: [bytes] [shared 1 MiB] [bytes] [shared 40 KiB]    tail: [bytes | room]
//!                                                                        ^ next request
//! ```
//!
//! Requests go to the tail. A chunk is a range of bytes with a reference count: cutting one in two,
//! or putting bytes in front of it, moves none of its bytes.

use kumi_resp::{LARGE_ARG_BYTES, SharedBytes};
use std::ops::Range;

/// A tail this short is copied to its exact size when a chunk ends it, and its memory is used on.
const SHORT_BYTES: usize = 1024;
/// Up to this many bytes of the tail are moved, which costs less than a chunk.
const MOVED_BYTES: usize = 16 * 1024;
/// An empty list of chunks keeps room for this many.
const KEEP_CHUNKS: usize = 64;

/// Encoded writes in their order, in parts. Large arguments are shared with the data.
///
/// ```
/// use kumi_resp::SharedBytes;
/// use kumi_store::Writes;
///
/// let value = SharedBytes::new(b"value".to_vec());
/// let mut writes = Writes::default();
/// writes.push(b"$5\r\n");
/// writes.push_shared(value.clone());
/// writes.push(b"\r\n");
/// assert_eq!(value.owners(), 2);
/// assert_eq!(writes.parts().collect::<Vec<_>>().concat(), b"$5\r\nvalue\r\n");
/// ```
#[derive(Debug, Default)]
pub struct Writes {
    /// What is before the tail; no chunk is empty.
    chunks: Vec<Chunk>,
    /// Length of all chunks.
    sealed: usize,
    /// What is appended to.
    tail: Vec<u8>,
}

/// A range of bytes.
#[derive(Debug)]
struct Chunk {
    bytes: SharedBytes,
    range: Range<usize>,
}

impl Chunk {
    fn whole(bytes: SharedBytes) -> Self {
        let range = 0..bytes.len();
        Self { bytes, range }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// Keeps the first `len` bytes; returns the others.
    fn split_off(&mut self, len: usize) -> Self {
        let middle = self.range.start + len;
        let range = middle..self.range.end;
        self.range.end = middle;
        Self {
            bytes: self.bytes.clone(),
            range,
        }
    }
}

impl Writes {
    /// How many bytes there are, those of shared arguments included.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.sealed + self.tail.len()
    }

    /// Whether there is nothing.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, in parts of which none is empty.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let chunks = self.chunks.iter().map(Chunk::bytes);
        let all = chunks.chain(std::iter::once(self.tail.as_slice()));
        all.filter(|part| !part.is_empty())
    }

    /// Appends a copy of the bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Appends a reference. No byte is copied.
    pub fn push_shared(&mut self, bytes: SharedBytes) {
        self.seal();
        self.push_chunk(bytes);
    }

    /// Moves everything that `other` holds behind this; `other` keeps the memory of its tail.
    pub fn append(&mut self, other: &mut Writes) {
        if !other.chunks.is_empty() {
            self.seal();
            self.chunks.append(&mut other.chunks);
            self.sealed += std::mem::take(&mut other.sealed);
        }
        self.tail.append(&mut other.tail);
    }

    /// Drops everything except the memory of the tail. Returns large blocks without another owner: drop them on a
    /// thread that may take its time.
    #[must_use]
    pub fn clear(&mut self) -> Vec<SharedBytes> {
        self.sealed = 0;
        self.tail.clear();
        let blocks = self.chunks.drain(..).map(|chunk| chunk.bytes);
        blocks
            .filter(|bytes| bytes.len() >= LARGE_ARG_BYTES && bytes.is_unique())
            .collect()
    }

    /// Gives memory back that is not in use, down to a tail of this capacity.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.tail.shrink_to(bytes);
        self.chunks.shrink_to(KEEP_CHUNKS);
    }

    /// Where requests are encoded to.
    #[inline]
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// All bytes in one piece.
    pub(super) fn into_vec(self) -> Vec<u8> {
        if self.chunks.is_empty() {
            return self.tail;
        }
        self.parts().collect::<Vec<_>>().concat()
    }

    /// Puts a few bytes in front of those at `position`, of which at most [`MOVED_BYTES`] are moved.
    pub(super) fn insert(&mut self, position: usize, bytes: &[u8]) {
        if self.is_short_tail(position) {
            let at = position - self.sealed;
            self.tail.splice(at..at, bytes.iter().copied());
            return;
        }
        let index = self.cut(position);
        let chunk = Chunk::whole(SharedBytes::new(bytes.to_vec()));
        self.chunks.insert(index, chunk);
        self.sealed += bytes.len();
    }

    /// Forgets everything behind `position`.
    pub(super) fn truncate(&mut self, position: usize) {
        if position >= self.sealed {
            self.tail.truncate(position - self.sealed);
            return;
        }
        let index = self.cut(position);
        self.chunks.truncate(index);
        self.sealed = position;
        self.tail.clear();
    }

    /// Moves everything behind `position` to `rest`, which is empty.
    pub(super) fn split_into(&mut self, position: usize, rest: &mut Writes) {
        if self.is_short_tail(position) {
            let at = position - self.sealed;
            rest.tail.extend_from_slice(&self.tail[at..]);
            self.tail.truncate(at);
            return;
        }
        let index = self.cut(position);
        rest.chunks.extend(self.chunks.drain(index..));
        rest.sealed = self.sealed - position;
        self.sealed = position;
        std::mem::swap(&mut self.tail, &mut rest.tail);
    }

    /// Whether few bytes are behind `position`, all of them in the tail.
    fn is_short_tail(&self, position: usize) -> bool {
        position >= self.sealed && self.len() - position <= MOVED_BYTES
    }

    /// Makes a chunk end at `position`; returns how many chunks are before it. The tail is behind it.
    fn cut(&mut self, position: usize) -> usize {
        debug_assert!(position <= self.len(), "there is nothing to cut");
        if position > self.sealed {
            self.seal();
        }
        let mut start = self.sealed;
        for (index, chunk) in self.chunks.iter_mut().enumerate().rev() {
            if start <= position {
                return index + 1;
            }
            start -= chunk.range.len();
            if start < position {
                let behind = chunk.split_off(position - start);
                self.chunks.insert(index + 1, behind);
                return index + 1;
            }
        }
        0
    }

    /// Makes the tail a chunk.
    fn seal(&mut self) {
        let bytes = if self.tail.len() <= SHORT_BYTES {
            let short = self.tail.clone();
            self.tail.clear();
            short
        } else {
            std::mem::take(&mut self.tail)
        };
        self.push_chunk(SharedBytes::new(bytes));
    }

    /// Appends a chunk; the tail is empty.
    fn push_chunk(&mut self, bytes: SharedBytes) {
        if !bytes.is_empty() {
            self.sealed += bytes.len();
            self.chunks.push(Chunk::whole(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(writes: &Writes) -> Vec<u8> {
        writes.parts().collect::<Vec<_>>().concat()
    }

    #[test]
    fn bytes_are_put_in_front_without_moving_others() {
        let mut writes = Writes::default();
        writes.push(&[b'a'; 100_000]);
        let block = writes.parts().next().unwrap().as_ptr();
        writes.insert(10, b"in front");
        let parts: Vec<&[u8]> = writes.parts().collect();
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), 100_008);
        assert_eq!(parts[1], b"in front");
        assert_eq!(parts[0].as_ptr(), block);
        assert_eq!(parts[2].as_ptr(), block.wrapping_add(10));
    }

    #[test]
    fn the_last_owner_of_a_large_block_gets_it_back() {
        let (kept, gone) = (vec![b'k'; LARGE_ARG_BYTES], vec![b'g'; LARGE_ARG_BYTES]);
        let (kept, gone) = (SharedBytes::new(kept), SharedBytes::new(gone));
        let mut writes = Writes::default();
        writes.push(b"head");
        writes.push_shared(kept.clone());
        writes.push_shared(gone);
        // Two chunks of one block.
        writes.insert(4 + LARGE_ARG_BYTES + 5, b"between");
        assert_eq!(writes.parts().count(), 5);
        let blocks = writes.clear();
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0][0], b'g');
        assert!(kept.is_unique() && writes.is_empty());
        assert_eq!(writes.parts().count(), 0);
    }

    #[test]
    fn parts_agree_with_a_vector() {
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut writes, mut expected) = (Writes::default(), Vec::<u8>::new());
            for step in 0..40_u8 {
                let len = match rng.u8(..4) {
                    0 => rng.usize(..3),
                    1 => rng.usize(..SHORT_BYTES * 2),
                    _ => rng.usize(..MOVED_BYTES * 2),
                };
                let position = rng.usize(..=expected.len());
                let bytes = vec![step; len];
                match rng.u8(..8) {
                    0..3 => {
                        writes.push(&bytes);
                        expected.extend(bytes);
                    }
                    3 | 4 => {
                        writes.push_shared(SharedBytes::new(bytes.clone()));
                        expected.extend(bytes);
                    }
                    5 => {
                        writes.insert(position, b"MULTI");
                        expected.splice(position..position, *b"MULTI");
                    }
                    6 => {
                        let mut rest = Writes::default();
                        writes.split_into(position, &mut rest);
                        let behind = expected.split_off(position);
                        assert_eq!(bytes_of(&writes), expected, "seed {seed}, step {step}");
                        assert_eq!(bytes_of(&rest), behind, "seed {seed}, step {step}");
                        writes.append(&mut rest);
                        assert!(rest.is_empty());
                        expected.extend(behind);
                    }
                    _ if rng.bool() => {
                        writes.truncate(position);
                        expected.truncate(position);
                    }
                    _ => {}
                }
                assert_eq!(writes.len(), expected.len(), "seed {seed}, step {step}");
                assert_eq!(bytes_of(&writes), expected, "seed {seed}, step {step}");
            }
            assert_eq!(writes.into_vec(), expected, "seed {seed}");
        }
    }
}
