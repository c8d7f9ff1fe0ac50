//! The engine: it ties the data, the clients and pub/sub together.
//!
//! | part | holds |
//! |---|---|
//! | [`Keyspace`] | the shard: databases, deadlines, watchers, waiters, events, propagation |
//! | [`Clients`] | sessions, what they wait for, pauses, output limits |
//! | [`Pubsub`] | the subscribers of each channel |
//! | [`Telemetry`] | counters, SLOWLOG, latency samples |
//!
//! No part knows another. What needs several of them is a method of [`Store`] in this module:
//! executing (`dispatch`, `batch`, `ctx`), messages to other sessions (`delivery`, `tracking`), waiting
//! (`waiting`), what is done by the clock (`cron`). A command is handed a [`ctx::Ctx`], which gives
//! it the parts one by one and never the engine.
//!
//! Order of calls for a front: `connect`, then for each request `execute` with the front's
//! [`Outputs`]; at the end of a turn call `end_turn`, write what the outputs hold and report it with `written`; take `effects`
//! and carry them out; call `poll` when `next_deadline` is reached. Nothing here blocks, reads a
//! clock or keeps state outside the store.

mod aof;
pub(crate) mod batch;
mod clients;
pub(crate) mod compaction;
mod cron;
pub(crate) mod ctx;
mod databases;
pub(crate) mod delivery;
mod dispatch;
mod eviction;
pub(crate) mod loading;
pub(crate) mod parts;
mod permission;
mod persistence;
pub(crate) mod report;
mod running;
mod saves;
mod snapshot;
mod telemetry;
mod tracking;
pub(crate) mod waiting;

use crate::base::clock::{Now, TurnTimes};
use crate::base::ids::{DataId, SessionKey};
use crate::base::seeds::Seeds;
use crate::config::Config;
use crate::data::keyspace::{DataLimits, Garbage, Keyspace};
use crate::data::propagation::Writes;
use crate::engine::acl::Acl;
use crate::engine::command::{Command, CommandIndex};
use crate::engine::output::Outputs;
use crate::engine::pubsub::Pubsub;
use crate::engine::script::Scripts;
use crate::engine::session::{AofProgress, InputUse, Peer};
use batch::Planned;
pub(crate) use clients::{Clients, Pause};
use compaction::Compaction;
use cron::Cron;
pub use cron::GarbageBytes;
use eviction::Eviction;
use kumi_resp::{Limits, ProtocolError, encode};
use loading::Loading;
pub use loading::ReplayError;
pub use permission::HostUser;
pub use persistence::{LoadError, Loaded};
pub use running::RunningCommand;
use saves::Saves;
pub(crate) use snapshot::Snapshot;
pub use snapshot::{SnapshotEncoder, SnapshotError, SnapshotPurpose, SnapshotSink};
pub(crate) use telemetry::Telemetry;
use tracking::{Actor, Invalidations};

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
    /// Data was saved for the stop: what is written from then on is to be saved too.
    pub saved: bool,
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

/// How far the running requests are.
#[derive(Debug)]
struct Run {
    /// Requests that are decoded and not executed yet.
    plan: Vec<Planned>,
    /// One of them is a stream command.
    has_streams: bool,
    /// One of them names a member of a hash, a set or a sorted set.
    has_members: bool,
    /// A run of requests is being executed.
    in_batch: bool,
    /// A long command is running and others are being served meanwhile.
    busy: bool,
    /// Waiting commands are being executed again.
    serving_ready: bool,
    /// The command that was begun last.
    command: RunningCommand,
}

/// What is done by the clock, a slice at a time.
#[derive(Debug)]
struct Upkeep {
    cron: Cron,
    eviction: Eviction,
    compaction: Compaction,
}

/// The data on its way to and from files.
#[derive(Debug)]
pub(crate) struct Persistence {
    pub(crate) saves: Saves,
    /// The snapshot that is being taken.
    pub(crate) snapshot: Option<Snapshot>,
    /// A data set is being loaded.
    pub(crate) loading: Option<Box<Loading>>,
    /// How far the writes are in the AOF.
    pub(crate) aof: AofProgress,
    /// The AOF cannot be written: writes are refused with this reason.
    pub(crate) aof_error: Option<Box<str>>,
    pub(crate) identity: DataIdentity,
}

