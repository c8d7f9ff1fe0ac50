//! A bucket: 14 entries, and a tag byte for each, compared before the entry itself.
//!
//! ```text
//!   14 bytes   one tag of the hash per slot, 0 for an empty one
//!    2 bytes   links: bits 0..14 say which slots hold a guest, bit 14 OVERFLOWED, bit 15 SPILLED
//!  112 bytes   14 entries, 8 bytes each
//! ```
//!
//! That is two cache lines. All 14 tags are compared at once in two words. A bucket does not know
//! which one it is, and leaves the two marks about other places to its segment.

use std::iter;

use super::super::entry::Entry;

/// Entries in a bucket.
pub(super) const SLOTS: usize = 14;

const ALL_SLOTS: u16 = (1 << SLOTS) - 1;
/// The next bucket holds guests from here.
pub(super) const OVERFLOWED: u16 = 1 << 14;
/// The segment's overflow list holds entries whose home is here.
pub(super) const SPILLED: u16 = 1 << 15;

/// The byte of the hash that is compared before an entry is looked at. Never zero, which marks an
/// empty slot.
#[inline]
pub(super) fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// 14 slots. Aligned to a cache line, so that the tags are always in one of them.
#[repr(C, align(64))]
#[derive(Default)]
pub(super) struct Bucket {
    /// A byte of each entry's hash, 0 for an empty slot.
    tags: [u8; SLOTS],
    /// One bit for each slot that holds a guest, OVERFLOWED and SPILLED.
    pub(super) links: u16,
    pub(super) slots: [Option<Entry>; SLOTS],
}

impl Bucket {
    /// One bit for each slot with this tag.
    #[inline]
    pub(super) fn matching(&self, tag: u8) -> u16 {
        let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13] = self.tags;
        let low = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let high = u64::from_le_bytes([t8, t9, t10, t11, t12, t13, 0, 0]);
        let pattern = u64::from(tag) * 0x0101_0101_0101_0101;
        (zero_bytes(low ^ pattern) | zero_bytes(high ^ pattern) << 8) & ALL_SLOTS
    }

    pub(super) fn used(&self) -> u16 {
        !self.matching(0) & ALL_SLOTS
    }

    pub(super) fn free_slot(&self) -> Option<usize> {
        let free = self.matching(0);
        (free != 0).then(|| free.trailing_zeros() as usize)
    }

    pub(super) fn guests(&self) -> u16 {
        self.links & ALL_SLOTS
    }

    /// A slot whose entry is at home here.
    pub(super) fn own_slot(&self) -> Option<usize> {
        let own = self.used() & !self.links;
        (own != 0).then(|| own.trailing_zeros() as usize)
    }

    /// A slot whose entry is at home in the previous bucket.
    pub(super) fn guest_slot(&self) -> Option<usize> {
        let guests = self.guests();
        (guests != 0).then(|| guests.trailing_zeros() as usize)
    }

    pub(super) fn put(&mut self, slot: usize, tag: u8, entry: Entry, guest: bool) {
        debug_assert!(self.slots[slot].is_none());
        self.tags[slot] = tag;
        self.slots[slot] = Some(entry);
        self.links |= u16::from(guest) << slot;
    }

    pub(super) fn take(&mut self, slot: usize) -> Option<(u8, Entry)> {
        let entry = self.slots[slot].take()?;
        self.links &= !(1 << slot);
        Some((std::mem::take(&mut self.tags[slot]), entry))
    }

    pub(super) fn entries(&self, slots: u16) -> impl Iterator<Item = &Entry> {
        bits(slots).filter_map(|slot| self.slots[slot].as_ref())
    }
}

/// One bit for each byte of `word` that is zero, found without a branch (and without a false one,
/// unlike the shorter well-known form).
#[inline]
fn zero_bytes(word: u64) -> u16 {
    const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let zeros = !(((word & LOW_SEVEN) + LOW_SEVEN) | word | LOW_SEVEN);
    // Each found byte has only its top bit set; the product gathers those eight bits in its highest
    // byte.
    ((zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
}

pub(super) fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}
