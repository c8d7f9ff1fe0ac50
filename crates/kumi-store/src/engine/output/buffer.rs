//! One session's output: chunks of at most 16 KiB, and references to large values between them.
//!
//! ```text
//! chunks: [bytes 16 KiB] [shared 1 MiB] [bytes 16 KiB]    tail: [bytes 3 KiB | room]
//!          ^ sent                                                            ^ next reply
//! ```
//!
//! Appending looks at one thing only, the room in the tail. Everything else is decided when that
//! room ends: whether the tail grows or a new one begins, whether the budget is used up, whether
//! the reply is wanted at all.

use super::OutputUse;
use kumi_resp::SharedBytes;
use std::collections::VecDeque;
use std::io::IoSlice;

/// The size of a chunk, which is Redis's.
pub(crate) const CHUNK_BYTES: usize = 16 * 1024;
/// The first size of a chunk. It doubles while its session is slow or its replies are long.
const MIN_CHUNK_BYTES: usize = 1024;
/// A header inserted into a full chunk may make it this much longer.
const CHUNK_SLACK_BYTES: usize = 64;
/// A chunk this short is copied to its exact size when a shared value ends it.
const SHORT_BYTES: usize = 1024;
/// Spare chunks are kept up to this many bytes together.
const KEEP_SPARE_BYTES: usize = 1024 * 1024;

/// Spare chunks, and the account of all of them.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// Capacity of every chunk, in use or spare.
    pub(super) bytes: usize,
    /// Values whose last reference was in an output.
    pub(super) garbage: Vec<SharedBytes>,
    /// Bytes of all shared values in buffers, each as often as it is there.
    pub(super) shared_bytes: usize,
    /// How many they are.
    pub(super) shared_chunks: usize,
    /// Memory of shared values that only buffers hold, as of the last count and less what went since.
    pub(super) orphan_bytes: usize,
}

impl Pool {
    fn take(&mut self) -> Vec<u8> {
        let chunk = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= chunk.capacity();
        chunk
    }

    fn put(&mut self, mut chunk: Vec<u8>) {
        let capacity = chunk.capacity();
        let fits = (1..=CHUNK_BYTES + CHUNK_SLACK_BYTES).contains(&capacity)
            && self.spare_bytes + capacity <= KEEP_SPARE_BYTES;
        if fits {
            chunk.clear();
            self.spare_bytes += capacity;
            self.spare.push(chunk);
        } else {
            self.bytes -= capacity;
        }
    }

    /// Grows a chunk to `capacity` bytes.
    fn grow(&mut self, chunk: &mut Vec<u8>, capacity: usize) {
        let before = chunk.capacity();
        chunk.reserve_exact(capacity - chunk.len());
        self.bytes += chunk.capacity() - before;
    }

    /// Capacity of the chunks that sessions hold, and the lists of those around shared values: each has a chunk before it.
    #[inline]
    pub(super) fn in_use(&self) -> usize {
        self.bytes - self.spare_bytes + self.shared_chunks * 2 * size_of::<Chunk>()
    }

    #[cfg(test)]
    pub(super) fn spare_capacity(&self) -> usize {
        self.spare.iter().map(Vec::capacity).sum()
    }

    fn put_chunk(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Bytes(bytes) => self.put(bytes),
            Chunk::Shared(bytes) => {
                // Another owner may let go at the same time; then one of the two frees it here or
                // there, which is only a matter of time spent.
                self.shared_bytes -= bytes.len();
                self.shared_chunks -= 1;
                if bytes.is_unique() {
                    self.orphan_bytes = self.orphan_bytes.saturating_sub(bytes.heap_bytes());
                    self.garbage.push(bytes);
                }
            }
        }
    }
}

#[derive(Debug)]
enum Chunk {
    Bytes(Vec<u8>),
    Shared(SharedBytes),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    fn len(&self) -> usize {
        self.bytes().len()
    }

    fn memory(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.capacity(),
            Self::Shared(bytes) => bytes.len(),
        }
    }
}

