//! The clients of a store: their sessions, what they wait for, who monitors, the pause they are
//! under.
//!
//! Nothing here knows the data or writes output. The engine passes in the configuration and the
//! clock readings a decision needs.

use crate::base::ids::SessionKey;
use crate::config::Settings;
use crate::engine::session::{
    Blocked, BlockedOn, Peer, ReplyBuffer, ResizePolicy, Session, Sessions,
};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

/// What a client may have waiting before it has authenticated.
const UNAUTHENTICATED_OUTPUT_BYTES: u64 = 17 * 1024;
/// After a line about HTTP in the log, the next one waits for this long.
const HTTP_LINE_NS: u64 = 60 * 1_000_000_000;
/// What an argument that is still arriving counts at most: the lengths that all clients announce add up without an overflow.
const ANNOUNCED_LIMIT_BYTES: usize = 1 << 44;

/// CLIENT PAUSE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// Its end, in nanoseconds of the steady clock.
    pub(crate) until_ns: u64,
    pub(crate) writes_only: bool,
}

/// Sessions with a command held back by a pause, in the order they came.
#[derive(Debug, Default)]
pub(super) struct Held {
    order: BTreeMap<u64, SessionKey>,
    places: BTreeMap<SessionKey, u64>,
}

impl Held {
    fn push(&mut self, key: SessionKey) {
        self.remove(key);
        let last = self.order.last_key_value();
        let place = last.map_or(0, |(&place, _)| place + 1);
        self.order.insert(place, key);
        self.places.insert(key, place);
    }

    fn remove(&mut self, key: SessionKey) {
        if let Some(place) = self.places.remove(&key) {
            self.order.remove(&place);
        }
    }
}

impl IntoIterator for Held {
    type Item = SessionKey;
    type IntoIter = btree_map::IntoValues<u64, SessionKey>;

    fn into_iter(self) -> Self::IntoIter {
        self.order.into_values()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) sessions: Sessions,
    /// Sessions that MONITOR shows commands to.
    pub(crate) monitors: Vec<SessionKey>,
    pub(crate) pause: Option<Pause>,
    pub(super) held: Held,
    /// Sessions that wait for the append-only file.
    pub(super) aof_waiters: BTreeSet<SessionKey>,
    /// The default user needs no password.
    pub(super) open: bool,
    /// How many sessions wait for something.
    pub(crate) blocked: usize,
    /// Blocked sessions by the time their wait ends, in nanoseconds of the steady clock.
    wait_deadlines: BTreeSet<(u64, SessionKey)>,
    /// No session with less output waiting is over a limit.
    least_output_limit: usize,
    /// How the sizes that CLIENT LIST shows of output buffers change.
    pub(crate) reply_buffers: ResizePolicy,
    /// What all sessions hold, as of each one's last run.
    bytes: usize,
    /// What was announced to all sessions and has not arrived, as of each one's last run.
    announced: usize,
    /// When the log last said that a client speaks HTTP, in nanoseconds of the steady clock.
    http_logged_ns: Option<u64>,
}

impl Clients {
    /// Copies what is needed at hand out of the configuration.
    pub(super) fn load_settings(&mut self, settings: &Settings) {
        let limits = &settings.output_limits;
        let bounds =
            [limits.normal, limits.pubsub].map(|limit| [limit.hard_bytes, limit.soft_bytes]);
        let bounds = bounds.into_iter().flatten().filter(|&bytes| bytes != 0);
        let least = bounds.map(ReplyBuffer::least_allowed_output);
        self.least_output_limit = least.fold(UNAUTHENTICATED_OUTPUT_BYTES as usize, usize::min);
    }

    /// Makes a session one that replays an AOF: no limit on clients applies to it.
    pub(super) fn hide(&mut self, key: SessionKey) {
        self.sessions.hide(key);
        self.count_bytes(key);
    }

