//! The door itself: every way a command may look at or change keys of one database.

use super::{Entry, Keyspace, NewValue, ValueRef, table::Position};
use crate::config::NotifyFlags;
use crate::error::CommandResult;

/// What a write does to the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The key lives for ever.
    Clear,
    /// An existing deadline stays.
    Keep,
    /// Unix milliseconds.
    At(u64),
}

/// How a lookup counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    /// A read: hit or miss is counted, a miss may notify, the access clock moves.
    Read,
    /// A read that leaves the access clock alone (TTL, TYPE, EXISTS).
    ReadNoTouch,
    /// For a write, or for introspection: nothing is counted, the clock stays.
    Quiet,
    /// For a write that uses the old value: nothing is counted, the clock moves.
    Write,
}

/// One database, at one moment.
#[derive(Debug)]
pub(crate) struct Keys<'a> {
    keyspace: &'a mut Keyspace,
    db: usize,
    now_ms: u64,
    /// False under CLIENT NO-TOUCH.
    touch: bool,
}

impl<'a> Keys<'a> {
    pub(super) fn new(keyspace: &'a mut Keyspace, db: usize, now_ms: u64, touch: bool) -> Self {
        Self {
            keyspace,
            db,
            now_ms,
            touch,
        }
    }

    /// The same moment in another database.
    pub(crate) fn in_db(&mut self, db: usize) -> Keys<'_> {
        Keys {
            keyspace: self.keyspace,
            db,
            now_ms: self.now_ms,
            touch: self.touch,
        }
    }

    pub(crate) fn keyspace(&mut self) -> &mut Keyspace {
        self.keyspace
    }

    pub(crate) fn db(&self) -> usize {
        self.db
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// A value for reading.
    pub(crate) fn read(&mut self, key: &[u8]) -> Option<ValueRef<'_>> {
        self.look(key, Look::Read).map(Entry::value)
    }

    /// Whether a key is there, for a write.
    pub(crate) fn exists(&mut self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// Finds a live entry. An expired one is removed on the way, with all that entails.
    pub(crate) fn look(&mut self, key: &[u8], look: Look) -> Option<&Entry> {
        let found = self.find(key);
        match look {
            Look::Read | Look::ReadNoTouch => {
                if found.is_some() {
                    self.keyspace.stats.hits += 1;
                } else {
                    self.keyspace.stats.misses += 1;
                    self.keyspace
                        .notify(self.db, NotifyFlags::KEY_MISS, "keymiss", key);
                }
            }
            Look::Quiet | Look::Write => {}
        }
        let (_, position) = found?;
        let entry = self.keyspace.dbs[self.db].table.at(position);
        if self.touch && matches!(look, Look::Read | Look::Write) {
            entry.set_access_clock(access_clock(self.now_ms));
        }
        Some(entry)
    }

    /// Stores a value, creating or replacing the key.
    ///
    /// # Errors
    /// When a configured limit on keys or value sizes would be exceeded; nothing changed then.
    pub(crate) fn put(&mut self, key: &[u8], value: NewValue<'_>, expiry: Expiry) -> CommandResult {
        self.keyspace.admit_value(value.len())?;
        let clock = access_clock(self.now_ms);
        if let Some((hash, position)) = self.find(key) {
            let db = &mut self.keyspace.dbs[self.db];
            let entry = db.table.at_mut(position);
            let before_bytes = entry.heap_bytes();
            let before = entry.deadline();
            let after = match expiry {
                Expiry::Clear => None,
                Expiry::Keep => before,
                Expiry::At(deadline) => Some(deadline),
            };
            entry.set_deadline(after);
            entry.set_access_clock(clock);
            let replaced = entry.replace_value(value);
            let after_bytes = entry.heap_bytes();
            db.entry_bytes = db.entry_bytes - before_bytes + after_bytes;
            if before != after {
                db.unindex_deadline(hash, before);
                db.index_deadline(hash, after);
            }
            if let Some(old) = replaced {
                self.keyspace.discard_value(old);
            }
        } else {
            self.keyspace.admit_keys(1)?;
            let deadline = match expiry {
                Expiry::At(deadline) => Some(deadline),
                Expiry::Clear | Expiry::Keep => None,
            };
            self.add(Entry::new(key, value, deadline, clock));
        }
        self.touch_watchers(key);
        Ok(())
    }

    /// Changes a string's bytes in place (APPEND, SETRANGE). The key must exist.
    pub(crate) fn edit_bytes(&mut self, key: &[u8], edit: impl FnOnce(&mut Vec<u8>)) {
        let Some((_, position)) = self.find(key) else {
            return;
        };
        let db = &mut self.keyspace.dbs[self.db];
        let entry = db.table.at_mut(position);
        let before_bytes = entry.heap_bytes();
        entry.edit_bytes(edit);
        entry.set_access_clock(access_clock(self.now_ms));
        db.entry_bytes = db.entry_bytes - before_bytes + entry.heap_bytes();
        self.touch_watchers(key);
    }

    /// Removes a key; its value is freed elsewhere if it is big.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let Some(entry) = self.take(key) else {
            return false;
        };
        self.keyspace.discard(entry);
        true
    }

    /// Takes a key out with its value and deadline.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<Entry> {
        let (hash, position) = self.find(key)?;
        let entry = self.keyspace.dbs[self.db].take(hash, position);
        self.touch_watchers(key);
        Some(entry)
    }

    /// Puts an entry under its own key, which must be free; its clock and deadline stay.
    pub(crate) fn put_entry(&mut self, entry: Entry) {
        let key: Box<[u8]> = entry.key().into();
        self.add(entry);
        self.touch_watchers(&key);
    }

    /// Sets or clears a deadline; false if there is no such key.
    pub(crate) fn set_deadline(&mut self, key: &[u8], deadline: Option<u64>) -> bool {
        let Some((hash, position)) = self.find(key) else {
            return false;
        };
        let db = &mut self.keyspace.dbs[self.db];
        let entry = db.table.at_mut(position);
        let before = entry.deadline();
        let before_bytes = entry.heap_bytes();
        entry.set_deadline(deadline);
        db.entry_bytes = db.entry_bytes - before_bytes + entry.heap_bytes();
        if before != deadline {
            db.unindex_deadline(hash, before);
            db.index_deadline(hash, deadline);
        }
        self.touch_watchers(key);
        true
    }

    /// Queues a notification about a key of this database.
    pub(crate) fn notify(&mut self, class: NotifyFlags, name: &'static str, key: &[u8]) {
        self.keyspace.notify(self.db, class, name, key);
    }

    /// Visits about `count` live entries from `cursor` on; answers where to go on, 0 at the end.
    pub(crate) fn scan(
        &mut self,
        mut cursor: u64,
        count: u64,
        mut visit: impl FnMut(&Entry),
    ) -> u64 {
        let mut due = Vec::new();
        let mut seen = 0;
        // Buckets can be empty: a bound keeps one call short in a sparse table.
        for _ in 0..count.saturating_mul(10).max(10) {
            cursor = self.keyspace.dbs[self.db]
                .table
                .scan(cursor, &mut |entry: &Entry| {
                    seen += 1;
                    if self.now_ms >= entry.deadline().unwrap_or(u64::MAX) {
                        due.push(Box::<[u8]>::from(entry.key()));
                    } else {
                        visit(entry);
                    }
                });
            if cursor == 0 || seen >= count {
                break;
            }
        }
        for key in due {
            self.find(&key);
        }
        cursor
    }

    /// Visits every live entry.
    pub(crate) fn for_each(&mut self, mut visit: impl FnMut(&Entry)) {
        let now_ms = self.now_ms;
        let mut due = Vec::new();
        for entry in self.keyspace.dbs[self.db].table.iter() {
            if now_ms >= entry.deadline().unwrap_or(u64::MAX) {
                due.push(Box::<[u8]>::from(entry.key()));
            } else {
                visit(entry);
            }
        }
        for key in due {
            self.find(&key);
        }
    }

    /// A key picked at random among the live ones.
    pub(crate) fn random(&mut self, rng: &mut fastrand::Rng) -> Option<Box<[u8]>> {
        // Expired keys are removed as they are met, so this ends; frozen expiry needs the bound.
        for _ in 0..100 {
            let key: Box<[u8]> = self.keyspace.dbs[self.db].table.random(rng)?.key().into();
            if self.find(&key).is_some() {
                return Some(key);
            }
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.keyspace.len(self.db)
    }

    /// Whether a deadline has passed at this moment.
    pub(crate) fn is_due(&self, deadline: u64) -> bool {
        self.now_ms >= deadline
    }

    /// Whether the key stands in the table with a deadline that has passed: what WATCH remembers.
    pub(crate) fn is_expired_in_place(&self, key: &[u8]) -> bool {
        let table = &self.keyspace.dbs[self.db].table;
        table
            .find(table.hash(key), key)
            .and_then(|position| table.at(position).deadline())
            .is_some_and(|deadline| self.now_ms >= deadline)
    }

    fn find(&mut self, key: &[u8]) -> Option<(u64, Position)> {
        let db = &mut self.keyspace.dbs[self.db];
        let hash = db.table.hash(key);
        let position = db.table.find(hash, key)?;
        let Some(deadline) = db.table.at(position).deadline() else {
            return Some((hash, position));
        };
        if self.now_ms < deadline {
            return Some((hash, position));
        }
        if !self.keyspace.expiry_frozen {
            self.keyspace.expire_at(self.db, hash, position);
        }
        None
    }

    fn add(&mut self, entry: Entry) {
        self.keyspace
            .notify(self.db, NotifyFlags::NEW, "new", entry.key());
        let db = &mut self.keyspace.dbs[self.db];
        let hash = db.table.hash(entry.key());
        // With expiry frozen an expired key may still stand here.
        if let Some(position) = db.table.find(hash, entry.key()) {
            db.take(hash, position);
        }
        db.entry_bytes += entry.heap_bytes();
        db.index_deadline(hash, entry.deadline());
        db.table.insert_new(hash, entry);
    }

    fn touch_watchers(&mut self, key: &[u8]) {
        self.keyspace.watchers.touch(self.db, key);
    }
}

/// Seconds in 24 bits, the resolution of OBJECT IDLETIME.
pub(crate) fn access_clock(now_ms: u64) -> u32 {
    ((now_ms / 1000) & 0xFF_FFFF) as u32
}
