//! The engine's outside: sessions come and go, requests are executed, time passes.
//!
//! Order of calls for a front: `connect`, then for each request `execute` with the front's
//! [`Outputs`]; after a batch, write what those hold and report it with `written`; take `effects`
//! and carry them out; call `poll` when `next_deadline` is reached. Nothing here blocks, reads a
//! clock or keeps state outside the store.

use crate::batch::Planned;
use crate::cmd;
use crate::command::{CommandId, CommandIndex};
use crate::config::{Config, NotifyFlags};
use crate::host::{EventLoop, Host, Now};
use crate::keyspace::{DataLimits, Garbage, Keyspace};
use crate::latency::LatencyMonitor;
use crate::measure::Meter;
use crate::output::Outputs;
use crate::pubsub::{Kind, Pubsub};
use crate::session::{InputUse, Peer, Session, SessionKey, Sessions};
use crate::slowlog::SlowLog;
use crate::stats::Stats;
use kumi_resp::{Limits, ProtocolError, encode};
use std::collections::{BTreeSet, VecDeque};

/// How a request left its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// Answered; the next request may be decoded.
    Done,
    /// The session waits. Decode nothing more for it until [`Effect::Resume`].
    Blocked,
    /// Flush the output, then close.
    Close,
}

/// How the server is asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownRequest {
    /// Stop without waiting for anything.
    pub now: bool,
    /// Stop even if something cannot be finished.
    pub force: bool,
}

/// Something for the front to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Effect {
    /// The session is no longer blocked: go on decoding what it sent.
    Resume(SessionKey),
    /// Close the connection without flushing.
    Close(SessionKey),
    /// Close the connection once its output is flushed.
    CloseAfterFlush(SessionKey),
    /// Stop the server.
    Shutdown(ShutdownRequest),
    /// Drop this on a thread that may take its time.
    Discard(Garbage),
}

/// CLIENT PAUSE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) until_ms: u64,
    pub(crate) writes_only: bool,
}

/// Every session is looked at this often: seldom, because there may be many.
const SWEEP_MS: u64 = 1000;
/// A slice of active expiry ends after this long.
const EXPIRY_SLICE_NS: u64 = 1_000_000;
/// What a client may have waiting before it has authenticated.
const UNAUTHENTICATED_OUTPUT_BYTES: u64 = 17 * 1024;

/// The engine.
#[derive(Debug)]
pub struct Store {
    pub(crate) config: Config,
    pub(crate) index: CommandIndex,
    pub(crate) keyspace: Keyspace,
    pub(crate) sessions: Sessions,
    pub(crate) pubsub: Pubsub,
    pub(crate) stats: Stats,
    pub(crate) slowlog: SlowLog,
    pub(crate) latency: LatencyMonitor,
    pub(crate) monitors: Vec<SessionKey>,
    pub(crate) pause: Option<Pause>,
    pub(crate) rng: fastrand::Rng,
    /// The last reading of the clocks.
    pub(crate) now: Now,
    pub(crate) started: Now,
    pub(crate) run_id: String,
    /// A long command is running and others are being served meanwhile.
    pub(crate) busy: bool,
    /// Waiting commands are being executed again.
    pub(crate) serving_ready: bool,
    /// Requests that are decoded and not executed yet.
    pub(crate) plan: Vec<Planned>,
    /// A run of requests is being executed.
    pub(crate) in_batch: bool,
    pub(crate) meter: Meter,
    /// Commands at least this slow are logged; copied from the configuration.
    pub(crate) slow_ns: u64,
    pub(crate) blocked: usize,
    /// Sessions with a command held back by a pause, in the order they came.
    pub(crate) held: VecDeque<SessionKey>,
    /// No session with less output waiting is over a limit.
    least_output_limit: usize,
    effects: Vec<Effect>,
    /// Blocked sessions by the time their wait ends, in nanoseconds of the steady clock.
    pub(crate) wait_deadlines: BTreeSet<(u64, SessionKey)>,
    next_housekeeping_ms: u64,
    /// DEBUG PAUSE-CRON: neither housekeeping nor active expiry.
    pub(crate) cron_paused: bool,
    next_sweep_ms: u64,
    /// What sessions held at the last sweep.
    pub(crate) session_bytes: usize,
    /// What the front still has to drop.
    garbage_bytes: usize,
}