    pub(super) fn add(&mut self, peer: Peer, user_name: Arc<[u8]>, now_ms: u64) -> SessionKey {
        let key = self.sessions.add(peer, self.open, user_name, now_ms);
        self.count_bytes(key);
        key
    }

    /// Removes a session. Its watches, subscriptions and waits are the engine's to end.
    pub(super) fn remove(&mut self, key: SessionKey) -> Option<Box<Session>> {
        self.monitors.retain(|&other| other != key);
        let session = self.sessions.remove(key)?;
        self.bytes -= session.memory.counted_bytes;
        self.announced -= session.memory.counted_announced;
        Some(session)
    }

    /// What all sessions hold, without their output.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The same with what was announced and has not arrived.
    pub(crate) fn claimed_bytes(&self) -> usize {
        self.bytes + self.announced
    }

    /// Brings a session's share of the total up to date.
    #[inline]
    pub(super) fn count_bytes(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(key) {
            let (bytes, announced) = if session.hidden {
                (0, 0)
            } else {
                let announced = session.memory.input.announced.min(ANNOUNCED_LIMIT_BYTES);
                (session.heap_bytes(), announced)
            };
            self.bytes = self.bytes - session.memory.counted_bytes + bytes;
            session.memory.counted_bytes = bytes;
            self.announced = self.announced - session.memory.counted_announced + announced;
            session.memory.counted_announced = announced;
        }
    }

    /// Leaves a session waiting.
    pub(super) fn block(&mut self, key: SessionKey, blocked: Blocked) {
        if matches!(blocked.on, BlockedOn::Pause(_)) {
            self.held.push(key);
        }
        if matches!(blocked.on, BlockedOn::Aof(_)) {
            self.aof_waiters.insert(key);
        }
        if let Some(until_ns) = blocked.until_ns {
            self.wait_deadlines.insert((until_ns, key));
        }
        if let Some(session) = self.sessions.get_mut(key) {
            session.blocked = Some(blocked);
            self.blocked += 1;
            self.count_bytes(key);
        }
    }

    /// A wait has ended, or its session has.
    pub(super) fn forget_wait(&mut self, key: SessionKey, blocked: &Blocked) {
        self.blocked -= 1;
        if matches!(blocked.on, BlockedOn::Pause(_)) {
            self.held.remove(key);
        }
        if matches!(blocked.on, BlockedOn::Aof(_)) {
            self.aof_waiters.remove(&key);
        }
        if let Some(until_ns) = blocked.until_ns {
            self.wait_deadlines.remove(&(until_ns, key));
        }
    }

    /// When the first wait ends, in nanoseconds of the steady clock.
    pub(super) fn first_wait_end(&self) -> Option<u64> {
        self.wait_deadlines.first().map(|&(until_ns, _)| until_ns)
    }

    /// The session whose wait is over, if there is one.
    pub(super) fn overdue_wait(&self, now_ns: u64) -> Option<SessionKey> {
        let &(until_ns, key) = self.wait_deadlines.first()?;
        (until_ns <= now_ns).then_some(key)
    }

    /// Asks for the end of a pause. It ends when the running command has, not inside it.
    pub(crate) fn stop_pause(&mut self) {
        if let Some(pause) = &mut self.pause {
            pause.until_ns = 0;
            pause.writes_only = true;
        }
    }

    /// Whether a session may do more than authenticate: it has, or no password is asked for now.
    pub(crate) fn is_trusted(&self, key: SessionKey) -> bool {
        let session = self.sessions.get(key);
        session.is_none_or(|session| session.login.is_trusted(self.open))
    }

    /// Whether the log should say now that a client speaks HTTP: once a minute, because clients must not be able to fill
    /// it.
    pub(super) fn may_log_http(&mut self, now_ns: u64) -> bool {
        let due = self
            .http_logged_ns
            .is_none_or(|logged_ns| now_ns.saturating_sub(logged_ns) > HTTP_LINE_NS);
        if due {
            self.http_logged_ns = Some(now_ns);
        }
        due
    }

