//! Which connections exist and what they are called: a table with a limit, and nothing that waits.
//!
//! A link is found by what the peer calls itself. Until that is known it is found by what was dialled; but a seed may be
//! a DNS name, and a later message to it should find another node behind it. Two nodes
//! that dial each other at the same time have two links; both are read, the newer one is written to, and the other
//! is closed when it was not used for a while. Closing one of them at once would need an agreement on which, and a link
//! whose other end is gone must not win.

use super::link::Link;
use crate::core::{Authority, NodeUid};
use kumi_unison::ReconnectPolicy;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::string::String;
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;
use tokio::time::Instant;

/// Connections to and from other nodes that are kept. One more closes the one that was not used for the longest time.
pub const MAX_LINKS: usize = 64;

/// Peers that could not be reached, and for which the next attempt has to wait.
const MAX_FAILURES: usize = 256;

/// The waits after failed attempts.
const RETRY: ReconnectPolicy = ReconnectPolicy::new()
    .first_wait(Duration::from_millis(100))
    .max_wait(Duration::from_secs(1));

#[derive(Debug, Default)]
pub(super) struct LinkTable {
    by_id: BTreeMap<u64, Entry>,
    by_name: BTreeMap<Authority, u64>,
    failures: BTreeMap<Authority, Failure>,
    last_id: u64,
}

#[derive(Debug)]
struct Entry {
    link: Arc<Link>,
    used_at: Instant,
}

#[derive(Debug)]
struct Failure {
    retry_at: Instant,
    /// Attempts that failed one after the other.
    attempts: u32,
    /// What happened last, for an operator to read.
    reason: String,
}

/// The link to a peer, if there is one.
#[derive(Debug)]
pub(super) enum Way {
    /// A link, or one that is being made.
    Link(Arc<Link>),
    /// No link, and a connection may be tried.
    None,
    /// No link, and the next attempt has to wait.
    TooSoon,
}

impl LinkTable {
    /// A number no other link has.
    pub(super) fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn way_to(&mut self, name: &Authority, now: Instant) -> Way {
        if let Some(entry) = self.by_name.get(name).and_then(|id| self.by_id.get_mut(id)) {
            entry.used_at = now;
            return Way::Link(entry.link.clone());
        }
        match self.failures.get(name) {
            Some(failure) if failure.retry_at > now => Way::TooSoon,
            _ => Way::None,
        }
    }

    /// Inserts a link under an authority. The links that are returned have to be closed: they were replaced, or were the oldest
    /// of too many.
    #[must_use]
    pub(super) fn insert(
        &mut self,
        name: &Authority,
        link: Arc<Link>,
        now: Instant,
    ) -> Vec<Arc<Link>> {
        let mut surplus = Vec::new();
        while self.by_id.len() >= MAX_LINKS {
            let oldest = self.by_id.iter().min_by_key(|(_, entry)| entry.used_at);
            let Some(id) = oldest.map(|(id, _)| *id) else {
                break;
            };
            surplus.extend(self.remove(id));
        }
        self.by_name.insert(name.clone(), link.id());
        let used_at = now;
        self.by_id.insert(link.id(), Entry { link, used_at });
        surplus
    }

    /// The peer of this link calls itself so: from now on that name leads here.
    pub(super) fn settle(&mut self, id: u64, peer: &Authority) {
        if let Some(entry) = self.by_id.get(&id) {
            self.by_name.insert(peer.clone(), id);
            if let Some(dialled) = entry.link.dialled() {
                self.failures.remove(dialled);
                // An address leads to this peer for as long as the connection lasts; a name may lead to many.
                let is_name = dialled.as_str().parse::<SocketAddr>().is_err();
                if is_name && dialled != peer && self.by_name.get(dialled) == Some(&id) {
                    self.by_name.remove(dialled);
                }
            }
        }
        self.failures.remove(peer);
    }

    /// Notes that a message arrived on this link.
    pub(super) fn touch(&mut self, id: u64, now: Instant) {
        if let Some(entry) = self.by_id.get_mut(&id) {
            entry.used_at = now;
        }
    }

    /// Forgets a link. A name that led to it leads to another link of the same peer, if there is one.
    pub(super) fn remove(&mut self, id: u64) -> Option<Arc<Link>> {
        let entry = self.by_id.remove(&id)?;
        let names = self.by_name.iter().filter(|(_, target)| **target == id);
        let names: Vec<Authority> = names.map(|(name, _)| name.clone()).collect();
        for name in names {
            let other = self
                .by_id
                .values()
                .rev()
                .find(|other| other.link.is_of(&name));
            match other.map(|other| other.link.id()) {
                Some(other) => self.by_name.insert(name, other),
                None => self.by_name.remove(&name),
            };
        }
        Some(entry.link)
    }

