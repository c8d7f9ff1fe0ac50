//! The keyspace: the only door to the data.
//!
//! Passive expiry, keyspace notifications, WATCH touches, memory accounting and the deletion
//! records of expired keys happen here and nowhere else, so a command cannot forget them. What it
//! does not do: it never talks to a session. Events are queued, and the store delivers them when
//! the command that caused them has ended.

mod access;
mod collection;
mod compaction;
mod deadlines;
mod door;
mod entry;
mod eviction;
mod figures;
mod hints;
mod load;
mod prefetch;
mod segment;
mod snapshot;
mod table;
mod tracking;
mod value;
mod waiters;
mod watch;

pub(crate) use self::{
    collection::Collection,
    door::{Edit, Edited, Missing, with_new_value},
    value::Type,
};
pub(crate) use access::{AccessRule, SavedAccess, idle_seconds};
pub(crate) use compaction::{Relocated, Walk};
pub(crate) use door::{Expiry, Keys, Look, When};
pub(crate) use entry::Entry;
pub(crate) use eviction::EvictionRule;
pub(crate) use figures::Figures;
pub(crate) use load::{LoadBatch, LoadedKey};
pub use snapshot::Piece;
pub(crate) use snapshot::SnapshotDb;
pub(crate) use tracking::{Invalidated, Tracking};
pub(crate) use value::{NewValue, StringRef, Value, ValueRef};
pub(crate) use waiters::{Held, Ticket, Waiters, Wake};
pub(crate) use watch::Watchers;

use crate::base::error::{CommandError, CommandResult};
use crate::config::NotifyFlags;
use crate::data::propagation::Propagation;
use crate::types::list::ListLimits;
use deadlines::Deadlines;
use eviction::Pool;
use hints::Hints;
use std::collections::BTreeSet;
use table::{Position, Table};

/// Keys taken from the deadline index at a time.
const EXPIRY_BATCH: usize = 32;

/// Something that sessions are notified of when the running command has ended, in the order it happened.
#[derive(Debug)]
pub(crate) enum Notice {
    Event(KeyEvent),
    Invalidated(Invalidated),
}

/// What happened to a key; it decides who learns of it. Waiters learn what Redis signals as ready: a key that appeared, a
/// new entry of a stream, and, if that ends their wait, a key whose value is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A command created it with a value of this type, or added an entry to its stream.
    Added(Type),
    /// It was removed, by a command or by eviction, or a command put another value in the place of its value.
    Removed,
    /// A command changed its value or its deadline in another way. No wait ends by that, so waiters are left alone; nor
    /// does one end by a string, whichever way it was created.
    Edited,
    /// It expired.
    Expired,
}

/// A queued notification.
#[derive(Debug)]
pub(crate) struct KeyEvent {
    pub(crate) db: usize,
    pub(crate) name: &'static str,
    pub(crate) key: Box<[u8]>,
}

/// Counters INFO shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyspaceStats {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) expired: u64,
    /// Slices of active expiry that ended with more keys due.
    pub(crate) expiry_slices_cut: u64,
    /// Keys that were removed to stay below `maxmemory`.
    pub(crate) evicted: u64,
}

/// Limits on what may be stored; 0 means none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DataLimits {
    pub(crate) max_keys: usize,
    pub(crate) max_value_bytes: usize,
}

/// What DEBUG changes about stored values and payloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebugSwitches {
    /// DEBUG QUICKLIST-PACKED-THRESHOLD: elements of lists from this size on are nodes of their own.
    pub(crate) plain_node_bytes: usize,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: RESTORE takes any checksum.
    pub(crate) skip_checksum: bool,
}

impl Default for DebugSwitches {
    fn default() -> Self {
        Self {
            plain_node_bytes: ListLimits::default().plain_bytes,
            skip_checksum: false,
        }
    }
}

/// Data that was let go of. Dropping it may take long, so the front does that on another thread.
#[derive(Debug)]
pub struct Garbage(Discarded);

#[derive(Debug)]
enum Discarded {
    Database(Box<Db>),
    Entry(Entry),
    Value(Value),
}