impl Store {
    /// An empty store. All randomness (hash seed, run id, RANDOMKEY) comes from `rng`.
    #[must_use]
    pub fn new(config: Config, mut rng: fastrand::Rng, now: Now) -> Self {
        let index = CommandIndex::new(cmd::FAMILIES);
        let databases = config.settings().databases;
        let mut store = Self {
            keyspace: Keyspace::new(databases, (rng.u64(..), rng.u64(..))),
            sessions: Sessions::default(),
            pubsub: Pubsub::default(),
            stats: Stats::new(index.len()),
            slowlog: SlowLog::default(),
            latency: LatencyMonitor::default(),
            monitors: Vec::new(),
            pause: None,
            run_id: (0..40).map(|_| rng.digit(16)).collect(),
            rng,
            now,
            started: now,
            busy: false,
            serving_ready: false,
            plan: Vec::new(),
            in_batch: false,
            meter: Meter::default(),
            slow_ns: u64::MAX,
            blocked: 0,
            held: VecDeque::new(),
            least_output_limit: 0,
            effects: Vec::new(),
            wait_deadlines: BTreeSet::new(),
            next_housekeeping_ms: now.unix_ms(),
            cron_paused: false,
            next_sweep_ms: now.unix_ms() + SWEEP_MS,
            session_bytes: 0,
            garbage_bytes: 0,
            config,
            index,
        };
        store.load_settings();
        store.stats.startup_memory_bytes = store.used_memory();
        store
    }

    /// Copies what the engine needs at hand out of the configuration.
    pub(crate) fn load_settings(&mut self) {
        let settings = self.config.settings();
        self.keyspace.notify = settings.notify;
        self.keyspace.limits = DataLimits {
            max_keys: usize::try_from(settings.max_keys).unwrap_or(usize::MAX),
            max_value_bytes: settings.max_value_size,
        };
        self.keyspace.lazy_expire = settings.lazyfree_expire;
        self.slow_ns = u64::try_from(settings.slowlog_log_slower_than_us)
            .map_or(u64::MAX, |us| us.saturating_mul(1000));
        self.slowlog.set_limit(settings.slowlog_max_len);
        self.latency.threshold_ms = settings.latency_monitor_threshold_ms;
        let limits = &settings.output_limits;
        let bounds =
            [limits.normal, limits.pubsub].map(|limit| [limit.hard_bytes, limit.soft_bytes]);
        let least = bounds.into_iter().flatten().filter(|&bytes| bytes != 0);
        let least = least.fold(UNAUTHENTICATED_OUTPUT_BYTES, u64::min);
        self.least_output_limit = usize::try_from(least).unwrap_or(usize::MAX);
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A client connected.
    pub fn connect(&mut self, peer: Peer, now: Now) -> SessionKey {
        self.now = now;
        self.stats.total_connections += 1;
        let authenticated = self.config.settings().requirepass.is_none();
        self.sessions.add(peer, authenticated, now.unix_ms())
    }

    /// The connection is gone; everything held for it goes too.
    pub fn disconnect(&mut self, key: SessionKey) {
        self.unwatch_all(key);
        self.unsubscribe_everything(key);
        self.monitors.retain(|&other| other != key);
        if let Some(session) = self.sessions.remove(key)
            && let Some(blocked) = session.blocked
        {
            self.blocked -= 1;
            self.forget_wait(key, &blocked);
        }
    }

    /// Connected sessions.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Limits for decoding the session's next request.
    #[must_use]
    pub fn limits(&self, key: SessionKey) -> Limits {
        let settings = self.config.settings();
        Limits {
            max_bulk_len: settings.proto_max_bulk_len,
            authenticated: self.is_trusted(key),
            ..Limits::default()
        }
    }

    /// Whether a session may do more than authenticate: it has, or no password is asked for now.
    pub(crate) fn is_trusted(&self, key: SessionKey) -> bool {
        let session = self.sessions.get(key);
        session.is_none_or(|session| session.authenticated)
            || self.config.settings().requirepass.is_none()
    }

    /// Tells what was read for a session and what still waits in its buffer.
    pub fn note_input(&mut self, key: SessionKey, read: usize, input: InputUse) {
        self.stats.bytes_in += read as u64;
        self.stats.reads += 1;
        let now_s = self.now.unix_us / 1_000_000;
        self.stats.recent_input_bytes.note(input.used, now_s);
        if let Some(session) = self.sessions.get_mut(key) {
            session.bytes_in += read as u64;
            // A slow sender or reader is not idle.
            if read > 0 {
                session.last_active_ms = self.now.unix_ms();
            }
            session.input = input;
        }
    }

    /// Tells what waits in a session's buffer after its requests ran.
    pub fn note_leftover(&mut self, key: SessionKey, input: InputUse) {
        if let Some(session) = self.sessions.get_mut(key) {
            session.input = input;
        }
    }

    /// Tells how many bytes of what the store let go of are not dropped yet.
    pub fn note_garbage(&mut self, bytes: u64) {
        self.garbage_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }

    /// Counts a session that is closed because its input outgrew `client-query-buffer-limit`.
    pub fn note_query_limit(&mut self, key: SessionKey) {
        self.stats.query_limit_disconnections += 1;
        if let Some(session) = self.sessions.get(key) {
            tracing::warn!(
                client = %session.peer.addr,
                conn_id = session.id,
                "Closing client that reached max query buffer length"
            );
        }
    }

    /// Answers a malformed request. The front closes the connection once this is flushed.
    pub fn protocol_error(
        &mut self,
        outputs: &mut Outputs,
        key: SessionKey,
        error: &ProtocolError,
    ) {
        let mut text = Vec::new();
        encode::protocol_error(&mut text, error);
        self.refuse(outputs, key, &text, &error.to_string());
    }

    /// Answers input that is well-formed but not wanted, as [`Store::protocol_error`] does.
    pub fn refuse_input(&mut self, outputs: &mut Outputs, key: SessionKey, reason: &str) {
        let mut text = Vec::new();
        encode::error(&mut text, format!("ERR {reason}"));
        self.refuse(outputs, key, &text, reason);
    }

    /// Sends an error after which the connection closes. As in Redis, the log has it at a level
    /// that is off by default: clients must not be able to fill it.
    fn refuse(&mut self, outputs: &mut Outputs, key: SessionKey, error: &[u8], reason: &str) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        tracing::debug!(client = %session.peer.addr, conn_id = session.id, reason, "protocol error");
        session.closing = true;
        outputs.push(key, error);
        self.stats.count_error(b"ERR");
        self.list_output(outputs, key);
    }

