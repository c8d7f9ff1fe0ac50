//! What INFO and MEMORY show of the data: sizes and counters, and no way to a key.

use super::{DbSummary, Keyspace, KeyspaceStats};

/// The figures of all databases.
#[derive(Clone, Copy)]
pub(crate) struct Figures<'a>(&'a Keyspace);

impl Keyspace {
    pub(crate) fn figures(&self) -> Figures<'_> {
        Figures(self)
    }
}

impl Figures<'_> {
    pub(crate) fn databases(self) -> usize {
        self.0.databases()
    }

    /// Keys in a database, expired ones that are still there included.
    pub(crate) fn keys(self, db: usize) -> usize {
        self.0.len(db)
    }

    pub(crate) fn total_keys(self) -> usize {
        self.0.total_keys()
    }

    pub(crate) fn summary(self, db: usize, now_ms: u64) -> DbSummary {
        self.0.summary(db, now_ms)
    }

    /// Bytes of the hash table and of the deadline index of a database.
    pub(crate) fn overhead_bytes(self, db: usize) -> (usize, usize) {
        self.0.overhead_bytes(db)
    }

    /// Keys whose deadline has passed and that still take room, and keys with a deadline at all.
    pub(crate) fn overdue(self, now_ms: u64) -> (usize, usize) {
        self.0.overdue(now_ms)
    }

    /// Changes so far.
    pub(crate) fn changes(self) -> u64 {
        self.0.dirty
    }

    pub(crate) fn stats(self) -> KeyspaceStats {
        self.0.stats
    }

    /// Sessions that track keys.
    pub(crate) fn tracking_clients(self) -> usize {
        self.0.interest.tracking.clients
    }

    /// Tracked keys, their readers, and prefixes.
    pub(crate) fn tracked(self) -> (usize, usize, usize) {
        let tracking = &self.0.interest.tracking;
        (tracking.keys(), tracking.items(), tracking.prefixes())
    }

    /// Keys that sessions wait for, and those of them that wake a session when they are gone.
    pub(crate) fn blocking_keys(self) -> (usize, usize) {
        let waiters = &self.0.interest.waiters;
        (waiters.key_count(), waiters.key_count_on_loss())
    }
}
