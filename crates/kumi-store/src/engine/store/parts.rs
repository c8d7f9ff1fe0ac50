//! What a command may reach besides the data of its database: the parts of the engine, one at a
//! time, and the few things that take several parts at once.

use super::ctx::Ctx;
use super::delivery::Message;
use super::{Clients, Effect, LoadError, SnapshotError, SnapshotPurpose, Telemetry};
use crate::base::error::CommandError;
use crate::base::ids::SessionKey;
use crate::config::{Config, Settings};
use crate::engine::command::CommandIndex;
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use crate::engine::pubsub::{Kind, Pubsub};
use crate::engine::reply::Reply;
use crate::engine::script::Scripts;
use crate::engine::session::{AofProgress, Blocked, BlockedOn};
use std::io;
use std::time::Duration;

/// Parts that are used together, for commands that write what they read.
pub(crate) struct Parts<'b, 'a> {
    pub(crate) index: &'b CommandIndex,
    pub(crate) config: &'b Config,
    pub(crate) clients: &'b Clients,
    pub(crate) telemetry: &'b Telemetry,
    pub(crate) host: &'b mut dyn Host,
    pub(crate) reply: &'b mut Reply<'a>,
}

impl<'a> Ctx<'a> {
    pub(crate) fn parts(&mut self) -> Parts<'_, 'a> {
        Parts {
            index: &self.store.index,
            config: &self.store.config,
            clients: &self.store.clients,
            telemetry: &self.store.telemetry,
            host: self.host,
            reply: &mut self.reply,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.store.config.settings()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.store.config
    }

    /// Changes the configuration, then lets every part take over what it keeps at hand.
    pub(crate) fn change_config<T, E>(
        &mut self,
        change: impl FnOnce(&mut Config, &mut dyn Host) -> Result<T, E>,
    ) -> Result<T, E> {
        let limit_before = self.store.config.settings().maxmemory_bytes;
        let changed = change(&mut self.store.config, self.host)?;
        self.store.load_settings();
        self.store.begin_eviction(limit_before);
        Ok(changed)
    }

    pub(crate) fn index(&self) -> &CommandIndex {
        &self.store.index
    }

    pub(crate) fn clients(&mut self) -> &mut Clients {
        &mut self.store.clients
    }

    pub(crate) fn telemetry(&mut self) -> &mut Telemetry {
        &mut self.store.telemetry
    }

    pub(crate) fn pubsub(&self) -> &Pubsub {
        &self.store.pubsub
    }

    /// Random numbers for one command.
    pub(crate) fn fork_rng(&mut self) -> fastrand::Rng {
        self.store.rng.fork()
    }

    /// Has the front do something.
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.store.effect(effect);
    }

    /// Ends another session. Its socket is closed by the front later.
    pub(crate) fn disconnect(&mut self, key: SessionKey, reason: &'static str) {
        self.store.note_leaving(key, reason);
        self.store.disconnect(key);
        self.store.effect(Effect::Close(key));
    }

    /// Publishes a message; returns how many sessions got it.
    pub(crate) fn publish(&mut self, kind: Kind, channel: &[u8], message: Message<'_>) -> usize {
        let outputs = self.reply.outputs();
        self.store.publish(outputs, kind, channel, message)
    }

    /// Lists this session as a listener of a channel or pattern.
    pub(crate) fn listen(&mut self, kind: Kind, name: &[u8]) {
        self.store.pubsub.add(kind, name, self.session);
        self.store.note_listeners();
    }

    /// Ends what [`Ctx::listen`] began.
    pub(crate) fn stop_listening(&mut self, kind: Kind, name: &[u8]) {
        self.store.pubsub.remove(kind, name, self.session);
        self.store.note_listeners();
    }

    /// Ends all subscriptions of this session, without a message about it.
    pub(crate) fn unsubscribe_everything(&mut self) {
        self.store.unsubscribe_everything(self.session);
    }

    /// Clears this session's queued commands and its watches.
    pub(crate) fn discard_transaction(&mut self) {
        self.store.discard_transaction(self.session);
    }

    /// Clears this session's watches.
    pub(crate) fn unwatch_all(&mut self) {
        self.store.unwatch_all(self.session);
    }

    /// Whether this session may do more than authenticate.
    pub(crate) fn is_trusted(&self) -> bool {
        self.store.clients.is_trusted(self.session)
    }

    /// Ends the wait of another session, and has its input decoded again.
    pub(crate) fn unblock(&mut self, key: SessionKey) -> Option<Blocked> {
        self.store.unblock(key)
    }

    /// Writes the reply of a wait that ended: the one of a timeout, or an error.
    pub(crate) fn answer_unblocked(&mut self, key: SessionKey, on: &BlockedOn, with_error: bool) {
        const ERROR: &[u8] = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";
        let outputs: &mut Outputs = self.reply.outputs();
        if with_error {
            self.store.telemetry.stats.count_error(b"UNBLOCKED");
            self.store.answer_late(outputs, key, on, ERROR, true);
        } else {
            self.store.answer_timeout(outputs, key, on);
        }
    }

