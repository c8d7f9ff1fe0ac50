//! Which sessions watch which keys.
//!
//! The keyspace touches a key on every change; the touch only marks the watchers here as broken.
//! The store carries the marks over to the sessions, since it owns them.

use crate::session::SessionKey;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Watchers {
    keys: BTreeMap<(usize, Box<[u8]>), Vec<SessionKey>>,
    broken: Vec<SessionKey>,
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn add(&mut self, db: usize, key: &[u8], session: SessionKey) {
        self.keys.entry((db, key.into())).or_default().push(session);
    }

    pub(crate) fn remove(&mut self, db: usize, key: &[u8], session: SessionKey) {
        let place = (db, key.into());
        if let Some(sessions) = self.keys.get_mut(&place) {
            sessions.retain(|&other| other != session);
            if sessions.is_empty() {
                self.keys.remove(&place);
            }
        }
    }

    /// `key` changed.
    pub(crate) fn touch(&mut self, db: usize, key: &[u8]) {
        if self.keys.is_empty() {
            return;
        }
        if let Some(sessions) = self.keys.get(&(db, key.into())) {
            self.broken.extend_from_slice(sessions);
        }
    }

    /// The watched keys of a database, with their watchers.
    pub(crate) fn in_db(&self, db: usize) -> impl Iterator<Item = (&[u8], &[SessionKey])> {
        self.keys
            .range((db, Box::default())..(db + 1, Box::default()))
            .map(|((_, key), sessions)| (&**key, sessions.as_slice()))
    }

    pub(crate) fn mark_broken(&mut self, sessions: Vec<SessionKey>) {
        self.broken.extend(sessions);
    }

    /// Sessions whose watched keys changed since the last call.
    pub(crate) fn take_broken(&mut self) -> Vec<SessionKey> {
        std::mem::take(&mut self.broken)
    }
}
