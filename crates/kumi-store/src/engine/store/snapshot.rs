//! Snapshots without a fork: how one is started, driven and ended.
//!
//! ```text
//! engine's thread                                    another thread, the host's
//! Store::start_snapshot: marks the instant
//!   host.start_snapshot(purpose, encoder)  ------->  opens a file
//! a write copies raw entries before it changes them
//! Store::poll: a slice of the rest, at most 1 ms
//!   sink.push(piece)                       ------->  encoder.write(piece, file): encodes,
//!   sink.end()                                       compresses, counts the checksum, writes
//!   sink.outcome()                        <-------   encoder.finish(file), fsync, rename
//!   host.snapshot_ended(purpose, outcome)
//! ```
//!
//! To write a snapshot anywhere else than into the RDB file (the base of an append-only file), call
//! [`Store::start_snapshot`] with another [`SnapshotPurpose`]: the host decides by it where the bytes
//! go, and [`Host::snapshot_ended`] reports the end to it. What commands propagate after
//! `start_snapshot` has returned is not in the snapshot, and everything before is. One snapshot runs
//! at a time.
//!
//! Pace: of the time in which commands are executed, slices take a [`BUSY_SHARE`]th, and of the time in
//! between an [`IDLE_SHARE`]th, so that neither they nor the thread that encodes take much of what
//! clients need. A server without any command for [`QUIET_NS`] copies without a pause. No slice is taken while the pieces that wait for
//! the thread hold [`QUEUE_BYTES`].
//!
//! Writes never wait for a snapshot: what they copy goes to the pieces that wait for the thread, however slow the disk is.
//! Each key is copied once, so the pieces never hold more than the data of the instant, which is their limit by default
//! (`snapshot-max-memory`). A snapshot that exceeds its limit has failed; the data, the clients and the old file are
//! as they would be without it. The pieces are not part of `used_memory`: no key is evicted for them.

use super::aof::Requests;
use super::{Store, persistence};
use crate::base::clock::Now;
use crate::data::keyspace::{Piece, SavedAccess, SnapshotDb};
use crate::data::rdb::{FileWriter, KeyFacts};
use crate::engine::host::Host;
use std::fmt;
use std::io::{self, Write};

/// The longest slice while clients send commands.
const MAX_SLICE_NS: u64 = 1_000_000;
/// The shortest slice: below this, starting one costs more than it copies.
const MIN_SLICE_NS: u64 = 20_000;
/// A slice of a server without commands, and of clearing marks.
const QUIET_SLICE_NS: u64 = 300_000;
/// A server is quiet when no command came for this long.
const QUIET_NS: u64 = 20_000_000;
/// One part in this many of the time in which commands are executed goes to slices.
const BUSY_SHARE: u64 = 16;
/// One part in this many of the time between commands goes to slices.
const IDLE_SHARE: u64 = 4;
/// Bytes that wait for the writing thread above which no slice is taken.
const QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// Copies take at most one part in this many more than the entries do: the room that is left at the end of a piece.
const COPY_OVERHEAD: usize = 8;
/// The directive that limits what waits for the writing thread.
const LIMIT_DIRECTIVE: &str = "snapshot-max-memory";
/// How soon to look again while the writing thread is behind or finishes.
const LOOK_AGAIN_NS: u64 = 2_000_000;
/// How long time is saved up for a slice while clients send commands.
const SAVE_UP_NS: u64 = 1_000_000;
/// How much is encoded before it is written.
const WRITE_BYTES: usize = 256 * 1024;

/// What a snapshot is for. The host writes it accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotPurpose {
    /// The RDB file (BGSAVE, save points).
    Save,
    /// The base of an append-only file.
    Rewrite,
}

