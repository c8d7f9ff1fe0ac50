//! The hash table of a database: segments, and a directory that finds them. It grows and shrinks a
//! segment at a time.
//!
//! The directory is indexed by the top bits of a key's hash, as many as its depth says. A segment
//! whose entries have fewer bits in common than that covers a whole aligned range of the directory;
//! it sits in the first slot of its range and the others are empty. So the segment of a hash is
//! found by going from its slot to the left, clearing one bit of the index at a time, which rarely
//! takes more than one step.
//!
//! ```text
//!  depth 2   slot 00 [segment, depth 1: hashes 0...]
//!            slot 01 [-]
//!            slot 10 [segment, depth 2: hashes 10...]
//!            slot 11 [segment, depth 2: hashes 11...]
//! ```
//!
//! A full segment is split in two by its next bit, and only if it has none left is the directory
//! doubled (16 bytes per slot). Two neighbours that fit easily into one are merged. No operation
//! ever touches more than two segments and the directory, so there is no long pause at any size.
//!
//! SCAN goes bucket by bucket, and for one bucket number through all segments in the order of their
//! hashes. A cursor is that position: bucket number and hash prefix. Splits and merges leave every
//! entry's bucket number and hash as they are, so whatever lay behind the cursor still does, and a
//! key that is present throughout is met exactly once. The prefix is written with its bits
//! reversed, so that cursors of small tables are small numbers.
//!
//! The table does not know about expiry beyond reading deadlines, nor about events or memory
//! limits. It trusts its caller that an inserted key is new, and that a hash handed in is that of
//! the key.

use siphasher::sip::SipHasher13;

use super::compaction::Relocated;
use super::entry::Entry;
use super::segment::{BUCKETS, CAPACITY, Place, Segment};
use snapshot::TableSnapshot;

mod snapshot;

/// The deepest directory. The hash's bits below are the segments' own.
const MAX_DEPTH: u32 = 40;

/// How many directory slots there may be for each segment, beyond `FREE_SLOTS`. Only hashes that
/// agree in many top bits get there, and then a list in the segment costs less than a directory
/// that doubles without need.
const SLOTS_PER_SEGMENT: usize = 8;
/// How many directory slots there may be in any case.
const FREE_SLOTS: usize = 64;

/// Two neighbours are merged when they hold no more than this together: a segment that was just
/// split, and is more than nine tenths full with its neighbour, has to lose nearly half of its
/// entries first.
const MERGE_LEN: usize = CAPACITY / 2;
/// A merge is considered after every so many removals from a segment, because the look at the
/// neighbour costs a cache miss. Zero is one of the multiples, so an emptied segment is never
/// forgotten.
const MERGE_STEP: usize = 16;

/// A table of at most so many segments puts off a split for which there is no memory. In larger ones a split is less than
/// half a percent of the memory, and lists beside the buckets would cost time.
const SMALL_TABLE_SEGMENTS: usize = 32;
/// What a split of a small table may take: a segment, and with it a directory of twice the size and room in the deadline index.
const SPLIT_BYTES: usize = Segment::HEAP_BYTES + 1536;
/// So many entries may wait beside the buckets of a segment whose split was put off. Eviction draws them with the
/// probability of others as long as they are no more than this.
const PUT_OFF_ENTRIES: usize = 120;

/// The deepest directory that [`Table::reserve`] makes: half a billion entries.
const MAX_RESERVED_DEPTH: u32 = 20;

/// How many segments `random` tries before it takes the first one with entries.
const RANDOM_TRIES: usize = 64;

/// One place in the directory.
#[derive(Default)]
struct Slot {
    /// The segment whose range begins here; none if it begins further left.
    segment: Option<Box<Segment>>,
    /// Home buckets of the segment that a running snapshot has copied, one bit each. Without a
    /// snapshot it has no meaning.
    copied: u64,
}

/// Where an entry stands. Any change of the table makes it stale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// The directory slot. There are fewer than 2^32: they would take 64 GiB themselves.
    owner: u32,
    place: Place,
}

const _: () = assert!(size_of::<Option<Position>>() <= 16);

