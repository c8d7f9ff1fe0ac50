//! The running log. Once per turn of the event loop it takes the engine's writes, appends them in one call of the
//! system, and syncs by `appendfsync`.
//!
//! `everysec`: the thread of `sync.rs` syncs once a second. A write while it does may wait for the disk, so it is
//! postponed, for two seconds at most, as in Redis.
//!
//! A file that could not be written or synced is not trusted any more: what the system has kept of it is not known.
//! With `always` the server ends without sending the replies of the turn. Otherwise writes are refused until a new base
//! with all data and a new increment are on disk.

use super::append::Appender;
use super::files::Sink;
use super::manifest::{Manifest, Part};
use super::place::Place;
use super::sync::{Job, Syncer};
use kumi_store::config::{Fsync, Settings};
use kumi_store::{LogFacts, Now, Outputs, Store};
use mio::Waker;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// `everysec` syncs this often.
const SYNC_NS: u64 = 1_000_000_000;
/// A write waits for a running fsync for this long.
const POSTPONE_NS: u64 = 2_000_000_000;
/// A buffer that grew beyond this is not kept.
const KEEP_BYTES: usize = 1024 * 1024;
/// A base is synced after this many bytes, with `aof-rewrite-incremental-fsync`.
const SYNC_EVERY: u64 = 4 * 1024 * 1024;
/// After a failed attempt to write a new base, the next one waits for this long, doubled each time ...
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// ... up to this.
const LAST_RETRY: Duration = Duration::from_secs(60);

/// What the directives say.
#[derive(Clone, Copy, Debug)]
struct Policy {
    fsync: Fsync,
    timestamps: bool,
    rewrite_percent: u64,
    rewrite_min_bytes: u64,
    rdb_base: bool,
    incremental_fsync: bool,
    keep_history: bool,
    no_sync_on_rewrite: bool,
}

impl Policy {
    fn of(settings: &Settings) -> Self {
        Self {
            fsync: settings.appendfsync,
            timestamps: settings.aof_timestamps,
            rewrite_percent: settings.aof_rewrite_percent,
            rewrite_min_bytes: settings.aof_rewrite_min_bytes,
            rdb_base: settings.aof_use_rdb_preamble,
            incremental_fsync: settings.aof_incremental_fsync,
            keep_history: settings.aof_keep_history,
            no_sync_on_rewrite: settings.no_appendfsync_on_rewrite,
        }
    }
}

/// The running log.
#[derive(Debug)]
pub(crate) struct Log {
    place: Place,
    /// Held against other servers; none in tests without a disk.
    _lock: Option<File>,
    manifest: Manifest,
    policy: Policy,
    /// None until the first base is written, and after the file failed.
    appender: Option<Appender>,
    syncer: Syncer,
    /// Writes that are not in the file yet.
    waiting: Vec<u8>,
    /// A second buffer, which the engine writes into meanwhile.
    spare: Vec<u8>,
    /// Position in the stream of all writes: what was taken from the engine, what is in the file, what is synced.
    taken: u64,
    written: u64,
    synced: u64,
    /// Position in the increment up to which it is synced.
    synced_position: u64,
    last_sync_ns: u64,
    postponed_ns: Option<u64>,
    /// Bytes of the files before the increment that is written to.
    earlier_bytes: u64,
    /// Bytes of all files after the last rewrite.
    base_bytes: u64,
    /// A new base is to be written at the end of the turn.
    wants_base: bool,
    retry: Option<Retry>,
    rewrite: Option<Rewrite>,
    facts: LogFacts,
}

/// A new base that a snapshot is written to while the log goes on.
#[derive(Debug)]
struct Rewrite {
    base: Part,
    /// The number of the first increment behind the base.
    first_seq: u64,
    /// Nothing before it is used any more, and the manifest does not name the increment yet.
    fresh: bool,
    started_ns: u64,
}

/// When a new base is tried again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at_ns: u64,
    wait: Duration,
}

/// What [`Log::load`] or the start at run time hands over.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) place: Place,
    pub(crate) lock: Option<File>,
    pub(crate) manifest: Manifest,
    /// The lengths of the files with data, in their order.
    pub(crate) lengths: Vec<u64>,
    /// Position in the stream of all writes.
    pub(crate) stream: u64,
}

