//! Sending what `data/keyspace/tracking.rs` found: invalidations of keys that clients may have cached.
//!
//! The order is Redis's. A session gets the invalidations of its own command when the command, transaction or script has
//! replied; other sessions get them at once. Broadcasts are collected and sent at the end of a turn of the event loop,
//! one message per prefix. A session in RESP3 gets a push; one in RESP2 names another session that is subscribed to
//! `__redis__:invalidate` (or to anything: Redis does not look).

use super::Store;
use super::ctx::Ctx;
use crate::base::ids::CommandId;
use crate::base::ids::SessionKey;
use crate::data::keyspace::Invalidated;
use crate::engine::command::flag;
use crate::engine::output::Outputs;
use crate::engine::session::CacheTracking;
use kumi_resp::{Args, Protocol, encode};
use std::collections::BTreeMap;

/// The channel in messages to a RESP2 session.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Keys of the tracking table that are evicted at a time; more each time in a row that it was not enough.
const EVICTIONS: usize = 100;

/// Once no session tracks, what was tracked is kept this long: a client that turns tracking off and on again still gets
/// invalidations of the keys it has read before, as in Redis.
const KEPT_MS: u64 = 10_000;

/// The session whose command is running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub(crate) session: SessionKey,
    /// The command was called by a script.
    pub(crate) in_script: bool,
}

/// What waits until the command that caused it has replied, and how far eviction is.
#[derive(Debug, Default)]
pub(crate) struct Invalidations {
    /// Keys to invalidate for the session whose command changed them; none stands for all keys.
    pending: Vec<(SessionKey, Option<Box<[u8]>>)>,
    /// How often in a row eviction was not enough.
    short: usize,
    /// Since when no session tracks, in Unix milliseconds.
    unused_since_ms: Option<u64>,
}

impl Invalidations {
    /// Whether a command has yet to send what it changed itself. It may have ended tracking before.
    #[inline]
    pub(super) fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// A session is gone.
    pub(super) fn forget(&mut self, key: SessionKey) {
        self.pending.retain(|(session, _)| *session != key);
    }
}

/// What is invalidated.
#[derive(Clone, Copy, Debug)]
enum What<'a> {
    Key(&'a [u8]),
    /// An encoded array of keys.
    Keys(&'a [u8]),
    /// Everything, after a flush.
    All,
}

impl Ctx<'_> {
    /// Remembers the keys of a command that has read them, for the session that runs it.
    #[cold]
    pub(super) fn remember_reads(&mut self, id: CommandId, args: Args<'_>) {
        let row = self.store.index.get(id).row;
        // Of a script, the commands it calls are remembered and not the keys it declares.
        if row.has(flag::PUBSUB) || row.script.is_some() {
            return;
        }
        let session = self.session;
        let wanted = self.session().tracking.as_ref();
        if !wanted.is_some_and(|tracking| tracking.remembers_reads()) {
            return;
        }
        for spec in row.keys.iter().filter(|spec| spec.names_keys()) {
            for position in spec.positions(args).into_iter().flatten() {
                if let Some(key) = args.get(position) {
                    self.store.keyspace.interest.tracking.remember(key, session);
                }
            }
        }
    }

    /// Starts tracking for this session, or changes how it tracks.
    pub(crate) fn track(&mut self, wanted: CacheTracking, prefixes: &[&[u8]]) {
        let key = self.session;
        let tracking = &mut self.store.keyspace.interest.tracking;
        let Some(session) = self.store.clients.sessions.get_mut(key) else {
            return;
        };
        let old = session.tracking.take();
        if old.is_none() {
            tracking.clients += 1;
        }
        let (caching, mut named) =
            old.map_or_else(Default::default, |old| (old.caching, old.prefixes));
        if wanted.bcast {
            let all: [&[u8]; 1] = [b""];
            let prefixes = if prefixes.is_empty() { &all } else { prefixes };
            for &prefix in prefixes {
                if named.insert(prefix.into()) {
                    session.count_name(prefix);
                    tracking.add_prefix(prefix, key);
                }
            }
        }
        session.tracking = Some(Box::new(CacheTracking {
            caching,
            prefixes: named,
            ..wanted
        }));
    }

    /// Ends tracking for this session.
    pub(crate) fn stop_tracking(&mut self) {
        self.store.stop_tracking(self.session);
    }

    /// All data is gone: every tracking session drops its whole cache.
    pub(crate) fn invalidate_everything(&mut self) {
        if self.store.keyspace.interest.tracking.is_on() {
            let outputs = self.reply.outputs();
            self.store.invalidate_everything(outputs, self.session);
        }
    }
}

