//! Which sessions wait for which keys, in the order they came.
//!
//! A change of a key that a session waits for only marks the key as ready. The store serves the
//! waiting sessions when the command, transaction or script that changed it has ended.

use crate::session::SessionKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// By database, then by key. Nothing empty is kept.
    dbs: BTreeMap<usize, BTreeMap<Box<[u8]>, VecDeque<SessionKey>>>,
    /// Keys that changed since they were last looked at, in the order of their first change.
    ready: Vec<(usize, Box<[u8]>)>,
    /// The same keys, so that each is listed once.
    listed: BTreeSet<(usize, Box<[u8]>)>,
}

impl Waiters {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.dbs.is_empty()
    }

    /// Keys that sessions wait for.
    pub(crate) fn key_count(&self) -> usize {
        self.dbs.values().map(BTreeMap::len).sum()
    }

    /// Puts a session behind those that wait for the key already.
    pub(crate) fn add(&mut self, db: usize, key: &[u8], session: SessionKey) {
        let keys = self.dbs.entry(db).or_default();
        let sessions = keys.entry(key.into()).or_default();
        // All keys of a session are added together, so a repeated one finds it at the end.
        if sessions.back() != Some(&session) {
            sessions.push_back(session);
        }
    }

    pub(crate) fn remove(&mut self, db: usize, key: &[u8], session: SessionKey) {
        let Some(keys) = self.dbs.get_mut(&db) else {
            return;
        };
        if let Some(sessions) = keys.get_mut(key) {
            sessions.retain(|&other| other != session);
            if sessions.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.dbs.remove(&db);
        }
    }

    /// The sessions that wait for a key, first come first.
    pub(crate) fn sessions(&self, db: usize, key: &[u8]) -> Vec<SessionKey> {
        let sessions = self.dbs.get(&db).and_then(|keys| keys.get(key));
        sessions
            .map(|sessions| sessions.iter().copied().collect())
            .unwrap_or_default()
    }

    /// A key changed.
    pub(super) fn touch(&mut self, db: usize, key: &[u8]) {
        let keys = self.dbs.get(&db);
        if keys.is_some_and(|keys| keys.contains_key(key)) && self.listed.insert((db, key.into())) {
            self.ready.push((db, key.into()));
        }
    }

    /// Every key of a database may have changed.
    pub(super) fn touch_db(&mut self, db: usize) {
        for key in self.dbs.get(&db).into_iter().flat_map(BTreeMap::keys) {
            if self.listed.insert((db, key.clone())) {
                self.ready.push((db, key.clone()));
            }
        }
    }

    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Keys that changed since the last call.
    pub(crate) fn take_ready(&mut self) -> Vec<(usize, Box<[u8]>)> {
        self.listed.clear();
        std::mem::take(&mut self.ready)
    }
}
