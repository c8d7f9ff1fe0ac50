//! The table of members: one record per authority, and the indexes by which records are found.
//!
//! The table merges and indexes. It has no clock and sends nothing. The runtime decides which member is suspected, and when a
//! tombstone is collected.
//!
//! - `version` counts local changes. It is a position in this table's own log. Observers keep it as a bookmark, and get a
//!   snapshot when the bookmark does not fit.
//! - Equality of two tables is seen from digests over the active records, one per bucket, so that two nodes that differ
//!   in a few records exchange a few buckets. Terminal records are not in the digest, because every node collects its
//!   tombstones at its own time.

use crate::core::base::error::MembershipError;
use crate::core::base::identity::{Authority, NodeUid};
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::state::record::{Accusation, Accusations, MemberRecord, Merge};
use crate::core::state::ring::Ring;
use crate::core::state::snapshot::MembershipDelta;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Into how many parts a table's digest is divided.
pub(crate) const BUCKETS: usize = 64;

/// A place in the table; stable while the record is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

/// A record and what this node alone knows about it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) record: MemberRecord,
    /// The position of the authority on the ring.
    pub(crate) place: u64,
    /// The log position of the last change.
    pub(crate) version: u64,
    /// The digest of the record as it counts in its bucket; 0 for a terminal one.
    digest: u64,
    /// The position among the active slots.
    active_index: u32,
    /// A terminal record about a member that was never active here. It refuses stale gossip, but is not passed on:
    /// otherwise members that still have a tombstone would send it to members that collected it, again and again.
    pub(crate) quiet: bool,
    /// This life was over before it was known here, so it has no events.
    pub(crate) untold: bool,
    /// When something from this very uid last arrived, on the driver's clock.
    pub(crate) heard_at: Option<TimerInstant>,
    /// The log position of this peer up to which its table is known here; for observers.
    pub(crate) peer_version: u64,
}

const NOT_ACTIVE: u32 = u32::MAX;

/// What applying a record changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// Nothing changed.
    Known,
    /// The authority was not known before.
    Added,
    /// The record of the same life changed.
    Advanced {
        /// Its status before.
        from: NodeStatus,
    },
    /// A later life took over from this one.
    Superseded {
        /// The earlier life.
        uid: NodeUid,
        /// Its status before.
        from: NodeStatus,
    },
    /// The record is of an earlier life than the one in the table, and was not merged.
    Older {
        /// The life in the table.
        current: NodeUid,
    },
    /// The transition is not allowed. The rest of the record was merged, the incarnation included.
    Invalid {
        /// The status in the table.
        from: NodeStatus,
        /// The status of the record that was merged.
        to: NodeStatus,
    },
}

/// The records of all authorities.
///
/// ```
/// use kumi_cluster::core::{Applied, Authority, MemberMetadata, MemberRecord, MembershipTable, NodeIdentity, NodeStatus, NodeUid};
///
/// let mut table = MembershipTable::new(100);
/// let identity = NodeIdentity { authority: Authority::new("a:1")?, uid: NodeUid::from_raw(7) };
/// let record = MemberRecord::new(identity, NodeStatus::Up, MemberMetadata::EMPTY);
/// assert_eq!(table.apply(&record)?, Applied::Added);
/// assert_eq!(table.apply(&record)?, Applied::Known);
/// assert_eq!(table.active_len(), 1);
/// # Ok::<(), kumi_cluster::core::MembershipError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MembershipTable {
    limit: usize,
    entries: Vec<Option<Entry>>,
    free: Vec<Slot>,
    by_authority: BTreeMap<Authority, Slot>,
    log: BTreeMap<u64, Slot>,
    version: u64,
    /// Bookmarks below this position do not fit: a record was dropped whose last change they have not seen.
    floor: u64,
    active: Vec<Slot>,
    ring: Ring,
    buckets: [u64; BUCKETS],
}

