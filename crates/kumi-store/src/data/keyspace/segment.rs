//! A segment: 63 buckets of 14 entries, the piece by which the table grows and shrinks.
//!
//! A key's hash names its home bucket. The entry lies there, or, as a guest, in the bucket after it
//! (the last bucket is followed by the first). A lookup reads the home's tags, and the next
//! bucket's only if the home is marked OVERFLOWED.
//!
//! When home and neighbour are full, entries move over by one bucket, each of them only between its
//! home and the bucket after it: guests go back to the left, or own entries go on to the right,
//! until the chain meets a free slot. That fills a segment to over nine tenths before it has to
//! split, while a lookup still looks at two buckets at most.
//!
//! Homes do not depend on the segment, so a split moves entries to the same bucket and slot of
//! another segment, and a position in a SCAN stays true across splits and merges.
//!
//! A segment does not hash keys, does not know its place in the table and never grows. Entries that
//! find no place go to a plain list when the table says so: if hundreds of keys share most of their
//! hash's bits, which a keyed hash makes a matter of tests, and for a while in a small table that is
//! short of memory.

use std::hint::black_box;

use self::bucket::{Bucket, OVERFLOWED, SLOTS, SPILLED, bits, tag};
use super::entry::{Entry, prefetch};

mod bucket;

/// Buckets in a segment. With 63 of them and its own fields a segment stays just under 8 KiB even
/// when an allocator adds a cache line to align it; 64 would fall into the next size class and
/// waste a fifth.
pub(super) const BUCKETS: usize = 63;
/// Entries in a full segment.
pub(super) const CAPACITY: usize = BUCKETS * SLOTS;

/// How many buckets a chain of moves may touch. With 1, 4, 8 and 16 a segment splits at 68, 82, 88
/// and 91% on average, and longer chains gain nothing.
const MAX_CHAIN: usize = 16;

/// How many slots `random` looks at before it counts entries.
const RANDOM_THROWS: usize = 16;

/// The bucket an entry with this hash belongs to, in every segment.
///
/// Bits 8 to 24 of the hash, spread over the buckets by multiplication. The tag takes the bits
/// below, and the table's directory those above.
#[inline]
pub(super) fn home(hash: u64) -> usize {
    ((hash >> 8 & 0xffff) as usize * BUCKETS) >> 16
}

#[inline]
fn next(bucket: usize) -> usize {
    if bucket + 1 == BUCKETS { 0 } else { bucket + 1 }
}

#[inline]
fn previous(bucket: usize) -> usize {
    if bucket == 0 { BUCKETS - 1 } else { bucket - 1 }
}

/// Where an entry lies in a segment. Small, so that a search returns it in registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In a bucket.
    Slot { bucket: u8, slot: u8 },
    /// In the overflow list.
    Overflow(u32),
}

/// 63 buckets, and what the table wants to know about them.
#[repr(C, align(64))]
pub(super) struct Segment {
    /// How many of the hash's top bits all entries here have in common.
    pub(super) depth: u32,
    /// Entries here, overflow included.
    len: usize,
    /// Entries that found no place, with their hashes.
    overflow: Vec<(u64, Entry)>,
    buckets: [Bucket; BUCKETS],
}

impl Segment {
    /// What a segment takes from the heap, without its entries and its overflow list. It is asked for
    /// aligned to a cache line, which allocators serve with a line more.
    pub(super) const HEAP_BYTES: usize = size_of::<Self>() + 64;