impl Position {
    #[inline]
    fn new(owner: usize, place: Place) -> Self {
        Position {
            owner: owner as u32,
            place,
        }
    }

    #[inline]
    fn owner(self) -> usize {
        self.owner as usize
    }
}

/// A set of entries, found by key.
pub(crate) struct Table {
    hasher: KeyHasher,
    /// The directory: empty before the first insertion, then a power of two.
    slots: Vec<Slot>,
    /// How many top bits of a hash index the directory.
    depth: u32,
    /// How many segments there are.
    segments: usize,
    /// What the overflow lists of all segments take from the heap.
    overflow_bytes: usize,
    /// How many segments there are of each depth.
    at_depth: [usize; MAX_DEPTH as usize + 1],
    len: usize,
    /// The part of a running snapshot that is this table's; none once all entries are copied.
    snapshot: Option<Box<TableSnapshot>>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("len", &self.len)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// An empty table that has nothing on the heap yet. The seed keeps clients from choosing keys
    /// that collide.
    pub(crate) fn new(seed: (u64, u64)) -> Self {
        Table {
            hasher: KeyHasher::new(seed),
            slots: Vec::new(),
            depth: 0,
            segments: 0,
            overflow_bytes: 0,
            at_depth: [0; MAX_DEPTH as usize + 1],
            len: 0,
            snapshot: None,
        }
    }

