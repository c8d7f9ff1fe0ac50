//! Placeholder.

use crate::command::Command;
use crate::session::SessionKey;
use crate::store::Store;

pub(super) const COMMANDS: &[Command] = &[];

impl Store {
    /// Forgets a session's queued commands and its watches.
    pub(crate) fn discard_transaction(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(key) {
            session.multi = None;
        }
        self.unwatch_all(key);
    }

    /// Forgets a session's watches.
    pub(crate) fn unwatch_all(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.watch_broken = false;
        for watched in std::mem::take(&mut session.watched) {
            self.keyspace.watchers.remove(watched.db, &watched.key, key);
        }
    }
}
