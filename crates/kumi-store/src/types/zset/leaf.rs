//! A leaf: up to 64 members in order, their scores and hashes in one array, their bytes in another.

use std::cmp::Ordering;
use std::ops::Range;

use super::super::clone_whole;
use super::super::shared::Shared;
use super::index::{Hash32, LeafId};

/// Members in a full leaf.
pub(super) const LEAF_MAX: usize = 64;
/// A leaf with more bytes of members than this is split if it has two.
const LEAF_BYTES: usize = 32 * 1024;
/// Items are allocated in steps of this many.
const STEP: usize = 16;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// A position in the order of a sorted set: score, then member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    pub(super) score: f64,
    pub(super) member: &'a [u8],
}

impl Key<'_> {
    /// The order of a sorted set. Scores are never NaN, and both zeros are equal.
    #[inline]
    pub(super) fn order(self, other: Key<'_>) -> Ordering {
        match self.score.partial_cmp(&other.score) {
            Some(Ordering::Equal) | None => self.member.cmp(other.member),
            Some(order) => order,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Item {
    score: f64,
    hash: Hash32,
    /// Where the member ends in the leaf's bytes; it begins where the one before ends.
    end: u32,
}

#[derive(Debug)]
pub(super) struct Leaf {
    items: Vec<Item>,
    bytes: Vec<u8>,
    /// The inner node above; none above the only leaf.
    pub(super) parent: u32,
    pub(super) prev: LeafId,
    pub(super) next: LeafId,
}

impl Clone for Leaf {
    fn clone(&self) -> Self {
        Leaf {
            items: clone_whole(&self.items),
            bytes: clone_whole(&self.bytes),
            ..*self
        }
    }
}

impl Leaf {
    pub(super) fn new() -> Self {
        Leaf {
            items: Vec::new(),
            bytes: Vec::new(),
            parent: NONE,
            prev: NONE,
            next: NONE,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= LEAF_MAX || self.bytes.len() > LEAF_BYTES && self.len() > 1
    }

    /// Whether this leaf and another one fit into one easily.
    pub(super) fn fits_with(&self, other: &Leaf) -> bool {
        self.len() + other.len() <= LEAF_MAX * 3 / 4
            && self.bytes.len() + other.bytes.len() <= LEAF_BYTES / 2
    }

    /// What the leaf takes from the heap, its own box included.
    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        Shared::<Leaf>::HEAP_BYTES
            + self.items.capacity() * size_of::<Item>()
            + self.bytes.capacity().next_multiple_of(16)
    }

    #[inline]
    pub(super) fn member(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.items[index].end as usize]
    }

    #[inline]
    pub(super) fn score(&self, index: usize) -> f64 {
        self.items[index].score
    }

    pub(super) fn hash(&self, index: usize) -> Hash32 {
        self.items[index].hash
    }

    #[inline]
    pub(super) fn key(&self, index: usize) -> Key<'_> {
        Key {
            score: self.score(index),
            member: self.member(index),
        }
    }

    /// The index of a member.
    #[inline]
    pub(super) fn find(&self, hash: Hash32, member: &[u8]) -> Option<usize> {
        self.with_hash(hash)
            .find(|&index| self.member(index) == member)
    }

    /// The indexes of all members with this hash.
    #[inline]
    pub(super) fn with_hash(&self, hash: Hash32) -> impl Iterator<Item = usize> {
        let items = self.items.iter().enumerate();
        items.filter_map(move |(index, item)| (item.hash == hash).then_some(index))
    }

    /// How many keys lie before the place that `before` describes: it must hold for a first part of
    /// the keys and for none after.
    #[inline]
    pub(super) fn count_before(&self, before: &mut impl FnMut(Key<'_>) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if before(self.key(middle)) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    pub(super) fn insert(&mut self, index: usize, key: Key<'_>, hash: Hash32) {
        let len = key.member.len();
        let (start, end) = (self.start(index), self.bytes.len());
        grow_bytes(&mut self.bytes, len);
        self.bytes.resize(end + len, 0);
        self.bytes.copy_within(start..end, start + len);
        self.bytes[start..start + len].copy_from_slice(key.member);
        if self.items.len() == self.items.capacity() {
            self.items.reserve_exact(STEP);
        }
        for item in &mut self.items[index..] {
            item.end += len as u32;
        }
        let item = Item {
            score: key.score,
            hash,
            end: (start + len) as u32,
        };
        self.items.insert(index, item);
    }

    /// Sets the score of a member that keeps its place.
    pub(super) fn set_score(&mut self, index: usize, score: f64) {
        self.items[index].score = score;
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) else {
            return;
        };
        let bytes = self.start(range.start)..self.items[last].end as usize;
        for item in &mut self.items[range.end..] {
            item.end -= bytes.len() as u32;
        }
        self.bytes.drain(bytes);
        self.items.drain(range);
        if self.items.capacity() > self.items.len() + 4 * STEP {
            self.items.shrink_to(self.items.len() + STEP);
            self.bytes.shrink_to(self.bytes.len() + 64);
        }
    }

    /// Moves the members from an index on to a new leaf.
    pub(super) fn split_off(&mut self, index: usize) -> Leaf {
        let mut upper = Leaf::new();
        upper.take_from(self, index);
        self.items.shrink_to(self.items.len() + STEP);
        self.bytes.shrink_to(self.bytes.len() + 64);
        upper
    }

    /// Moves the members of another leaf from an index on to the end of this one.
    pub(super) fn take_from(&mut self, other: &mut Leaf, index: usize) {
        let start = other.start(index);
        let base = self.bytes.len();
        grow_bytes(&mut self.bytes, other.bytes.len() - start);
        self.bytes.extend_from_slice(&other.bytes[start..]);
        self.items.reserve_exact(other.len() - index + STEP);
        for item in other.items.drain(index..) {
            let end = (item.end as usize - start + base) as u32;
            self.items.push(Item { end, ..item });
        }
        other.bytes.truncate(start);
    }

    #[inline]
    fn start(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(before) => self.items[before].end as usize,
            None => 0,
        }
    }
}

/// Makes room for more bytes, tightly and in steps.
fn grow_bytes(bytes: &mut Vec<u8>, more: usize) {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let wanted = needed.next_multiple_of(128);
        bytes.reserve_exact(wanted - bytes.len());
    }
}