    /// `count` bytes of a session's output were written.
    pub fn written(&mut self, outputs: &mut Outputs, key: SessionKey, count: usize) {
        outputs.written(key, count);
        self.stats.bytes_out += count as u64;
        self.stats.writes += 1;
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.bytes_out += count as u64;
        if count > 0 {
            session.last_active_ms = self.now.unix_ms();
        }
        if session.soft_limit_since_ms.is_some() && outputs.pending(key) == 0 {
            session.soft_limit_since_ms = None;
        }
    }

    /// What the front has to do, in order.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether [`Store::effects`] would return anything.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Starts or stops encoding writes for a log or replicas.
    pub fn listen_to_writes(&mut self, on: bool) {
        self.keyspace.propagation.listen(on);
    }

    /// Writes since the last call, as RESP requests with SELECT where the database changes. Take
    /// them before the output of the same turn is written, so that a reply can wait for its log.
    pub fn take_writes(&mut self) -> Vec<u8> {
        self.keyspace.propagation.take()
    }

    /// When `poll` has something to do, in Unix milliseconds.
    #[must_use]
    pub fn next_deadline(&self) -> u64 {
        let wait = self.next_wait_end_ms();
        let pause = self.pause.map(|pause| pause.until_ms);
        let expiry = self.keyspace.next_deadline();
        [wait, pause, expiry.filter(|_| !self.cron_paused)]
            .into_iter()
            .flatten()
            // A wall clock that was set back must not make the loop sleep until it has caught up.
            .fold(self.now.unix_ms() + self.housekeeping_ms(), u64::min)
            .min(self.next_housekeeping_ms)
    }

