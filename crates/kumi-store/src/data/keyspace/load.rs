//! Adds the keys of a file: in batches, and without what only clients need to know.
//!
//! A key of a file is new, no client watches it or waits for it, and it expires when loading is over. So it is
//! hashed once, searched for once, and makes no event. The entries of a batch are made first; their places in
//! the table are loaded into the cache meanwhile.

use super::collection::Collection;
use super::entry::{Entry, lies_inline};
use super::{Keyspace, NewValue};

/// Entries of a batch. Their buckets, of three cache lines each, have to stay in the cache until they are used.
const BATCH: usize = 64;

/// Keys that are about to be added.
#[derive(Debug, Default)]
pub(crate) struct LoadBatch {
    db: usize,
    /// With the hashes of their keys.
    entries: Vec<(u64, Entry)>,
}

/// A key of a file, without its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedKey<'a> {
    pub(crate) db: usize,
    pub(crate) key: &'a [u8],
    /// In Unix milliseconds.
    pub(crate) deadline: Option<u64>,
    pub(crate) idle_s: Option<u64>,
    /// The counter of accesses under LFU.
    pub(crate) frequency: Option<u8>,
}

impl Keyspace {
    /// Makes room for so many keys in an empty database.
    pub(crate) fn reserve(&mut self, db: usize, keys: usize) {
        self.dbs[db].table.reserve(keys);
        self.recount(db);
    }

    /// Adds a key that the database does not have, at the latest when the batch is finished.
    ///
    /// # Errors
    /// A key of the batch is there already. The text names the key.
    pub(crate) fn load(
        &mut self,
        batch: &mut LoadBatch,
        key: LoadedKey<'_>,
        value: NewValue<'_>,
        now_ms: u64,
    ) -> Result<(), String> {
        if batch.db != key.db || batch.entries.len() == BATCH {
            self.finish_load(batch)?;
            batch.db = key.db;
        }
        let clock = self.room.access.initial(now_ms);
        let entry = Entry::new(key.key, value, key.deadline, clock);
        if let Some(idle_s) = key.idle_s {
            self.room.access.set_idle(&entry, now_ms, idle_s);
        }
        if let Some(frequency) = key.frequency {
            self.room.access.set_frequency(&entry, now_ms, frequency);
        }
        let table = &self.dbs[key.db].table;
        let hash = table.hash(key.key);
        table.prefetch_insert(hash);
        batch.entries.push((hash, entry));
        Ok(())
    }

    /// Adds a key with a collection; one without elements is left out.
    ///
    /// # Errors
    /// As [`Keyspace::load`].
    pub(crate) fn load_collection<T: Collection>(
        &mut self,
        batch: &mut LoadBatch,
        key: LoadedKey<'_>,
        collection: T,
        now_ms: u64,
    ) -> Result<(), String> {
        if collection.is_empty() && T::GOES_WHEN_EMPTY {
            return Ok(());
        }
        match collection.small() {
            Some((form, bytes)) if lies_inline(key.key, bytes) => {
                self.load(batch, key, NewValue::Small(T::TYPE, form, bytes), now_ms)
            }
            _ => self.load(batch, key, NewValue::Boxed(collection.into_value()), now_ms),
        }
    }

    /// Puts the entries of a batch into their table.
    ///
    /// # Errors
    /// A key is there already. Some of the batch may be in the table.
    pub(crate) fn finish_load(&mut self, batch: &mut LoadBatch) -> Result<(), String> {
        if batch.entries.is_empty() {
            return Ok(());
        }
        self.changing = true;
        let db = &mut self.dbs[batch.db];
        let mut twice = None;
        for (hash, entry) in batch.entries.drain(..) {
            if db.table.find(hash, entry.key()).is_some() {
                twice.get_or_insert(entry);
                continue;
            }
            db.entry_bytes += entry.heap_bytes();
            db.index_deadline(hash, entry.deadline());
            db.table.insert_new(hash, entry);
        }
        self.recount(batch.db);
        self.changing = false;
        match twice {
            None => Ok(()),
            Some(entry) => Err(format!(
                "key '{}' occurs twice in database {}",
                entry.key().escape_ascii(),
                batch.db
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::keyspace::Look;

    fn key(db: usize, key: &[u8]) -> LoadedKey<'_> {
        LoadedKey {
            db,
            key,
            deadline: None,
            idle_s: None,
            frequency: None,
        }
    }

    #[test]
    fn a_key_that_is_there_already_is_an_error() {
        let mut keyspace = Keyspace::new(2, (1, 2), 3);
        let mut batch = LoadBatch::default();
        for db in [0, 1] {
            for name in [b"a", b"b"] {
                let value = NewValue::Bytes(b"x");
                keyspace.load(&mut batch, key(db, name), value, 0).unwrap();
            }
        }
        keyspace.finish_load(&mut batch).unwrap();
        assert_eq!((keyspace.len(0), keyspace.total_keys()), (2, 4));
        keyspace
            .load(&mut batch, key(1, b"b"), NewValue::Int(1), 0)
            .unwrap();
        let error = keyspace.finish_load(&mut batch).unwrap_err();
        assert_eq!(error, "key 'b' occurs twice in database 1");
    }

    #[test]
    fn a_reserved_table_is_as_large_as_one_that_grew() {
        for keys in [0, 1, 500, 800, 5_000, 100_000] {
            let mut keyspace = Keyspace::new(2, (1, 2), 3);
            keyspace.reserve(0, keys);
            let mut batch = LoadBatch::default();
            for db in [0, 1] {
                for number in 0..keys {
                    let name = number.to_string();
                    let value = NewValue::Int(number as i64);
                    keyspace
                        .load(&mut batch, key(db, name.as_bytes()), value, 0)
                        .unwrap();
                }
            }
            keyspace.finish_load(&mut batch).unwrap();
            assert_eq!((keyspace.len(0), keyspace.len(1)), (keys, keys));
            let (reserved, grown) = (keyspace.overhead_bytes(0).0, keyspace.overhead_bytes(1).0);
            assert!(
                reserved <= grown * 5 / 4 + 10_000,
                "{keys} keys: {reserved} bytes, {grown} if it grew"
            );
            for number in 0..keys {
                let name = number.to_string();
                assert!(
                    keyspace
                        .keys(0, 0, false)
                        .look(name.as_bytes(), Look::Quiet)
                        .is_some()
                );
            }
        }
    }
}
