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
//! go, and is told of the end by [`Host::snapshot_ended`]. Whatever commands propagate after
//! `start_snapshot` has returned is not in the snapshot, and everything before is. One snapshot runs
//! at a time.
//!
//! Pace: a slice takes at most a quarter of the time that passes, and at most [`MAX_SLICE_NS`]. No
//! slice is taken while the pieces that wait for the thread hold [`QUEUE_BYTES`]. Writes may still
//! copy entries then; when the pieces exceed a tenth of the data (and [`HOLD_BYTES`]), commands that
//! write wait as they do under CLIENT PAUSE WRITE, until half of that is written. Reads go on.

use super::{Store, persistence};
use crate::host::{Host, Now};
use crate::keyspace::{FrozenDb, Piece};
use crate::output::Outputs;
use crate::rdb::{FileWriter, KeyFacts};
use std::fmt;
use std::io::{self, Write};

/// The longest slice.
const MAX_SLICE_NS: u64 = 1_000_000;
/// The shortest slice: below this, starting one costs more than it copies.
const MIN_SLICE_NS: u64 = 100_000;
/// One part of the time that passes goes to slices, and this many parts to clients.
const CLIENT_PARTS: u64 = 3;
/// Bytes that wait for the writing thread above which no slice is taken.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;
/// Writes are never held below this many bytes waiting.
const HOLD_BYTES: usize = 64 * 1024 * 1024;
/// How soon to look again while the writing thread is behind or finishes.
const LOOK_AGAIN_MS: u64 = 2;
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

/// Encodes the pieces of a snapshot as an RDB file of version 10.
#[derive(Debug)]
pub struct SnapshotEncoder {
    writer: FileWriter,
    databases: Vec<FrozenDb>,
    selected: Option<usize>,
}

impl SnapshotEncoder {
    /// The header of a file: facts, and the libraries of functions.
    pub(super) fn new(store: &Store, purpose: SnapshotPurpose, databases: Vec<FrozenDb>) -> Self {
        let writer = persistence::header(store, purpose == SnapshotPurpose::Rewrite);
        Self {
            writer,
            databases,
            selected: None,
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
            let facts = KeyFacts {
                deadline: copied.deadline,
                ..KeyFacts::default()
            };
            self.writer.key(copied.key, facts, copied.value);
            if self.writer.pending() >= WRITE_BYTES {
                sink.write_all(&self.writer.take())?;
            }
        }
        Ok(())
    }

    /// Begins a database, or goes on with it. How many keys it has is written once.
    fn select(&mut self, db: usize) {
        self.selected = Some(db);
        let known = self.databases.iter().position(|frozen| frozen.db == db);
        match known.map(|at| self.databases.swap_remove(at)) {
            Some(FrozenDb {
                db,
                keys,
                with_deadline,
            }) => self
                .writer
                .database(db as u64, keys as u64, with_deadline as u64),
            None => self.writer.select(db as u64),
        }
    }

    /// Writes the end of the file.
    ///
    /// # Errors
    /// The sink does not take it.
    pub fn finish(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        self.writer.finish();
        sink.write_all(&self.writer.take())
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
    /// When the last slice ended.
    last_slice_ns: u64,
    /// The most bytes that waited for the writing thread.
    pub(crate) peak_bytes: usize,
}

impl Snapshot {
    pub(crate) fn keys_written(&self) -> u64 {
        self.sink.keys_written()
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.sink.queued_bytes()
    }

    fn wants_slice(&self) -> bool {
        !self.copied && self.sink.queued_bytes() < QUEUE_BYTES
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
        if let Some(running) = &self.snapshot {
            return Err(SnapshotError::Running(running.purpose));
        }
        let databases = self.keyspace.freeze();
        let keys = databases.iter().map(|frozen| frozen.keys as u64).sum();
        let encoder = SnapshotEncoder::new(self, purpose, databases);
        let sink = host
            .start_snapshot(&self.config, purpose, encoder)
            .inspect_err(|_| self.keyspace.thaw())?;
        self.snapshot = Some(Snapshot {
            purpose,
            sink,
            started: self.now,
            changes: self.keyspace.dirty,
            keys,
            copied: false,
            last_slice_ns: self.now.mono_ns,
            peak_bytes: 0,
        });
        Ok(())
    }

    /// The purpose of the snapshot that is being taken, if there is one.
    #[must_use]
    pub fn snapshot_purpose(&self) -> Option<SnapshotPurpose> {
        self.snapshot.as_ref().map(|running| running.purpose)
    }

    /// Ends a running snapshot of this purpose without a result; says whether there was one.
    pub fn cancel_snapshot(&mut self, purpose: SnapshotPurpose) -> bool {
        if self.snapshot_purpose() != Some(purpose) {
            return false;
        }
        self.snapshot = None;
        self.keyspace.thaw();
        true
    }

    /// When a running snapshot needs `poll`, in Unix milliseconds.
    pub(super) fn snapshot_deadline(&self) -> Option<u64> {
        let running = self.snapshot.as_ref()?;
        let wait_ms = if running.wants_slice() {
            0
        } else {
            LOOK_AGAIN_MS
        };
        Some(self.now.unix_ms() + wait_ms)
    }

    /// Does the engine's part of a running snapshot: a slice, what is to be handed over, the end.
    pub(super) fn drive_snapshot(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        let Some(running) = &mut self.snapshot else {
            return self.release_writes(outputs, host);
        };
        if running.wants_slice() {
            let start_ns = host.now().mono_ns;
            let passed_ns = start_ns.saturating_sub(running.last_slice_ns);
            let slice_ns = (passed_ns / CLIENT_PARTS).clamp(MIN_SLICE_NS, MAX_SLICE_NS);
            running.copied = self
                .keyspace
                .copy_slice(&mut || host.now().mono_ns.saturating_sub(start_ns) < slice_ns);
            self.now = host.now();
            running.last_slice_ns = self.now.mono_ns;
        }
        for piece in self.keyspace.take_pieces() {
            running.sink.push(piece);
        }
        if running.copied && self.keyspace.is_frozen() {
            self.keyspace.thaw();
            running.sink.end();
        }
        let queued = running.sink.queued_bytes();
        running.peak_bytes = running.peak_bytes.max(queued);
        let limit = HOLD_BYTES.max(self.keyspace.memory_bytes() / 10);
        if queued > limit {
            self.clients.hold_writes = true;
        } else if queued <= limit / 2 {
            self.release_writes(outputs, host);
        }
        if let Some(running) = &mut self.snapshot
            && let Some(outcome) = running.sink.outcome()
        {
            self.end_snapshot(outcome, host);
        }
    }

    fn end_snapshot(&mut self, outcome: io::Result<()>, host: &mut dyn Host) {
        let Some(running) = self.snapshot.take() else {
            return;
        };
        self.keyspace.thaw();
        self.now = host.now();
        if running.purpose == SnapshotPurpose::Save {
            self.saves.note_end(&running, &outcome, self.now);
        }
        host.snapshot_ended(running.purpose, &outcome);
    }

    /// Lets commands run that were held because the writing thread was behind.
    fn release_writes(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        if std::mem::take(&mut self.clients.hold_writes) {
            self.run_held(outputs, host);
        }
    }
}

#[cfg(test)]
mod tests;
