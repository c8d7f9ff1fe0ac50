//! How far a group is: the logical position of an id among all entries ever added, where it can be known.
//!
//! The position is a count that Redis shows as `entries-read`, and `lag` is what is left. Deleted entries ("tombstones")
//! ahead of an id make its position unknowable, because they are not counted. Trimming does not, since it
//! takes entries from the front only.

use super::{Group, Stream, StreamId};

impl Stream {
    /// How many entries were added up to and including this id; `None` when that cannot be known.
    pub(crate) fn position(&self, id: StreamId) -> Option<u64> {
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
            std::cmp::Ordering::Less if no_tombstone_ahead => Some(before),
            std::cmp::Ordering::Equal if no_tombstone_ahead => Some(before + 1),
            _ => None,
        }
    }

    /// How many entries a group has not read yet; `None` when that cannot be known.
    pub(crate) fn lag(&self, group: &Group) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let read = match group.entries_read() {
            Some(read) if !self.has_tombstone_from(group.last_id()) => Some(read),
            _ => self.position(group.last_id()),
        };
        read.map(|read| self.entries_added.wrapping_sub(read))
    }

    /// Moves a group on to an entry that was delivered to it.
    pub(crate) fn advance_group(&mut self, name: &[u8], id: StreamId) {
        let Some(group) = self.groups.get(name) else {
            return;
        };
        if id <= group.last_id() {
            return;
        }
        let read = match group.entries_read() {
            Some(read) if !self.has_tombstone_from(id) => Some(read + 1),
            read if self.entries_added == 0 => read,
            _ => self.position(id),
        };
        if let Some(group) = self.groups.get_mut(name) {
            group.set_last_id(id, read);
        }
    }

    /// Whether an entry from this id on may have been deleted.
    fn has_tombstone_from(&self, id: StreamId) -> bool {
        self.length > 0
            && self.max_deleted_id != StreamId::MIN
            && self.max_deleted_id >= self.first_id
            && id <= self.max_deleted_id
    }
}
