//! From a member's hash to the leaf that holds it.
//!
//! A record is eight bytes: 32 bits of the hash, and the leaf's number. The leaf has the rest: its
//! items carry the same 32 bits, so records are moved and scanned without hashing a member again.

use super::super::pages::{Page, Pages, Seed};
use super::super::{Step, address, clone_whole};

/// 32 bits of a member's hash.
pub(super) type Hash32 = u32;
/// The number of a leaf.
pub(super) type LeafId = u32;

/// Records are allocated in steps of this many.
const STEP: usize = 4;

#[derive(Debug, Default)]
struct RecordPage(Vec<u64>);

impl Clone for RecordPage {
    fn clone(&self) -> Self {
        RecordPage(clone_whole(&self.0))
    }
}

impl Page for RecordPage {
    // A page of twelve records is one and a half cache lines.
    const FULL: usize = 12;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        (self.0.capacity() * size_of::<u64>()).next_multiple_of(16)
    }

    fn split(&mut self, _: Seed, bit: u64) -> Self {
        let goes = |&record: &u64| wide(hash_of(record)) & bit != 0;
        let (upper, lower) = self.0.iter().copied().partition(goes);
        let (mut upper, mut lower): (Vec<_>, Vec<_>) = (upper, lower);
        upper.shrink_to_fit();
        lower.shrink_to_fit();
        self.0 = lower;
        RecordPage(upper)
    }

    fn absorb(&mut self, other: Self) {
        self.0.reserve_exact(other.0.len());
        self.0.extend(other.0);
    }
}

/// The index of all members of a sorted set.
#[derive(Clone, Debug)]
pub(super) struct Index(Pages<RecordPage>);

impl Index {
    pub(super) fn new(seed: Seed) -> Self {
        Index(Pages::new(seed))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    pub(super) fn pieces(&self) -> usize {
        self.0.pieces()
    }

    pub(super) fn drop_piece(&mut self) -> bool {
        self.0.drop_piece()
    }

    /// The leaves that may hold a member with this hash; nearly always none or the one.
    #[inline]
    pub(super) fn leaves(&self, hash: Hash32) -> impl Iterator<Item = LeafId> {
        let page = self.0.page(wide(hash));
        let records = page.0.iter().copied();
        records.filter_map(move |it| (hash_of(it) == hash).then_some(it as LeafId))
    }

    /// See [`Members`](super::super::Members).
    pub(super) fn lines(&self, hash: Hash32, step: Step, load: &mut dyn FnMut(*const u8)) {
        if step == Step::Slot {
            return self.0.slot_lines(wide(hash), load);
        }
        let RecordPage(records) = self.0.page(wide(hash));
        records
            .first()
            .map(address)
            .into_iter()
            .for_each(&mut *load);
        records.last().map(address).into_iter().for_each(load);
    }

    pub(super) fn insert(&mut self, hash: Hash32, leaf: LeafId) {
        self.0.edit(wide(hash), |RecordPage(records)| {
            if records.len() == records.capacity() {
                records.reserve_exact(STEP);
            }
            records.push(record(hash, leaf));
        });
    }

    pub(super) fn remove(&mut self, hash: Hash32, leaf: LeafId) {
        self.0.edit(wide(hash), |RecordPage(records)| {
            if let Some(at) = records.iter().position(|&it| it == record(hash, leaf)) {
                records.swap_remove(at);
                if records.is_empty() {
                    *records = Vec::new();
                }
            }
        });
    }

    /// Notes that a member has moved to another leaf.
    pub(super) fn relocate(&mut self, hash: Hash32, from: LeafId, to: LeafId) {
        self.0.edit(wide(hash), |RecordPage(records)| {
            let moved = records.iter_mut().find(|it| **it == record(hash, from));
            if let Some(moved) = moved {
                *moved = record(hash, to);
            }
        });
    }

    /// Visits the records at one position of a scan; see [`Pages::scan`].
    pub(super) fn scan(&self, cursor: u64, mut visit: impl FnMut(Hash32, LeafId)) -> u64 {
        self.0.scan(cursor, |RecordPage(records), seen| {
            for (index, &record) in records.iter().enumerate() {
                // Equal records are members of one leaf with one hash, which the leaf visits
                // together.
                let again = records[..index].contains(&record);
                if wide(hash_of(record)) >= seen && !again {
                    visit(hash_of(record), record as LeafId);
                }
            }
        })
    }
}

#[inline]
fn record(hash: Hash32, leaf: LeafId) -> u64 {
    u64::from(hash) << 32 | u64::from(leaf)
}

#[inline]
fn hash_of(record: u64) -> Hash32 {
    (record >> 32) as Hash32
}

/// The hash as the table of pages wants it: directory bits at the top, page bits at the bottom.
#[inline]
fn wide(hash: Hash32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
impl Index {
    pub(super) fn assert_sound(&self, len: usize) {
        self.0.assert_sound();
        assert_eq!(self.0.len(), len);
    }
}
