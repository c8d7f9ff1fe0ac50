//! The door itself: every way a command may look at or change keys of one database.
//!
//! A key is hashed and searched for once per call. Whatever a call changes, the watchers, the deadline index and the
//! count of bytes know of it when the call returns. Events are the command's to name, except for `new`, `keymiss` and
//! `expired`, which follow from what the door finds. It gives out no way to change an entry behind its back.

mod iterate;
mod typed;

pub(crate) use typed::{Edit, Edited, Missing, with_new_value};

use super::entry::INLINE_MAX;
use super::table::Position;
use super::value::{Type, Value};
use super::{Change, Entry, Keyspace, NewValue, StringRef};
use crate::base::error::{CommandError, CommandResult};
use crate::config::NotifyFlags;

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
    /// A read for the sake of the access clock (TOUCH): it moves even under CLIENT NO-TOUCH.
    Touch,
    /// A look from outside (OBJECT): counted, but a miss does not notify and the clock stays.
    Inspect,
    /// For a write, or for introspection: nothing is counted, the clock stays.
    Quiet,
    /// For a write that uses the old value: nothing is counted, the clock moves.
    Write,
}

/// Under which condition a write happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// In any case.
    #[default]
    Always,
    /// Only if there is no such key.
    Absent,
    /// Only if the key is there.
    Present,
}

/// What a search by key came upon.
#[derive(Clone, Copy, Debug)]
enum Found {
    Live(Position),
    Nothing,
    /// An expired entry that must stay in place for now and counts as absent.
    Hidden(Position),
}