impl Store {
    /// Ends tracking for a session. The keys it has read stay in the table.
    pub(super) fn stop_tracking(&mut self, key: SessionKey) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        let Some(old) = session.tracking.take() else {
            return;
        };
        let tracking = &mut self.keyspace.interest.tracking;
        tracking.clients -= 1;
        for prefix in &old.prefixes {
            session.uncount_name(prefix);
            tracking.remove_prefix(prefix, key);
        }
    }

    /// Sends what a changed key calls for, or keeps it until the running command has replied.
    pub(super) fn deliver_invalidation(
        &mut self,
        outputs: &mut Outputs,
        invalidated: &Invalidated,
        actor: Option<Actor>,
    ) {
        let Invalidated {
            key: name,
            readers,
            broadcast,
            by_command,
        } = invalidated;
        if *broadcast {
            // As in Redis, NOLOOP does not cover what a script of the session changed.
            let author = actor.filter(|actor| *by_command && !actor.in_script);
            let author = author.map(|actor| actor.session);
            self.keyspace.interest.tracking.keep(name, author);
        }
        for reader in readers.iter() {
            let session = self.clients.sessions.get(reader);
            let Some(tracking) = session.and_then(|session| session.tracking.as_ref()) else {
                continue;
            };
            let own = actor.is_some_and(|actor| actor.session == reader);
            if tracking.bcast || own && tracking.noloop {
                continue;
            }
            if own {
                let pending = &mut self.outbox.invalidations.pending;
                pending.push((reader, Some(name.clone())));
            } else {
                self.send_invalidation(outputs, reader, What::Key(name));
            }
        }
    }

    fn invalidate_everything(&mut self, outputs: &mut Outputs, running: SessionKey) {
        let sessions = self.clients.sessions.iter();
        let tracking = sessions.filter(|session| session.tracking.is_some());
        // In the order of their ids, as in Redis: several sessions may redirect to one.
        let mut keys: Vec<(u64, SessionKey)> =
            tracking.map(|session| (session.id, session.key)).collect();
        keys.sort_unstable_by_key(|(id, _)| *id);
        for (_, key) in keys {
            if key == running {
                self.outbox.invalidations.pending.push((key, None));
            } else {
                self.send_invalidation(outputs, key, What::All);
            }
        }
        self.keyspace.interest.tracking.clear();
    }

    /// The command of a session has replied: what it changed itself is sent now, and CLIENT CACHING ends with the
    /// command it was meant for.
    #[cold]
    pub(super) fn end_tracked_command(
        &mut self,
        outputs: &mut Outputs,
        key: SessionKey,
        id: Option<CommandId>,
    ) {
        let parent = id.and_then(|id| self.index.get(id).parent);
        let container = parent.map(|parent| self.index.get(parent).row);
        let keeps_caching = container.is_some_and(|row| row.has(flag::KEEPS_CACHING));
        if let Some(session) = self.clients.sessions.get_mut(key)
            && let Some(tracking) = &mut session.tracking
            && !keeps_caching
            && session.transaction.multi.is_none()
        {
            tracking.caching = false;
        }
        if self.outbox.invalidations.pending.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.outbox.invalidations.pending);
        let (own, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(session, _)| *session == key);
        self.outbox.invalidations.pending = others;
        for (session, name) in &own {
            let what = name.as_deref().map_or(What::All, What::Key);
            self.send_invalidation(outputs, *session, what);
        }
    }

    /// The end of a turn of the event loop, before its output is written: broadcasts are sent.
    pub fn end_turn(&mut self, outputs: &mut Outputs) {
        if !self.keyspace.interest.tracking.has_broadcasts() {
            return;
        }
        for broadcast in self.keyspace.interest.tracking.take_broadcasts() {
            let all = encode_keys(&broadcast.changed, None);
            for key in broadcast.sessions {
                let session = self.clients.sessions.get(key);
                let tracking = session.and_then(|session| session.tracking.as_ref());
                if tracking.is_some_and(|tracking| tracking.noloop) {
                    if let Some(others) = encode_keys(&broadcast.changed, Some(key)) {
                        self.send_invalidation(outputs, key, What::Keys(&others));
                    }
                } else if let Some(all) = &all {
                    self.send_invalidation(outputs, key, What::Keys(all));
                }
            }
        }
    }

    /// Evicts from the table of tracked keys what is over `tracking-table-max-keys`.
    #[cold]
    pub(super) fn limit_tracking(&mut self, outputs: &mut Outputs) {
        let limit = self.config.settings().tracking_table_max_keys;
        if limit == 0 || self.keyspace.interest.tracking.keys() <= limit {
            self.outbox.invalidations.short = 0;
            return;
        }
        for _ in 0..EVICTIONS * (self.outbox.invalidations.short + 1) {
            let Some((name, readers)) = self.keyspace.interest.tracking.evict() else {
                break;
            };
            for reader in readers.iter() {
                let session = self.clients.sessions.get(reader);
                let tracking = session.and_then(|session| session.tracking.as_ref());
                if tracking.is_some_and(|tracking| !tracking.bcast) {
                    self.send_invalidation(outputs, reader, What::Key(&name));
                }
            }
            if self.keyspace.interest.tracking.keys() <= limit {
                self.outbox.invalidations.short = 0;
                return;
            }
        }
        self.outbox.invalidations.short += 1;
    }

    /// Periodic work: the limit, and the end of a table that no session uses.
    pub(super) fn tend_tracking(&mut self, outputs: &mut Outputs, now_ms: u64) {
        if !self.keyspace.interest.tracking.is_on() {
            return;
        }
        self.limit_tracking(outputs);
        if self.keyspace.interest.tracking.clients > 0 {
            self.outbox.invalidations.unused_since_ms = None;
            return;
        }
        let since_ms = *self
            .outbox
            .invalidations
            .unused_since_ms
            .get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) >= KEPT_MS {
            self.keyspace.interest.tracking.clear();
        }
    }

    /// Sends one invalidation of a session, to itself or to where it redirects. As in Redis, a session that ended
    /// tracking in the same transaction still gets those of its own changes.
    fn send_invalidation(&mut self, outputs: &mut Outputs, key: SessionKey, what: What<'_>) {
        let Some(session) = self.clients.sessions.get(key) else {
            return;
        };
        let own_protocol = session.protocol;
        let tracking = session.tracking.as_ref();
        let redirect = tracking.and_then(|tracking| tracking.redirect);
        let target = redirect.map_or(key, |(_, receiver)| receiver);
        let Some(receiver) = self.clients.sessions.get(target) else {
            if let Some((id, _)) = redirect {
                self.mark_broken(outputs, key, id);
            }
            return;
        };
        let mut message = Vec::new();
        match receiver.protocol {
            Protocol::Resp3 => {
                encode::push(&mut message, Protocol::Resp3, 2);
                encode::bulk(&mut message, b"invalidate");
            }
            Protocol::Resp2 if redirect.is_some() && !receiver.subscriptions.is_empty() => {
                encode::array(&mut message, 3);
                encode::bulk(&mut message, b"message");
                encode::bulk(&mut message, CHANNEL);
            }
            // RESP2 has no pushes: the session cannot be told.
            Protocol::Resp2 => return,
        }
        match what {
            What::Key(name) => {
                encode::array(&mut message, 1);
                encode::bulk(&mut message, name);
            }
            What::Keys(encoded) => message.extend_from_slice(encoded),
            // As in Redis, the null is the tracking session's, whatever the receiver speaks.
            What::All => encode::null(&mut message, own_protocol),
        }
        outputs.push(target, &message);
        self.list_output(outputs, target);
    }

    /// The session that invalidations were redirected to is gone.
    fn mark_broken(&mut self, outputs: &mut Outputs, key: SessionKey, id: u64) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        if let Some(tracking) = &mut session.tracking {
            tracking.broken_redirect = true;
        }
        if session.protocol == Protocol::Resp3 {
            let mut message = Vec::new();
            encode::push(&mut message, Protocol::Resp3, 2);
            encode::bulk(&mut message, b"tracking-redir-broken");
            encode::integer(&mut message, id.cast_signed());
            outputs.push(key, &message);
            self.list_output(outputs, key);
        }
    }
}

/// An array of changed keys, without those that `except` changed last; none if nothing is left.
fn encode_keys(
    changed: &BTreeMap<Box<[u8]>, Option<SessionKey>>,
    except: Option<SessionKey>,
) -> Option<Vec<u8>> {
    let shown = || {
        let keys = changed.iter();
        keys.filter(|(_, author)| except.is_none() || **author != except)
    };
    let count = shown().count();
    let mut array = Vec::new();
    encode::array(&mut array, count);
    for (key, _) in shown() {
        encode::bulk(&mut array, key);
    }
    (count > 0).then_some(array)
}

#[cfg(test)]
mod tests;