impl Garbage {
    /// Drops a part of it, some thousand allocations at most; returns whether there is more.
    pub fn drop_slice(&mut self) -> bool {
        const SEGMENTS: usize = 24;
        match &mut self.0 {
            Discarded::Database(db) => db.table.drop_segments(SEGMENTS),
            Discarded::Entry(entry) => entry.boxed_mut().is_some_and(drop_pieces),
            Discarded::Value(value) => drop_pieces(value),
        }
    }

    /// Memory that dropping this gives back.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Discarded::Database(db) => {
                db.entry_bytes + db.table.heap_bytes() + db.deadlines.heap_bytes()
            }
            Discarded::Entry(entry) => entry.heap_bytes(),
            Discarded::Value(value) => value.heap_bytes(),
        }
    }
}

/// Drops a part of a value; returns whether there is more.
fn drop_pieces(value: &mut Value) -> bool {
    const PIECES: usize = 64;
    let Some(slices) = value.slices_mut() else {
        return false;
    };
    (0..PIECES).all(|_| slices.drop_piece())
}

#[derive(Debug)]
struct Db {
    table: Table,
    deadlines: Deadlines,
    /// Bytes of all entries.
    entry_bytes: usize,
    /// Sum of all deadlines, for the average TTL that INFO shows.
    deadline_sum: u128,
    /// What the keyspace's totals hold for this database.
    counted: Counted,
}

/// A database's share of the keyspace's totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    keys: usize,
    bytes: usize,
    first_deadline: Option<u64>,
}

impl Db {
    fn new(seed: (u64, u64)) -> Self {
        Self {
            table: Table::new(seed),
            deadlines: Deadlines::new(),
            entry_bytes: 0,
            deadline_sum: 0,
            counted: Counted::default(),
        }
    }

    /// What the totals should hold for this database, in constant time.
    fn count(&self) -> Counted {
        Counted {
            keys: self.table.len(),
            bytes: self.entry_bytes + self.table.heap_bytes() + self.deadlines.heap_bytes(),
            first_deadline: self.deadlines.first(),
        }
    }

    /// Whether the totals hold what they should. A random draw of eviction may have listed the bounds of deadlines since,
    /// whose bytes are counted with the next change.
    fn is_counted(&self) -> bool {
        let now = self.count();
        let bytes = if self.deadlines.len() == 0 {
            now.bytes
        } else {
            self.counted.bytes
        };
        self.counted == Counted { bytes, ..now }
    }

    fn index_deadline(&mut self, hash: u64, deadline: Option<u64>) {
        if let Some(deadline) = deadline {
            self.deadlines.insert(deadline, hash);
            self.deadline_sum += u128::from(deadline);
        }
    }

    fn unindex_deadline(&mut self, hash: u64, deadline: Option<u64>) {
        if let Some(deadline) = deadline {
            self.deadlines.remove(deadline, hash);
            self.deadline_sum -= u128::from(deadline);
        }
    }

    /// Takes an entry out, with all books kept.
    fn take(&mut self, hash: u64, position: Position) -> Entry {
        let entry = self.table.remove_at(position);
        self.entry_bytes -= entry.heap_bytes();
        self.unindex_deadline(hash, entry.deadline());
        entry
    }
}

/// What INFO's keyspace section shows of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DbSummary {
    pub(crate) keys: usize,
    pub(crate) with_deadline: usize,
    pub(crate) average_ttl_ms: u64,
}

/// Values this large are freed elsewhere when unlinked.
const BIG_VALUE_BYTES: usize = 64 * 1024;

/// Figures over all databases, kept up to date with every change.
#[derive(Debug, Default)]
struct Totals {
    keys: usize,
    bytes: usize,
    /// The first deadline of each database that has one, so that no loop turn walks all databases.
    first_deadlines: BTreeSet<(u64, usize)>,
    /// The databases that hold keys.
    occupied: BTreeSet<usize>,
    /// Databases that have lost their last key, and whose tables may still have a segment.
    emptied: BTreeSet<usize>,
}