impl Log {
    /// Begins to write. The last increment is continued if the data came from it; otherwise the first call of
    /// [`Log::maintain`] writes a base.
    pub(crate) fn start(
        start: Start,
        settings: &Settings,
        waker: Option<Arc<Waker>>,
        continues: bool,
        now: Now,
    ) -> io::Result<Self> {
        let total: u64 = start.lengths.iter().sum();
        let mut log = Self {
            place: start.place,
            _lock: start.lock,
            manifest: start.manifest,
            policy: Policy::of(settings),
            appender: None,
            syncer: Syncer::start(waker)?,
            waiting: Vec::new(),
            spare: Vec::new(),
            taken: start.stream,
            written: start.stream,
            synced: start.stream,
            synced_position: 0,
            last_sync_ns: now.mono_ns,
            postponed_ns: None,
            earlier_bytes: 0,
            base_bytes: total,
            wants_base: !continues,
            retry: None,
            rewrite: None,
            facts: LogFacts::default(),
        };
        if continues {
            log.continue_last(&start.lengths)?;
        }
        log.facts.enabled = true;
        Ok(log)
    }

    /// Appends to the last increment from now on; makes one if there is none.
    fn continue_last(&mut self, lengths: &[u64]) -> io::Result<()> {
        self.remove_history();
        let (last, earlier) = match lengths.split_last() {
            Some((&last, earlier)) if !self.manifest.increments.is_empty() => (last, earlier),
            _ => (0, lengths),
        };
        self.earlier_bytes = earlier.iter().sum();
        if self.manifest.increments.is_empty() {
            let part = self.place.increment(self.manifest.last_increment_seq() + 1);
            let appender = Appender::open(&*self.place.files, &self.place.path(&part), 0)?;
            self.place.files.sync_directory(&self.place.directory)?;
            let mut manifest = self.manifest.clone();
            manifest.increments.push(part);
            self.place.write(&manifest)?;
            self.manifest = manifest;
            self.take_appender(appender);
            return Ok(());
        }
        if let Some(part) = self.manifest.increments.last() {
            let path = self.place.path(part);
            let appender = Appender::open(&*self.place.files, &path, last)?;
            self.take_appender(appender);
        }
        Ok(())
    }

    fn take_appender(&mut self, appender: Appender) {
        self.synced_position = appender.position();
        self.appender = Some(appender);
        self.synced = self.written;
    }

    /// Takes over changed directives.
    pub(crate) fn configure(&mut self, settings: &Settings) {
        self.policy = Policy::of(settings);
    }

    /// What INFO shows.
    pub(crate) fn facts(&self, now: Now) -> LogFacts {
        let mut facts = self.facts;
        facts.current_bytes = self.current_bytes();
        facts.base_bytes = self.base_bytes;
        facts.buffered_bytes = self.waiting.len() as u64;
        facts.fsync_running = self.syncer.is_running();
        facts.rewrite_scheduled = self.wants_base;
        facts.rewriting = self.rewrite.is_some();
        facts.current_rewrite_s = self
            .rewrite
            .as_ref()
            .map(|rewrite| now.mono_ns.saturating_sub(rewrite.started_ns) / 1_000_000_000);
        facts
    }

    fn current_bytes(&self) -> u64 {
        let increment = self.appender.as_ref().map_or(0, Appender::position);
        self.earlier_bytes + increment
    }

    /// Writes what the engine has written since, before the replies are sent.
    ///
    /// # Errors
    /// With `appendfsync always` and a file that cannot be written or synced: send no reply, and end.
    pub(crate) fn flush(
        &mut self,
        store: &mut Store,
        outputs: &mut Outputs,
        now: Now,
    ) -> io::Result<()> {
        self.take_sync_result(store);
        self.take_writes(store);
        if self.appender.is_none() {
            // A new base is on its way and will have them.
            self.drop_waiting();
            return Ok(());
        }
        let before = self.synced;
        let outcome = self.write(now).and_then(|()| self.sync(now));
        if let Err(error) = outcome {
            if self.policy.fsync == Fsync::Always {
                return Err(error);
            }
            self.give_up(store, &error);
        }
        if (self.synced != before || !store.has_log()) && !self.is_incomplete() {
            store.note_log(true, self.synced, outputs);
        }
        Ok(())
    }

    fn take_writes(&mut self, store: &mut Store) {
        if self.waiting.is_empty() {
            self.taken = store.swap_writes(&mut self.waiting);
            return;
        }
        self.taken = store.swap_writes(&mut self.spare);
        self.waiting.append(&mut self.spare);
    }

    fn drop_waiting(&mut self) {
        self.waiting.clear();
        self.waiting.shrink_to(KEEP_BYTES);
        self.spare.shrink_to(KEEP_BYTES);
        self.written = self.taken;
        self.postponed_ns = None;
    }

