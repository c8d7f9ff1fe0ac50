//! A table's part of a snapshot: every entry is copied once, as it was when the snapshot began, while
//! the table changes.
//!
//! The unit is a home bucket of a segment: the entries whose hash names that bucket, wherever they
//! lie. A segment has one bit for each of its 63 home buckets, set once the bucket is copied.
//!
//! - Whatever changes an entry, adds one or removes one first copies its home bucket, if its bit is
//!   not set. So a bucket is copied as it was at the start, and a write copies about 12 entries at
//!   most, once.
//! - A split gives both halves the same bits: entries keep their home bucket.
//! - A merge first copies the buckets that only one half has copied.
//! - In between, [`Table::copy_slice`] walks through the segments in the order of their hashes and
//!   copies what is left. Its position is a place in hash space, so it survives splits and merges.
//!
//! The copies are [`Piece`]s, which a thread encodes. A table that is flushed or exchanged with
//! another keeps its part of the snapshot.

use super::super::segment::{BUCKETS, home};
use super::super::snapshot::{Piece, PieceBuilder};
use super::{Position, Slot, Table};

const ALL_BUCKETS: u64 = (1 << BUCKETS) - 1;
const _: () = assert!(BUCKETS < 64, "a bit for each bucket");

/// How far the copying of a table is.
#[derive(Debug)]
pub(super) struct Frozen {
    /// Segments of hashes below this are copied.
    next: u64,
    copies: PieceBuilder,
}

impl Frozen {
    /// Copies home buckets of a segment, those whose bit is set in `buckets`.
    fn copy(&mut self, slot: &mut Slot, buckets: u64) {
        let Some(segment) = slot.segment.as_deref() else {
            return;
        };
        let mut left = buckets & !slot.copied;
        slot.copied |= buckets;
        while left != 0 {
            let bucket = left.trailing_zeros() as usize;
            left &= left - 1;
            segment.visit_home(bucket, &mut |entry| self.copies.add(entry));
        }
    }
}

impl Table {
    /// Begins a snapshot: from now on, an entry is copied before it changes. `db` is the number that
    /// the copies carry.
    pub(crate) fn freeze(&mut self, db: usize) {
        for slot in &mut self.slots {
            slot.copied = 0;
        }
        self.frozen = (self.len > 0).then(|| {
            Box::new(Frozen {
                next: 0,
                copies: PieceBuilder::new(db),
            })
        });
    }

    /// Whether entries are left to copy.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Ends the snapshot of this table, complete or not. What was copied and not taken is dropped.
    pub(crate) fn thaw(&mut self) {
        self.frozen = None;
    }

    /// The copies so far that fill a piece.
    pub(crate) fn take_pieces(&mut self, pieces: &mut Vec<Piece>) {
        if let Some(frozen) = &mut self.frozen {
            frozen.copies.take_full(pieces);
        }
    }

    /// Copies entries as long as `go_on` says so; it is asked about every hundred entries. Returns
    /// whether all entries of the table are copied; their last pieces are in `pieces` then.
    pub(crate) fn copy_slice(
        &mut self,
        pieces: &mut Vec<Piece>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        /// Buckets between two questions to `go_on`.
        const STEP: usize = 8;
        while let Some(prefix) = self.frozen.as_ref().map(|frozen| frozen.next) {
            let Some(owner) = self.owner(prefix) else {
                break;
            };
            let (Some(frozen), Some(slot)) = (&mut self.frozen, self.slots.get_mut(owner)) else {
                break;
            };
            let Some(segment) = slot.segment.as_deref() else {
                break;
            };
            let left = ALL_BUCKETS & !slot.copied;
            if left != 0 {
                let first = left.trailing_zeros() as usize;
                let step = first..(first + STEP).min(BUCKETS);
                step.clone()
                    .for_each(|bucket| segment.prefetch_entries(bucket));
                let buckets = step.fold(0, |bits, bucket| bits | 1 << bucket);
                frozen.copy(slot, buckets);
            } else {
                let open = u64::MAX.checked_shr(segment.depth).unwrap_or(0);
                match (prefix | open).checked_add(1) {
                    Some(next) => frozen.next = next,
                    None => break,
                }
                // Segments that are copied already cost next to nothing.
                continue;
            }
            if !go_on() {
                return false;
            }
        }
        if let Some(mut frozen) = self.frozen.take() {
            frozen.copies.take_all(pieces);
        }
        true
    }

    /// Copies the home bucket of a hash.
    #[cold]
    pub(super) fn copy_home_of(&mut self, hash: u64) {
        if let Some(owner) = self.owner(hash) {
            self.copy_home(owner, home(hash));
        }
    }

    /// Copies the home bucket of the entry at a position.
    #[cold]
    pub(super) fn copy_home_at(&mut self, position: Position) {
        if let Some(segment) = self.segment(position.owner) {
            self.copy_home(position.owner, segment.home_at(position.place));
        }
    }

    fn copy_home(&mut self, owner: usize, bucket: usize) {
        if let (Some(frozen), Some(slot)) = (&mut self.frozen, self.slots.get_mut(owner)) {
            frozen.copy(slot, 1 << bucket);
        }
    }

    /// Brings two segments that are about to be merged to the same buckets copied.
    pub(super) fn level(&mut self, lower: usize, upper: usize) {
        let Some(frozen) = &mut self.frozen else {
            return;
        };
        let copied = self.slots[lower].copied | self.slots[upper].copied;
        frozen.copy(&mut self.slots[lower], copied);
        frozen.copy(&mut self.slots[upper], copied);
    }
}