/// Chunks of output. Positions (marks) count from the first byte that is held, written or not;
/// they hold as long as nothing is written, so within one command.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Full chunks, in order, before the tail.
    chunks: VecDeque<Chunk>,
    /// Length of all full chunks.
    sealed: usize,
    /// The chunk that is being filled.
    tail: Vec<u8>,
    /// How much of the first chunk (or of the tail, if there is no other) is written.
    sent: usize,
    /// Pending bytes above this are not kept.
    limit: usize,
    /// Pending bytes when the limit was passed. From then on nothing is kept.
    overflow: Option<usize>,
    /// CLIENT REPLY OFF or SKIP: bytes from this position on are not kept.
    discard_from: Option<usize>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            chunks: VecDeque::new(),
            sealed: 0,
            tail: Vec::new(),
            sent: 0,
            limit: usize::MAX,
            overflow: None,
            discard_from: None,
        }
    }
}

impl Buffer {
    /// The position behind the last byte.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.sealed + self.tail.len()
    }

    /// Bytes not yet written.
    #[inline]
    pub(crate) fn pending(&self) -> usize {
        self.len() - self.sent
    }

    #[inline]
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Bytes not yet written, or those that waited when the limit was passed.
    pub(super) fn demand(&self) -> usize {
        self.overflow.unwrap_or_else(|| self.pending())
    }

    /// How many more bytes may wait; none once the budget is used up.
    pub(super) fn limit_left(&self) -> usize {
        match self.overflow {
            Some(_) => 0,
            None => self.limit.saturating_sub(self.pending()),
        }
    }

    /// Whether the budget is used up, so that nothing more is kept.
    #[inline]
    pub(crate) fn is_over_limit(&self) -> bool {
        self.overflow.is_some()
    }

    /// Ends the budget; returns what waited when it was passed.
    #[inline]
    pub(super) fn take_overflow(&mut self) -> Option<usize> {
        self.limit = usize::MAX;
        self.overflow.take()
    }

    /// The tail, with room for `need` bytes (at most [`CHUNK_BYTES`]).
    #[inline]
    pub(crate) fn room(&mut self, need: usize, pool: &mut Pool) -> &mut Vec<u8> {
        if self.tail.capacity() - self.tail.len() < need {
            self.make_room(need, pool);
        }
        &mut self.tail
    }

    /// Appends bytes, in as many chunks as they need.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool) {
        if bytes.len() <= self.tail.capacity() - self.tail.len() {
            self.tail.extend_from_slice(bytes);
        } else {
            self.append_split(bytes, pool);
        }
    }

    #[cold]
    fn append_split(&mut self, mut bytes: &[u8], pool: &mut Pool) {
        loop {
            let room = self.tail.capacity() - self.tail.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.tail.extend_from_slice(now);
            if rest.is_empty() {
                return;
            }
            self.make_room(rest.len().min(CHUNK_BYTES), pool);
            if self.overflow.is_some() {
                return;
            }
            bytes = rest;
        }
    }

    /// Appends a reference to a value. No byte of it is copied.
    pub(crate) fn append_shared(&mut self, bytes: &SharedBytes, pool: &mut Pool) {
        if bytes.is_empty() || self.overflow.is_some() || self.discard_from.is_some() {
            return;
        }
        if self.tail.len() <= SHORT_BYTES {
            // Most often the header of this value alone, which is not worth a whole chunk.
            let short = self.tail.clone();
            pool.bytes += short.capacity();
            self.tail.clear();
            self.seal(Chunk::Bytes(short), pool);
        } else {
            let tail = std::mem::replace(&mut self.tail, pool.take());
            self.seal(Chunk::Bytes(tail), pool);
        }
        self.seal(Chunk::Shared(bytes.clone()), pool);
        self.check_limit(pool);
    }

    /// Moves everything `other` holds behind this. If `other` is over its limit, this is over it too.
    pub(super) fn append_buffer(&mut self, mut other: Buffer, pool: &mut Pool) {
        if let Some(bytes) = other.overflow {
            self.give_up(self.pending() + bytes, pool);
        }
        while let Some(chunk) = other.chunks.pop_front() {
            match &chunk {
                Chunk::Bytes(bytes) => {
                    self.append(bytes, pool);
                    pool.put_chunk(chunk);
                }
                Chunk::Shared(bytes) => {
                    self.append_shared(bytes, pool);
                    pool.put_chunk(chunk);
                }
            }
        }
        self.append(&other.tail, pool);
        pool.put(other.tail);
    }

    /// Forgets everything behind `mark`.
    pub(crate) fn cut_back(&mut self, mark: usize, pool: &mut Pool) {
        while mark < self.sealed {
            let Some(chunk) = self.chunks.pop_back() else {
                return;
            };
            self.sealed -= chunk.len();
            self.tail.clear();
            match chunk {
                Chunk::Bytes(bytes) => pool.put(std::mem::replace(&mut self.tail, bytes)),
                shared => pool.put_chunk(shared),
            }
        }
        self.tail.truncate(mark - self.sealed);
    }

    /// Inserts a header of a few bytes at `position`. At most one chunk is moved by it, however
    /// much was written since.
    pub(crate) fn insert(&mut self, position: usize, header: &[u8], pool: &mut Pool) {
        if self.overflow.is_some() || position > self.len() {
            return;
        }
        if position >= self.sealed {
            insert_at(&mut self.tail, position - self.sealed, header, pool);
            return;
        }
        let mut start = self.sealed;
        for index in (0..self.chunks.len()).rev() {
            start -= self.chunks[index].len();
            if start > position {
                continue;
            }
            self.sealed += header.len();
            match &mut self.chunks[index] {
                Chunk::Bytes(bytes) => insert_at(bytes, position - start, header, pool),
                Chunk::Shared(_) => {
                    debug_assert_eq!(start, position, "an element begins with bytes");
                    let mut chunk = pool.take();
                    insert_at(&mut chunk, 0, header, pool);
                    self.chunks.insert(index, Chunk::Bytes(chunk));
                }
            }
            return;
        }
    }

    /// From here on nothing is kept, until [`Buffer::end_discard`].
    pub(crate) fn discard_from_here(&mut self) {
        self.discard_from
            .get_or_insert(self.sealed + self.tail.len());
    }

    /// Drops what was written since [`Buffer::discard_from_here`]; what follows is kept.
    #[inline]
    pub(crate) fn end_discard(&mut self, pool: &mut Pool) {
        if let Some(mark) = self.discard_from.take()
            && self.overflow.is_none()
        {
            self.cut_back(mark, pool);
        }
    }

    /// Returns all chunks to the pool.
    pub(super) fn discard(self, pool: &mut Pool) {
        for chunk in self.chunks {
            pool.put_chunk(chunk);
        }
        pool.put(self.tail);
    }

    /// `count` bytes were written.
    pub(super) fn written(&mut self, count: usize, pool: &mut Pool) {
        debug_assert!(count <= self.pending(), "more was written than waited");
        self.sent += count.min(self.pending());
        while let Some(first) = self.chunks.front()
            && self.sent >= first.len()
        {
            let Some(first) = self.chunks.pop_front() else {
                break;
            };
            self.sent -= first.len();
            self.sealed -= first.len();
            pool.put_chunk(first);
        }
        if self.chunks.is_empty() && self.sent == self.tail.len() {
            self.sent = 0;
            pool.put(std::mem::take(&mut self.tail));
        }
    }

    pub(super) fn first_chunk(&self) -> (&[u8], bool) {
        match self.chunks.front() {
            None => (&self.tail[self.sent..], false),
            Some(first) => (&first.bytes()[self.sent..], true),
        }
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let sealed = self.chunks.iter().flat_map(|chunk| chunk.bytes());
        sealed.chain(&self.tail).skip(self.sent).copied().collect()
    }

    /// The first bytes behind `skip` that are not written, up to the position `end`, and whether more chunks follow.
    pub(super) fn first_until(&self, skip: usize, end: usize) -> (&[u8], bool) {
        let mut parts = self.parts(skip, end);
        let first = parts.next().unwrap_or_default();
        (first, parts.next().is_some())
    }

    /// What is not written, by chunks: from `skip` bytes behind its beginning up to the position `end`.
    fn parts(&self, skip: usize, end: usize) -> impl Iterator<Item = &[u8]> {
        let (mut from, mut start) = (self.sent + skip, 0);
        let sealed = self.chunks.iter().map(Chunk::bytes);
        let all = sealed.chain(std::iter::once(&*self.tail));
        let parts = all.map(move |bytes| {
            let stop = end.saturating_sub(start).min(bytes.len());
            let part = &bytes[from.min(stop)..stop];
            from = from.saturating_sub(bytes.len());
            start += bytes.len();
            part
        });
        parts.filter(|part| !part.is_empty())
    }

    pub(super) fn slices<'a>(
        &'a self,
        skip: usize,
        end: usize,
        slices: &mut [IoSlice<'a>],
    ) -> usize {
        let mut filled = 0;
        for (slice, part) in slices.iter_mut().zip(self.parts(skip, end)) {
            *slice = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// The shared values in the buffer.
    pub(super) fn shared(&self) -> impl Iterator<Item = &SharedBytes> {
        self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Shared(bytes) => Some(bytes),
            Chunk::Bytes(_) => None,
        })
    }

    pub(super) fn usage(&self) -> OutputUse {
        let sealed_memory: usize = self.chunks.iter().map(Chunk::memory).sum();
        let memory = sealed_memory + self.tail.capacity();
        let (first_capacity, first_len) = match self.chunks.front() {
            None => (self.tail.capacity(), self.tail.len() - self.sent),
            Some(Chunk::Bytes(bytes)) => (bytes.capacity(), bytes.len() - self.sent),
            Some(Chunk::Shared(_)) => (0, 0),
        };
        let first_is_shared = matches!(self.chunks.front(), Some(Chunk::Shared(_)));
        let more_memory = memory - first_capacity;
        OutputUse {
            memory,
            first_len,
            more_chunks: self.chunks.len() + usize::from(first_is_shared),
            more_memory,
            half_written: self.sent > 0,
        }
    }

    /// The room in the tail ended.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, need: usize, pool: &mut Pool) {
        debug_assert!(need <= CHUNK_BYTES, "no chunk has that much room");
        if self.overflow.is_some() {
            self.tail.clear();
        } else if let Some(mark) = self.discard_from {
            self.cut_back(mark, pool);
        }
        if self.tail.capacity() == 0 {
            self.tail = pool.take();
        }
        let (len, capacity) = (self.tail.len(), self.tail.capacity());
        if capacity - len >= need {
            return;
        }
        if len + need <= CHUNK_BYTES {
            let doubled = (capacity * 2).max(MIN_CHUNK_BYTES);
            let capacity = doubled.min(CHUNK_BYTES).max(len + need);
            pool.grow(&mut self.tail, capacity);
            return;
        }
        let tail = std::mem::replace(&mut self.tail, pool.take());
        self.seal(Chunk::Bytes(tail), pool);
        self.check_limit(pool);
        if self.tail.capacity() < need {
            pool.grow(&mut self.tail, CHUNK_BYTES);
        }
    }

    /// Adds a chunk behind the others. The tail is empty.
    fn seal(&mut self, chunk: Chunk, pool: &mut Pool) {
        if let Chunk::Shared(bytes) = &chunk {
            pool.shared_bytes += bytes.len();
            pool.shared_chunks += 1;
        }
        if chunk.len() == 0 {
            pool.put_chunk(chunk);
        } else {
            self.sealed += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// Drops everything when the budget is used up.
    fn check_limit(&mut self, pool: &mut Pool) {
        let pending = self.pending();
        if pending > self.limit {
            self.give_up(pending, pool);
        }
    }

    /// Drops everything, and keeps nothing from here on. `pending` is the number of bytes that waited.
    pub(super) fn give_up(&mut self, pending: usize, pool: &mut Pool) {
        self.overflow.get_or_insert(pending);
        for chunk in self.chunks.drain(..) {
            pool.put_chunk(chunk);
        }
        self.sealed = 0;
        self.sent = 0;
        self.tail.clear();
    }
}

fn insert_at(chunk: &mut Vec<u8>, at: usize, header: &[u8], pool: &mut Pool) {
    let len = chunk.len() + header.len();
    if len > chunk.capacity() {
        pool.grow(chunk, len);
    }
    chunk.splice(at..at, header.iter().copied());
}
