//! The subscribers of each channel and pattern.
//!
//! Only an index: encoding a message and appending it to the subscribers' output
//! is the store's work, because the store owns the sessions.

use crate::base::glob;
use crate::base::ids::SessionKey;
use std::collections::BTreeMap;

type Subscribers = BTreeMap<Box<[u8]>, Listeners>;

/// The subscribers of a name.
#[derive(Debug)]
struct Listeners {
    /// Length of the literal prefix of a pattern. Every notification is matched against every pattern.
    literal: usize,
    sessions: Vec<SessionKey>,
}

/// The three kinds of subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    ShardChannel,
}

/// The beginning of all channels of keyspace notifications: `__keyspace@<db>__:` and `__keyevent@<db>__:`.
const EVENT_PREFIX: &[u8] = b"__key";

/// Whether a notification may reach the subscribers of a name.
fn may_match_events(kind: Kind, name: &[u8]) -> bool {
    match kind {
        Kind::Channel => name.starts_with(EVENT_PREFIX),
        Kind::Pattern => {
            let (prefix, _) = name.split_at(glob::literal_prefix(name));
            EVENT_PREFIX.starts_with(prefix) || prefix.starts_with(EVENT_PREFIX)
        }
        Kind::ShardChannel => false,
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pubsub {
    channels: Subscribers,
    patterns: Subscribers,
    shard_channels: Subscribers,
    /// How many channels and patterns a notification may match.
    event_names: usize,
}

impl Pubsub {
    fn book(&self, kind: Kind) -> &Subscribers {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::ShardChannel => &self.shard_channels,
        }
    }

    fn book_mut(&mut self, kind: Kind) -> &mut Subscribers {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::ShardChannel => &mut self.shard_channels,
        }
    }

    /// The caller has checked that the session is not subscribed yet.
    pub(crate) fn add(&mut self, kind: Kind, name: &[u8], session: SessionKey) {
        let book = self.book_mut(kind);
        if let Some(listeners) = book.get_mut(name) {
            listeners.sessions.push(session);
            return;
        }
        let listeners = Listeners {
            literal: glob::literal_prefix(name),
            sessions: vec![session],
        };
        book.insert(name.into(), listeners);
        self.event_names += usize::from(may_match_events(kind, name));
    }

    pub(crate) fn remove(&mut self, kind: Kind, name: &[u8], session: SessionKey) {
        let book = self.book_mut(kind);
        if let Some(listeners) = book.get_mut(name) {
            listeners.sessions.retain(|&other| other != session);
            if listeners.sessions.is_empty() {
                book.remove(name);
                self.event_names -= usize::from(may_match_events(kind, name));
            }
        }
    }

    /// Whether there is a subscription that a notification may match.
    pub(crate) fn has_event_subscribers(&self) -> bool {
        self.event_names > 0
    }

    pub(crate) fn subscribers(&self, kind: Kind, name: &[u8]) -> &[SessionKey] {
        let listeners = self.book(kind).get(name);
        listeners.map_or(&[], |listeners| listeners.sessions.as_slice())
    }

    /// Patterns that match `channel`, with their subscribers.
    pub(crate) fn matching(&self, channel: &[u8]) -> impl Iterator<Item = (&[u8], &[SessionKey])> {
        self.patterns
            .iter()
            .filter(move |(pattern, listeners)| {
                glob::matches_from(pattern, listeners.literal, channel)
            })
            .map(|(pattern, listeners)| (&**pattern, listeners.sessions.as_slice()))
    }

    /// Names with at least one subscriber.
    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = &[u8]> {
        self.book(kind).keys().map(|name| &**name)
    }

    pub(crate) fn pattern_count(&self) -> usize {
        self.patterns.len()
    }
}