    /// Does what is due: a slice of expiry, waits that ended, the end of a pause, housekeeping.
    /// Work that is left over makes `next_deadline` lie in the past: serve clients, call again.
    pub fn poll(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        self.now = host.now();
        let now_ms = self.now.unix_ms();
        self.end_waits(outputs);
        if self.pause.is_some_and(|pause| now_ms >= pause.until_ms) {
            self.end_pause(outputs, host);
        }
        if !self.cron_paused {
            self.expire_slice(host);
        }
        let period_ms = self.housekeeping_ms();
        if is_due(self.next_housekeeping_ms, period_ms, now_ms) {
            self.next_housekeeping_ms = now_ms + period_ms;
            if !self.cron_paused {
                self.housekeeping(outputs, now_ms, host.event_loop());
            }
        }
        self.settle(outputs);
        if self.keyspace.waiters.has_ready() {
            self.serve_ready(outputs, host);
        }
    }

    /// The period of housekeeping, from `hz`.
    fn housekeeping_ms(&self) -> u64 {
        1000 / u64::from(self.config.settings().hz.clamp(1, 1000))
    }

    fn expire_slice(&mut self, host: &mut dyn Host) {
        let start = self.now;
        let mut looked_at = 0;
        loop {
            let batch = self.keyspace.expire_batch(start.unix_ms());
            if batch == 0 {
                break;
            }
            looked_at += batch;
            self.now = host.now();
            if self.now.mono_ns.saturating_sub(start.mono_ns) >= EXPIRY_SLICE_NS {
                self.keyspace.stats.expiry_slices_cut += 1;
                break;
            }
        }
        if looked_at > 0 {
            let spent_ns = self.now.mono_ns.saturating_sub(start.mono_ns);
            self.stats.active_expiry_us += spent_ns / 1000;
            self.latency
                .record("expire-cycle", self.now, spent_ns / 1_000_000);
        }
    }

    fn housekeeping(&mut self, outputs: &mut Outputs, now_ms: u64, event_loop: EventLoop) {
        self.stats.cycle_rate.sample(event_loop.cycles, now_ms);
        self.stats.busy_rate.sample(event_loop.busy_us, now_ms);
        self.stats
            .ops_rate
            .sample(self.stats.total_commands, now_ms);
        self.stats.input_rate.sample(self.stats.bytes_in, now_ms);
        self.stats.output_rate.sample(self.stats.bytes_out, now_ms);
        if is_due(self.next_sweep_ms, SWEEP_MS, now_ms) {
            self.next_sweep_ms = now_ms + SWEEP_MS;
            self.sweep_sessions(outputs, now_ms);
        }
        self.note_peak_memory();
    }

    pub(crate) fn note_peak_memory(&mut self) {
        let used = self.used_memory();
        if used > self.stats.peak_memory_bytes {
            self.stats.peak_memory_bytes = used;
            self.stats.peak_memory_us = self.now.unix_us;
        }
    }

    /// Bytes the engine accounts for: data, indexes, data that waits to be dropped and, as of the
    /// last sweep, the sessions.
    pub(crate) fn used_memory(&self) -> usize {
        self.keyspace.memory_bytes() + self.session_bytes + self.garbage_bytes
    }

    /// Adds up what sessions hold. It looks at every one, so it runs once per sweep and for INFO.
    pub(crate) fn measure_sessions(&mut self, outputs: &Outputs) {
        let sessions: usize = self.sessions.iter().map(Session::heap_bytes).sum();
        self.session_bytes = sessions + outputs.heap_bytes();
        let waiting = self
            .sessions
            .iter()
            .map(|session| outputs.pending(session.key))
            .max();
        let now_s = self.now.unix_us / 1_000_000;
        self.stats
            .recent_output_bytes
            .note(waiting.unwrap_or(0), now_s);
    }

    /// Closes clients that were idle too long or sat above the soft output limit too long.
    fn sweep_sessions(&mut self, outputs: &mut Outputs, now_ms: u64) {
        self.measure_sessions(outputs);
        let timeout_ms = u64::from(self.config.settings().timeout_s) * 1000;
        let mut over_soft_limit = Vec::new();
        for session in self.sessions.iter() {
            if session.soft_limit_since_ms.is_some() {
                over_soft_limit.push(session.key);
            }
            let exempt =
                session.blocked.is_some() || session.monitor || !session.subscriptions.is_empty();
            let idle_ms = now_ms.saturating_sub(session.last_active_ms);
            if timeout_ms != 0 && !exempt && idle_ms > timeout_ms {
                tracing::debug!(conn_id = session.id, "closing an idle client");
                self.effects.push(Effect::Close(session.key));
            }
        }
        for key in over_soft_limit {
            let pending = outputs.pending(key);
            self.check_output_limit(outputs, key, pending);
        }
    }