    /// Links to a life that is over; the process there now has to be dialled anew.
    #[must_use]
    pub(super) fn of_ended(&mut self, authority: &Authority, uid: NodeUid) -> Vec<Arc<Link>> {
        let ended = |entry: &&Entry| {
            let life = entry.link.uid();
            entry.link.is_of(authority) && life.is_some_and(|life| life <= uid)
        };
        let ids: Vec<u64> = self
            .by_id
            .values()
            .filter(ended)
            .map(|e| e.link.id())
            .collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Links that were not used for this long.
    #[must_use]
    pub(super) fn unused(&mut self, since: Duration, now: Instant) -> Vec<Arc<Link>> {
        let unused = |entry: &&Entry| now.saturating_duration_since(entry.used_at) >= since;
        let ids: Vec<u64> = self
            .by_id
            .values()
            .filter(unused)
            .map(|e| e.link.id())
            .collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// All links, for the end.
    #[must_use]
    pub(super) fn drain(&mut self) -> Vec<Arc<Link>> {
        self.by_name.clear();
        let entries = core::mem::take(&mut self.by_id);
        entries.into_values().map(|entry| entry.link).collect()
    }

    /// Whether a link that is there, or was begun since then, has messages that it has not sent.
    pub(super) fn have_unsent(&self, since: Instant) -> bool {
        let mut entries = self.by_id.values();
        entries.any(|entry| entry.link.has_unsent(since))
    }

    /// Whether the last attempt to reach this peer failed.
    pub(super) fn has_failed(&self, name: &Authority) -> bool {
        self.failures.contains_key(name)
    }

    /// Notes that a peer could not be reached, and that the next attempt has to wait.
    pub(super) fn failed(&mut self, name: &Authority, reason: String, now: Instant) {
        let before = self
            .failures
            .get(name)
            .map_or(0, |failure| failure.attempts);
        let retry_at = now + RETRY.ceiling(before);
        self.note(name, retry_at, before.saturating_add(1), reason);
    }

    /// Notes that a peer was reached and is none of ours. There is nothing to wait for.
    pub(super) fn wrong(&mut self, name: &Authority, reason: String, now: Instant) {
        self.note(name, now, 1, reason);
    }

    /// Peers whose last connection attempt failed, with the error.
    pub(super) fn failures(&self) -> Vec<(Authority, String)> {
        let failures = self.failures.iter();
        failures
            .map(|(name, failure)| (name.clone(), failure.reason.clone()))
            .collect()
    }

    fn note(&mut self, name: &Authority, retry_at: Instant, attempts: u32, reason: String) {
        if self.failures.len() >= MAX_FAILURES && !self.failures.contains_key(name) {
            let first = self
                .failures
                .iter()
                .min_by_key(|(_, failure)| failure.retry_at);
            if let Some(first) = first.map(|(name, _)| name.clone()) {
                self.failures.remove(&first);
            }
        }
        let failure = Failure {
            retry_at,
            attempts,
            reason,
        };
        self.failures.insert(name.clone(), failure);
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::link::Link;
    use std::format;

    fn name(text: &str) -> Authority {
        Authority::new(text).expect("a name")
    }

    fn insert(links: &mut LinkTable, to: &str, now: Instant) -> (u64, Vec<u64>) {
        let id = links.fresh_id();
        let (link, _) = Link::new(id, Some(name(to)));
        let surplus = links.insert(&name(to), link, now);
        (id, surplus.iter().map(|link| link.id()).collect())
    }

    fn found(links: &mut LinkTable, to: &str, now: Instant) -> Option<u64> {
        match links.way_to(&name(to), now) {
            Way::Link(link) => Some(link.id()),
            Way::None | Way::TooSoon => None,
        }
    }

    #[test]
    fn one_link_too_many_closes_the_one_unused_for_longest() {
        let mut links = LinkTable::default();
        let start = Instant::now();
        for number in 0..MAX_LINKS {
            let at = start + Duration::from_millis(number as u64);
            assert!(insert(&mut links, &format!("n{number}:1"), at).1.is_empty());
        }
        let now = start + Duration::from_secs(1);
        assert_eq!(found(&mut links, "n0:1", now), Some(1));
        let (_, closed) = insert(&mut links, "another:1", now);
        assert_eq!(closed, [2], "n0 was used, so n1 is the oldest");
        assert_eq!(links.len(), MAX_LINKS);
        assert_eq!(found(&mut links, "n1:1", now), None);
    }

    #[test]
    fn the_newest_link_to_a_peer_is_used_and_the_older_one_when_it_goes() {
        let mut links = LinkTable::default();
        let now = Instant::now();
        let (older, _) = insert(&mut links, "a:1", now);
        let (newer, _) = insert(&mut links, "a:1", now);
        assert_eq!(found(&mut links, "a:1", now), Some(newer));
        links.remove(newer);
        assert_eq!(found(&mut links, "a:1", now), Some(older));
        links.remove(older);
        assert_eq!(found(&mut links, "a:1", now), None);
    }

    #[test]
    fn a_link_is_found_by_what_was_dialled_until_the_peer_has_said_who_it_is() {
        let mut links = LinkTable::default();
        let now = Instant::now();
        let (id, _) = insert(&mut links, "seed.example:1", now);
        assert_eq!(found(&mut links, "seed.example:1", now), Some(id));
        links.settle(id, &name("10.0.0.1:1"));
        assert_eq!(found(&mut links, "10.0.0.1:1", now), Some(id));
        // Others may be behind the name.
        assert!(matches!(
            links.way_to(&name("seed.example:1"), now),
            Way::None
        ));
        links.remove(id);
        assert_eq!(found(&mut links, "10.0.0.1:1", now), None);

        let (id, _) = insert(&mut links, "127.0.0.1:1", now);
        links.settle(id, &name("10.0.0.1:1"));
        for either in ["127.0.0.1:1", "10.0.0.1:1"] {
            assert_eq!(found(&mut links, either, now), Some(id));
        }
    }

    #[test]
    fn an_unreachable_peer_is_listed_with_the_reason_until_it_is_reached() {
        let mut links = LinkTable::default();
        let now = Instant::now();
        let (id, _) = insert(&mut links, "seed.example:1", now);
        for failed in ["seed.example:1", "b:1"] {
            links.failed(&name(failed), "no answer".into(), now);
        }
        links.wrong(&name("c:1"), "another cluster".into(), now);
        links.settle(id, &name("a:1"));
        let expected = [("b:1", "no answer"), ("c:1", "another cluster")];
        let expected = expected.map(|(peer, reason)| (name(peer), String::from(reason)));
        assert_eq!(links.failures(), expected);
        assert!(matches!(links.way_to(&name("c:1"), now), Way::None));
    }

    #[test]
    fn who_cannot_be_reached_is_tried_again_after_a_growing_wait() {
        let mut links = LinkTable::default();
        let mut now = Instant::now();
        let peer = name("a:1");
        let mut waits = Vec::new();
        for _ in 0..6 {
            links.failed(&peer, "no answer".into(), now);
            assert!(matches!(links.way_to(&peer, now), Way::TooSoon));
            let started = now;
            while matches!(links.way_to(&peer, now), Way::TooSoon) {
                now += Duration::from_millis(50);
            }
            waits.push((now - started).as_millis());
        }
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        for number in 0..MAX_FAILURES * 2 {
            links.failed(&name(&format!("n{number}:1")), "no answer".into(), now);
        }
        assert_eq!(links.failures.len(), MAX_FAILURES);
    }

    #[test]
    fn a_link_to_an_ended_life_goes_and_one_to_the_next_life_stays() {
        let mut links = LinkTable::default();
        let now = Instant::now();
        let mut ids = Vec::new();
        for uid in [5, 6] {
            let (id, _) = insert(&mut links, "a:1", now);
            let link = &links.by_id[&id].link;
            link.introduce(name("a:1"), NodeUid::from_raw(uid));
            ids.push(id);
        }
        let ended = links.of_ended(&name("a:1"), NodeUid::from_raw(5));
        assert_eq!(
            ended.iter().map(|link| link.id()).collect::<Vec<_>>(),
            ids[..1]
        );
        assert_eq!(found(&mut links, "a:1", now), Some(ids[1]));
    }

    #[test]
    fn unused_links_are_closed() {
        let mut links = LinkTable::default();
        let start = Instant::now();
        let (unused, _) = insert(&mut links, "a:1", start);
        let (used, _) = insert(&mut links, "b:1", start);
        let later = start + Duration::from_secs(30);
        links.touch(used, later);
        let gone = links.unused(Duration::from_secs(30), later);
        assert_eq!(
            gone.iter().map(|link| link.id()).collect::<Vec<_>>(),
            [unused]
        );
        assert_eq!(links.len(), 1);
        assert_eq!(links.drain().len(), 1);
    }
}
