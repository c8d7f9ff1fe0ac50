//! A table's part of a snapshot: every entry is copied once, as it was when the snapshot began, while
//! the table changes.
//!
//! [`Table::copy_slice`] walks through the segments in the order of their hashes and copies home
//! buckets: the entries whose hash names that bucket, wherever they lie. A segment has one bit for
//! each of its 63 home buckets, set once the bucket is copied. The position of the walk is a place in
//! hash space, so it survives splits and merges.
//!
//! - Whatever changes or removes an entry of a bucket that is not copied yet first copies that entry
//!   and marks it (`Entry::set_copied`); a new entry in such a bucket is marked too, because it is
//!   younger than the snapshot. The walk leaves marked entries out and clears their marks, so none is
//!   left when it ends. A write thus copies one entry, which it is about to touch anyway.
//! - A split gives both halves the same bits: entries keep their home bucket.
//! - A merge first copies the buckets that only one half has copied.
//!
//! A snapshot that is cancelled leaves marks behind. The walk goes on then, without copying, until
//! they are cleared; the next snapshot finishes it first if it has not ended.
//!
//! The copies are [`Piece`]s, which a thread encodes. A table that is flushed or exchanged with
//! another keeps its part of the snapshot.

use super::super::entry::Entry;
use super::super::segment::{BUCKETS, home};
use super::super::snapshot::{Piece, PieceBuilder};
use super::{Position, Slot, Table};

const ALL_BUCKETS: u64 = (1 << BUCKETS) - 1;
const _: () = assert!(BUCKETS < 64, "a bit for each bucket");

/// How far the copying of a table is.
#[derive(Debug)]
pub(super) struct TableSnapshot {
    /// Segments of hashes below this are copied.
    next: u64,
    /// None when the snapshot was cancelled: only marks are cleared.
    copies: Option<PieceBuilder>,
    /// An entry was marked since the snapshot began.
    marked: bool,
}

impl TableSnapshot {
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
            segment.visit_home(bucket, &mut |entry| {
                if entry.is_copied() {
                    entry.set_copied(false);
                } else if let Some(copies) = &mut self.copies {
                    copies.add(entry);
                }
            });
        }
    }
}

impl Table {
    /// Begins a snapshot: from now on, an entry is copied before it changes. `db` is the number that
    /// the copies carry; `with_access` says that they carry the access data of their keys.
    pub(crate) fn begin_snapshot(&mut self, db: usize, with_access: bool) {
        if self.is_sweeping() {
            self.copy_slice(&mut Vec::new(), &mut || true);
        }
        for slot in &mut self.slots {
            slot.copied = 0;
        }
        self.snapshot = (self.len > 0).then(|| {
            Box::new(TableSnapshot {
                next: 0,
                copies: Some(PieceBuilder::new(db, with_access)),
                marked: false,
            })
        });
    }

    /// Whether entries are left to copy.
    pub(crate) fn has_snapshot(&self) -> bool {
        matches!(&self.snapshot, Some(snapshot) if snapshot.copies.is_some())
    }

    /// Whether marks of a cancelled snapshot are left; [`Table::copy_slice`] clears them.
    pub(crate) fn is_sweeping(&self) -> bool {
        matches!(&self.snapshot, Some(snapshot) if snapshot.copies.is_none())
    }

    /// Ends the snapshot of this table, complete or not. What was copied and not taken is dropped.
    pub(crate) fn thaw(&mut self) {
        match &mut self.snapshot {
            Some(snapshot) if snapshot.marked => snapshot.copies = None,
            _ => self.snapshot = None,
        }
    }

    /// The copies so far that fill a piece.
    pub(crate) fn take_pieces(&mut self, pieces: &mut Vec<Piece>) {
        if let Some(snapshot) = &mut self.snapshot
            && let Some(copies) = &mut snapshot.copies
        {
            copies.take_full(pieces);
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
        while let Some(prefix) = self.snapshot.as_ref().map(|snapshot| snapshot.next) {
            let Some(owner) = self.owner(prefix) else {
                break;
            };
            let (Some(snapshot), Some(slot)) = (&mut self.snapshot, self.slots.get_mut(owner))
            else {
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
                snapshot.copy(slot, buckets);
            } else {
                let open = u64::MAX.checked_shr(segment.depth).unwrap_or(0);
                match (prefix | open).checked_add(1) {
                    Some(next) => snapshot.next = next,
                    None => break,
                }
                // Segments that are copied already cost next to nothing.
                continue;
            }
            if !go_on() {
                return false;
            }
        }
        if let Some(copies) = self.snapshot.take().and_then(|snapshot| snapshot.copies) {
            copies.finish(pieces);
        }
        true
    }

    /// Copies the entry at a position, which is about to change or to leave.
    #[inline(never)]
    pub(super) fn copy_before_change(&mut self, position: Position) {
        let (Some(snapshot), Some(slot)) = (&mut self.snapshot, self.slots.get(position.owner()))
        else {
            return;
        };
        let (Some(copies), Some(segment)) = (&mut snapshot.copies, slot.segment.as_deref()) else {
            return;
        };
        if slot.copied & 1 << segment.home_at(position.place) != 0 {
            return;
        }
        if let Some(entry) = segment.entry(position.place)
            && !entry.is_copied()
        {
            copies.add(entry);
            entry.set_copied(true);
            snapshot.marked = true;
        }
    }

    /// Marks an entry that is about to be added, if the walk has not been where it comes to lie. One
    /// that comes from another table may carry a mark, which has no meaning here.
    #[inline(never)]
    pub(super) fn mark_new(&mut self, hash: u64, entry: &Entry) {
        let slot = self.owner(hash).and_then(|owner| self.slots.get(owner));
        let copied = slot.is_some_and(|slot| slot.copied & 1 << home(hash) != 0);
        let marked = self.has_snapshot() && !copied;
        entry.set_copied(marked);
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.marked |= marked;
        }
    }

    /// Brings two segments that are about to be merged to the same buckets copied.
    pub(super) fn level(&mut self, lower: usize, upper: usize) {
        let Some(snapshot) = &mut self.snapshot else {
            return;
        };
        let copied = self.slots[lower].copied | self.slots[upper].copied;
        snapshot.copy(&mut self.slots[lower], copied);
        snapshot.copy(&mut self.slots[upper], copied);
    }
}