    pub(super) fn new(depth: u32) -> Box<Self> {
        Box::new(Segment {
            depth,
            len: 0,
            overflow: Vec::new(),
            buckets: std::array::from_fn(|_| Bucket::default()),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Entries in the overflow list.
    pub(super) fn overflow_len(&self) -> usize {
        self.overflow.len()
    }

    /// What the overflow list takes from the heap.
    pub(super) fn overflow_bytes(&self) -> usize {
        self.overflow.capacity() * size_of::<(u64, Entry)>()
    }

    /// The place of the entry with this hash that `is_it` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(&Entry) -> bool) -> Option<Place> {
        let (bucket, tag) = (home(hash), tag(hash));
        let home = &self.buckets[bucket];
        let mut found = |bucket: usize, slots: u16| {
            bits(slots)
                .find(|&slot| {
                    self.buckets[bucket].slots[slot]
                        .as_ref()
                        .is_some_and(&mut is_it)
                })
                .map(|slot| Place::Slot {
                    bucket: bucket as u8,
                    slot: slot as u8,
                })
        };
        if let Some(place) = found(bucket, home.matching(tag) & !home.links) {
            return Some(place);
        }
        if home.links & (OVERFLOWED | SPILLED) == 0 {
            return None;
        }
        let after = next(bucket);
        if let Some(place) = found(
            after,
            self.buckets[after].matching(tag) & self.buckets[after].links,
        ) {
            return Some(place);
        }
        if home.links & SPILLED == 0 {
            return None;
        }
        let index = self
            .overflow
            .iter()
            .position(|(other, entry)| *other == hash && is_it(entry))?;
        Some(Place::Overflow(index as u32))
    }

    /// Has both cache lines of the home bucket loaded.
    #[inline]
    pub(super) fn prefetch_bucket(&self, hash: u64) {
        let bucket = &self.buckets[home(hash)];
        prefetch(bucket);
        prefetch(&bucket.slots[SLOTS - 1]);
    }

    /// Has the fields in front of the buckets loaded.
    #[inline]
    pub(super) fn prefetch_header(&self) {
        prefetch(&self.len);
    }

    /// The entry that a search for this hash looks at first, if it is in a bucket.
    #[inline]
    pub(super) fn candidate(&self, hash: u64) -> Option<&Entry> {
        let (bucket, tag) = (home(hash), tag(hash));
        let home = &self.buckets[bucket];
        let own = home.matching(tag) & !home.links;
        if own != 0 {
            return home.slots[own.trailing_zeros() as usize].as_ref();
        }
        if home.links & OVERFLOWED == 0 {
            return None;
        }
        let after = &self.buckets[next(bucket)];
        let guests = after.matching(tag) & after.links;
        match guests {
            0 => None,
            _ => after.slots[guests.trailing_zeros() as usize].as_ref(),
        }
    }

    #[inline]
    pub(super) fn entry(&self, place: Place) -> Option<&Entry> {
        match place {
            Place::Slot { bucket, slot } => {
                self.buckets[usize::from(bucket)].slots[usize::from(slot)].as_ref()
            }
            Place::Overflow(index) => self.overflow.get(index as usize).map(|(_, entry)| entry),
        }
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, place: Place) -> Option<&mut Entry> {
        match place {
            Place::Slot { bucket, slot } => {
                self.buckets[usize::from(bucket)].slots[usize::from(slot)].as_mut()
            }
            Place::Overflow(index) => {
                let spilled = self.overflow.get_mut(index as usize);
                spilled.map(|(_, entry)| entry)
            }
        }
    }

    /// Puts an entry whose key is not here yet into a bucket, or gives it back when there is no
    /// room for it.
    pub(super) fn insert(&mut self, hash: u64, entry: Entry) -> Result<(), Entry> {
        self.insert_at(home(hash), tag(hash), entry)
    }

    /// Puts an entry whose key is not here yet into the overflow list.
    pub(super) fn insert_overflow(&mut self, hash: u64, entry: Entry) {
        self.buckets[home(hash)].links |= SPILLED;
        self.overflow.push((hash, entry));
        self.len += 1;
    }

    fn insert_at(&mut self, home: usize, tag: u8, entry: Entry) -> Result<(), Entry> {
        let at_home = self.buckets[home].free_slot();
        let (bucket, slot) = match at_home.or_else(|| self.free_by_going_back(home)) {
            Some(slot) => (home, slot),
            None => {
                let after = next(home);
                let Some(slot) = self.free_by_going_on(after) else {
                    return Err(entry);
                };
                self.buckets[home].links |= OVERFLOWED;
                (after, slot)
            }
        };
        self.buckets[bucket].put(slot, tag, entry, bucket != home);
        self.len += 1;
        Ok(())
    }

    /// Frees a slot in a full bucket: a guest goes home to the left, where another guest may have
    /// to go home first.
    fn free_by_going_back(&mut self, bucket: usize) -> Option<usize> {
        let mut end = bucket;
        for _ in 0..MAX_CHAIN {
            self.buckets[end].guest_slot()?;
            end = previous(end);
            let Some(mut free) = self.buckets[end].free_slot() else {
                continue;
            };
            while end != bucket {
                let from = next(end);
                let slot = self.buckets[from].guest_slot()?;
                self.move_home(from, slot, free);
                (end, free) = (from, slot);
            }
            return Some(free);
        }
        None
    }

    /// Finds or frees a slot in a bucket: an entry that is at home there goes on to the right as a
    /// guest, where another may have to go on first.
    fn free_by_going_on(&mut self, bucket: usize) -> Option<usize> {
        let mut end = bucket;
        for _ in 0..MAX_CHAIN {
            if let Some(mut free) = self.buckets[end].free_slot() {
                while end != bucket {
                    let from = previous(end);
                    let slot = self.buckets[from].own_slot()?;
                    let (tag, entry) = self.buckets[from].take(slot)?;
                    self.buckets[end].put(free, tag, entry, true);
                    self.buckets[from].links |= OVERFLOWED;
                    (end, free) = (from, slot);
                }
                return Some(free);
            }
            self.buckets[end].own_slot()?;
            end = next(end);
        }
        None
    }

    /// Moves a guest to a free slot of its home.
    fn move_home(&mut self, bucket: usize, slot: usize, free: usize) {
        let home = previous(bucket);
        if let Some((tag, entry)) = self.take(bucket, slot) {
            self.buckets[home].put(free, tag, entry, false);
        }
    }

    /// Takes an entry out of a bucket, and the mark off its home when it was the last guest from
    /// there.
    fn take(&mut self, bucket: usize, slot: usize) -> Option<(u8, Entry)> {
        let taken = self.buckets[bucket].take(slot);
        if self.buckets[bucket].guests() == 0 {
            self.buckets[previous(bucket)].links &= !OVERFLOWED;
        }
        taken
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Entry> {
        let entry = match place {
            Place::Slot { bucket, slot } => {
                let (_, entry) = self.take(usize::from(bucket), usize::from(slot))?;
                if !self.overflow.is_empty() {
                    self.fill_from_overflow(usize::from(bucket));
                }
                entry
            }
            Place::Overflow(index) => self.take_overflow(index as usize).1,
        };
        self.len -= 1;
        Some(entry)
    }

    fn take_overflow(&mut self, index: usize) -> (u64, Entry) {
        let taken = self.overflow.swap_remove(index);
        if self.overflow.is_empty() {
            self.clear_spilled();
        }
        taken
    }

    /// Gives the free slot of a bucket to an entry of the overflow list, if one may lie there.
    #[cold]
    fn fill_from_overflow(&mut self, bucket: usize) {
        let fits = |hash: u64| home(hash) == bucket || next(home(hash)) == bucket;
        let found = self.overflow.iter().position(|(hash, _)| fits(*hash));
        let Some(index) = found else {
            return;
        };
        let (hash, entry) = self.take_overflow(index);
        self.len -= 1;
        self.insert_somewhere(hash, entry);
    }

    fn clear_spilled(&mut self) {
        self.overflow = Vec::new();
        for bucket in &mut self.buckets {
            bucket.links &= !SPILLED;
        }
    }

    /// Moves the entries whose hash has the bit behind the common ones set to a new segment, one
    /// level deeper as this one is then. `hash` recomputes an entry's hash.
    pub(super) fn split(&mut self, hash: impl Fn(&Entry) -> u64) -> Box<Segment> {
        let goes = 1 << (63 - self.depth);
        self.depth += 1;
        let mut upper = Segment::new(self.depth);
        // Hashing one key after the other would wait for each entry's cache line in turn; reading
        // all lengths first lets the processor fetch the lines side by side.
        black_box(self.iter().map(|entry| entry.key().len()).sum::<usize>());
        for index in 0..BUCKETS {
            let bucket = &mut self.buckets[index];
            let used = bucket.used();
            for slot in bits(used) {
                if bucket.slots[slot]
                    .as_ref()
                    .is_some_and(|entry| hash(entry) & goes != 0)
                {
                    let guest = bucket.links & 1 << slot != 0;
                    if let Some((tag, entry)) = bucket.take(slot) {
                        upper.buckets[index].put(slot, tag, entry, guest);
                        upper.len += 1;
                    }
                }
            }
        }
        self.len -= upper.len;
        self.send_guests_home();
        upper.send_guests_home();
        if !self.overflow.is_empty() {
            let overflow = std::mem::take(&mut self.overflow);
            self.len -= overflow.len();
            self.clear_spilled();
            for (hash, entry) in overflow {
                let target = if hash & goes == 0 {
                    &mut *self
                } else {
                    &mut *upper
                };
                target.insert_somewhere(hash, entry);
            }
        }
        upper
    }

    /// Takes over all entries of the segment that shares all but the last of the common bits.
    /// `hash` recomputes an entry's hash, and is asked only in the rare case that an entry finds no
    /// room.
    pub(super) fn merge(&mut self, mut other: Box<Segment>, hash: impl Fn(&Entry) -> u64) {
        debug_assert_eq!(self.depth, other.depth);
        self.depth -= 1;
        for index in 0..BUCKETS {
            // A guest stays at home in the same bucket, so neither hash nor key is needed to place
            // it.
            let guests = other.buckets[index].guests();
            for slot in bits(other.buckets[index].used()) {
                let Some((tag, entry)) = other.buckets[index].take(slot) else {
                    continue;
                };
                let home = if guests & 1 << slot != 0 {
                    previous(index)
                } else {
                    index
                };
                if let Err(entry) = self.insert_at(home, tag, entry) {
                    self.insert_overflow(hash(&entry), entry);
                }
            }
        }
        for (hash, entry) in other.overflow.drain(..) {
            self.insert_somewhere(hash, entry);
        }
    }

    fn insert_somewhere(&mut self, hash: u64, entry: Entry) {
        if let Err(entry) = self.insert(hash, entry) {
            self.insert_overflow(hash, entry);
        }
    }

    /// Sets the OVERFLOWED marks right after a split, and lets guests go home where there is room
    /// now.
    fn send_guests_home(&mut self) {
        for bucket in 0..BUCKETS {
            let home = previous(bucket);
            for slot in bits(self.buckets[bucket].guests()) {
                let Some(free) = self.buckets[home].free_slot() else {
                    break;
                };
                self.move_home(bucket, slot, free);
            }
            let overflowed = self.buckets[bucket].guests() != 0;
            self.buckets[home].links &= !OVERFLOWED;
            self.buckets[home].links |= if overflowed { OVERFLOWED } else { 0 };
        }
    }

    /// Visits every entry whose home is this bucket, wherever it lies.
    pub(super) fn visit_home(&self, bucket: usize, visit: &mut dyn FnMut(&Entry)) {
        let home = &self.buckets[bucket];
        home.entries(home.used() & !home.links)
            .for_each(&mut *visit);
        if home.links & OVERFLOWED != 0 {
            let after = &self.buckets[next(bucket)];
            after.entries(after.guests()).for_each(&mut *visit);
        }
        if home.links & SPILLED != 0 {
            let spilled = self
                .overflow
                .iter()
                .filter(|(hash, _)| self::home(*hash) == bucket);
            spilled.for_each(|(_, entry)| visit(entry));
        }
    }

    /// The home bucket of the entry at a place.
    pub(super) fn home_at(&self, place: Place) -> usize {
        match place {
            Place::Slot { bucket, slot } => {
                let bucket = usize::from(bucket);
                match self.buckets[bucket].links & 1 << slot {
                    0 => bucket,
                    _ => previous(bucket),
                }
            }
            Place::Overflow(index) => {
                let spilled = self.overflow.get(index as usize);
                spilled.map_or(0, |(hash, _)| home(*hash))
            }
        }
    }

    /// Has the entries of a bucket loaded, guests included.
    pub(super) fn prefetch_entries(&self, bucket: usize) {
        let bucket = &self.buckets[bucket];
        bucket.entries(bucket.used()).for_each(Entry::prefetch);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let placed = self
            .buckets
            .iter()
            .flat_map(|bucket| bucket.entries(bucket.used()));
        placed.chain(self.overflow.iter().map(|(_, entry)| entry))
    }

    /// All entries, to change them without changing their keys.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let buckets = self.buckets.iter_mut();
        let placed = buckets.flat_map(|bucket| bucket.slots.iter_mut().flatten());
        placed.chain(self.overflow.iter_mut().map(|(_, entry)| entry))
    }

    /// A random entry, each with the same probability.
    pub(super) fn random(&self, rng: &mut fastrand::Rng) -> Option<&Entry> {
        // A few throws at the slots hit one soon unless the segment is nearly empty or has spilled.
        if self.overflow.is_empty() {
            for _ in 0..RANDOM_THROWS {
                let throw = rng.usize(..CAPACITY);
                if let Some(entry) = &self.buckets[throw / SLOTS].slots[throw % SLOTS] {
                    return Some(entry);
                }
            }
        }
        (self.len > 0)
            .then(|| rng.usize(..self.len))
            .and_then(|index| self.iter().nth(index))
    }
}

impl Segment {
    /// The entries in half of the slots of a random bucket, and an overflow entry with the same probability as a slot's.
    pub(super) fn half_bucket(
        &self,
        rng: &mut fastrand::Rng,
    ) -> (impl Iterator<Item = &Entry> + Clone, Option<&Entry>) {
        const HALF: usize = SLOTS / 2;
        let throw = rng.usize(..CAPACITY);
        let (bucket, start) = (&self.buckets[throw / SLOTS], throw % SLOTS);
        let entries = (start..start + HALF).filter_map(move |slot| {
            let slot = if slot < SLOTS { slot } else { slot - SLOTS };
            bucket.slots[slot].as_ref()
        });
        let spilled = (!self.overflow.is_empty())
            .then(|| rng.usize(..CAPACITY / HALF))
            .and_then(|index| self.overflow.get(index))
            .map(|(_, entry)| entry);
        (entries, spilled)
    }
}

#[cfg(test)]
impl Segment {
    /// Panics unless every entry lies where a lookup looks for it and every mark is true.
    pub(super) fn assert_sound(&self, hash: impl Fn(&Entry) -> u64) {
        let mut len = self.overflow.len();
        for (index, bucket) in self.buckets.iter().enumerate() {
            for slot in 0..SLOTS {
                let guest = bucket.guests() & 1 << slot != 0;
                let Some(entry) = &bucket.slots[slot] else {
                    assert!(
                        !guest && bucket.used() & 1 << slot == 0,
                        "an empty slot is marked"
                    );
                    continue;
                };
                let hash = hash(entry);
                let expected = if guest { previous(index) } else { index };
                assert_eq!(home(hash), expected, "an entry is not at home");
                assert!(
                    bucket.matching(tag(hash)) & 1 << slot != 0,
                    "a tag is wrong"
                );
                len += 1;
            }
            let overflowed = bucket.links & OVERFLOWED != 0;
            assert_eq!(overflowed, self.buckets[next(index)].guests() != 0);
        }
        for (hash, _) in &self.overflow {
            assert!(
                self.buckets[home(*hash)].links & SPILLED != 0,
                "a spilled entry is hidden"
            );
        }
        assert_eq!(len, self.len);
    }
}