    /// Whether this much output waiting may be over a limit. It is not for nearly every reply.
    #[inline]
    pub(super) fn may_exceed_limit(&self, pending: usize) -> bool {
        pending > self.least_output_limit
    }

    /// Whether a session with this much output waiting has to be closed. Starts and ends the time
    /// it may spend above the soft limit.
    pub(super) fn exceeds_limit(
        &mut self,
        key: SessionKey,
        pending: usize,
        settings: &Settings,
        now_ms: u64,
    ) -> bool {
        let open = self.open;
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        let budget = output_budget(session, open, settings);
        let limit = settings.output_limits.of(session.class());
        let mut over_soft = false;
        let soft = session.memory.reply_buffer.allowed_output(limit.soft_bytes);
        if limit.soft_bytes != 0 && pending > soft {
            let since_ms = *session.memory.soft_limit_since_ms.get_or_insert(now_ms);
            over_soft = now_ms.saturating_sub(since_ms) > limit.soft_seconds.saturating_mul(1000);
        } else {
            session.memory.soft_limit_since_ms = None;
        }
        pending > budget || over_soft
    }
}

/// How many bytes a session may have waiting: the hard limit of its class and its first buffer, or
/// less before it has authenticated. `open` says that no password is needed.
#[inline]
pub(super) fn output_budget(session: &Session, open: bool, settings: &Settings) -> usize {
    if session.hidden {
        return usize::MAX;
    }
    let hard = match settings.output_limits.of(session.class()).hard_bytes {
        0 => usize::MAX,
        bytes => session.memory.reply_buffer.allowed_output(bytes),
    };
    if session.login.is_trusted(open) {
        hard
    } else {
        hard.min(UNAUTHENTICATED_OUTPUT_BYTES as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Clients;
    use crate::engine::session::InputUse;
    use crate::testing::Lab;

    #[test]
    fn a_held_session_that_leaves_is_forgotten() {
        let mut lab = Lab::new();
        lab.run("CLIENT PAUSE 100000 WRITE");
        for _ in 0..10 {
            let client = lab.connect();
            lab.run_as(client, "SET a 1");
            assert_eq!(lab.store.clients.held.order.len(), 1);
            lab.store.disconnect(client);
            let held = &lab.store.clients.held;
            assert!(held.order.is_empty() && held.places.is_empty());
        }
    }

    #[test]
    fn held_commands_run_in_the_order_they_came() {
        let mut lab = Lab::new();
        let [first, second, third, fourth] = [(); 4].map(|()| lab.connect());
        lab.run("CLIENT PAUSE 100000 WRITE");
        lab.run_as(third, "RPUSH l third");
        lab.run_as(fourth, "RPUSH l fourth");
        lab.run_as(first, "RPUSH l first");
        lab.store.disconnect(fourth);
        lab.run_as(second, "RPUSH l second");
        lab.run("CLIENT UNPAUSE");
        lab.advance_ms(1);
        let expected = "*3\r\n$5\r\nthird\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n";
        lab.check(&[("LRANGE l 0 -1", expected)]);
        assert!(lab.store.clients.held.order.is_empty());
    }

    #[test]
    fn http_is_logged_once_a_minute() {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut clients = Clients::default();
        let logged = [5, 6, 65, 66, 67, 126, 127].map(|s| clients.may_log_http(s * SECOND_NS));
        assert_eq!(logged, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn decoded_arguments_count_as_memory_of_their_session() {
        let mut lab = Lab::new();
        let before = lab.store.clients.bytes();
        let input = InputUse {
            used: 1000,
            args: 1_000_000,
            ..InputUse::default()
        };
        lab.store.note_leftover(lab.client, input);
        assert!(lab.store.clients.bytes() >= before + 1_001_000);
        lab.store.note_leftover(lab.client, InputUse::default());
        assert_eq!(lab.store.clients.bytes(), before);
    }
}