/// The engine's end of the thread that writes a snapshot. Dropping it cancels the snapshot: once the
/// drop has returned, the thread puts nothing in the place of an older file any more.
pub trait SnapshotSink: fmt::Debug + Send {
    /// Hands a piece to the thread. Does not wait.
    fn push(&mut self, piece: Piece);
    /// Bytes of the pieces that the thread has not written yet.
    fn queued_bytes(&self) -> usize;
    /// Keys written so far.
    fn keys_written(&self) -> u64;
    /// There are no more pieces.
    fn end(&mut self);
    /// How it ended, once it has; an error may come at any time.
    fn outcome(&mut self) -> Option<io::Result<()>>;
}

/// Encodes the pieces of a snapshot: as an RDB file of version 10, or as requests for the base of an append-only file
/// without `aof-use-rdb-preamble`.
#[derive(Debug)]
pub struct SnapshotEncoder {
    format: Format,
    databases: Vec<SnapshotDb>,
    selected: Option<usize>,
    access: SavedAccess,
}

#[derive(Debug)]
enum Format {
    Rdb(FileWriter),
    Requests(Requests),
}

impl SnapshotEncoder {
    /// The beginning of a file: facts, and the libraries of functions.
    pub(super) fn new(
        store: &Store,
        purpose: SnapshotPurpose,
        databases: Vec<SnapshotDb>,
        access: SavedAccess,
    ) -> Self {
        let is_base = purpose == SnapshotPurpose::Rewrite;
        let format = if is_base && !store.config.settings().aof_use_rdb_preamble {
            Format::Requests(Requests::of(store))
        } else {
            Format::Rdb(persistence::header(store, is_base))
        };
        Self {
            format,
            databases,
            selected: None,
            access,
        }
    }