/// Which data set this is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataIdentity {
    pub(crate) id: DataId,
    /// The id came with the data that was loaded.
    pub(crate) is_loaded: bool,
}

/// What leaves the engine once the running command has ended.
#[derive(Debug, Default)]
struct Outbox {
    effects: Vec<Effect>,
    invalidations: Invalidations,
}

/// Memory that is neither data nor of the sessions themselves.
#[derive(Debug, Default)]
struct Buffers {
    /// Memory of the front's output buffers when a command last ended.
    output_bytes: usize,
    /// All that waits for clients, as `maxmemory-clients` counts it.
    waiting_bytes: usize,
    /// What the front still has to drop.
    garbage_bytes: usize,
}

/// The engine.
#[derive(Debug)]
pub struct Store {
    pub(crate) config: Config,
    pub(crate) index: CommandIndex,
    pub(crate) keyspace: Keyspace,
    pub(crate) acl: Acl,
    pub(crate) clients: Clients,
    pub(crate) pubsub: Pubsub,
    pub(crate) scripts: Scripts,
    pub(crate) telemetry: Telemetry,
    /// The generator of RANDOMKEY, SRANDMEMBER and eviction samples.
    rng: fastrand::Rng,
    /// The last reading of the clocks.
    pub(crate) now: Now,
    run: Run,
    upkeep: Upkeep,
    pub(crate) persistence: Persistence,
    outbox: Outbox,
    buffers: Buffers,
}