    /// The hash of a key, which the other functions want beside it, so that it is computed once.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash(key)
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What directory and segments take from the heap. The entries count for themselves.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.segments * Segment::HEAP_BYTES
            + self.overflow_bytes
    }

    /// Drops up to `count` segments with their entries; returns whether there are more. The table
    /// holds no data any more, so only its drop may follow.
    pub(super) fn drop_segments(&mut self, count: usize) -> bool {
        let mut dropped = 0;
        while dropped < count
            && let Some(slot) = self.slots.pop()
        {
            dropped += usize::from(slot.segment.is_some());
        }
        !self.slots.is_empty()
    }

    /// Frees directory and segments if there are no entries and no snapshot is being taken. Returns whether nothing is on
    /// the heap now.
    pub(super) fn reset_if_empty(&mut self) -> bool {
        if self.len > 0 || self.snapshot.is_some() {
            return false;
        }
        self.slots = Vec::new();
        self.depth = 0;
        self.segments = 0;
        self.overflow_bytes = 0;
        self.at_depth = [0; MAX_DEPTH as usize + 1];
        true
    }

    /// The entry of a key.
    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &[u8]) -> Option<&Entry> {
        let segment = self.segment(self.owner(hash)?)?;
        segment.entry(segment.find(hash, |entry| entry.has_key(key))?)
    }

    /// Adds an entry whose key is not in the table.
    pub(crate) fn insert_new(&mut self, hash: u64, entry: Entry) {
        self.insert_within(hash, entry, usize::MAX);
    }

    /// Adds an entry whose key is not in the table. With less memory left than a split takes, `room` in bytes, a small table
    /// puts a split off for some entries, as Redis puts off doubling its table: so memory is used up to its limit before
    /// keys are evicted.
    pub(super) fn insert_within(&mut self, hash: u64, entry: Entry, room: usize) {
        debug_assert!(self.get(hash, entry.key()).is_none(), "the key must be new");
        if self.slots.is_empty() {
            self.slots.push(Slot {
                segment: Some(Segment::new(0)),
                copied: 0,
            });
            self.segments = 1;
            self.at_depth[0] = 1;
        }
        if self.snapshot.is_some() || entry.is_copied() {
            self.mark_new(hash, &entry);
        }
        self.len += 1;
        let mut entry = entry;
        while let Some(owner) = self.owner(hash)
            && let Some(segment) = self.segment_mut(owner)
        {
            match segment.insert(hash, entry) {
                Ok(()) => return,
                Err(returned) => entry = returned,
            }
            let put_off = room < SPLIT_BYTES && segment.overflow_len() < PUT_OFF_ENTRIES;
            if put_off && self.segments <= SMALL_TABLE_SEGMENTS || !self.split(owner) {
                self.insert_overflow(owner, hash, entry);
                return;
            }
        }
    }

    fn insert_overflow(&mut self, owner: usize, hash: u64, entry: Entry) {
        if let Some(segment) = self.segment_mut(owner) {
            let before = segment.overflow_bytes();
            segment.insert_overflow(hash, entry);
            let after = segment.overflow_bytes();
            self.overflow_bytes = self.overflow_bytes - before + after;
        }
    }

    fn take(&mut self, position: Position) -> Option<Entry> {
        if self.snapshot.is_some() {
            self.copy_before_change(position);
        }
        let owner = position.owner();
        let segment = self.segment_mut(owner)?;
        let before = segment.overflow_bytes();
        let entry = segment.remove(position.place)?;
        let after = segment.overflow_bytes();
        let check = segment.len() <= MERGE_LEN && segment.len().is_multiple_of(MERGE_STEP);
        self.overflow_bytes = self.overflow_bytes - before + after;
        self.len -= 1;
        if check {
            self.merge(owner);
        }
        Some(entry)
    }

    /// Where an entry with exactly this hash stands whose deadline is not after `now`.
    pub(crate) fn find_due(&self, hash: u64, now: u64) -> Option<Position> {
        let owner = self.owner(hash)?;
        let place = self.segment(owner)?.find(hash, |entry| {
            entry.deadline().is_some_and(|deadline| deadline <= now)
                && self.hash(entry.key()) == hash
        })?;
        Some(Position::new(owner, place))
    }

    /// Where the entry of a key stands, good until the table next changes.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<Position> {
        let owner = self.owner(hash)?;
        let place = self
            .segment(owner)?
            .find(hash, |entry| entry.has_key(key))?;
        Some(Position::new(owner, place))
    }

    /// The entry at a position that was just found.
    #[inline]
    pub(crate) fn at(&self, position: Position) -> &Entry {
        let segment = self.segment(position.owner());
        segment
            .and_then(|segment| segment.entry(position.place))
            .expect("the position was just found")
    }

    /// The entry at a position that was just found, to change it.
    #[inline]
    pub(crate) fn at_mut(&mut self, position: Position) -> &mut Entry {
        if self.snapshot.is_some() {
            self.copy_before_change(position);
        }
        let segment = self.segment_mut(position.owner());
        segment
            .and_then(|segment| segment.entry_mut(position.place))
            .expect("the position was just found")
    }

    /// Takes the entry at a position that was just found out.
    pub(crate) fn remove_at(&mut self, position: Position) -> Entry {
        self.take(position).expect("the position was just found")
    }

    /// Visits the entries at one position, and gives the cursor of the next one. 0 is the first
    /// position, and 0 comes back after the last. A cursor that was never given out is as good as
    /// any other.
    pub(crate) fn scan(&self, cursor: u64, visit: &mut dyn FnMut(&Entry)) -> u64 {
        let Cursor { bucket, prefix } = Cursor::unpack(cursor);
        if bucket >= BUCKETS {
            return 0;
        }
        let Some(segment) = self.owner(prefix).and_then(|owner| self.segment(owner)) else {
            return 0;
        };
        // The bits in which the hashes of this segment's entries differ.
        let open = u64::MAX.checked_shr(segment.depth).unwrap_or(0);
        if prefix & open == 0 {
            segment.visit_home(bucket, visit);
        } else {
            // A merge has put the position into the middle of a segment. What lies before it was
            // visited already.
            segment.visit_home(bucket, &mut |entry| {
                if self.hash(entry.key()) >= prefix {
                    visit(entry);
                }
            });
        }
        let last = prefix | open;
        match last.checked_add(1) {
            Some(prefix) => Cursor { bucket, prefix }.pack(),
            None if bucket + 1 < BUCKETS => Cursor {
                bucket: bucket + 1,
                prefix: 0,
            }
            .pack(),
            None => 0,
        }
    }

    /// A random entry. Every one can come, with nearly the same probability: a segment is
    /// chosen by a random hash, so that those whose share of all hashes is a little fuller are met
    /// a little less.
    pub(crate) fn random(&self, rng: &mut fastrand::Rng) -> Option<&Entry> {
        let tries =
            (0..RANDOM_TRIES).find_map(|_| self.segment(self.owner(rng.u64(..))?)?.random(rng));
        tries.or_else(|| self.iter_segments().find_map(|segment| segment.random(rng)))
    }

    /// All entries, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.iter_segments().flat_map(Segment::iter)
    }

    /// Calls [`Entry::relocate`] for the entries of the segment that has this hash. Returns the hash at which the next
    /// segment begins, or none after the last one. A snapshot does not notice: it copies what entries hold.
    pub(super) fn relocate_segment(
        &mut self,
        hash: u64,
        relocated: &mut Relocated,
        is_sparse: &mut dyn FnMut(*const u8) -> bool,
    ) -> Option<u64> {
        let owner = self.owner(hash)?;
        let segment = self.segment_mut(owner)?;
        segment.iter().for_each(Entry::prefetch);
        for entry in segment.iter_mut() {
            relocated.note(entry.relocate(is_sparse));
        }
        let open = u64::MAX.checked_shr(segment.depth).unwrap_or(0);
        (hash | open).checked_add(1)
    }

    /// Has the bucket of a hash loaded into the cache.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        if let Some(segment) = self.owner(hash).and_then(|owner| self.segment(owner)) {
            segment.prefetch_bucket(hash);
        }
    }

    /// The entry that a search for this hash would look at first, for a prefetch.
    #[inline]
    pub(crate) fn candidate(&self, hash: u64) -> Option<&Entry> {
        let owner = self.owner(hash)?;
        self.segment(owner)?.candidate(hash)
    }

    /// Makes the segments that so many entries will need at least, in a table that has none yet.
    pub(crate) fn reserve(&mut self, entries: usize) {
        if !self.slots.is_empty() {
            return;
        }
        while self.depth < MAX_RESERVED_DEPTH && entries >> self.depth > CAPACITY {
            self.depth += 1;
        }
        self.segments = 1 << self.depth;
        self.at_depth[self.depth as usize] = self.segments;
        let slot = |_| Slot {
            segment: Some(Segment::new(self.depth)),
            copied: 0,
        };
        self.slots = (0..self.segments).map(slot).collect();
    }

    /// Has what adding an entry of this hash reads and writes loaded into the cache.
    #[inline]
    pub(crate) fn prefetch_insert(&self, hash: u64) {
        if let Some(segment) = self.owner(hash).and_then(|owner| self.segment(owner)) {
            segment.prefetch_bucket(hash);
            segment.prefetch_header();
        }
    }

    /// The directory slot in which the segment of this hash sits.
    #[inline]
    fn owner(&self, hash: u64) -> Option<usize> {
        let mut index = (hash >> 1 >> (63 - self.depth)) as usize;
        while self.slots.get(index)?.segment.is_none() {
            index &= index.checked_sub(1)?;
        }
        Some(index)
    }

    #[inline]
    fn segment(&self, owner: usize) -> Option<&Segment> {
        self.slots.get(owner)?.segment.as_deref()
    }

    #[inline]
    fn segment_mut(&mut self, owner: usize) -> Option<&mut Segment> {
        self.slots.get_mut(owner)?.segment.as_deref_mut()
    }

    fn iter_segments(&self) -> impl Iterator<Item = &Segment> {
        self.slots.iter().filter_map(|slot| slot.segment.as_deref())
    }

    /// Splits a segment in two, or says that it must not be.
    fn split(&mut self, owner: usize) -> bool {
        let Some(depth) = self.segment(owner).map(|segment| segment.depth) else {
            return false;
        };
        let mut owner = owner;
        if depth == self.depth {
            let allowed = FREE_SLOTS.max(self.segments * SLOTS_PER_SEGMENT);
            if depth == MAX_DEPTH || self.slots.len() * 2 > allowed {
                return false;
            }
            self.double();
            owner *= 2;
        }
        let hasher = self.hasher.clone();
        let Some(segment) = self.segment_mut(owner) else {
            return false;
        };
        let before = segment.overflow_bytes();
        let upper = segment.split(|entry| hasher.hash(entry.key()));
        let after = segment.overflow_bytes() + upper.overflow_bytes();
        self.overflow_bytes = self.overflow_bytes - before + after;
        let half = 1 << (self.depth - depth - 1);
        // A home bucket that was copied was copied with both of its halves.
        self.slots[owner + half] = Slot {
            segment: Some(upper),
            copied: self.slots[owner].copied,
        };
        self.segments += 1;
        self.at_depth[depth as usize] -= 1;
        self.at_depth[depth as usize + 1] += 2;
        true
    }

    /// Merges a segment with its neighbour, and the result with its own, as long as they fit easily
    /// into one.
    fn merge(&mut self, owner: usize) {
        let mut owner = owner;
        while let Some(segment) = self.segment(owner)
            && let depth = segment.depth
            && depth > 0
        {
            let neighbour = owner ^ 1 << (self.depth - depth);
            let Some(other) = self.segment(neighbour) else {
                break;
            };
            if other.depth != depth || segment.len() + other.len() > MERGE_LEN {
                break;
            }
            let (lower, upper) = (owner.min(neighbour), owner.max(neighbour));
            if self.snapshot.is_some() {
                self.level(lower, upper);
            }
            let Some(leaving) = self.slots[upper].segment.take() else {
                break;
            };
            let hasher = self.hasher.clone();
            let Some(segment) = self.segment_mut(lower) else {
                break;
            };
            let before = segment.overflow_bytes() + leaving.overflow_bytes();
            segment.merge(leaving, |entry| hasher.hash(entry.key()));
            let after = segment.overflow_bytes();
            self.overflow_bytes = self.overflow_bytes - before + after;
            self.segments -= 1;
            self.at_depth[depth as usize] -= 2;
            self.at_depth[depth as usize - 1] += 1;
            owner = lower;
            while self.depth > 0 && self.at_depth[self.depth as usize] == 0 {
                self.halve();
                owner /= 2;
            }
        }
    }

    fn double(&mut self) {
        let mut slots = Vec::with_capacity(self.slots.len() * 2);
        for slot in self.slots.drain(..) {
            slots.extend([slot, Slot::default()]);
        }
        self.slots = slots;
        self.depth += 1;
    }

    /// Only when no segment has the directory's full depth, so that every second slot is empty.
    fn halve(&mut self) {
        self.slots = self.slots.drain(..).step_by(2).collect();
        self.depth -= 1;
    }
}

