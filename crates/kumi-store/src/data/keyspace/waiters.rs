//! Which sessions wait for which keys, in the order they came.
//!
//! A change of a key that a session waits for only notes the key as ready. The store serves the waiting sessions when
//! the command, transaction or script that changed it has ended. Which changes make a key ready is as in Redis, because
//! that decides the order in which keys are served.

//!
//! Under each key the sessions are listed by what they wait for ([`Wake`]), because that decides whom a change serves: of
//! thousands of consumers of one group the first takes the new entry, and nothing is left for the others. They are told
//! apart by one look at the group, not by executing their commands.

use super::value::Type;
use crate::base::ids::SessionKey;
use crate::types::stream::StreamId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// A place in the order of waits; later waits have higher ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// What a session waits for under one key. The order puts readers of a stream behind one another by their ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wake {
    /// The key holds this type. Deletion and other types leave the session waiting.
    Holds(Type),
    /// The stream has an entry behind this id. Deletion and other types leave the session waiting.
    Behind(StreamId),
    /// The stream has an entry that was not delivered to this group; or the key, its type or the group is lost, and the
    /// command answers an error.
    Group(Arc<[u8]>),
}

impl Wake {
    /// The type that the session waits for.
    fn awaited(&self) -> Type {
        match self {
            Wake::Holds(wanted) => *wanted,
            Wake::Behind(_) | Wake::Group(_) => Type::Stream,
        }
    }

    /// Whether the session is also served when the key is gone, or holds another type.
    fn on_loss(&self) -> bool {
        matches!(self, Wake::Group(_))
    }
}

/// What a key holds, as far as it matters to those who wait for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    Nothing,
    Value(Type),
    /// A stream, with the id of its last entry if it has any.
    Stream(Option<StreamId>),
}

/// The sessions that wait for one key.
#[derive(Debug, Default)]
struct Queue {
    /// By what they wait for, then in the order they came. Nothing empty is kept.
    sessions: BTreeMap<Wake, BTreeMap<Ticket, SessionKey>>,
    /// How many of them are also served when the key is gone, or holds another type.
    on_loss: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// By database, then by key. Nothing empty is kept.
    dbs: BTreeMap<usize, BTreeMap<Box<[u8]>, Queue>>,
    next_ticket: Ticket,
    /// How many waits there are for each [`Type`], a wait for several keys counted for each of them.
    by_type: [usize; Type::ALL.len()],
    /// Keys that changed since they were last looked at, in the order of their first change.
    ready: Vec<(usize, Box<[u8]>)>,
    /// The same keys, so that each is listed once.
    listed: BTreeSet<(usize, Box<[u8]>)>,
    /// Keys that were ready during a pause of writes and have waiters left whose commands write.
    held: Vec<(usize, Box<[u8]>)>,
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

    /// Keys whose deletion ends a wait.
    pub(crate) fn key_count_on_loss(&self) -> usize {
        let queues = self.dbs.values().flat_map(BTreeMap::values);
        queues.filter(|queue| queue.on_loss > 0).count()
    }