impl Store {
    /// An empty store with the commands of these families.
    pub(crate) fn with_families(
        families: &[&'static [Command]],
        config: Config,
        seeds: Seeds,
        now: Now,
    ) -> Self {
        let index = CommandIndex::new(families);
        let databases = config.settings().databases;
        let keyspace = Keyspace::new(databases, seeds.hash, seeds.counters);
        let mut store = Self {
            keyspace,
            acl: Acl::new(&index),
            clients: Clients::default(),
            pubsub: Pubsub::default(),
            telemetry: Telemetry::new(index.len(), &seeds, now),
            scripts: Scripts::default(),
            rng: fastrand::Rng::with_seed(seeds.draws),
            now,
            run: Run {
                plan: Vec::new(),
                has_streams: false,
                has_members: false,
                in_batch: false,
                busy: false,
                serving_ready: false,
                command: RunningCommand::new(&index),
            },
            upkeep: Upkeep {
                cron: Cron::new(now),
                eviction: Eviction::default(),
                compaction: Compaction::default(),
            },
            persistence: Persistence {
                saves: Saves::new(now),
                snapshot: None,
                loading: None,
                aof: AofProgress::default(),
                aof_error: None,
                identity: DataIdentity {
                    id: seeds.data_id,
                    is_loaded: false,
                },
            },
            outbox: Outbox::default(),
            buffers: Buffers::default(),
            config,
            index,
        };
        store.load_settings();
        store.telemetry.stats.startup_memory_bytes = store.used_memory();
        store
    }

    /// Copies what the parts need at hand out of the configuration.
    pub(crate) fn load_settings(&mut self) {
        let settings = self.config.settings();
        self.acl.follow_requirepass(settings.requirepass.as_deref());
        self.clients.open = self.acl.default_is_open();
        self.keyspace.notices.flags = settings.notify;
        self.keyspace.room.limits = DataLimits {
            max_keys: usize::try_from(settings.max_keys).unwrap_or(usize::MAX),
            max_value_bytes: settings.max_value_size,
        };
        self.keyspace.expiry.lazy = settings.lazyfree_expire;
        self.keyspace.load_access(settings);
        self.upkeep.eviction.load_settings(settings);
        self.telemetry.load_settings(settings);
        self.clients.load_settings(settings);
        self.note_room();
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the default user has no password. Protected mode keeps clients of other machines out then.
    #[must_use]
    pub fn default_user_is_nopass(&self) -> bool {
        self.acl.default_is_nopass()
    }

    /// A client connected.
    pub fn connect(&mut self, peer: Peer, now: Now) -> SessionKey {
        self.now = now;
        self.telemetry.stats.total_connections += 1;
        let name = permission::default_name(&self.acl);
        self.clients.add(peer, name, now.unix_ms())
    }

    /// The command that was begun last, for a report of a crash.
    #[must_use]
    pub fn running_command(&self) -> RunningCommand {
        self.run.command.clone()
    }

    /// Notes why a session ends, for the log. The first reason counts; without one the client has closed its connection.
    pub fn note_leaving(&mut self, key: SessionKey, reason: &'static str) {
        if let Some(session) = self.clients.sessions.get_mut(key) {
            session.ending.leaving.get_or_insert(reason);
        }
    }

    /// The connection is gone; everything held for it goes too.
    pub fn disconnect(&mut self, key: SessionKey) {
        self.unwatch_all(key);
        self.unsubscribe_everything(key);
        self.stop_tracking(key);
        self.outbox.invalidations.forget(key);
        let Some(session) = self.clients.remove(key) else {
            return;
        };
        // Redis's words, with what CLIENT LIST shows to tell a client by.
        tracing::debug!(
            "Client closed connection id={} addr={} laddr={} name={} age={} reason={}",
            session.id,
            session.identity.peer.addr,
            session.identity.peer.laddr,
            session.identity.name.escape_ascii(),
            self.now
                .unix_ms()
                .saturating_sub(session.identity.created_ms)
                / 1000,
            session.ending.leaving.unwrap_or("closed by the client"),
        );
        if let Some(blocked) = session.blocked {
            self.forget_wait(key, &blocked);
        }
    }

    /// Where a session's client is, as CLIENT LIST shows it.
    #[must_use]
    pub fn peer_address(&self, key: SessionKey) -> Option<String> {
        let session = self.clients.sessions.get(key)?;
        Some(session.identity.peer.addr.clone())
    }

    /// Connected sessions.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.clients.sessions.len()
    }

    /// Limits for decoding the session's next request.
    #[must_use]
    pub fn limits(&self, key: SessionKey) -> Limits {
        let settings = self.config.settings();
        Limits {
            max_bulk_len: settings.proto_max_bulk_len,
            authenticated: self.clients.is_trusted(key),
            ..Limits::default()
        }
    }

    /// Tells what was read for a session and what still waits in its buffer.
    pub fn note_input(&mut self, key: SessionKey, read: usize, input: InputUse) {
        self.telemetry.stats.bytes_in += read as u64;
        self.telemetry.stats.reads += 1;
        let now_s = self.now.unix_us / 1_000_000;
        self.telemetry
            .stats
            .recent_input_bytes
            .note(input.used, now_s);
        if let Some(session) = self.clients.sessions.get_mut(key) {
            session.activity.bytes_in += read as u64;
            // A slow sender or reader is not idle.
            if read > 0 {
                session.activity.last_active_ms = self.now.unix_ms();
            }
            session.memory.input = input;
        }
    }

    /// Tells what waits in a session's buffer after its requests ran.
    pub fn note_leftover(&mut self, key: SessionKey, input: InputUse) {
        if let Some(session) = self.clients.sessions.get_mut(key) {
            session.memory.input = input;
            self.clients.count_bytes(key);
            self.check_client_memory();
        }
    }

    /// Tells the times of a turn of the event loop that has ended.
    #[inline]
    pub fn note_turn(&mut self, turn: TurnTimes) {
        self.telemetry.stats.note_turn(turn);
    }

    /// Tells what the store let go of and how much of it is not dropped yet, as of `now`. Call it when all effects are carried
    /// out.
    pub fn note_garbage(&mut self, garbage: GarbageBytes, now: Now) {
        self.buffers.garbage_bytes = usize::try_from(garbage.waiting).unwrap_or(usize::MAX);
        self.follow_frees(garbage);
        self.follow_expiry_cycle(now);
    }

    /// Counts a session that is closed because its input outgrew `client-query-buffer-limit`.
    pub fn note_query_limit(&mut self, key: SessionKey) {
        self.telemetry.stats.query_limit_disconnections += 1;
        if let Some(session) = self.clients.sessions.get(key) {
            tracing::warn!(
                client = %session.identity.peer.addr,
                conn_id = session.id,
                "Closing client that reached max query buffer length"
            );
        }
    }

    /// Replies with the error of a malformed request. The front closes the connection once this is flushed.
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

    /// Replies with an error to well-formed input that is not accepted, as [`Store::protocol_error`] does.
    pub fn refuse_input(&mut self, outputs: &mut Outputs, key: SessionKey, reason: &str) {
        let mut text = Vec::new();
        encode::error(&mut text, format!("ERR {reason}"));
        self.refuse(outputs, key, &text, reason);
    }

    /// Sends an error after which the connection closes. As in Redis, the log has it at a level
    /// that is off by default: clients must not be able to fill it.
    fn refuse(&mut self, outputs: &mut Outputs, key: SessionKey, error: &[u8], reason: &str) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        tracing::debug!(client = %session.identity.peer.addr, conn_id = session.id, reason, "protocol error");
        session.ending.closing = true;
        session.ending.leaving.get_or_insert("protocol error");
        outputs.push(key, error);
        self.telemetry.stats.count_error(b"ERR");
        self.list_output(outputs, key);
    }