/// A position in the order in which SCAN visits entries.
struct Cursor {
    bucket: usize,
    /// The hash at which the position begins; its low bits are zero.
    prefix: u64,
}

impl Cursor {
    const BUCKET_BITS: u32 = 6;

    fn pack(&self) -> u64 {
        self.prefix.reverse_bits() << Self::BUCKET_BITS | self.bucket as u64
    }

    fn unpack(cursor: u64) -> Self {
        let bucket = (cursor & ((1 << Self::BUCKET_BITS) - 1)) as usize;
        Cursor {
            bucket,
            prefix: (cursor >> Self::BUCKET_BITS).reverse_bits(),
        }
    }
}

// A cursor has to hold a prefix of the full depth beside the bucket, and a bucket's number has to
// fit.
const _: () = assert!(MAX_DEPTH + Cursor::BUCKET_BITS <= 63 && BUCKETS <= 1 << Cursor::BUCKET_BITS);

/// A keyed SipHash-1-3.
#[derive(Clone)]
struct KeyHasher {
    sip: SipHasher13,
    /// Tests put hashes here that a keyed hash would never give.
    #[cfg(test)]
    fixed: Option<fn(&[u8]) -> u64>,
}

impl KeyHasher {
    fn new((seed0, seed1): (u64, u64)) -> Self {
        KeyHasher {
            sip: SipHasher13::new_with_keys(seed0, seed1),
            #[cfg(test)]
            fixed: None,
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        #[cfg(test)]
        if let Some(fixed) = self.fixed {
            return fixed(key);
        }
        self.sip.hash(key)
    }
}

mod sample;
#[cfg(test)]
mod tests;