    /// Serves other clients, which get BUSY errors, until `end_ns` of the steady
    /// clock or until the server is asked to stop.
    pub(crate) fn serve_others_until(&mut self, end_ns: u64) {
        self.store.run.busy = true;
        while self.host.now().mono_ns < end_ns
            && self.host.serve_others(self.store, self.reply.outputs())
        {}
        self.store.run.busy = false;
    }

    /// Serves other clients once while a script goes on. False when the server is asked to stop.
    pub(crate) fn serve_others(&mut self) -> bool {
        self.store.run.busy = true;
        self.host.serve_others(self.store, self.reply.outputs())
    }

    /// A script that let others be served has ended.
    pub(crate) fn end_busy(&mut self) {
        self.store.run.busy = false;
        self.store.scripts.running = None;
    }

    /// The answer to commands that may not run while another one takes long; none if there is no such one.
    pub(crate) fn busy_error(&self) -> Option<CommandError> {
        self.store.run.busy.then(|| self.store.busy_error())
    }

    pub(crate) fn scripts(&mut self) -> &mut Scripts {
        &mut self.store.scripts
    }

    pub(crate) fn scripts_and_reply(&mut self) -> (&Scripts, &mut Reply<'a>) {
        (&self.store.scripts, &mut self.reply)
    }

    /// When data was last saved, in Unix seconds.
    pub(crate) fn last_save(&self) -> u64 {
        self.store.persistence.saves.last_unix_s
    }

    /// Writes the RDB file. The server does nothing else meanwhile.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        self.store.save_now(self.host)
    }

    /// Begins to write the RDB file in the background.
    pub(crate) fn save_in_background(&mut self) -> Result<(), SnapshotError> {
        self.store.save_in_background(self.host)
    }

    /// Has the RDB file written in the background as soon as nothing is in the way.
    pub(crate) fn schedule_save(&mut self) {
        self.store.persistence.saves.scheduled = true;
    }

    /// Whether the snapshot of a rewrite is about to begin.
    pub(crate) fn begins_rewrite(&self) -> bool {
        self.host.begins_rewrite()
    }

    /// What the running snapshot is for.
    pub(crate) fn snapshot_purpose(&self) -> Option<SnapshotPurpose> {
        self.store.snapshot_purpose()
    }

    /// Saves before the server ends, see [`Store::save_at_end`].
    pub(crate) fn save_at_end(&mut self, save: Option<bool>, force: bool) -> io::Result<bool> {
        self.store.save_at_end(save, force, self.host)
    }

    /// All data as an RDB file.
    pub(crate) fn serialise(&self) -> Vec<u8> {
        let mut file = Vec::new();
        // Writing to a vector cannot fail.
        let _ = self.store.save_rdb(&mut file);
        file
    }

    /// The RDB file, to read it again.
    pub(crate) fn open_rdb(&mut self) -> io::Result<Box<dyn io::Read>> {
        self.host.open_rdb(&self.store.config)
    }

    /// Loads libraries of functions, see [`Store::load_libraries`].
    pub(crate) fn load_libraries(
        &mut self,
        codes: &[Box<[u8]>],
        replace: bool,
    ) -> Result<(), LoadError> {
        self.store.load_libraries(codes, replace, self.host)
    }

    /// Ends a running save of the RDB file.
    pub(crate) fn cancel_save(&mut self) {
        self.store.cancel_snapshot(SnapshotPurpose::Save);
    }

    /// All databases were flushed: the RDB file follows.
    pub(crate) fn reset_file(&mut self) {
        self.store.reset_file(self.host);
    }

    /// Why commands that write are refused, if they are.
    pub(crate) fn disk_error(&self) -> Option<CommandError> {
        if self.store.is_replay(self.session) {
            return None;
        }
        self.store.disk_error()
    }

    /// How long the code of a library may take to load. A library of an AOF was loaded in time before.
    pub(crate) fn load_limit_ns(&self) -> Option<u64> {
        (!self.store.is_replay(self.session)).then_some(crate::engine::script::LOAD_LIMIT_NS)
    }

    /// The most bytes of a string that a command may make: `proto-max-bulk-len`. An AOF is loaded whatever the
    /// directive was when it was written.
    pub(crate) fn max_string_bytes(&self) -> usize {
        if self.store.is_replay(self.session) {
            return isize::MAX as usize;
        }
        self.settings().proto_max_bulk_len
    }

    /// How far the append-only file is synced.
    pub(crate) fn aof_progress(&self) -> AofProgress {
        self.store.persistence.aof
    }

    /// Whether a data set is being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.store.is_loading()
    }

    /// Replaces all data by what the append-only file holds.
    pub(crate) fn reload_aof(&mut self) -> Result<(), String> {
        self.host.reload_aof(self.store, self.reply.outputs())
    }

    /// Has the server sleep before writes go to the append-only file.
    pub(crate) fn set_flush_sleep(&mut self, time: Option<Duration>) {
        self.store.upkeep.cron.flush_sleep = time;
    }

    /// Stops or starts what is done by the clock.
    pub(crate) fn pause_cron(&mut self, paused: bool) {
        self.store.upkeep.cron.paused = paused;
    }
}