    fn write(&mut self, now: Now) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if self.policy.fsync == Fsync::EverySecond && self.syncer.is_running() {
            let since_ns = *self.postponed_ns.get_or_insert(now.mono_ns);
            if now.mono_ns.saturating_sub(since_ns) < POSTPONE_NS {
                return Ok(());
            }
            self.facts.delayed_fsyncs += 1;
            tracing::warn!(
                "Asynchronous AOF fsync is taking too long (disk is busy?). Writing the AOF buffer without waiting for fsync to complete, this may slow down the server."
            );
        }
        if let Some(appender) = &mut self.appender {
            let unix_s = self.policy.timestamps.then_some(now.unix_us / 1_000_000);
            appender.append(&self.waiting, self.synced_position, unix_s)?;
        }
        self.drop_waiting();
        Ok(())
    }

    fn sync(&mut self, now: Now) -> io::Result<()> {
        let Some(appender) = &self.appender else {
            return Ok(());
        };
        let left_to_system = self.policy.no_sync_on_rewrite && self.rewrite.is_some();
        if self.synced == self.written || left_to_system {
            return Ok(());
        }
        match self.policy.fsync {
            Fsync::Always => {
                appender.file().sync()?;
                self.synced = self.written;
                self.synced_position = appender.position();
                self.last_sync_ns = now.mono_ns;
            }
            Fsync::EverySecond => {
                let elapsed_ns = now.mono_ns.saturating_sub(self.last_sync_ns);
                if elapsed_ns >= SYNC_NS && !self.syncer.is_running() {
                    self.last_sync_ns = now.mono_ns;
                    self.syncer.submit(Job {
                        file: appender.file().clone(),
                        position: appender.position(),
                        stream: self.written,
                        seq: self.increment_seq(),
                    });
                }
            }
            Fsync::No => {}
        }
        Ok(())
    }

    fn increment_seq(&self) -> u64 {
        self.manifest.increments.last().map_or(0, |part| part.seq)
    }

    fn take_sync_result(&mut self, store: &mut Store) {
        let Some(done) = self.syncer.take() else {
            return;
        };
        if done.seq != self.increment_seq() || self.appender.is_none() {
            return;
        }
        match done.outcome {
            Ok(()) => {
                self.synced = self.synced.max(done.stream);
                self.synced_position = self.synced_position.max(done.position);
            }
            Err(error) => self.give_up(store, &error),
        }
    }

    /// The file cannot be trusted any more: writes are refused until there is a new one.
    fn give_up(&mut self, store: &mut Store, error: &io::Error) {
        tracing::error!(
            "Error writing to the AOF file: {error}. Writes are refused until a new base is on disk."
        );
        store.refuse_writes(Some(&crate::host::plain(error)));
        self.facts.last_write_failed = true;
        self.appender = None;
        self.wants_base = true;
        self.drop_waiting();
    }

    /// Waits until the thread that syncs is idle; its result is taken by the next flush.
    #[cfg(test)]
    pub(crate) fn settle(&self) {
        while self.syncer.is_running() {
            std::thread::yield_now();
        }
    }

    /// Whether a snapshot becomes a new base.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.rewrite.is_some()
    }

    /// Asks for a new base after the time that a failure sets.
    pub(crate) fn request_base_later(&mut self) {
        self.wants_base = true;
        self.facts.last_write_failed = true;
    }

    /// Whether there is a file to append to.
    pub(crate) fn has_file(&self) -> bool {
        self.appender.is_some()
    }

    /// The files as they are now.
    pub(crate) fn files(&self) -> (Place, Manifest) {
        (self.place.clone(), self.manifest.clone())
    }

    /// Asks for a new base: BGREWRITEAOF.
    pub(crate) fn request_base(&mut self) {
        self.wants_base = true;
        self.retry = None;
    }

    /// Whether data is still missing in the files, until the running rewrite ends.
    fn is_incomplete(&self) -> bool {
        self.rewrite.as_ref().is_some_and(|rewrite| rewrite.fresh)
    }

    /// Whether it is time for a new base. Ask between commands, after `flush`.
    pub(crate) fn is_due(&self, now: Now) -> bool {
        self.rewrite.is_none()
            && (self.wants_base || self.has_grown())
            && self.retry.is_none_or(|retry| now.mono_ns >= retry.at_ns)
    }

    /// Whether a snapshot can become the base. A base of requests is written by [`Log::maintain`].
    pub(crate) fn takes_snapshots(&self) -> bool {
        self.policy.rdb_base
    }

    /// Begins a new increment for what is written from now on, and returns where the snapshot of this instant goes. Start
    /// the snapshot before the next command, and report its end with [`Log::end_rewrite`].
    pub(crate) fn begin_rewrite(&mut self, store: &mut Store, now: Now) -> io::Result<()> {
        self.syncer.wait();
        self.place.make_directory()?;
        let base = self.place.base(self.manifest.last_base_seq() + 1, true);
        let part = self.place.increment(self.manifest.last_increment_seq() + 1);
        let fresh = self.appender.is_none();
        let path = self.place.path(&part);
        // The old increment must be on disk before the manifest names one behind it.
        self.close_increment()
            .inspect_err(|_| self.appender = None)?;
        self.earlier_bytes = if fresh { 0 } else { self.current_bytes() };
        self.drop_waiting();
        let begun = Appender::open(&*self.place.files, &path, 0).and_then(|appender| {
            self.place.files.sync_directory(&self.place.directory)?;
            if !fresh {
                let mut manifest = self.manifest.clone();
                manifest.increments.push(part.clone());
                self.place.write(&manifest)?;
                self.manifest = manifest;
            }
            Ok(appender)
        });
        // Without a new increment the old one, which is closed, cannot be used either.
        let appender = begun.inspect_err(|_| self.appender = None)?;
        store.begin_log_file();
        self.take_appender(appender);
        self.wants_base = false;
        self.rewrite = Some(Rewrite {
            base,
            first_seq: part.seq,
            fresh,
            started_ns: now.mono_ns,
        });
        Ok(())
    }

    /// Writes what waits to the increment, if there is one, and ends it.
    fn close_increment(&mut self) -> io::Result<()> {
        let Some(appender) = &mut self.appender else {
            return Ok(());
        };
        if !self.waiting.is_empty() {
            appender.append(&self.waiting, self.synced_position, None)?;
        }
        appender.close()
    }

    /// The temporary file of the running rewrite, its place when it is complete, and whether it is synced meanwhile.
    pub(crate) fn rewrite_paths(&self) -> Option<(PathBuf, PathBuf, bool)> {
        let rewrite = self.rewrite.as_ref()?;
        let temporary = format!("temp-rewriteaof-bg-{}.aof", std::process::id());
        let temporary = self.place.directory.join(temporary);
        let path = self.place.path(&rewrite.base);
        Some((temporary, path, self.policy.incremental_fsync))
    }

    /// The snapshot of the running rewrite is complete under its name, or failed.
    pub(crate) fn end_rewrite(
        &mut self,
        store: Option<(&mut Store, &mut Outputs)>,
        outcome: io::Result<()>,
        now: Now,
    ) {
        let Some(rewrite) = self.rewrite.take() else {
            return;
        };
        let elapsed_s = now.mono_ns.saturating_sub(rewrite.started_ns) / 1_000_000_000;
        self.facts.last_rewrite_s = Some(elapsed_s);
        let installed = outcome.and_then(|()| self.install(&rewrite));
        if let Err(error) = installed {
            if rewrite.fresh {
                self.appender = None;
                self.wants_base = true;
            }
            return self.note_failure(&error, now);
        }
        self.note_success();
        if let Some((store, outputs)) = store {
            store.refuse_writes(None);
            store.note_log(true, self.synced, outputs);
        }
    }

    /// Has the manifest name the new base, and only what is behind it.
    fn install(&mut self, rewrite: &Rewrite) -> io::Result<()> {
        let (_, len) = self.place.files.read(&self.place.path(&rewrite.base))?;
        let increments: Vec<Part> = if rewrite.fresh {
            vec![self.place.increment(rewrite.first_seq)]
        } else {
            let parts = self.manifest.increments.iter();
            parts
                .filter(|part| part.seq >= rewrite.first_seq)
                .cloned()
                .collect()
        };
        let unused = self.manifest.history.iter().chain(self.manifest.data());
        let history = unused
            .filter(|part| !increments.contains(part))
            .cloned()
            .collect();
        let mut manifest = Manifest::default();
        manifest.base = Some(rewrite.base.clone());
        manifest.history = history;
        manifest.increments = increments;
        self.place.write(&manifest)?;
        self.manifest = manifest;
        self.earlier_bytes = len;
        self.base_bytes = self.current_bytes();
        self.remove_history();
        Ok(())
    }

    fn note_success(&mut self) {
        self.wants_base = false;
        self.retry = None;
        self.facts.rewrites += 1;
        self.facts.rewrite_failures = 0;
        self.facts.last_rewrite_failed = false;
        self.facts.last_write_failed = false;
        tracing::info!("Background AOF rewrite finished successfully");
    }

    pub(crate) fn note_failure(&mut self, error: &io::Error, now: Now) {
        let wait = self
            .retry
            .map_or(FIRST_RETRY, |retry| (retry.wait * 2).min(LAST_RETRY));
        let at_ns = now.mono_ns.saturating_add(wait.as_nanos() as u64);
        self.retry = Some(Retry { at_ns, wait });
        self.facts.rewrite_failures += 1;
        self.facts.last_rewrite_failed = true;
        tracing::error!("Background AOF rewrite failed: {error}. It is tried again in {wait:?}.");
    }

    /// Writes a new base at once if it is time for one. Call it between commands, after `flush`.
    pub(crate) fn maintain(&mut self, store: &mut Store, outputs: &mut Outputs, now: Now) {
        if !self.is_due(now) {
            return;
        }
        match self.write_base(store) {
            Ok(()) => {
                self.note_success();
                store.refuse_writes(None);
                store.note_log(true, self.synced, outputs);
            }
            Err(error) => self.note_failure(&error, now),
        }
    }

    fn has_grown(&self) -> bool {
        let (current, base) = (self.current_bytes(), self.base_bytes.max(1));
        let grown = current.saturating_sub(base).saturating_mul(100) / base;
        self.policy.rewrite_percent > 0
            && self.appender.is_some()
            && current > self.policy.rewrite_min_bytes
            && grown >= self.policy.rewrite_percent
    }

    /// Writes all data as a new base and begins a new increment. The old files are used until the manifest names the
    /// new ones. This is the one place that turns data into a base.
    fn write_base(&mut self, store: &mut Store) -> io::Result<()> {
        // A result for the old increment must not be taken for the new one.
        self.syncer.wait();
        self.place.make_directory()?;
        let files = self.place.files.clone();
        let base = self
            .place
            .base(self.manifest.last_base_seq() + 1, self.policy.rdb_base);
        let part = self.place.increment(self.manifest.last_increment_seq() + 1);
        let temporary = format!("temp-rewriteaof-bg-{}.aof", std::process::id());
        let temporary = self.place.directory.join(temporary);
        let sync_every = self.policy.incremental_fsync.then_some(SYNC_EVERY);
        let mut sink = Sink::new(files.create(&temporary)?, sync_every);
        let rdb = self.policy.rdb_base;
        let saved = if rdb {
            store.save_rdb(&mut sink)
        } else {
            store.save_requests(&mut sink)
        };
        let installed = saved.and_then(|()| {
            let base_bytes = sink.finish()?;
            files.rename(&temporary, &self.place.path(&base))?;
            let appender = Appender::open(&*files, &self.place.path(&part), 0)?;
            files.sync_directory(&self.place.directory)?;
            let manifest = self.successor(base, part);
            self.place.write(&manifest)?;
            Ok((base_bytes, appender, manifest))
        });
        let (base_bytes, appender, manifest) = installed.inspect_err(|_| {
            // It may not exist; the error that matters is the first one.
            let _ = files.remove(&temporary);
        })?;
        self.manifest = manifest;
        store.begin_log_file();
        self.earlier_bytes = base_bytes;
        self.drop_waiting();
        self.take_appender(appender);
        self.base_bytes = self.current_bytes();
        self.remove_history();
        Ok(())
    }

    /// The manifest with a new base and a new increment in place of everything before.
    fn successor(&self, base: Part, increment: Part) -> Manifest {
        let mut manifest = Manifest {
            base: Some(base),
            increments: vec![increment],
            ..Manifest::default()
        };
        let unused = self.manifest.history.iter().chain(self.manifest.data());
        manifest.history = unused.cloned().collect();
        manifest
    }

    /// Removes files that are no longer used. A file that stays is tried again at the next time.
    fn remove_history(&mut self) {
        if self.policy.keep_history || self.manifest.history.is_empty() {
            return;
        }
        let mut manifest = self.manifest.clone();
        manifest.history.retain(
            |part| match self.place.files.remove(&self.place.path(part)) {
                Ok(()) => false,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    tracing::warn!("{} cannot be removed: {error}", part.name);
                    true
                }
            },
        );
        match self.place.write(&manifest) {
            Ok(()) => self.manifest = manifest,
            Err(error) => tracing::warn!("the manifest cannot be written: {error}"),
        }
    }

    /// Writes what waits, and marks the end.
    ///
    /// # Errors
    /// Writes may be missing in the file.
    pub(crate) fn close(&mut self, store: &mut Store) -> io::Result<()> {
        let last = self.syncer.wait();
        if let Some(error) = last.and_then(|done| done.outcome.err()) {
            return Err(error);
        }
        self.take_writes(store);
        if self.appender.is_none() && self.facts.last_write_failed {
            return Err(io::Error::other("the append-only file had failed before"));
        }
        self.close_increment()?;
        self.appender = None;
        self.drop_waiting();
        self.synced = self.written;
        Ok(())
    }
}
