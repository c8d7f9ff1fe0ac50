//! A leaf: up to 64 members in order. Scores, hashes and the members' bytes are arrays of their own, because a search
//! by member reads hashes only and a search by score reads scores only: both touch fewer cache lines this way.

use std::cmp::Ordering;
use std::ops::Range;

use super::super::shared::Shared;
use super::super::{CACHE_LINE, address, clone_whole};
use super::index::{Hash32, LeafId};

/// Members in a full leaf.
pub(super) const LEAF_MAX: usize = 64;
/// A leaf with more bytes of members than this is split if it has two.
const LEAF_BYTES: usize = 32 * 1024;
/// Scores and tags are allocated in steps of this many.
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
struct Tag {
    hash: Hash32,
    /// Where the member ends in the leaf's bytes; it begins where the one before ends.
    end: u32,
}

#[derive(Debug)]
pub(super) struct Leaf {
    /// As many as tags, and with the same capacity.
    scores: Vec<f64>,
    tags: Vec<Tag>,
    bytes: Vec<u8>,
    /// The inner node above; none above the only leaf.
    pub(super) parent: u32,
    pub(super) prev: LeafId,
    pub(super) next: LeafId,
}

impl Clone for Leaf {
    fn clone(&self) -> Self {
        Leaf {
            scores: clone_whole(&self.scores),
            tags: clone_whole(&self.tags),
            bytes: clone_whole(&self.bytes),
            ..*self
        }
    }
}

impl Leaf {
    /// Calls `load` with the addresses that a search by member reads, and the middle of what a change moves.
    pub(super) fn lines(&self, load: &mut dyn FnMut(*const u8)) {
        let per_line = CACHE_LINE / size_of::<Tag>();
        for tag in self.tags.iter().step_by(per_line) {
            load(address(tag));
        }
        let middle = self.bytes.get(self.bytes.len() / 2);
        middle.map(address).into_iter().for_each(load);
    }

    pub(super) fn new() -> Self {
        Leaf {
            scores: Vec::new(),
            tags: Vec::new(),
            bytes: Vec::new(),
            parent: NONE,
            prev: NONE,
            next: NONE,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tags.len()
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
            + self.tags.capacity() * (size_of::<f64>() + size_of::<Tag>())
            + self.bytes.capacity().next_multiple_of(16)
    }

    #[inline]
    pub(super) fn member(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.tags[index].end as usize]
    }

    #[inline]
    pub(super) fn score(&self, index: usize) -> f64 {
        self.scores[index]
    }

    pub(super) fn hash(&self, index: usize) -> Hash32 {
        self.tags[index].hash
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
        let tags = self.tags.iter().enumerate();
        tags.filter_map(move |(index, tag)| (tag.hash == hash).then_some(index))
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
        if self.tags.len() == self.tags.capacity() {
            self.tags.reserve_exact(STEP);
            self.scores.reserve_exact(STEP);
        }
        for tag in &mut self.tags[index..] {
            tag.end += len as u32;
        }
        let end = (start + len) as u32;
        self.tags.insert(index, Tag { hash, end });
        self.scores.insert(index, key.score);
    }

    /// Sets the score of a member that keeps its place.
    pub(super) fn set_score(&mut self, index: usize, score: f64) {
        self.scores[index] = score;
    }

    pub(super) fn remove(&mut self, range: Range<usize>) {
        let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) else {
            return;
        };
        let bytes = self.start(range.start)..self.tags[last].end as usize;
        for tag in &mut self.tags[range.end..] {
            tag.end -= bytes.len() as u32;
        }
        self.bytes.drain(bytes);
        self.tags.drain(range.clone());
        self.scores.drain(range);
        if self.tags.capacity() > self.tags.len() + 4 * STEP {
            self.shrink();
        }
    }

    /// Moves the members from an index on to a new leaf.
    pub(super) fn split_off(&mut self, index: usize) -> Leaf {
        let mut upper = Leaf::new();
        upper.take_from(self, index);
        self.shrink();
        upper
    }

    /// Gives back most of the capacity that is not used.
    fn shrink(&mut self) {
        self.tags.shrink_to(self.tags.len() + STEP);
        self.scores.shrink_to(self.scores.len() + STEP);
        self.bytes.shrink_to(self.bytes.len() + 64);
    }

    /// Moves the members of another leaf from an index on to the end of this one.
    pub(super) fn take_from(&mut self, other: &mut Leaf, index: usize) {
        let start = other.start(index);
        let base = self.bytes.len();
        grow_bytes(&mut self.bytes, other.bytes.len() - start);
        self.bytes.extend_from_slice(&other.bytes[start..]);
        self.tags.reserve_exact(other.len() - index + STEP);
        self.scores.reserve_exact(other.len() - index + STEP);
        for tag in other.tags.drain(index..) {
            let end = (tag.end as usize - start + base) as u32;
            self.tags.push(Tag { end, ..tag });
        }
        self.scores.extend(other.scores.drain(index..));
        other.bytes.truncate(start);
    }

    #[inline]
    fn start(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(before) => self.tags[before].end as usize,
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