    /// Writes the keys of a piece. `each_key` is called before each of them; its error ends the
    /// writing.
    ///
    /// # Errors
    /// The sink does not take it, or `each_key` fails.
    pub fn write(
        &mut self,
        piece: &Piece,
        sink: &mut dyn Write,
        each_key: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        if self.selected != Some(piece.db) {
            self.select(piece.db);
        }
        for copied in piece.iter() {
            each_key()?;
            let pending = match &mut self.format {
                Format::Rdb(writer) => {
                    let access = copied.access.map(|data| self.access.facts(data));
                    let (idle_s, frequency) = access.unwrap_or_default();
                    let facts = KeyFacts {
                        deadline: copied.deadline,
                        idle_s,
                        frequency,
                    };
                    writer.key(copied.key, facts, copied.value);
                    writer.pending()
                }
                Format::Requests(requests) => {
                    requests.key(copied.key, copied.deadline, copied.value);
                    requests.pending()
                }
            };
            if pending >= WRITE_BYTES {
                self.flush(sink)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        match &mut self.format {
            Format::Rdb(writer) => writer.flush(sink),
            Format::Requests(requests) => requests.flush(sink),
        }
    }

    /// Begins a database, or goes on with it. How many keys it has is written once.
    fn select(&mut self, db: usize) {
        self.selected = Some(db);
        let writer = match &mut self.format {
            Format::Rdb(writer) => writer,
            Format::Requests(requests) => return requests.select(db as u64),
        };
        let known = self.databases.iter().position(|database| database.db == db);
        match known.map(|at| self.databases.swap_remove(at)) {
            Some(SnapshotDb {
                db,
                keys,
                with_deadline,
            }) => writer.database(db as u64, keys as u64, with_deadline as u64),
            None => writer.select(db as u64),
        }
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn finish(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        if let Format::Rdb(writer) = &mut self.format {
            writer.finish();
        }
        self.flush(sink)
    }
}

/// Why a snapshot was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// One runs already; it goes on.
    #[error("a snapshot is being taken already")]
    Running(SnapshotPurpose),
    /// The host could not start to write. Nothing changed.
    #[error("{0}")]
    Host(#[from] io::Error),
}

/// A snapshot that is being taken.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) purpose: SnapshotPurpose,
    sink: Box<dyn SnapshotSink>,
    pub(crate) started: Now,
    /// Changes of the data before the instant.
    pub(crate) changes: u64,
    pub(crate) keys: u64,
    /// All entries are copied and handed over.
    copied: bool,
    /// When slices were last looked at.
    last_ns: u64,
    /// Commands executed by then.
    last_commands: u64,
    /// When a command was last seen to have been executed.
    last_command_ns: u64,
    /// Time that slices may take, saved up while clients were served.
    budget_ns: u64,
    /// The most bytes that waited for the writing thread.
    pub(crate) peak_bytes: usize,
    /// What was in the data at the instant, in bytes.
    data_bytes: usize,
    /// The most bytes that one value or one slice has added so far. A large value counts in full although the data shares
    /// it, so that one slice of such values can be larger than any limit.
    largest_step_bytes: usize,
}

impl Snapshot {
    pub(crate) fn keys_written(&self) -> u64 {
        self.sink.keys_written()
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.sink.queued_bytes()
    }

    /// The most bytes that may wait for the writing thread. `limit` is `snapshot-max-memory`; 0 for the size of the data,
    /// and the overhead of its copies. What slices may fill by themselves is always allowed.
    pub(crate) fn limit_bytes(&self, limit: usize) -> usize {
        let limit = match limit {
            0 => self.data_bytes + self.data_bytes / COPY_OVERHEAD + QUEUE_BYTES,
            limit => limit,
        };
        limit.max(QUEUE_BYTES + self.largest_step_bytes)
    }

    /// Hands pieces to the writing thread. Returns how many bytes they have.
    fn push(&mut self, pieces: Vec<Piece>) -> usize {
        let mut bytes = 0;
        for piece in pieces {
            let piece_bytes = piece.heap_bytes();
            bytes += piece_bytes;
            self.largest_step_bytes = self.largest_step_bytes.max(piece_bytes);
            self.sink.push(piece);
        }
        self.peak_bytes = self.peak_bytes.max(self.sink.queued_bytes());
        bytes
    }

    fn wants_slice(&self) -> bool {
        !self.copied && self.sink.queued_bytes() < QUEUE_BYTES
    }

    fn is_quiet(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_command_ns) >= QUIET_NS
    }

    /// How long a slice may take now; 0 for none.
    fn slice_ns(&mut self, now_ns: u64, commands: u64) -> u64 {
        let passed_ns = now_ns.saturating_sub(self.last_ns);
        let idle = commands == self.last_commands;
        (self.last_ns, self.last_commands) = (now_ns, commands);
        if !idle {
            self.last_command_ns = now_ns;
        }
        if !self.wants_slice() {
            return 0;
        }
        if self.is_quiet(now_ns) {
            return QUIET_SLICE_NS;
        }
        let share = if idle { IDLE_SHARE } else { BUSY_SHARE };
        self.budget_ns = (self.budget_ns + passed_ns / share).min(MAX_SLICE_NS);
        if self.budget_ns < MIN_SLICE_NS {
            return 0;
        }
        std::mem::take(&mut self.budget_ns)
    }
}

impl Store {
    /// Starts a snapshot of this instant, which the host writes on another thread.
    ///
    /// # Errors
    /// One is running, or the host cannot write.
    pub fn start_snapshot(
        &mut self,
        purpose: SnapshotPurpose,
        host: &mut dyn Host,
    ) -> Result<(), SnapshotError> {
        if let Some(running) = &self.persistence.snapshot {
            return Err(SnapshotError::Running(running.purpose));
        }
        let access = SavedAccess::of(self.config.settings(), self.now.unix_ms());
        let databases = self.keyspace.begin_snapshot(access.is_saved());
        let keys = databases.iter().map(|database| database.keys as u64).sum();
        let encoder = SnapshotEncoder::new(self, purpose, databases, access);
        let sink = host
            .start_snapshot(&self.config, purpose, encoder)
            .inspect_err(|_| self.keyspace.thaw())?;
        self.persistence.snapshot = Some(Snapshot {
            purpose,
            sink,
            started: self.now,
            changes: self.keyspace.dirty,
            keys,
            copied: false,
            last_ns: self.now.mono_ns,
            last_commands: self.telemetry.stats.total_commands,
            last_command_ns: self.now.mono_ns,
            budget_ns: 0,
            peak_bytes: 0,
            data_bytes: self.keyspace.memory_bytes(),
            largest_step_bytes: 0,
        });
        Ok(())
    }