impl MembershipTable {
    /// An empty table that takes up to `limit` records, tombstones included.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: Vec::new(),
            free: Vec::new(),
            by_authority: BTreeMap::new(),
            log: BTreeMap::new(),
            version: 0,
            floor: 0,
            active: Vec::new(),
            ring: Ring::default(),
            buckets: [0; BUCKETS],
        }
    }

    /// How many records there are, tombstones included.
    pub fn len(&self) -> usize {
        self.by_authority.len()
    }

    /// Whether no member is known.
    pub fn is_empty(&self) -> bool {
        self.by_authority.is_empty()
    }

    /// How many members are active.
    pub fn active_len(&self) -> usize {
        self.active.len()
    }

    /// The position of the last change in the local log.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The record of an authority.
    pub fn record(&self, authority: &Authority) -> Option<&MemberRecord> {
        let slot = self.slot_of(authority)?;
        self.entry(slot).map(|entry| &entry.record)
    }

    /// Merges a record into the table, which it enters if its authority is not known.
    pub fn apply(&mut self, record: &MemberRecord) -> Result<Applied, MembershipError> {
        let Some(slot) = self.slot_of(&record.authority) else {
            self.insert(record.clone())?;
            return Ok(Applied::Added);
        };
        let Some(entry) = self.entries[slot.index()].as_mut() else {
            return Ok(Applied::Known);
        };
        let (uid, from) = (entry.record.uid, entry.record.status);
        if record.uid < uid {
            return Ok(Applied::Older { current: uid });
        }
        let applied = match entry.record.merge(record) {
            Merge::Unchanged => return Ok(Applied::Known),
            Merge::Advanced if entry.record.settle(from) => Applied::Advanced { from },
            Merge::Advanced => Applied::Invalid {
                from,
                to: record.status,
            },
            Merge::Superseded => {
                entry.heard_at = None;
                entry.peer_version = 0;
                entry.untold = entry.record.status.is_terminal();
                entry.quiet = from.is_terminal() && entry.untold;
                Applied::Superseded { uid, from }
            }
        };
        self.reindex(slot);
        Ok(applied)
    }

    /// What changed after a position of the log, or everything when the position does not fit. Quiet tombstones stay.
    pub fn delta_since(&self, version: u64) -> MembershipDelta {
        let snapshot = version < self.floor || version == 0 || version > self.version;
        let after = if snapshot { 0 } else { version };
        let changed = self.log.range(after.saturating_add(1)..);
        let entries = changed.filter_map(|(_, &slot)| self.entry(slot));
        MembershipDelta {
            from_version: after,
            to_version: self.version,
            records: entries
                .filter(|entry| !entry.quiet)
                .map(|entry| entry.record.clone())
                .collect(),
            quarantines: Vec::new(),
        }
    }

    /// One number for all active records: equal on nodes that agree.
    pub fn digest(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |all, &one| crate::core::base::hash::fold(all, one))
    }

    pub(crate) fn buckets(&self) -> &[u64; BUCKETS] {
        &self.buckets
    }

    /// The records of these buckets, bit by bit, that are passed on.
    pub(crate) fn in_buckets(&self, wanted: u64) -> impl Iterator<Item = &MemberRecord> {
        let entries = self.entries.iter().flatten();
        let passed_on =
            entries.filter(move |entry| !entry.quiet && wanted >> bucket(entry.place) & 1 == 1);
        passed_on.map(|entry| &entry.record)
    }

    /// All entries in the order of authorities.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        let slots = self.by_authority.values();
        slots.filter_map(|&slot| Some((slot, self.entry(slot)?)))
    }

    /// The log position of the last change of an authority's record.
    pub(crate) fn position_of(&self, authority: &Authority) -> u64 {
        let slot = self.slot_of(authority);
        slot.and_then(|slot| self.entry(slot))
            .map_or(0, |entry| entry.version)
    }

    pub(crate) fn slot_of(&self, authority: &Authority) -> Option<Slot> {
        self.by_authority.get(authority).copied()
    }

    pub(crate) fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.index())?.as_ref()
    }

    pub(crate) fn entry_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.entries.get_mut(slot.index())?.as_mut()
    }

    /// Active members in no particular, but reproducible, order: for drawing one at random.
    pub(crate) fn active(&self) -> &[Slot] {
        &self.active
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Passes a suspect over from now on when monitors are chosen, or no longer.
    pub(crate) fn pass_over(&mut self, slot: Slot, passed: bool) {
        self.ring.pass_over(slot, passed);
    }

    /// Adds an accusation at the incarnation in the table, which makes an Up member a Suspect; whether the record changed.
    pub(crate) fn accuse(&mut self, slot: Slot, accusation: Accusation) -> bool {
        let Some(entry) = self.entry_mut(slot) else {
            return false;
        };
        if entry.record.status == NodeStatus::Up && accusation.stands() {
            entry.record.status = NodeStatus::Suspect;
            entry.record.accusations = Accusations::NONE;
        }
        if entry.record.status != NodeStatus::Suspect || !entry.record.accusations.add(accusation) {
            return false;
        }
        self.reindex(slot);
        true
    }

    /// Drops a record. A holder of a bookmark before its last change needs a snapshot.
    pub(crate) fn collect(&mut self, slot: Slot) -> Option<Authority> {
        let entry = self.entries.get_mut(slot.index())?.take()?;
        self.log.remove(&entry.version);
        self.floor = self.floor.max(entry.version);
        self.unindex(slot, &entry);
        self.by_authority.remove(&entry.record.authority);
        self.free.push(slot);
        Some(entry.record.authority)
    }

    /// Removes every record but the tombstones, and returns the slots and authorities of those.
    pub(crate) fn forget_active(&mut self) -> Vec<(Slot, Authority)> {
        let dropped = self.active.clone().into_iter();
        let dropped = dropped.filter_map(|slot| Some((slot, self.collect(slot)?)));
        let dropped = dropped.collect();
        self.version += 1;
        self.floor = self.version;
        dropped
    }

    fn insert(&mut self, record: MemberRecord) -> Result<Slot, MembershipError> {
        if self.len() >= self.limit {
            return Err(MembershipError::TableFull { limit: self.limit });
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            // The limit keeps the table far below 2^32 entries.
            Slot(u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX))
        });
        self.by_authority.insert(record.authority.clone(), slot);
        self.entries[slot.index()] = Some(Entry {
            place: record.authority.place(),
            version: 0,
            digest: 0,
            active_index: NOT_ACTIVE,
            quiet: record.status.is_terminal(),
            untold: record.status.is_terminal(),
            heard_at: None,
            peer_version: 0,
            record,
        });
        self.reindex(slot);
        Ok(slot)
    }

    /// Brings log, digests, ring and active list in line with a changed record.
    fn reindex(&mut self, slot: Slot) {
        let Some(entry) = self.entries[slot.index()].as_mut() else {
            return;
        };
        self.version += 1;
        self.log.remove(&entry.version);
        self.log.insert(self.version, slot);
        entry.version = self.version;

        let active = entry.record.status.is_active();
        let digest = if active {
            entry.record.digest(entry.place)
        } else {
            0
        };
        let sum = &mut self.buckets[bucket(entry.place)];
        *sum = sum.wrapping_sub(entry.digest).wrapping_add(digest);
        entry.digest = digest;

        // A member that has not arrived neither watches nor is watched.
        let on_ring = active && entry.record.status != NodeStatus::Joining;
        self.ring.set(entry.place, slot, on_ring);
        if entry.record.status != NodeStatus::Suspect {
            self.ring.pass_over(slot, false);
        }

        if active && entry.active_index == NOT_ACTIVE {
            entry.active_index = u32::try_from(self.active.len()).unwrap_or(NOT_ACTIVE);
            self.active.push(slot);
        } else if !active && entry.active_index != NOT_ACTIVE {
            let index = core::mem::replace(&mut entry.active_index, NOT_ACTIVE);
            self.drop_active(index);
        }
    }

    fn unindex(&mut self, slot: Slot, entry: &Entry) {
        let sum = &mut self.buckets[bucket(entry.place)];
        *sum = sum.wrapping_sub(entry.digest);
        self.ring.set(entry.place, slot, false);
        if entry.active_index != NOT_ACTIVE {
            self.drop_active(entry.active_index);
        }
    }

    fn drop_active(&mut self, index: u32) {
        self.active.swap_remove(index as usize);
        if let Some(&moved) = self.active.get(index as usize)
            && let Some(entry) = self.entry_mut(moved)
        {
            entry.active_index = index;
        }
    }
}

impl Slot {
    fn index(self) -> usize {
        self.0 as usize
    }
}

fn bucket(place: u64) -> usize {
    place as usize % BUCKETS
}

#[cfg(test)]
mod tests;