/// What may be stored, and which key goes when there is no room.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) limits: DataLimits,
    /// What was left below `maxmemory` when the running command began, in bytes.
    pub(crate) bytes: usize,
    /// How accesses to keys are noted.
    pub(crate) access: AccessRule,
    /// Keys that were found to suit eviction.
    pool: Pool,
}

/// What sessions are told when the running command has ended.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// Which events are published.
    pub(crate) flags: NotifyFlags,
    /// Some session is subscribed to a channel or a pattern that an event may match.
    pub(crate) has_listeners: bool,
    queued: Vec<Notice>,
}

/// The sessions that a change of a key concerns.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    pub(crate) watchers: Watchers,
    /// What clients may have cached.
    pub(crate) tracking: Tracking,
    pub(crate) waiters: Waiters,
}

/// How keys expire.
#[derive(Debug)]
pub(crate) struct ExpiryState {
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub(crate) active: bool,
    /// CLIENT PAUSE: expired keys are hidden but stay until the pause ends.
    pub(crate) paused: bool,
    /// `lazyfree-lazy-expire`: the record of an expired key is UNLINK instead of DEL.
    pub(crate) lazy: bool,
    /// The buffer of a batch of due keys: deadlines and hashes.
    due: Vec<(u64, u64)>,
}

/// What DEBUG has changed or kept.
#[derive(Debug, Default)]
pub(crate) struct Debugging {
    pub(crate) switches: DebugSwitches,
    /// The file that DEBUG RELOAD wrote last, on a server without files.
    pub(crate) file: Option<Vec<u8>>,
}

/// What the running requests have at hand.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// The buffer in which small collections are edited.
    scratch: Vec<u8>,
    /// Hashes of the keys of the run of requests that is being executed.
    pub(crate) hints: Hints,
}

/// The snapshot that is being taken, and what a cancelled one has left.
#[derive(Debug, Default)]
struct SnapshotState {
    running: Option<snapshot::RunningSnapshot>,
    /// Databases whose tables may hold marks of a cancelled snapshot.
    sweeping: BTreeSet<usize>,
}

#[derive(Debug)]
pub(crate) struct Keyspace {
    dbs: Vec<Db>,
    totals: Totals,
    pub(crate) room: Room,
    pub(crate) notices: Notices,
    pub(crate) interest: Interest,
    pub(crate) propagation: Propagation,
    /// Writes so far, as `rdb_changes_since_last_save` counts them.
    pub(crate) dirty: u64,
    pub(crate) stats: KeyspaceStats,
    pub(crate) expiry: ExpiryState,
    pub(crate) debugging: Debugging,
    /// A data set is being loaded: nothing expires, and no deadline counts as passed.
    pub(crate) loading: bool,
    garbage: Vec<Garbage>,
    /// A change has begun and its accounts are not brought up to date yet. A panic now leaves data
    /// that cannot be trusted.
    pub(crate) changing: bool,
    pub(crate) work: Work,
    seed: (u64, u64),
    snapshot: SnapshotState,
}

impl Keyspace {
    /// `seed` is that of the hash function; `counters` that of the LFU counters, which clients can observe.
    pub(crate) fn new(databases: usize, seed: (u64, u64), counters: u64) -> Self {
        Self {
            dbs: (0..databases).map(|_| Db::new(seed)).collect(),
            totals: Totals::default(),
            room: Room {
                limits: DataLimits::default(),
                bytes: usize::MAX,
                access: AccessRule::new(counters),
                pool: Pool::default(),
            },
            notices: Notices::default(),
            interest: Interest::default(),
            propagation: Propagation::default(),
            dirty: 0,
            stats: KeyspaceStats::default(),
            expiry: ExpiryState {
                active: true,
                paused: false,
                lazy: false,
                due: Vec::new(),
            },
            debugging: Debugging::default(),
            loading: false,
            garbage: Vec::new(),
            changing: false,
            work: Work::default(),
            seed,
            snapshot: SnapshotState::default(),
        }
    }