    /// The purpose of the snapshot that is being taken, if there is one.
    #[must_use]
    pub fn snapshot_purpose(&self) -> Option<SnapshotPurpose> {
        self.persistence
            .snapshot
            .as_ref()
            .map(|running| running.purpose)
    }

    /// Ends a running snapshot of this purpose without a result; says whether there was one.
    pub fn cancel_snapshot(&mut self, purpose: SnapshotPurpose) -> bool {
        if self.snapshot_purpose() != Some(purpose) {
            return false;
        }
        self.persistence.snapshot = None;
        self.keyspace.thaw();
        true
    }

    /// When a running snapshot needs `poll`, in Unix milliseconds.
    pub(super) fn snapshot_deadline(&self) -> Option<u64> {
        let Some(running) = &self.persistence.snapshot else {
            return self.keyspace.is_sweeping().then(|| self.now.unix_ms());
        };
        let wait_ns = match running.wants_slice() {
            false => LOOK_AGAIN_NS,
            true if running.is_quiet(self.now.mono_ns) => 0,
            true => SAVE_UP_NS,
        };
        // Counted from the last look: commands move `now`.
        Some(self.unix_ms_at(running.last_ns + wait_ns))
    }

    /// Does the engine's part of a running snapshot: a slice, what is to be handed over, the end.
    pub(super) fn drive_snapshot(&mut self, host: &mut dyn Host) {
        let Some(running) = &mut self.persistence.snapshot else {
            if self.keyspace.is_sweeping() {
                let start_ns = host.now().mono_ns;
                let mut go_on = || host.now().mono_ns.saturating_sub(start_ns) < QUIET_SLICE_NS;
                self.keyspace.sweep_slice(&mut go_on);
            }
            return;
        };
        let start_ns = host.now().mono_ns;
        let slice_ns = running.slice_ns(start_ns, self.telemetry.stats.total_commands);
        // What writes have copied since the last look.
        running.push(self.keyspace.take_pieces());
        if slice_ns > 0 {
            let mut go_on = || host.now().mono_ns.saturating_sub(start_ns) < slice_ns;
            running.copied = self.keyspace.copy_slice(&mut go_on);
            self.now = host.now();
            running.last_ns = self.now.mono_ns;
            let bytes = running.push(self.keyspace.take_pieces());
            running.largest_step_bytes = running.largest_step_bytes.max(bytes);
        }
        if running.copied && self.keyspace.has_snapshot() {
            self.keyspace.thaw();
            running.sink.end();
        }
        let limit = running.limit_bytes(self.config.settings().snapshot_max_memory);
        if let Some(outcome) = running.sink.outcome() {
            self.end_snapshot(outcome, host);
        } else if running.queued_bytes() > limit {
            let reason = format!(
                "the disk is too slow: more than {limit} bytes wait to be written ({LIMIT_DIRECTIVE})"
            );
            self.end_snapshot(Err(io::Error::other(reason)), host);
        }
    }

    fn end_snapshot(&mut self, outcome: io::Result<()>, host: &mut dyn Host) {
        let Some(running) = self.persistence.snapshot.take() else {
            return;
        };
        self.keyspace.thaw();
        self.now = host.now();
        match running.purpose {
            SnapshotPurpose::Save => self
                .persistence
                .saves
                .note_end(&running, &outcome, self.now),
            SnapshotPurpose::Rewrite => {
                self.persistence.saves.rewrite_extra_bytes = running.peak_bytes
            }
        }
        host.snapshot_ended(running.purpose, &outcome);
    }
}

#[cfg(test)]
mod tests;
