//! Which sessions watch which keys.
//!
//! The keyspace touches a key on every change; the touch only marks the watchers here as broken.
//! The store carries the marks over to the sessions, since it owns them.
//!
//! A key that had expired when WATCH was called, but was not yet removed, is a key that is not
//! there: its removal changes nothing and breaks no watch.

use crate::base::ids::SessionKey;
use std::collections::BTreeMap;

#[derive(Debug)]
struct Watch {
    session: SessionKey,
    /// The key stands in the table although its time had passed when the watch began.
    expired: bool,
}

/// What became of a watched key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    Absent,
    /// In the table, with a deadline that has passed.
    Expired,
    Present,
}

#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// By database, then by key, so that a key is looked up without a copy of it. Nothing empty is
    /// kept.
    dbs: BTreeMap<usize, BTreeMap<Box<[u8]>, Vec<Watch>>>,
    broken: Vec<SessionKey>,
}

impl Watchers {
    pub(crate) fn is_empty(&self) -> bool {
        self.dbs.is_empty()
    }

    pub(crate) fn add(&mut self, db: usize, key: &[u8], session: SessionKey, expired: bool) {
        let keys = self.dbs.entry(db).or_default();
        let watches = keys.entry(key.into()).or_default();
        watches.push(Watch { session, expired });
    }

    pub(crate) fn remove(&mut self, db: usize, key: &[u8], session: SessionKey) {
        let Some(keys) = self.dbs.get_mut(&db) else {
            return;
        };
        if let Some(watches) = keys.get_mut(key) {
            watches.retain(|watch| watch.session != session);
            if watches.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.dbs.remove(&db);
        }
    }

    /// Whether the key had expired in its place when `session` began to watch it.
    pub(crate) fn was_expired(&self, db: usize, key: &[u8], session: SessionKey) -> bool {
        let watches = self.dbs.get(&db).and_then(|keys| keys.get(key));
        watches.is_some_and(|watches| {
            watches
                .iter()
                .any(|watch| watch.session == session && watch.expired)
        })
    }

    /// `key` changed, and may be gone now.
    pub(super) fn touch(&mut self, db: usize, key: &[u8], exists: impl FnOnce() -> bool) {
        if self.dbs.is_empty() {
            return;
        }
        let keys = self.dbs.get_mut(&db);
        let Some(watches) = keys.and_then(|keys| keys.get_mut(key)) else {
            return;
        };
        let exists = exists();
        for watch in watches {
            if watch.expired && !exists {
                watch.expired = false;
            } else {
                self.broken.push(watch.session);
            }
        }
    }

    /// The whole database is replaced: `was` says whether a key stood in it, `will` what stands in
    /// its place.
    pub(super) fn replace_db(
        &mut self,
        db: usize,
        was: impl Fn(&[u8]) -> bool,
        will: impl Fn(&[u8]) -> Now,
    ) {
        for (key, watches) in self.dbs.get_mut(&db).into_iter().flatten() {
            let (was, will) = (was(key), will(key));
            if !was && will == Now::Absent {
                continue;
            }
            for watch in watches {
                match (was && watch.expired, will) {
                    (true, Now::Absent) => watch.expired = false,
                    (true, Now::Expired) => {}
                    (false, Now::Expired) if !was => watch.expired = true,
                    _ => self.broken.push(watch.session),
                }
            }
        }
    }

    /// Sessions whose watched keys changed since the last call.
    pub(crate) fn take_broken(&mut self) -> Vec<SessionKey> {
        std::mem::take(&mut self.broken)
    }
}
