//! Loading a data set while clients are connected: they get LOADING errors, and requests of an AOF are executed without
//! checks, without counting, and without expiring or evicting anything.
//!
//! The session that executes the requests of an AOF is hidden: it is no client. No limit of the configuration applies to
//! it, because what the AOF holds was accepted before, and it has all permissions. If it is closed all the same, or
//! blocks, loading fails: the requests behind that one would be lost.
//!
//! Order of calls: `begin_loading`, then `load_rdb` and `replay` in any order with `note_loaded` between them, then
//! `end_loading`. Writes are not propagated meanwhile: call `listen_to_writes` after the end.

use super::{Flow, Store};
use crate::base::ids::CommandId;
use crate::base::ids::SessionKey;
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use crate::engine::session::{Peer, ReplyMode};
use kumi_resp::{Batch, Decoder, Limits, Step};

/// Requests of an AOF that are executed between two looks at the clock.
const REPLAY_BATCH: usize = super::batch::MAX_BATCH_REQUESTS;

/// How far loading is, as INFO shows it.
#[derive(Debug)]
pub(crate) struct Loading {
    /// The session that executes the requests of an AOF.
    session: SessionKey,
    pub(crate) start_unix_s: u64,
    start_ns: u64,
    pub(crate) total_bytes: u64,
    pub(crate) loaded_bytes: u64,
    /// The files are an append-only file.
    pub(crate) aof: bool,
    /// Requests of an AOF that were answered with an error.
    pub(super) errors: u64,
    /// One of them names a database that does not exist; what follows belongs there.
    pub(super) lacks_database: bool,
    batch: Batch,
}

impl Loading {
    /// Seconds since loading began.
    pub(crate) fn elapsed_s(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.start_ns) / 1_000_000_000
    }
}