const _: () = assert!(size_of::<Found>() <= 16);

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
    #[inline]
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

    /// Refuses `new` more keys when `max-keys` would be exceeded.
    pub(crate) fn admit_keys(&self, new: usize) -> CommandResult {
        self.keyspace.admit_keys(new)
    }

    /// As [`Keys::admit_keys`] for keys that are created after `removed` others are gone.
    pub(crate) fn admit_exchange(&self, removed: usize, new: usize) -> CommandResult {
        self.keyspace.admit_exchange(removed, new)
    }

    /// Refuses a value under a key, new or not, that a configured limit forbids.
    pub(crate) fn admit(&mut self, key: &[u8], value: &NewValue<'_>) -> CommandResult {
        self.admit_new_value(value)?;
        let new = !self.exists(key);
        self.admit_keys(usize::from(new))
    }

    /// Refuses a value over `max-value-size`.
    pub(crate) fn admit_value(&self, bytes: usize) -> CommandResult {
        self.keyspace.admit_value(bytes)
    }

    /// Whether `max-keys` is set.
    pub(crate) fn has_key_limit(&self) -> bool {
        self.keyspace.room.limits.max_keys != 0
    }

    /// Whether a key is there, for a write.
    pub(crate) fn exists(&mut self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// Finds a live entry. An expired one is removed on the way, with all that entails.
    #[inline]
    pub(crate) fn look(&mut self, key: &[u8], look: Look) -> Option<&Entry> {
        let found = self.find(key);
        match look {
            Look::Read | Look::ReadNoTouch | Look::Touch => self.count_read(key, found.is_some()),
            Look::Inspect => match found {
                Some(_) => self.keyspace.stats.hits += 1,
                None => self.keyspace.stats.misses += 1,
            },
            Look::Quiet | Look::Write => {}
        }
        let (_, position) = found?;
        let keyspace = &*self.keyspace;
        let entry = keyspace.dbs[self.db].table.at(position);
        let moves = match look {
            Look::Read | Look::Write => self.touch,
            Look::Touch => true,
            Look::ReadNoTouch | Look::Inspect | Look::Quiet => false,
        };
        if moves {
            keyspace.room.access.touch(entry, self.now_ms);
        }
        Some(entry)
    }

    /// Finds an entry, expired or not, and changes nothing: an expired one stays (DEBUG OBJECT).
    pub(crate) fn look_stored(&self, key: &[u8]) -> Option<&Entry> {
        let table = &self.keyspace.dbs[self.db].table;
        table.get(table.hash(key), key)
    }

    /// Counts a look that found its key or missed it; a miss may notify.
    #[inline]
    pub(crate) fn count_read(&mut self, key: &[u8], found: bool) {
        if found {
            self.keyspace.stats.hits += 1;
        } else {
            self.keyspace.stats.misses += 1;
            self.notify(NotifyFlags::KEY_MISS, "keymiss", key);
        }
    }

    /// Has the commands executed again that wait for a stream, although watchers see no change of it.
    pub(crate) fn wake(&mut self, key: &[u8]) {
        self.keyspace
            .interest
            .waiters
            .touch(self.db, key, Type::Stream);
    }

    /// Has the commands executed again that wait for a key which is about to get a value of this type, and before those that
    /// wait for a key that changes until then.
    pub(crate) fn wake_ahead(&mut self, key: &[u8], added: Type) {
        let waiters = &mut self.keyspace.interest.waiters;
        waiters.touch_gone(self.db, key);
        waiters.touch(self.db, key, added);
    }

    /// Stores a value, creating or replacing the key. As in Redis, a value that replaces another one is not served to
    /// waiters.
    ///
    /// # Errors
    /// When a configured limit on keys or value sizes would be exceeded; nothing changed then.
    #[inline]
    pub(crate) fn put(&mut self, key: &[u8], value: NewValue<'_>, expiry: Expiry) -> CommandResult {
        self.put_when(When::Always, key, value, expiry).map(|_| ())
    }

    /// Stores a value if the key's presence is as wanted; says whether it did.
    ///
    /// # Errors
    /// When a configured limit on keys or value sizes would be exceeded; nothing changed then.
    pub(crate) fn put_when(
        &mut self,
        when: When,
        key: &[u8],
        value: NewValue<'_>,
        expiry: Expiry,
    ) -> Result<bool, CommandError> {
        let (hash, found) = self.search(key);
        let wanted = match when {
            When::Always => true,
            When::Absent => !matches!(found, Found::Live(_)),
            When::Present => matches!(found, Found::Live(_)),
        };
        if !wanted {
            return Ok(false);
        }
        self.admit_new_value(&value)?;
        let change = if let Found::Live(position) = found {
            self.replace(hash, position, value, expiry);
            Change::Removed
        } else {
            let added = value.type_of();
            self.create(hash, found, key, value, expiry)?;
            Change::Added(added)
        };
        self.signal(key, change);
        Ok(true)
    }

    /// Stores a value under a key that is removed first if it is there, as RESTORE does: waiters learn of both, and the
    /// access data is that of a new key. Limits are not checked; see [`Keys::admit`].
    pub(crate) fn put_anew(&mut self, key: &[u8], value: NewValue<'_>, expiry: Expiry) {
        self.remove(key);
        let clock = self.initial_access();
        self.put_entry(Entry::new(key, value, expiry.after(None), clock));
    }

    /// Puts a value computed from the old one in its place; the deadline stays. The key is
    /// searched only once, which is what makes INCR cheap.
    ///
    /// # Errors
    /// WRONGTYPE, what `change` refuses, or when a limit would be exceeded; nothing changed then.
    pub(crate) fn update<'v>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(Option<StringRef<'_>>) -> Result<NewValue<'v>, CommandError>,
    ) -> CommandResult {
        let (hash, found) = self.search(key);
        if let Found::Live(position) = found {
            let old = self.keyspace.dbs[self.db].table.at(position).string();
            let new = change(Some(old.ok_or(CommandError::WRONG_TYPE)?))?;
            self.admit_new_value(&new)?;
            self.replace(hash, position, new, Expiry::Keep);
        } else {
            let new = change(None)?;
            self.admit_new_value(&new)?;
            self.create(hash, found, key, new, Expiry::Clear)?;
        }
        self.signal(key, Change::Edited);
        Ok(())
    }

    /// Changes a string's bytes in place (APPEND, SETRANGE), beginning with none if there is no
    /// such key. `len` is what they will be after the change.
    ///
    /// # Errors
    /// When a configured limit on keys or value sizes would be exceeded; nothing changed then.
    pub(crate) fn edit_bytes(
        &mut self,
        key: &[u8],
        len: usize,
        edit: impl FnOnce(&mut Vec<u8>),
    ) -> CommandResult {
        self.keyspace.admit_value(len)?;
        let (hash, found) = self.search(key);
        if let Found::Live(position) = found {
            let db = &mut self.keyspace.dbs[self.db];
            let entry = db.table.at_mut(position);
            if entry.string().is_none() {
                return Err(CommandError::WRONG_TYPE);
            }
            let before_bytes = entry.heap_bytes();
            self.keyspace.changing = true;
            entry.edit_bytes(edit);
            let after_bytes = entry.heap_bytes();
            if self.touch {
                self.keyspace.room.access.touch(entry, self.now_ms);
            }
            db.entry_bytes = db.entry_bytes - before_bytes + after_bytes;
        } else {
            let mut bytes = Vec::with_capacity(len);
            edit(&mut bytes);
            if bytes.len() > INLINE_MAX {
                let value = NewValue::Boxed(Value::of_bytes(bytes));
                self.create(hash, found, key, value, Expiry::Clear)?;
            } else {
                self.create(hash, found, key, NewValue::RawBytes(&bytes), Expiry::Clear)?;
            }
        }
        self.signal(key, Change::Edited);
        Ok(())
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
        self.keyspace.changing = true;
        let entry = self.keyspace.dbs[self.db].take(hash, position);
        self.signal(key, Change::Removed);
        Some(entry)
    }

    /// Puts an entry under its own key, which must be free; its clock and deadline stay.
    pub(crate) fn put_entry(&mut self, entry: Entry) {
        let (hash, found) = self.search(entry.key());
        let (key, added) = (entry.key().to_vec(), entry.type_of());
        self.add(hash, found, entry);
        self.signal(&key, Change::Added(added));
    }

    /// Changes a deadline: `change` gets the old one and returns the new one; `None` leaves it. Answers
    /// whether it changed: false also if there is no such key.
    pub(crate) fn change_deadline(
        &mut self,
        key: &[u8],
        change: impl FnOnce(Option<u64>) -> Option<Expiry>,
    ) -> bool {
        let Some((hash, position)) = self.find(key) else {
            return false;
        };
        let db = &mut self.keyspace.dbs[self.db];
        let entry = db.table.at(position);
        if self.touch {
            self.keyspace.room.access.touch(entry, self.now_ms);
        }
        let before = entry.deadline();
        let Some(expiry) = change(before) else {
            return false;
        };
        let after = expiry.after(before);
        if before != after {
            let entry = db.table.at_mut(position);
            let before_bytes = entry.heap_bytes();
            self.keyspace.changing = true;
            entry.set_deadline(after);
            db.entry_bytes = db.entry_bytes - before_bytes + entry.heap_bytes();
            db.unindex_deadline(hash, before);
            db.index_deadline(hash, after);
        }
        self.signal(key, Change::Edited);
        true
    }

    /// Sets what a key's access data says: for how many seconds it was idle, or its counter of accesses. What the
    /// policy does not use is left out.
    pub(crate) fn set_access(&mut self, key: &[u8], idle_s: Option<u64>, frequency: Option<u8>) {
        let Some((_, position)) = self.find(key) else {
            return;
        };
        let entry = self.keyspace.dbs[self.db].table.at(position);
        if let Some(idle_s) = idle_s {
            self.keyspace
                .room
                .access
                .set_idle(entry, self.now_ms, idle_s);
        }
        if let Some(frequency) = frequency {
            let access = &self.keyspace.room.access;
            access.set_frequency(entry, self.now_ms, frequency);
        }
    }

    /// The counter of accesses of a key, looked at from outside.
    pub(crate) fn frequency(&mut self, key: &[u8]) -> Option<u8> {
        self.look(key, Look::Inspect)?;
        let (_, position) = self.find(key)?;
        let entry = self.keyspace.dbs[self.db].table.at(position);
        Some(self.keyspace.room.access.frequency(entry, self.now_ms))
    }

    /// The access data of a new key.
    pub(crate) fn initial_access(&self) -> u32 {
        self.keyspace.room.access.initial(self.now_ms)
    }

    /// Queues a notification about a key of this database.
    #[inline]
    pub(crate) fn notify(&mut self, class: NotifyFlags, name: &'static str, key: &[u8]) {
        self.keyspace.notify(self.db, class, name, key);
    }

    pub(crate) fn len(&self) -> usize {
        self.keyspace.len(self.db)
    }

    /// Whether a deadline has passed at this moment.
    pub(crate) fn is_due(&self, deadline: u64) -> bool {
        self.now_ms >= deadline && !self.keyspace.loading
    }

    /// Whether the key stands in the table with a deadline that has passed: what WATCH remembers.
    pub(crate) fn is_expired_in_place(&self, key: &[u8]) -> bool {
        let table = &self.keyspace.dbs[self.db].table;
        table
            .find(table.hash(key), key)
            .and_then(|position| table.at(position).deadline())
            .is_some_and(|deadline| self.now_ms >= deadline)
    }

    #[inline]
    fn find(&mut self, key: &[u8]) -> Option<(u64, Position)> {
        match self.search(key) {
            (hash, Found::Live(position)) => Some((hash, position)),
            _ => None,
        }
    }

    /// The one search by key: it hashes once, and what has expired is gone when it returns.
    ///
    /// In two parts that each return in registers: a pair of both goes through memory, and reading it there right after it
    /// was written in pieces costs as much as the search.
    #[inline(always)]
    fn search(&mut self, key: &[u8]) -> (u64, Found) {
        let hash = self.hash(key);
        (hash, self.search_hashed(hash, key))
    }

    fn hash(&mut self, key: &[u8]) -> u64 {
        let hinted = self.keyspace.work.hints.take(key);
        let table = &self.keyspace.dbs[self.db].table;
        let hash = hinted.unwrap_or_else(|| table.hash(key));
        debug_assert_eq!(hash, table.hash(key), "a hint holds for unchanged bytes");
        hash
    }

    fn search_hashed(&mut self, hash: u64, key: &[u8]) -> Found {
        let table = &self.keyspace.dbs[self.db].table;
        let Some(position) = table.find(hash, key) else {
            return Found::Nothing;
        };
        match table.at(position).deadline() {
            Some(deadline) if self.now_ms >= deadline => self.expire(hash, position),
            _ => Found::Live(position),
        }
    }

    #[cold]
    fn expire(&mut self, hash: u64, position: Position) -> Found {
        if self.keyspace.loading {
            return Found::Live(position);
        }
        if self.keyspace.expiry.paused {
            return Found::Hidden(position);
        }
        self.keyspace.expire_at(self.db, hash, position);
        Found::Nothing
    }

    /// Replaces the value of a live entry.
    #[inline]
    fn replace(&mut self, hash: u64, position: Position, value: NewValue<'_>, expiry: Expiry) {
        let db = &mut self.keyspace.dbs[self.db];
        let entry = db.table.at_mut(position);
        let access = &self.keyspace.room.access;
        access.touch_replaced(entry, self.now_ms, self.touch);
        let before = entry.deadline();
        let after = expiry.after(before);
        // Most overwrites change neither the deadline nor any size.
        let overwritten = before == after
            && match value {
                NewValue::Bytes(bytes) => entry.overwrite(bytes),
                NewValue::Int(number) => entry.set_int(number),
                _ => false,
            };
        if overwritten {
            return;
        }
        self.keyspace.changing = true;
        let before_bytes = entry.heap_bytes();
        if before != after {
            entry.set_deadline(after);
        }
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
    }

    /// Makes a new entry.
    fn create(
        &mut self,
        hash: u64,
        found: Found,
        key: &[u8],
        value: NewValue<'_>,
        expiry: Expiry,
    ) -> CommandResult {
        self.keyspace.admit_keys(1)?;
        let clock = self.keyspace.room.access.initial(self.now_ms);
        let entry = Entry::new(key, value, expiry.after(None), clock);
        self.add(hash, found, entry);
        Ok(())
    }

    /// Adds an entry where a search for its key came upon no live one.
    fn add(&mut self, hash: u64, found: Found, entry: Entry) {
        self.keyspace.changing = true;
        self.notify(NotifyFlags::NEW, "new", entry.key());
        if let Found::Hidden(_) = found {
            // Its expiry was not signalled while it was kept.
            let waiters = &mut self.keyspace.interest.waiters;
            waiters.touch_gone(self.db, entry.key());
        }
        let db = &mut self.keyspace.dbs[self.db];
        if let Found::Live(position) | Found::Hidden(position) = found {
            db.take(hash, position);
        }
        db.entry_bytes += entry.heap_bytes();
        db.index_deadline(hash, entry.deadline());
        let room = self.keyspace.room.bytes.saturating_sub(entry.heap_bytes());
        db.table.insert_within(hash, entry, room);
    }

    #[inline]
    fn admit_new_value(&self, value: &NewValue<'_>) -> CommandResult {
        if self.keyspace.room.limits.max_value_bytes == 0 {
            return Ok(());
        }
        self.keyspace.admit_value(value.len())
    }

    #[inline]
    fn signal(&mut self, key: &[u8], change: Change) {
        self.keyspace.signal(self.db, key, change);
    }
}

impl Expiry {
    /// The deadline after a write, given the one before.
    #[inline]
    fn after(self, before: Option<u64>) -> Option<u64> {
        match self {
            Self::Clear => None,
            Self::Keep => before,
            Self::At(deadline) => Some(deadline),
        }
    }
}
