//! Client-side caching: which sessions may hold a copy of which keys.
//!
//! In the default mode a session that reads a key is listed under the key's name; the first change of the key takes the
//! list away, and every session on it gets one invalidation. In broadcasting mode a session names prefixes, and gets an
//! invalidation for every changed key that begins with one of them. Names only: a key counts in all databases, as in Redis.
//!
//! The keyspace reports changed keys here. What has to be sent is queued beside the keyspace events, in the order it
//! happened; `engine/store/tracking.rs` sends it. Entries of sessions that are gone stay until their key changes, the table is
//! full, or no session tracks any more.

use crate::base::ids::SessionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// What a key of the table takes besides its bytes: two fat pointers, the readers and a share of a tree node.
const ENTRY_BYTES: usize = 64;
/// What a reader beyond the first takes.
const READER_BYTES: usize = 16;

/// A key that changed, and the sessions that may hold a copy of it.
#[derive(Debug)]
pub(crate) struct Invalidated {
    pub(crate) key: Box<[u8]>,
    /// Sessions that have read the key.
    pub(crate) readers: Readers,
    /// A broadcasting session has named a prefix of the key.
    pub(crate) broadcast: bool,
    /// The running command changed the key; false if its time was over.
    pub(crate) by_command: bool,
}

/// The sessions that have read a key. One is the common case and takes no allocation.
#[derive(Debug, Default)]
pub(crate) enum Readers {
    #[default]
    None,
    One(SessionKey),
    Many(BTreeSet<SessionKey>),
}

impl Readers {
    /// Adds a session; says whether it is a new one.
    fn add(&mut self, session: SessionKey) -> bool {
        match self {
            Self::None => *self = Self::One(session),
            Self::One(only) if *only == session => return false,
            Self::One(only) => *self = Self::Many(BTreeSet::from([*only, session])),
            Self::Many(sessions) => return sessions.insert(session),
        }
        true
    }

    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Many(sessions) => sessions.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SessionKey> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(only) => (Some(*only), None),
            Self::Many(sessions) => (None, Some(sessions.iter().copied())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

/// A prefix that broadcasting sessions have named.
#[derive(Debug, Default)]
struct Prefix {
    sessions: BTreeSet<SessionKey>,
    /// Keys that changed since the last broadcast, with the session that changed each last; none if no session did it
    /// by a command of its own.
    changed: BTreeMap<Box<[u8]>, Option<SessionKey>>,
}

/// The keys to broadcast under one prefix, and the sessions to send them to.
#[derive(Debug)]
pub(crate) struct Broadcast {
    pub(crate) sessions: Vec<SessionKey>,
    pub(crate) changed: BTreeMap<Box<[u8]>, Option<SessionKey>>,
}

#[derive(Debug, Default)]
pub(crate) struct Tracking {
    /// Sessions with tracking on.
    pub(crate) clients: usize,
    table: BTreeMap<Box<[u8]>, Readers>,
    /// Readers of all keys together.
    items: usize,
    /// What the table takes.
    bytes: usize,
    prefixes: BTreeMap<Box<[u8]>, Prefix>,
    /// How many prefixes have each length: a key is looked up once per length.
    lengths: BTreeMap<usize, usize>,
    /// Some prefix has keys to broadcast.
    has_changed: bool,
    /// The key that was evicted last; eviction goes on behind it.
    evicted: Box<[u8]>,
}

impl Tracking {
    /// Whether changed keys have to be reported. One branch per write when no client tracks.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.clients > 0 || !self.table.is_empty()
    }

    pub(crate) fn keys(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn items(&self) -> usize {
        self.items
    }

    pub(crate) fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// Bytes of the table of keys.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes
    }

    /// A session has read a key.
    pub(crate) fn remember(&mut self, key: &[u8], session: SessionKey) {
        if let Some(readers) = self.table.get_mut(key) {
            if readers.add(session) {
                self.items += 1;
                self.bytes += READER_BYTES;
            }
            return;
        }
        self.table.insert(key.into(), Readers::One(session));
        self.items += 1;
        self.bytes += key.len() + ENTRY_BYTES;
    }

    /// A key changed. Returns the invalidations to send, if any session tracks the key.
    pub(super) fn touch(&mut self, key: &[u8], by_command: bool) -> Option<Invalidated> {
        let readers = self.take(key);
        let broadcast = self.lengths.keys().any(|&length| {
            key.get(..length)
                .is_some_and(|prefix| self.prefixes.contains_key(prefix))
        });
        (broadcast || readers.is_some()).then(|| Invalidated {
            key: key.into(),
            readers: readers.unwrap_or_default(),
            broadcast,
            by_command,
        })
    }

    /// Keeps a changed key for the next broadcast.
    pub(crate) fn keep(&mut self, key: &[u8], author: Option<SessionKey>) {
        for &length in self.lengths.keys() {
            if let Some(prefix) = key.get(..length)
                && let Some(prefix) = self.prefixes.get_mut(prefix)
            {
                prefix.changed.insert(key.into(), author);
                self.has_changed = true;
            }
        }
    }

    /// Whether [`Tracking::take_broadcasts`] would return anything.
    #[inline]
    pub(crate) fn has_broadcasts(&self) -> bool {
        self.has_changed
    }

    /// The keys to broadcast, in the order of their prefixes.
    pub(crate) fn take_broadcasts(&mut self) -> Vec<Broadcast> {
        self.has_changed = false;
        let prefixes = self.prefixes.values_mut();
        let changed = prefixes.filter(|prefix| !prefix.changed.is_empty());
        changed
            .map(|prefix| Broadcast {
                sessions: prefix.sessions.iter().copied().collect(),
                changed: std::mem::take(&mut prefix.changed),
            })
            .collect()
    }

    /// A session asks for invalidations of keys that begin with `prefix`.
    pub(crate) fn add_prefix(&mut self, prefix: &[u8], session: SessionKey) {
        if !self.prefixes.contains_key(prefix) {
            self.prefixes.insert(prefix.into(), Prefix::default());
            *self.lengths.entry(prefix.len()).or_default() += 1;
        }
        if let Some(prefix) = self.prefixes.get_mut(prefix) {
            prefix.sessions.insert(session);
        }
    }

    /// Ends what [`Tracking::add_prefix`] began.
    pub(crate) fn remove_prefix(&mut self, name: &[u8], session: SessionKey) {
        let Some(prefix) = self.prefixes.get_mut(name) else {
            return;
        };
        prefix.sessions.remove(&session);
        if prefix.sessions.is_empty() {
            self.prefixes.remove(name);
            if let Some(count) = self.lengths.get_mut(&name.len()) {
                *count -= 1;
                if *count == 0 {
                    self.lengths.remove(&name.len());
                }
            }
        }
    }

    /// Takes a key out to make room, the next one in the order of names. Its readers have to be told.
    pub(crate) fn evict(&mut self) -> Option<(Box<[u8]>, Readers)> {
        let behind = (Bound::Excluded(&*self.evicted), Bound::Unbounded);
        let next = self.table.range::<[u8], _>(behind).next();
        let (key, _) = next.or_else(|| self.table.first_key_value())?;
        let key = key.clone();
        let readers = self.take(&key)?;
        self.evicted.clone_from(&key);
        Some((key, readers))
    }

    /// Forgets all keys that were read.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.items = 0;
        self.bytes = 0;
    }