    /// Opens the door to one database.
    #[inline]
    pub(crate) fn keys(&mut self, db: usize, now_ms: u64, touch: bool) -> Keys<'_> {
        Keys::new(self, db, now_ms, touch)
    }

    pub(crate) fn databases(&self) -> usize {
        self.dbs.len()
    }

    pub(crate) fn len(&self, db: usize) -> usize {
        self.dbs[db].table.len()
    }

    pub(crate) fn total_keys(&self) -> usize {
        self.totals.keys
    }

    /// Brings the totals up to date after a change of one database.
    fn recount(&mut self, db: usize) {
        let data = &mut self.dbs[db];
        let (before, after) = (data.counted, data.count());
        data.counted = after;
        self.totals.keys = self.totals.keys + after.keys - before.keys;
        if (before.keys == 0) != (after.keys == 0) {
            if after.keys == 0 {
                self.totals.occupied.remove(&db);
                self.totals.emptied.insert(db);
            } else {
                self.totals.occupied.insert(db);
            }
        }
        self.totals.bytes = self.totals.bytes + after.bytes - before.bytes;
        if before.first_deadline != after.first_deadline {
            if let Some(deadline) = before.first_deadline {
                self.totals.first_deadlines.remove(&(deadline, db));
            }
            if let Some(deadline) = after.first_deadline {
                self.totals.first_deadlines.insert((deadline, db));
            }
        }
    }

    /// Frees the tables of databases without keys. This is not done with the last key, which may come back at once.
    pub(crate) fn free_empty_tables(&mut self) {
        for db in std::mem::take(&mut self.totals.emptied) {
            if self.dbs[db].table.reset_if_empty() {
                self.recount(db);
            } else if self.dbs[db].table.len() == 0 {
                self.totals.emptied.insert(db);
            }
        }
    }

    /// A key changed, appeared or is gone: the one place where totals, watchers, waiters and client-side caches learn
    /// of it. The totals stay as they are if `changing` is not set: a value was overwritten by one of the same size.
    fn signal(&mut self, db: usize, key: &[u8], change: Change) {
        if self.changing {
            self.recount(db);
            self.changing = false;
        }
        debug_assert!(self.dbs[db].is_counted(), "the totals are up to date");
        if !self.interest.watchers.is_empty() {
            let table = &self.dbs[db].table;
            self.interest
                .watchers
                .touch(db, key, || table.find(table.hash(key), key).is_some());
        }
        if change != Change::Edited && !self.interest.waiters.is_empty() {
            match change {
                Change::Added(added) => self.interest.waiters.touch(db, key, added),
                _ => self.interest.waiters.touch_gone(db, key),
            }
        }
        let by_command = change != Change::Expired;
        if self.interest.tracking.is_on()
            && let Some(invalidated) = self.interest.tracking.touch(key, by_command)
        {
            self.notices.queued.push(Notice::Invalidated(invalidated));
        }
    }

    /// All entries of a database, expired ones that are still there included, and how many of them
    /// have a deadline.
    pub(crate) fn entries(&self, db: usize) -> (impl Iterator<Item = &Entry>, usize, usize) {
        let db = &self.dbs[db];
        (db.table.iter(), db.table.len(), db.deadlines.len())
    }

    pub(crate) fn summary(&self, db: usize, now_ms: u64) -> DbSummary {
        let db = &self.dbs[db];
        let with_deadline = db.deadlines.len();
        let average = db
            .deadline_sum
            .checked_div(with_deadline as u128)
            .unwrap_or(0);
        let average_ttl_ms = u64::try_from(average)
            .unwrap_or(u64::MAX)
            .saturating_sub(now_ms);
        DbSummary {
            keys: db.table.len(),
            with_deadline,
            average_ttl_ms,
        }
    }

    /// Keys whose deadline has passed and that still take room, and keys with a deadline at all.
    pub(crate) fn overdue(&self, now_ms: u64) -> (usize, usize) {
        let occupied = self
            .totals
            .occupied
            .iter()
            .map(|&db| &self.dbs[db].deadlines);
        occupied.fold((0, 0), |(due, all), deadlines| {
            (due + deadlines.count_due(now_ms), all + deadlines.len())
        })
    }

    /// Bytes held by keys, values and their indexes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.totals.bytes
    }

    /// Bytes of the hash tables and deadline indexes of one database.
    pub(crate) fn overhead_bytes(&self, db: usize) -> (usize, usize) {
        (
            self.dbs[db].table.heap_bytes(),
            self.dbs[db].deadlines.heap_bytes(),
        )
    }

    /// Refuses `new` more keys when `max-keys` would be exceeded. What an AOF holds was accepted before: it is loaded
    /// under a lower limit too.
    pub(crate) fn admit_keys(&self, new: usize) -> CommandResult {
        self.admit_exchange(0, new)
    }

    /// As [`Keyspace::admit_keys`] for keys that are created after `removed` others are gone.
    pub(crate) fn admit_exchange(&self, removed: usize, new: usize) -> CommandResult {
        let max = self.room.limits.max_keys;
        let kept = self.total_keys() - removed;
        if max != 0 && new != 0 && !self.loading && kept + new > max {
            return Err(CommandError::new(format!(
                "OOM command not allowed: max-keys limit of {max} keys reached"
            )));
        }
        Ok(())
    }

    /// Refuses a value over `max-value-size`, unless it comes from an AOF.
    pub(crate) fn admit_value(&self, bytes: usize) -> CommandResult {
        let max = self.room.limits.max_value_bytes;
        if max != 0 && bytes > max && !self.loading {
            return Err(CommandError::new(format!(
                "OOM command not allowed: value of {bytes} bytes exceeds max-value-size of {max} bytes"
            )));
        }
        Ok(())
    }

    /// Queues a notification if its class is on and there is a subscriber.
    #[inline]
    pub(crate) fn notify(&mut self, db: usize, class: NotifyFlags, name: &'static str, key: &[u8]) {
        if self.notices.has_listeners && self.notices.flags.publishes(class) {
            self.push_event(db, name, key);
        }
    }

    #[inline(never)]
    fn push_event(&mut self, db: usize, name: &'static str, key: &[u8]) {
        let key = key.into();
        let event = KeyEvent { db, name, key };
        self.notices.queued.push(Notice::Event(event));
    }

    pub(crate) fn has_notices(&self) -> bool {
        !self.notices.queued.is_empty()
    }

    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices.queued)
    }

    pub(crate) fn has_garbage(&self) -> bool {
        !self.garbage.is_empty()
    }

    pub(crate) fn take_garbage(&mut self) -> Vec<Garbage> {
        std::mem::take(&mut self.garbage)
    }

    /// Empties a database and says how many keys it held.
    pub(crate) fn flush(&mut self, db: usize, now_ms: u64) -> usize {
        self.break_watches(db, None, now_ms);
        let seed = self.seed;
        let mut empty = Db::new(seed);
        empty.counted = self.dbs[db].counted;
        let old = std::mem::replace(&mut self.dbs[db], empty);
        self.recount(db);
        self.touch_waiters(db);
        let removed = old.table.len();
        if removed > 0 || old.table.has_snapshot() {
            let old = self.keep_flushed(db, old);
            let garbage = old.map(|old| Garbage(Discarded::Database(Box::new(old))));
            self.garbage.extend(garbage);
        }
        removed
    }

    /// Exchanges two databases, as SWAPDB does; their watched keys count as changed.
    pub(crate) fn swap(&mut self, first: usize, second: usize, now_ms: u64) {
        if first == second {
            return;
        }
        self.break_watches(first, Some(second), now_ms);
        self.break_watches(second, Some(first), now_ms);
        self.dbs.swap(first, second);
        self.renumber(first, second);
        // The totals of keys and bytes stay; the deadlines are listed under the other number now.
        let (was_second, was_first) = (self.dbs[first].counted, self.dbs[second].counted);
        (self.dbs[first].counted, self.dbs[second].counted) = (was_first, was_second);
        self.recount(first);
        self.recount(second);
        self.touch_waiters(first);
        self.touch_waiters(second);
    }

    /// Every key of a database may have changed.
    fn touch_waiters(&mut self, db: usize) {
        let table = &self.dbs[db].table;
        self.interest.waiters.touch_db(db, |key| {
            let position = table.find(table.hash(key), key)?;
            Some(table.at(position).type_of())
        });
    }

    /// Breaks the watches on keys of `db` that change when another database, or none, takes its
    /// place.
    fn break_watches(&mut self, db: usize, replacement: Option<usize>, now_ms: u64) {
        let Self { dbs, interest, .. } = self;
        let watchers = &mut interest.watchers;
        let find = |db: usize, key: &[u8]| {
            let table = &dbs[db].table;
            Some(table.at(table.find(table.hash(key), key)?))
        };
        let will = |key: &[u8]| match replacement.and_then(|other| find(other, key)) {
            None => watch::Now::Absent,
            Some(entry) if entry.deadline().is_some_and(|deadline| now_ms >= deadline) => {
                watch::Now::Expired
            }
            Some(_) => watch::Now::Present,
        };
        watchers.replace_db(db, |key| find(db, key).is_some(), will);
    }

    /// The earliest deadline at which active expiry has work.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        if !self.expiry.active || self.expiry.paused || self.loading {
            return None;
        }
        self.totals
            .first_deadlines
            .first()
            .map(|&(deadline, _)| deadline)
    }

    /// Removes a batch of due keys in deadline order; says how many were looked at.
    pub(crate) fn expire_batch(&mut self, now_ms: u64) -> usize {
        if !self.expiry.active || self.expiry.paused || self.loading {
            return 0;
        }
        let Some((db, until_ms)) = self.earliest_due(now_ms) else {
            return 0;
        };
        let mut due = std::mem::take(&mut self.expiry.due);
        due.clear();
        self.dbs[db]
            .deadlines
            .pop_due(until_ms, EXPIRY_BATCH, &mut due);
        for &(deadline, hash) in &due {
            self.dbs[db].deadline_sum -= u128::from(deadline);
            if let Some(position) = self.dbs[db].table.find_due(hash, deadline) {
                self.changing = true;
                let entry = self.dbs[db].table.remove_at(position);
                self.dbs[db].entry_bytes -= entry.heap_bytes();
                self.after_expiry(db, entry);
            }
        }
        self.recount(db);
        let looked_at = due.len();
        self.expiry.due = due;
        looked_at
    }

    /// The database whose key is due first, and up to which time its keys come before all others'.
    fn earliest_due(&self, now_ms: u64) -> Option<(usize, u64)> {
        let mut firsts = self.totals.first_deadlines.iter();
        let &(deadline, db) = firsts.next()?;
        if deadline > now_ms {
            return None;
        }
        let until_ms = firsts.next().map_or(now_ms, |&(next, _)| next.min(now_ms));
        Some((db, until_ms))
    }

    /// Removes a key that was found expired.
    fn expire_at(&mut self, db: usize, hash: u64, position: Position) {
        self.changing = true;
        let entry = self.dbs[db].take(hash, position);
        self.after_expiry(db, entry);
    }

    fn after_expiry(&mut self, db: usize, entry: Entry) {
        self.stats.expired += 1;
        self.notify(db, NotifyFlags::EXPIRED, "expired", entry.key());
        self.signal(db, entry.key(), Change::Expired);
        if self.propagation.is_on() {
            let verb: &[u8] = if self.expiry.lazy { b"UNLINK" } else { b"DEL" };
            self.propagation.push(db, [verb, entry.key()]);
        }
        self.discard(entry);
    }

    fn discard(&mut self, entry: Entry) {
        if entry.heap_bytes() >= BIG_VALUE_BYTES {
            self.garbage.push(Garbage(Discarded::Entry(entry)));
        }
    }

    fn discard_value(&mut self, value: Value) {
        if value.heap_bytes() >= BIG_VALUE_BYTES {
            self.garbage.push(Garbage(Discarded::Value(value)));
        }
    }
}
