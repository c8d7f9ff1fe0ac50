//! What a command may do to all databases at once, and to what belongs to the data but to no key: the record of writes,
//! the switches of DEBUG, expiry as a whole. Keys are reached through the door, `Ctx::keys`.

use super::ctx::Ctx;
use crate::data::keyspace::{DebugSwitches, KeyspaceStats};

impl Ctx<'_> {
    /// How many databases there are.
    pub(crate) fn databases(&self) -> usize {
        self.store.keyspace.databases()
    }

    /// Keys in a database, expired ones that are still there included.
    pub(crate) fn key_count(&self, db: usize) -> usize {
        self.store.keyspace.len(db)
    }

    /// Empties a database and says how many keys it held.
    pub(crate) fn flush_database(&mut self, db: usize) -> usize {
        self.store.keyspace.flush(db, self.now.unix_ms())
    }

    /// Exchanges two databases; their watched keys count as changed.
    pub(crate) fn swap_databases(&mut self, first: usize, second: usize) {
        let now_ms = self.now.unix_ms();
        self.store.keyspace.swap(first, second, now_ms);
    }

    /// Has this session's transaction fail if the key changes. `expired`: its deadline has passed already.
    pub(crate) fn watch_key(&mut self, key: &[u8], expired: bool) {
        let watchers = &mut self.store.keyspace.interest.watchers;
        watchers.add(self.db, key, self.session, expired);
    }

    /// Whether a watched key's deadline passed since WATCH, although the key is still in the table.
    pub(crate) fn watched_key_expired(&mut self) -> bool {
        let (now_ms, key) = (self.now.unix_ms(), self.session);
        let Some(session) = self.store.clients.sessions.get(key) else {
            return false;
        };
        let keyspace = &mut self.store.keyspace;
        session.transaction.watched.iter().any(|(db, name)| {
            !keyspace.interest.watchers.was_expired(*db, name, key)
                && keyspace.keys(*db, now_ms, false).is_expired_in_place(name)
        })
    }

    /// How many changes there were so far; a command that changes something adds to it by [`Ctx::dirty`].
    pub(crate) fn changes(&self) -> u64 {
        self.store.keyspace.dirty
    }

    /// Whether the record of an expired key is UNLINK instead of DEL.
    pub(crate) fn expires_lazily(&self) -> bool {
        self.store.keyspace.expiry.lazy
    }

    /// Whether deadlines in the past are kept, because a data set is being loaded.
    pub(crate) fn keeps_past_deadlines(&self) -> bool {
        self.store.keyspace.loading
    }

    /// Hides expired keys instead of deleting them until CLIENT PAUSE ends.
    pub(crate) fn pause_expiry(&mut self) {
        self.store.keyspace.expiry.paused = true;
    }

    /// Whether expired keys are deleted before they are asked for (DEBUG SET-ACTIVE-EXPIRE).
    pub(crate) fn set_active_expiry(&mut self, on: bool) {
        self.store.keyspace.expiry.active = on;
    }

    /// Sets the figures that INFO shows of the data back to zero.
    pub(crate) fn reset_keyspace_stats(&mut self) {
        self.store.keyspace.stats = KeyspaceStats::default();
    }

    /// Keeps what is written from now on out of the record of writes, or ends that.
    pub(crate) fn mute_propagation(&mut self, muted: bool) {
        self.store.keyspace.propagation.mute(muted);
    }

    /// Drops what the running command has put into the record of writes, and ends the record: the server stops.
    pub(crate) fn abandon_propagation(&mut self) {
        self.store.keyspace.propagation.abandon();
    }

    /// What DEBUG has changed about stored values and payloads.
    pub(crate) fn debug_switches(&self) -> DebugSwitches {
        self.store.keyspace.debugging.switches
    }

    /// Changes how values are stored or payloads are read.
    pub(crate) fn set_debug_switches(&mut self, switches: DebugSwitches) {
        self.store.keyspace.debugging.switches = switches;
    }

    /// The file that DEBUG RELOAD has written, on a server without files.
    pub(crate) fn kept_file(&mut self) -> &mut Option<Vec<u8>> {
        &mut self.store.keyspace.debugging.file
    }

    /// As if a change of the data had begun, so that a panic ends the server (DEBUG PANIC IN-CHANGE).
    pub(crate) fn begin_change(&mut self) {
        self.store.keyspace.changing = true;
    }
}
