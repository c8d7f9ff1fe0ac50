//! The subscribers of each channel and pattern.
//!
//! Only an index: encoding a message and appending it to the subscribers' output
//! is the store's work, because the store owns the sessions.

use crate::glob;
use crate::session::SessionKey;
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

#[derive(Debug, Default)]
pub(crate) struct Pubsub {
    channels: Subscribers,
    patterns: Subscribers,
    shard_channels: Subscribers,
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
        let listeners = self.book_mut(kind).entry(name.into());
        let new = || Listeners {
            literal: glob::literal_prefix(name),
            sessions: Vec::new(),
        };
        listeners.or_insert_with(new).sessions.push(session);
    }

    pub(crate) fn remove(&mut self, kind: Kind, name: &[u8], session: SessionKey) {
        let book = self.book_mut(kind);
        if let Some(listeners) = book.get_mut(name) {
            listeners.sessions.retain(|&other| other != session);
            if listeners.sessions.is_empty() {
                book.remove(name);
            }
        }
    }

    /// There is no subscription that a notification could match.
    pub(crate) fn is_silent(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty()
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