/// A request of an AOF that cannot be executed. Everything before it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ReplayError {
    /// Where the request begins among the bytes that were given.
    pub at: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Store {
    /// Begins loading: clients get LOADING errors, and nothing expires until [`Store::end_loading`].
    /// `total_bytes` is the size of all files together. `aof` says that they are an append-only file: the keys of its
    /// base stay although their deadlines have passed, because its increments may refer to them.
    pub fn begin_loading(&mut self, total_bytes: u64, aof: bool) {
        self.listen_to_writes(false);
        let now = self.now;
        let session = self.connect(Peer::default(), now);
        self.telemetry.stats.total_connections -= 1;
        self.clients.hide(session);
        if let Some(session) = self.clients.sessions.get_mut(session) {
            session.modes.reply_mode = ReplyMode::Off;
            session.login.authenticated = true;
        }
        self.keyspace.loading = true;
        self.persistence.loading = Some(Box::new(Loading {
            session,
            start_unix_s: now.unix_us / 1_000_000,
            start_ns: now.mono_ns,
            total_bytes,
            loaded_bytes: 0,
            aof,
            errors: 0,
            lacks_database: false,
            batch: Batch::default(),
        }));
    }

    /// Notes how many bytes of all files have been loaded.
    pub fn note_loaded(&mut self, bytes: u64) {
        if let Some(loading) = &mut self.persistence.loading {
            loading.loaded_bytes = bytes;
        }
    }

    /// Whether a data set is being loaded.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.persistence.loading.is_some()
    }

    /// Ends loading. A transaction of an AOF without its EXEC is dropped. Returns how many requests of
    /// the AOF were answered with an error.
    pub fn end_loading(&mut self, outputs: &mut Outputs) -> u64 {
        let Some(loading) = self.persistence.loading.take() else {
            return 0;
        };
        self.disconnect(loading.session);
        outputs.remove(loading.session);
        self.keyspace.loading = false;
        self.persistence.saves.changes = self.keyspace.dirty;
        loading.errors
    }

    /// Whether a session executes the requests of an AOF.
    #[inline]
    pub(crate) fn is_replay(&self, key: SessionKey) -> bool {
        matches!(&self.persistence.loading, Some(loading) if loading.session == key)
    }

    /// Removes all keys and all functions, for a data set that is loaded next.
    pub fn clear(&mut self) {
        let now_ms = self.now.unix_ms();
        for db in 0..self.keyspace.databases() {
            self.keyspace.flush(db, now_ms);
        }
        self.scripts.libraries = None;
        for garbage in self.keyspace.take_garbage() {
            self.outbox.effects.push(super::Effect::Discard(garbage));
        }
    }

    /// Executes the requests of an AOF. `bytes` begins with a request and ends with one.
    ///
    /// # Errors
    /// A request names no command of this server, or not with its number of arguments, or a database that does not exist, or
    /// closes the session; or the bytes are no requests.
    pub fn replay(
        &mut self,
        bytes: &[u8],
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> Result<(), ReplayError> {
        let Some(loading) = &mut self.persistence.loading else {
            let reason = "loading has not begun".to_owned();
            return Err(ReplayError { at: 0, reason });
        };
        let session = loading.session;
        let mut batch = std::mem::take(&mut loading.batch);
        let replayed = self.replay_runs(session, &mut batch, bytes, outputs, host);
        if let Some(loading) = &mut self.persistence.loading {
            loading.batch = batch;
        }
        replayed
    }

    fn replay_runs(
        &mut self,
        session: SessionKey,
        batch: &mut Batch,
        bytes: &[u8],
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> Result<(), ReplayError> {
        let limits = Limits {
            max_bulk_len: usize::MAX,
            ..Limits::default()
        };
        let mut at = 0;
        while at < bytes.len() {
            batch.clear();
            let (first, mut refused) = (at, None);
            while batch.len() < REPLAY_BATCH
                && let Some(end) = batch.decode(bytes, at, &limits, usize::MAX)
            {
                let args = batch.args(bytes, batch.len() - 1);
                let goes_on = self.plan(session, args);
                if let Err(reason) = self.resolve_replayed(args) {
                    refused = Some((at, reason));
                    break;
                }
                at = end;
                if !goes_on {
                    break;
                }
            }
            if let Some((at, reason)) = refused {
                self.run.plan.clear();
                self.keyspace.work.hints.clear();
                // The requests before it in the same run are left out: the start is refused anyway.
                return Err(ReplayError { at, reason });
            }
            if !batch.is_empty() {
                let (executed, flow) = self.execute_batch(session, batch, bytes, outputs, host);
                self.check_replayed(flow).map_err(|reason| {
                    let before = executed.checked_sub(2);
                    let at = before.map_or(first, |last| batch.end(last));
                    ReplayError { at, reason }
                })?;
                continue;
            }
            at += self
                .replay_one(session, &bytes[at..], &limits, outputs, host)
                .map_err(|reason| ReplayError { at, reason })?;
        }
        Ok(())
    }

    /// Executes a request that is long or has many arguments; returns its length.
    fn replay_one(
        &mut self,
        session: SessionKey,
        bytes: &[u8],
        limits: &Limits,
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> Result<usize, String> {
        let mut decoder = Decoder::new();
        match decoder.decode(bytes, limits) {
            Ok(Step::Request { args, consumed }) => {
                self.resolve_replayed(args)?;
                let now = host.now();
                let flow = self.execute(session, args, now, outputs, host);
                self.check_replayed(flow)?;
                Ok(consumed)
            }
            Ok(Step::Incomplete { .. }) => Err("the request is not complete".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn resolve_replayed(&self, args: kumi_resp::Args<'_>) -> Result<CommandId, String> {
        self.index.resolve(args).map_err(|(_, error)| {
            let error = String::from_utf8_lossy(error.as_bytes());
            if error.starts_with("ERR unknown command") {
                let name = args[0].escape_ascii();
                return format!("Unknown command '{name}' reading the append only file");
            }
            error.into_owned()
        })
    }

    /// No request of an AOF blocks, closes the session that executes it, or names a database that does not exist.
    fn check_replayed(&self, flow: Flow) -> Result<(), String> {
        if matches!(&self.persistence.loading, Some(loading) if loading.lacks_database) {
            return Err(format!(
                "the database does not exist, there are {} (directive 'databases')",
                self.keyspace.databases()
            ));
        }
        match flow {
            Flow::Done => Ok(()),
            Flow::Blocked => Err("a request that waits cannot be part of a log".to_owned()),
            Flow::Close => Err("the session that executes the log was closed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