    /// Puts a session on the list of those with output, and checks its limit.
    #[inline]
    pub(crate) fn list_output(&mut self, outputs: &mut Outputs, key: SessionKey) {
        let pending = outputs.list(key);
        if pending > self.least_output_limit {
            self.check_output_limit(outputs, key, pending);
        }
    }

    fn check_output_limit(&mut self, outputs: &mut Outputs, key: SessionKey, pending: usize) {
        let now_ms = self.now.unix_ms();
        let budget = self.output_budget(key);
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let limit = self.config.settings().output_limits.of(session.class());
        let mut over_soft = false;
        if limit.soft_bytes != 0 && pending as u64 > limit.soft_bytes {
            let since_ms = *session.soft_limit_since_ms.get_or_insert(now_ms);
            over_soft = now_ms.saturating_sub(since_ms) > limit.soft_seconds.saturating_mul(1000);
        } else {
            session.soft_limit_since_ms = None;
        }
        if pending > budget || over_soft {
            self.close_over_limit(outputs, key, pending);
        }
    }

    /// How many bytes a session may have waiting: the hard limit of its class, or less before it
    /// has authenticated.
    pub(crate) fn output_budget(&self, key: SessionKey) -> usize {
        let settings = self.config.settings();
        let Some(session) = self.sessions.get(key) else {
            return 0;
        };
        let hard = match settings.output_limits.of(session.class()).hard_bytes {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        };
        if session.authenticated || settings.requirepass.is_none() {
            hard
        } else {
            hard.min(UNAUTHENTICATED_OUTPUT_BYTES as usize)
        }
    }

    /// Closes a session that has too much output waiting, without writing it.
    pub(crate) fn close_over_limit(
        &mut self,
        outputs: &mut Outputs,
        key: SessionKey,
        pending: usize,
    ) {
        outputs.clear(key);
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.closing {
            return;
        }
        session.closing = true;
        self.stats.output_limit_disconnections += 1;
        tracing::warn!(
            conn_id = session.id,
            client = %session.peer.addr,
            name = %session.name.escape_ascii(),
            pending,
            "Client scheduled to be closed ASAP for overcoming of output buffer limits."
        );
        self.effects.push(Effect::Close(key));
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// After a command or an expiry slice: events go out, broken watches reach their sessions,
    /// large leftovers leave.
    pub(crate) fn settle(&mut self, outputs: &mut Outputs) {
        if self.keyspace.has_events() {
            self.deliver_events(outputs);
        }
        if !self.keyspace.watchers.is_empty() {
            for key in self.keyspace.watchers.take_broken() {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.watch_broken = true;
                }
            }
        }
        for garbage in self.keyspace.take_garbage() {
            self.effects.push(Effect::Discard(garbage));
        }
    }

    fn deliver_events(&mut self, outputs: &mut Outputs) {
        let flags = self.keyspace.notify;
        for event in self.keyspace.take_events() {
            if flags.contains(NotifyFlags::KEYSPACE) {
                let channel =
                    [format!("__keyspace@{}__:", event.db).as_bytes(), &event.key].concat();
                self.publish(outputs, Kind::Channel, &channel, event.name.as_bytes());
            }
            if flags.contains(NotifyFlags::KEYEVENT) {
                let channel = format!("__keyevent@{}__:{}", event.db, event.name);
                self.publish(outputs, Kind::Channel, channel.as_bytes(), &event.key);
            }
        }
    }

    pub(crate) fn record_call(&mut self, id: CommandId, duration_ns: u64, failed: bool) {
        let track = self.config.settings().latency_tracking;
        let stats = &mut self.stats.commands[usize::from(id.0)];
        stats.record(duration_ns, track);
        stats.failed += u64::from(failed);
        self.stats.total_commands += 1;
    }
}

/// Whether periodic work is due. A next time that lies further ahead than the period means that
/// the wall clock was set back.
fn is_due(next_ms: u64, period_ms: u64, now_ms: u64) -> bool {
    now_ms >= next_ms || next_ms - now_ms > period_ms
}