    /// `count` bytes of a session's output were written.
    pub fn written(&mut self, outputs: &mut Outputs, key: SessionKey, count: usize) {
        outputs.written(key, count);
        self.note_output(outputs);
        self.telemetry.stats.bytes_out += count as u64;
        self.telemetry.stats.writes += 1;
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        session.activity.bytes_out += count as u64;
        if count > 0 {
            session.activity.last_active_ms = self.now.unix_ms();
        }
        if session.memory.soft_limit_since_ms.is_some() && outputs.pending(key) == 0 {
            session.memory.soft_limit_since_ms = None;
        }
    }

    /// What the front has to do, in order.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.outbox.effects)
    }

    /// Whether [`Store::effects`] would return anything.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        !self.outbox.effects.is_empty()
    }

    /// Starts or stops encoding writes for an AOF or replicas.
    pub fn listen_to_writes(&mut self, on: bool) {
        self.keyspace.propagation.set_on(on);
    }

    /// Writes since the last call, as RESP requests with SELECT where the database changes. Take
    /// them before the output of the same turn is written, so that a reply can wait for its AOF.
    /// Large arguments are copied into it; [`Store::swap_writes`] copies nothing.
    pub fn take_writes(&mut self) -> Vec<u8> {
        self.keyspace.propagation.take()
    }

    /// As [`Store::take_writes`], without copying: `empty` takes the writes, and its memory is used for the next
    /// ones. Returns the position in the stream of all writes behind what was taken.
    pub fn swap_writes(&mut self, empty: &mut Writes) -> u64 {
        self.keyspace.propagation.swap(empty)
    }

    pub(crate) fn note_peak_memory(&mut self) {
        let used = self.used_memory();
        if used > self.telemetry.stats.peak_memory_bytes {
            self.telemetry.stats.peak_memory_bytes = used;
            self.telemetry.stats.peak_memory_us = self.now.unix_us;
        }
    }

    /// Bytes the engine accounts for: data, indexes, data that waits to be dropped, sessions and
    /// their output.
    pub(crate) fn used_memory(&self) -> usize {
        self.keyspace.memory_bytes()
            + self.keyspace.interest.tracking.heap_bytes()
            + self.client_bytes()
            + self.buffers.garbage_bytes
    }

    /// What sessions hold, their output included.
    pub(crate) fn client_bytes(&self) -> usize {
        self.clients.bytes() + self.buffers.output_bytes
    }

    /// Brings the memory of the output up to date.
    #[inline]
    fn note_output(&mut self, outputs: &Outputs) {
        self.buffers.output_bytes = outputs.heap_bytes();
        self.buffers.waiting_bytes = outputs.waiting_bytes();
    }

    /// What `maxmemory-clients` bounds: what sessions hold or have announced, and all that waits for them. As in Redis a
    /// value counts for each client that it waits for.
    fn limited_client_bytes(&self) -> usize {
        self.clients.claimed_bytes() + self.buffers.waiting_bytes
    }

    /// Puts a session on the list of those with output, and checks its limit.
    pub(crate) fn list_output(&mut self, outputs: &mut Outputs, key: SessionKey) {
        let pending = outputs.list(key);
        self.check_output(outputs, key, pending);
    }

    /// Brings the memory of the output up to date, and checks the limits after a session got output. `pending` is what
    /// waits for it now.
    #[inline]
    fn check_output(&mut self, outputs: &mut Outputs, key: SessionKey, pending: usize) {
        self.note_output(outputs);
        self.check_client_memory();
        if self.clients.may_exceed_limit(pending) {
            self.check_output_limit(outputs, key, pending);
        }
    }

    #[inline(never)]
    fn check_output_limit(&mut self, outputs: &mut Outputs, key: SessionKey, pending: usize) {
        let (settings, now_ms) = (self.config.settings(), self.now.unix_ms());
        if self.clients.exceeds_limit(key, pending, settings, now_ms) {
            self.close_over_limit(outputs, key, pending);
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
        let now_ms = self.now.unix_ms();
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        if session.ending.closing {
            return;
        }
        session.ending.closing = true;
        session.ending.leaving.get_or_insert("output buffer limit");
        self.telemetry.stats.output_limit_disconnections += 1;
        let seconds = |since_ms: u64| now_ms.saturating_sub(since_ms) / 1000;
        // Redis's words, with what CLIENT LIST shows to tell a client by.
        tracing::warn!(
            pending,
            "Client id={} addr={} laddr={} fd={} name={} age={} idle={} db={} sub={} psub={} ssub={} rbs={} user={} scheduled to be closed ASAP for overcoming of output buffer limits.",
            session.id,
            session.identity.peer.addr,
            session.identity.peer.laddr,
            session.identity.peer.fd,
            session.identity.name.escape_ascii(),
            seconds(session.identity.created_ms),
            seconds(session.activity.last_active_ms),
            session.db,
            session.subscriptions.channels.len(),
            session.subscriptions.patterns.len(),
            session.subscriptions.shard_channels.len(),
            session.memory.reply_buffer.size(),
            session.login.user_name.escape_ascii(),
        );
        self.outbox.effects.push(Effect::Close(key));
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.outbox.effects.push(effect);
    }

    /// After a command or an expiry slice: events and invalidations go out, broken watches reach their
    /// sessions, large leftovers leave. `actor` is the session whose command it was.
    #[inline]
    fn settle(&mut self, outputs: &mut Outputs, actor: Option<Actor>) {
        let keyspace = &self.keyspace;
        if keyspace.has_notices()
            || keyspace.has_garbage()
            || !keyspace.interest.watchers.is_empty()
        {
            self.settle_changes(outputs, actor);
        }
    }

    #[inline(never)]
    fn settle_changes(&mut self, outputs: &mut Outputs, actor: Option<Actor>) {
        if self.keyspace.has_notices() {
            self.deliver_events(outputs, actor);
        }
        if !self.keyspace.interest.watchers.is_empty() {
            for key in self.keyspace.interest.watchers.take_broken() {
                if let Some(session) = self.clients.sessions.get_mut(key) {
                    session.transaction.watch_broken = true;
                }
            }
        }
        if self.keyspace.has_garbage() {
            for garbage in self.keyspace.take_garbage() {
                self.outbox.effects.push(Effect::Discard(garbage));
            }
        }
    }

    /// Clears a session's queued commands and its watches.
    pub(crate) fn discard_transaction(&mut self, key: SessionKey) {
        if let Some(session) = self.clients.sessions.get_mut(key) {
            session.transaction.multi = None;
        }
        self.unwatch_all(key);
    }

    /// Clears a session's watches.
    pub(crate) fn unwatch_all(&mut self, key: SessionKey) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        session.transaction.watch_broken = false;
        for (db, name) in std::mem::take(&mut session.transaction.watched) {
            session.uncount_name(&name);
            self.keyspace.interest.watchers.remove(db, &name, key);
        }
    }
}