    /// A place behind all that wait, for all keys of one wait.
    pub(crate) fn ticket(&mut self) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket.0 += 1;
        ticket
    }

    /// Lists a session under a key.
    pub(crate) fn add(
        &mut self,
        db: usize,
        key: &[u8],
        ticket: Ticket,
        session: SessionKey,
        wake: &Wake,
    ) {
        let queue = self.dbs.entry(db).or_default();
        let queue = queue.entry(key.into()).or_default();
        let sessions = match queue.sessions.get_mut(wake) {
            Some(sessions) => sessions,
            None => queue.sessions.entry(wake.clone()).or_default(),
        };
        // A command may name a key twice.
        if sessions.insert(ticket, session).is_none() {
            queue.on_loss += usize::from(wake.on_loss());
            self.by_type[wake.awaited() as usize] += 1;
        }
    }

    /// Takes a session off a key; `wake` is what it was added with.
    pub(crate) fn remove(&mut self, db: usize, key: &[u8], ticket: Ticket, wake: &Wake) {
        let Some(keys) = self.dbs.get_mut(&db) else {
            return;
        };
        if let Some(queue) = keys.get_mut(key)
            && let Some(sessions) = queue.sessions.get_mut(wake)
            && sessions.remove(&ticket).is_some()
        {
            if sessions.is_empty() {
                queue.sessions.remove(wake);
            }
            queue.on_loss -= usize::from(wake.on_loss());
            self.by_type[wake.awaited() as usize] -= 1;
            if queue.sessions.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.dbs.remove(&db);
        }
    }

    /// What sessions wait for under a key and may be served now, for what it holds. Whether a group has anything to
    /// deliver is not known here.
    pub(crate) fn served_by(&self, db: usize, key: &[u8], held: Held) -> Vec<Wake> {
        let Some(queue) = self.dbs.get(&db).and_then(|keys| keys.get(key)) else {
            return Vec::new();
        };
        let mut wakes = Vec::new();
        match held {
            Held::Value(held) => {
                let wake = Wake::Holds(held);
                wakes.extend(queue.sessions.contains_key(&wake).then_some(wake));
            }
            Held::Stream(Some(last)) => {
                let readers = Wake::Behind(StreamId::MIN)..Wake::Behind(last);
                wakes.extend(queue.sessions.range(readers).map(|(wake, _)| wake.clone()));
            }
            Held::Stream(None) | Held::Nothing => {}
        }
        if queue.on_loss > 0 {
            let groups = (
                Bound::Excluded(Wake::Behind(StreamId::MAX)),
                Bound::Unbounded,
            );
            let groups = queue.sessions.range(groups).map(|(wake, _)| wake.clone());
            wakes.extend(groups.filter(Wake::on_loss));
        }
        wakes
    }

    /// The first session that waits for this under a key, with a place from `from` on and before `end`.
    pub(crate) fn first(
        &self,
        db: usize,
        key: &[u8],
        wake: &Wake,
        from: Ticket,
        end: Ticket,
    ) -> Option<(Ticket, SessionKey)> {
        let queue = self.dbs.get(&db)?.get(key)?;
        let (&ticket, &session) = queue.sessions.get(wake)?.range(from..end).next()?;
        Some((ticket, session))
    }

    /// Whether a session waits for a key that is also served when the key is gone.
    pub(crate) fn has_on_loss(&self, db: usize, key: &[u8]) -> bool {
        let queue = self.dbs.get(&db).and_then(|keys| keys.get(key));
        queue.is_some_and(|queue| queue.on_loss > 0)
    }

    /// A key appeared with a value of the type `added`, or its stream has a new entry. It is listed if a session waits
    /// for it and a session waits for that type, be it under another key.
    pub(super) fn touch(&mut self, db: usize, key: &[u8], added: Type) {
        if self.by_type[added as usize] == 0 {
            return;
        }
        let keys = self.dbs.get(&db);
        if keys.is_some_and(|keys| keys.contains_key(key)) {
            self.list(db, key);
        }
    }

    /// A key is gone, or its value was replaced. It is listed only if that ends a wait: otherwise its place in the order
    /// is that of its next appearance.
    pub(super) fn touch_gone(&mut self, db: usize, key: &[u8]) {
        if self.has_on_loss(db, key) {
            self.list(db, key);
        }
    }

    /// Every key of a database may have changed; `type_of` is what a key holds now.
    pub(super) fn touch_db(&mut self, db: usize, type_of: impl Fn(&[u8]) -> Option<Type>) {
        for (key, queue) in self.dbs.get(&db).into_iter().flatten() {
            let held = type_of(key);
            let awaited = held.is_some_and(|held| self.by_type[held as usize] > 0);
            if (queue.on_loss > 0 || awaited) && self.listed.insert((db, key.clone())) {
                self.ready.push((db, key.clone()));
            }
        }
    }

    fn list(&mut self, db: usize, key: &[u8]) {
        if self.listed.insert((db, key.into())) {
            self.ready.push((db, key.into()));
        }
    }

    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty() || !self.held.is_empty()
    }

    /// Keeps a key of [`Waiters::take_ready`] until [`Waiters::release_held`].
    pub(crate) fn hold(&mut self, db: usize, key: Box<[u8]>) {
        self.held.push((db, key));
    }

    /// The keys that were held are ready again, before those that changed since.
    pub(crate) fn release_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let since = self.take_ready();
        for (db, key) in std::mem::take(&mut self.held).into_iter().chain(since) {
            if self.listed.insert((db, key.clone())) {
                self.ready.push((db, key));
            }
        }
    }

    /// Keys that changed since the last call.
    pub(crate) fn take_ready(&mut self) -> Vec<(usize, Box<[u8]>)> {
        self.listed.clear();
        std::mem::take(&mut self.ready)
    }
}

impl Ticket {
    /// The place right behind.
    pub(crate) fn next(self) -> Self {
        Ticket(self.0 + 1)
    }
}
