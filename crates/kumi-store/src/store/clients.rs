//! The clients of a store: their sessions, what they wait for, who monitors, the pause they are
//! under.
//!
//! Nothing here knows the data or writes output. The engine passes in the configuration and the
//! clock readings a decision needs.

use crate::config::Settings;
use crate::session::{Blocked, BlockedOn, Peer, ResizePolicy, Session, SessionKey, Sessions};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What a client may have waiting before it has authenticated.
const UNAUTHENTICATED_OUTPUT_BYTES: u64 = 17 * 1024;

/// CLIENT PAUSE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// Its end, in nanoseconds of the steady clock.
    pub(crate) until_ns: u64,
    pub(crate) writes_only: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) sessions: Sessions,
    /// Sessions that MONITOR shows commands to.
    pub(crate) monitors: Vec<SessionKey>,
    pub(crate) pause: Option<Pause>,
    /// Commands that write are held: a snapshot has too much to write.
    pub(super) hold_writes: bool,
    /// Sessions with a command held back by a pause, in the order they came.
    pub(super) held: VecDeque<SessionKey>,
    /// Sessions that wait for the append-only file.
    pub(super) log_waiters: BTreeSet<SessionKey>,
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
}

impl Clients {
    /// Copies what is needed at hand out of the configuration.
    pub(super) fn load_settings(&mut self, settings: &Settings) {
        let limits = &settings.output_limits;
        let bounds =
            [limits.normal, limits.pubsub].map(|limit| [limit.hard_bytes, limit.soft_bytes]);
        let least = bounds.into_iter().flatten().filter(|&bytes| bytes != 0);
        let least = least.fold(UNAUTHENTICATED_OUTPUT_BYTES, u64::min);
        self.least_output_limit = usize::try_from(least).unwrap_or(usize::MAX);
    }

    /// Makes a session one that replays a log: no limit on clients applies to it.
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
        self.bytes -= session.counted_bytes;
        Some(session)
    }

    /// What all sessions hold, without their output.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Brings a session's share of the total up to date.
    #[inline]
    pub(super) fn count_bytes(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(key) {
            let bytes = if session.hidden {
                0
            } else {
                session.heap_bytes()
            };
            self.bytes = self.bytes - session.counted_bytes + bytes;
            session.counted_bytes = bytes;
        }
    }

    /// Leaves a session waiting.
    pub(super) fn block(&mut self, key: SessionKey, blocked: Blocked) {
        if matches!(blocked.on, BlockedOn::Pause(_)) {
            self.held.push_back(key);
        }
        if matches!(blocked.on, BlockedOn::Log(_)) {
            self.log_waiters.insert(key);
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
        if matches!(blocked.on, BlockedOn::Log(_)) {
            self.log_waiters.remove(&key);
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
        session.is_none_or(|session| session.authenticated) || self.open
    }

    /// Whether this much output waiting may be over a limit. It is not for nearly every reply.
    #[inline]
    pub(super) fn may_exceed_limit(&self, pending: usize) -> bool {
        pending > self.least_output_limit
    }

    /// How many bytes a session may have waiting: the hard limit of its class, or less before it
    /// has authenticated.
    pub(super) fn output_budget(&self, key: SessionKey, settings: &Settings) -> usize {
        let Some(session) = self.sessions.get(key) else {
            return 0;
        };
        if session.hidden {
            return usize::MAX;
        }
        let hard = match settings.output_limits.of(session.class()).hard_bytes {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        if session.authenticated || self.open {
            hard
        } else {
            hard.min(UNAUTHENTICATED_OUTPUT_BYTES as usize)
        }
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
        let budget = self.output_budget(key, settings);
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        let limit = settings.output_limits.of(session.class());
        let mut over_soft = false;
        if limit.soft_bytes != 0 && pending as u64 > limit.soft_bytes {
            let since_ms = *session.soft_limit_since_ms.get_or_insert(now_ms);
            over_soft = now_ms.saturating_sub(since_ms) > limit.soft_seconds.saturating_mul(1000);
        } else {
            session.soft_limit_since_ms = None;
        }
        pending > budget || over_soft
    }
}
