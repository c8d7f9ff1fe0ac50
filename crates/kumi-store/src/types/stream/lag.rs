//! How far a group is: the logical position of an id among all entries ever added, where it can be known.
//!
//! The position is a count that Redis shows as `entries-read`, and `lag` is what is left. Deleted entries ("tombstones")
//! ahead of an id make its position unknowable, because nothing counts how many there were. Trimming does not, since it
//! takes entries from the front only.

use super::{Group, Stream, StreamId};
use std::cmp::Ordering;

/// The counters of a stream from which positions follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct History {
    length: u64,
    entries_added: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
}

impl History {
    /// How many entries were added up to and including this id; `None` when that cannot be known.
    fn position(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.length == 0 && id <= self.last_id {
            return Some(self.entries_added);
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(self.entries_added);
        }
        let no_tombstone_ahead =
            self.max_deleted_id == StreamId::MIN || self.max_deleted_id < self.first_id;
        // The counters of a damaged stream need not fit each other.
        let before = self.entries_added.saturating_sub(self.length);
        match id.cmp(&self.first_id) {
            Ordering::Less if no_tombstone_ahead => Some(before),
            Ordering::Equal if no_tombstone_ahead => Some(before + 1),
            _ => None,
        }
    }

    /// Whether an entry from this id on may have been deleted.
    fn has_tombstone_from(&self, id: StreamId) -> bool {
        self.length > 0
            && self.max_deleted_id != StreamId::MIN
            && self.max_deleted_id >= self.first_id
            && id <= self.max_deleted_id
    }

    /// The count of entries read of a group that had read so many, after it has read this id.
    pub(super) fn read_after(&self, read: Option<u64>, id: StreamId) -> Option<u64> {
        match read {
            Some(read) if !self.has_tombstone_from(id) => Some(read.wrapping_add(1)),
            read if self.entries_added == 0 => read,
            _ => self.position(id),
        }
    }
}

impl Stream {
    pub(super) fn history(&self) -> History {
        History {
            length: self.length,
            entries_added: self.entries_added,
            first_id: self.first_id,
            last_id: self.last_id,
            max_deleted_id: self.max_deleted_id,
        }
    }

    /// How many entries were added up to and including this id; `None` when that cannot be known.
    pub(crate) fn position(&self, id: StreamId) -> Option<u64> {
        self.history().position(id)
    }

    /// How many entries a group has not read yet; `None` when that cannot be known.
    pub(crate) fn lag(&self, group: &Group) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let history = self.history();
        let read = match group.entries_read() {
            Some(read) if !history.has_tombstone_from(group.last_id()) => Some(read),
            _ => history.position(group.last_id()),
        };
        read.map(|read| self.entries_added.wrapping_sub(read))
    }
}