    fn take(&mut self, key: &[u8]) -> Option<Readers> {
        if self.table.is_empty() {
            return None;
        }
        let readers = self.table.remove(key)?;
        self.items -= readers.len();
        self.bytes -= key.len() + ENTRY_BYTES + (readers.len() - 1) * READER_BYTES;
        Some(readers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions<const N: usize>() -> [SessionKey; N] {
        std::array::from_fn(|slot| SessionKey::new(slot as u32, slot as u64))
    }

    #[test]
    fn a_change_takes_all_readers_of_a_key_once() {
        let mut tracking = Tracking::default();
        let [a, b] = sessions();
        for session in [a, b, a] {
            tracking.remember(b"k", session);
        }
        tracking.remember(b"other", a);
        assert_eq!((tracking.keys(), tracking.items()), (2, 3));
        let invalidated = tracking.touch(b"k", true).expect("it was read");
        assert_eq!(invalidated.readers.iter().collect::<Vec<_>>(), [a, b]);
        assert!(tracking.touch(b"k", true).is_none());
        assert_eq!((tracking.keys(), tracking.items()), (1, 1));
        tracking.touch(b"other", true);
        assert_eq!(tracking.heap_bytes(), 0);
    }

    #[test]
    fn a_broadcast_holds_each_key_once_in_order() {
        let mut tracking = Tracking::default();
        let [a, b] = sessions();
        tracking.add_prefix(b"", a);
        tracking.add_prefix(b"user:", b);
        for key in ["user:2", "x", "user:1", "user:2"] {
            let invalidated = tracking.touch(key.as_bytes(), true).expect("all match");
            tracking.keep(&invalidated.key, Some(a));
        }
        let names = |broadcast: &Broadcast| {
            let names = broadcast.changed.keys();
            names
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .collect::<Vec<_>>()
        };
        let broadcasts = tracking.take_broadcasts();
        assert_eq!(names(&broadcasts[0]), ["user:1", "user:2", "x"]);
        assert_eq!(names(&broadcasts[1]), ["user:1", "user:2"]);
        assert!(!tracking.has_broadcasts());
        tracking.remove_prefix(b"", a);
        assert!(tracking.touch(b"x", true).is_none());
        assert!(tracking.touch(b"user:", true).is_some());
        assert!(tracking.touch(b"use", true).is_none());
    }

    #[test]
    fn eviction_goes_round_all_keys() {
        let mut tracking = Tracking::default();
        let [a] = sessions();
        for key in ["a", "b", "c"] {
            tracking.remember(key.as_bytes(), a);
        }
        let next = |tracking: &mut Tracking| {
            let (key, _) = tracking.evict()?;
            Some(String::from_utf8_lossy(&key).into_owned())
        };
        assert_eq!(next(&mut tracking).as_deref(), Some("a"));
        tracking.remember(b"a", a);
        assert_eq!(next(&mut tracking).as_deref(), Some("b"));
        assert_eq!(next(&mut tracking).as_deref(), Some("c"));
        assert_eq!(next(&mut tracking).as_deref(), Some("a"));
        assert_eq!(next(&mut tracking), None);
    }
}
