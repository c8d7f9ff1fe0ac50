//! The running AOF. Once per turn of the event loop it takes the engine's writes, appends them in one call of the
//! system, and syncs by `appendfsync`.
//!
//! `everysec`: the thread of `sync.rs` syncs once a second. A write while it does may wait for the disk, so it is
//! postponed, for two seconds at most, as in Redis.
//!
//! A file that could not be written or synced is not trusted any more: what the system has kept of it is not known.
//! With `always` the server ends without sending the replies of the turn. Otherwise writes are refused until a new base
//! with all data and a new increment are on disk.

use super::append::Appender;
use super::manifest::{Manifest, Part};
use super::place::Place;
use super::rewrite::Installed;
use super::switch::Switch;
use super::sync::{Syncer, Work};
use kumi_resp::SharedBytes;
use kumi_store::config::{Fsync, Settings};
use kumi_store::{AofFacts, Now, Outputs, Store, Writes};
use mio::Waker;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// `everysec` syncs this often.
const SYNC_NS: u64 = 1_000_000_000;
/// A write waits for a running fsync for this long.
const POSTPONE_NS: u64 = 2_000_000_000;
/// A buffer that grew beyond this is not kept.
const KEEP_BYTES: usize = 1024 * 1024;

/// What the directives say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) fsync: Fsync,
    pub(super) timestamps: bool,
    pub(super) rewrite_percent: u64,
    pub(super) rewrite_min_bytes: u64,
    pub(super) rdb_base: bool,
    pub(super) incremental_fsync: bool,
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
            no_sync_on_rewrite: settings.no_appendfsync_on_rewrite,
        }
    }

    pub(super) fn is_always(&self) -> bool {
        self.fsync == Fsync::Always
    }
}

/// The running AOF.
#[derive(Debug)]
pub(crate) struct Aof {
    pub(super) place: Place,
    /// Held against other servers; none in tests without a disk.
    pub(super) lock: Option<Arc<File>>,
    pub(super) manifest: Manifest,
    /// The number of the last increment before this AOF began.
    pub(super) last_increment: u64,
    /// Files of attempts that failed. The manifest on disk may name them; they are removed when another one is there.
    pub(super) left: Vec<Part>,
    pub(super) policy: Policy,
    /// `aof-disable-auto-gc`: files that are no longer used stay.
    pub(super) keeps_history: Arc<AtomicBool>,
    /// None until the first base is written, and after the file failed.
    pub(super) appender: Option<Appender>,
    /// Counts the appenders. The number of an increment does not tell them apart: the manifest does not name the increment
    /// of a fresh rewrite until the rewrite ends.
    generation: u64,
    pub(super) syncer: Syncer,
    /// Writes that are not in the file yet.
    pub(super) waiting: Writes,
    /// A second buffer, which the engine writes into meanwhile.
    spare: Writes,
    /// Large arguments that were written and that nothing else refers to.
    garbage: Vec<SharedBytes>,
    /// Position in the stream of all writes: what was taken from the engine, what is in the file, what is synced.
    taken: u64,
    written: u64,
    pub(super) synced: u64,
    /// The value of `synced` that the engine was last told.
    told: u64,
    /// Position in the increment up to which it is synced.
    pub(super) synced_position: u64,
    /// The time when writes were last taken.
    unix_s: u64,
    last_sync_ns: u64,
    postponed_ns: Option<u64>,
    /// Bytes of the files before the increment that is written to.
    pub(super) earlier_bytes: u64,
    /// Bytes of all files after the last rewrite; before the first one of this process, bytes of the base, as in Redis: or
    /// the files of a server that is often started again would grow for good.
    pub(super) base_bytes: u64,
    /// A new base is to be written at the end of the turn.
    pub(super) wants_base: bool,
    pub(super) retry: Option<Retry>,
    /// The AOF began at run time, and its first base is not complete yet. Until then no write is refused for it.
    pub(super) initial: bool,
    /// How far the beginning of a rewrite is.
    pub(super) switch: Option<Switch>,
    pub(super) rewrite: Option<Rewrite>,
    pub(super) facts: AofFacts,
}

/// A new base that a snapshot is written to while the AOF goes on.
#[derive(Debug)]
pub(super) struct Rewrite {
    pub(super) base: Part,
    /// The number of the first increment behind the base.
    pub(super) first_seq: u64,
    /// Nothing before it is used any more, and the manifest does not name the increment yet.
    pub(super) fresh: bool,
    pub(super) started_ns: u64,
    /// Whether the increment has its name for good: before that, the manifest of the new base may not be written.
    pub(super) may_install: Arc<AtomicBool>,
    /// Set by the thread that writes the base, when the manifest names it.
    pub(super) installed: Arc<OnceLock<Installed>>,
}

/// When a new base is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub(super) at_ns: u64,
    pub(super) wait: Duration,
}

/// What an AOF starts with: after loading, or at run time.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) place: Place,
    pub(crate) lock: Option<File>,
    pub(crate) manifest: Manifest,
    /// The lengths of the files with data, in their order.
    pub(crate) lengths: Vec<u64>,
    /// The seed of the last file's checksums, 0 if it has none.
    pub(crate) seed: u64,
    /// Position in the stream of all writes.
    pub(crate) stream: u64,
    /// The number of the last increment of this process, which the manifest may not name any more.
    pub(crate) last_increment: u64,
}

impl Aof {
    /// Begins to write. The last increment is continued if the data came from it; otherwise the first call of
    /// [`Aof::maintain`] writes a base.
    pub(crate) fn start(
        start: Start,
        settings: &Settings,
        waker: Option<Arc<Waker>>,
        continues: bool,
        now: Now,
    ) -> io::Result<Self> {
        let base_bytes = match (&start.manifest.base, start.lengths.first()) {
            (Some(_), Some(&length)) => length,
            _ => 0,
        };
        let mut aof = Self {
            place: start.place,
            lock: start.lock.map(Arc::new),
            manifest: start.manifest,
            last_increment: start.last_increment,
            left: Vec::new(),
            policy: Policy::of(settings),
            keeps_history: Arc::new(AtomicBool::new(settings.aof_keep_history)),
            appender: None,
            generation: 0,
            syncer: Syncer::start(waker)?,
            waiting: Writes::default(),
            spare: Writes::default(),
            garbage: Vec::new(),
            taken: start.stream,
            written: start.stream,
            synced: start.stream,
            told: start.stream,
            synced_position: 0,
            unix_s: now.unix_us / 1_000_000,
            last_sync_ns: now.mono_ns,
            postponed_ns: None,
            earlier_bytes: 0,
            base_bytes,
            wants_base: !continues,
            retry: None,
            initial: !continues,
            switch: None,
            rewrite: None,
            facts: AofFacts::default(),
        };
        if continues {
            aof.continue_last(&start.lengths, start.seed)?;
        }
        aof.facts.enabled = true;
        Ok(aof)
    }

    /// Appends to the last increment from now on; makes one if there is none.
    fn continue_last(&mut self, lengths: &[u64], seed: u64) -> io::Result<()> {
        self.remove_history();
        let (last, earlier) = match lengths.split_last() {
            Some((&last, earlier)) if !self.manifest.increments.is_empty() => (last, earlier),
            _ => (0, lengths),
        };
        self.earlier_bytes = earlier.iter().sum();
        if self.manifest.increments.is_empty() {
            let part = self.place.increment(self.last_increment() + 1);
            let appender = Appender::create(
                &*self.place.files,
                &self.place.path(&part),
                self.policy.fsync,
            )?;
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
            let appender =
                Appender::open(&*self.place.files, &path, last, seed, self.policy.fsync)?;
            self.take_appender(appender);
        }
        Ok(())
    }

    pub(super) fn take_appender(&mut self, mut appender: Appender) {
        appender.set_fsync(self.policy.fsync);
        self.stamp(&mut appender);
        self.synced_position = appender.position();
        self.generation += 1;
        self.appender = Some(appender);
        self.synced = self.written;
    }

    /// Has an increment without writes begin with the time, if lines with the time are wanted.
    fn stamp(&self, appender: &mut Appender) {
        if let Some(unix_s) = self.stamp_s()
            && let Err(error) = appender.stamp(unix_s)
        {
            tracing::warn!("the append-only file could not begin with the time: {error}");
        }
    }

    /// The time that an increment begins with, if lines with the time are wanted.
    pub(super) fn stamp_s(&self) -> Option<u64> {
        self.policy.timestamps.then_some(self.unix_s)
    }

    /// Takes over changed directives.
    pub(crate) fn configure(&mut self, settings: &Settings) {
        self.policy = Policy::of(settings);
        if let Some(mut appender) = self.appender.take() {
            appender.set_fsync(self.policy.fsync);
            self.stamp(&mut appender);
            self.synced_position = self.synced_position.min(appender.position());
            self.appender = Some(appender);
        }
        let keeps = settings.aof_keep_history;
        let kept = self.keeps_history.swap(keeps, Ordering::Relaxed);
        // A rewrite removes them at its end: until then no other manifest may be written.
        if kept && !keeps && self.rewrite.is_none() && self.switch.is_none() {
            self.remove_history();
        }
    }

    /// What INFO shows.
    pub(crate) fn facts(&self, now: Now) -> AofFacts {
        let mut facts = self.facts;
        facts.current_bytes = self.current_bytes();
        facts.base_bytes = self.base_bytes;
        facts.buffered_bytes = self.waiting.len() as u64;
        facts.fsync_running = self.syncer.is_running();
        facts.rewriting = self.rewrite.is_some();
        facts.rewrite_scheduled = self.wants_base;
        facts.rewrite_begins = self.wants_base && self.retry.is_none();
        facts.current_rewrite_s = self
            .rewrite
            .as_ref()
            .map(|rewrite| now.mono_ns.saturating_sub(rewrite.started_ns) / 1_000_000_000);
        facts
    }

    pub(super) fn current_bytes(&self) -> u64 {
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
        self.unix_s = now.unix_us / 1_000_000;
        let had_file = self.appender.is_some();
        let always = self.policy.fsync == Fsync::Always;
        if let Err(error) = self.take_sync_result(store, now) {
            if always {
                return Err(error);
            }
            self.give_up(store, &error);
        }
        self.take_writes(store);
        if always && !self.waiting.is_empty() {
            while self.is_switching() {
                self.syncer.settle();
                self.take_sync_result(store, now)?;
            }
            if had_file && self.appender.is_none() {
                let reason = "the increment of a rewrite that has begun could not be synced";
                return Err(io::Error::other(reason));
            }
        } else if self.is_ending() && !self.waiting.is_empty() {
            let since_ns = *self.postponed_ns.get_or_insert(now.mono_ns);
            if now.mono_ns.saturating_sub(since_ns) >= POSTPONE_NS {
                self.give_up_switch(store, now);
            }
        }
        if self.appender.is_none() {
            // A new base is on its way and will have them.
            self.drop_waiting();
            return Ok(());
        }
        if let Some(time) = store.flush_sleep().filter(|_| !self.waiting.is_empty()) {
            std::thread::sleep(time);
        }
        let awaited = store.awaits_aof();
        let outcome = self.write(now).and_then(|()| self.sync(now, awaited));
        if let Err(error) = outcome {
            if self.policy.fsync == Fsync::Always {
                return Err(error);
            }
            self.give_up(store, &error);
        }
        if (self.synced != self.told || !store.has_aof()) && !self.is_incomplete() {
            self.told = self.synced;
            store.note_aof(true, self.synced, outputs);
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

    pub(super) fn drop_waiting(&mut self) {
        self.garbage.append(&mut self.waiting.clear());
        self.waiting.shrink_to(KEEP_BYTES);
        self.spare.shrink_to(KEEP_BYTES);
        self.written = self.taken;
        self.postponed_ns = None;
    }

    /// What was written and is not used any more. Drop it on a thread that may take its time.
    pub(crate) fn take_garbage(&mut self) -> Vec<SharedBytes> {
        std::mem::take(&mut self.garbage)
    }

    fn write(&mut self, now: Now) -> io::Result<()> {
        if self.waiting.is_empty() || self.is_ending() {
            return Ok(());
        }
        // What a rewrite begins with is no reason to let writes wait in memory.
        let syncing = self.syncer.is_running() && !self.is_making_names();
        if self.policy.fsync == Fsync::EverySecond && syncing {
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

    /// Syncs by the policy; `awaited` says that a client waits for it.
    fn sync(&mut self, now: Now, awaited: bool) -> io::Result<()> {
        let Some(appender) = &self.appender else {
            return Ok(());
        };
        let left_to_system = self.policy.no_sync_on_rewrite && self.rewrite.is_some();
        if self.is_ending() {
            return Ok(());
        }
        if self.synced == self.written {
            return self.note_sync(now);
        }
        if left_to_system {
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
                if elapsed_ns >= SYNC_NS && self.syncer.is_free() {
                    self.last_sync_ns = now.mono_ns;
                    self.submit_sync();
                }
            }
            Fsync::No if awaited => self.submit_sync(),
            Fsync::No => {}
        }
        Ok(())
    }

    /// Has the file say that it is synced, a second after that, if no later write has done so. With `everysec` a hole that no
    /// such line covers counts as lost when the power has failed.
    fn note_sync(&mut self, now: Now) -> io::Result<()> {
        let elapsed_ns = now.mono_ns.saturating_sub(self.last_sync_ns);
        if let Some(appender) = &mut self.appender
            && self.policy.fsync == Fsync::EverySecond
            && appender.lacks_note(self.synced_position)
            && elapsed_ns >= SYNC_NS
            && !self.syncer.is_running()
        {
            appender.append(&Writes::default(), self.synced_position, None)?;
        }
        Ok(())
    }

    /// Has the thread sync what is written, unless it is at work.
    fn submit_sync(&mut self) {
        if let Some(appender) = &self.appender
            && self.syncer.is_free()
        {
            self.submit(Work::Sync(appender.file().clone()));
        }
    }

    /// Position in the stream of all writes up to which it is in the file.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// The number of the appender.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes the result of the thread that syncs. A rewrite that begins goes on.
    ///
    /// # Errors
    /// It could not sync the present file.
    pub(super) fn take_sync_result(&mut self, store: &mut Store, now: Now) -> io::Result<()> {
        let Some(done) = self.syncer.take() else {
            return Ok(());
        };
        match (self.switch.take(), done.next) {
            (Some(Switch::Preparing { .. }), Some(Ok(next))) => {
                self.switch = Some(Switch::Prepared(next));
            }
            (Some(Switch::Preparing { .. }), Some(Err(error))) => {
                // The file was not synced then.
                self.note_failure(&error, now);
                return Ok(());
            }
            (Some(switch @ (Switch::Ending(_) | Switch::Naming)), _) => {
                if let Err(error) = self.advance_switch(switch, done.outcome) {
                    self.fail_switch(store, &error, now);
                }
                return Ok(());
            }
            (switch, _) => self.switch = switch,
        }
        if done.generation != self.generation || self.appender.is_none() {
            return Ok(());
        }
        done.outcome?;
        self.synced = self.synced.max(done.stream);
        self.synced_position = self.synced_position.max(done.position);
        Ok(())
    }

    /// The file cannot be trusted any more: writes are refused until there is a new one.
    fn give_up(&mut self, store: &mut Store, error: &io::Error) {
        tracing::error!(
            "Error writing to the AOF file: {error}. Writes are refused until a new base is on disk."
        );
        store.refuse_writes(Some(&crate::base::errors::plain(error)));
        self.facts.last_write_failed = true;
        self.appender = None;
        self.wants_base = true;
        self.drop_waiting();
    }

    /// Whether the file failed and no new one has taken its place.
    pub(crate) fn has_failed(&self) -> bool {
        self.facts.last_write_failed
    }

    /// Waits until the thread that syncs is idle: the next flush takes its result, and postpones nothing.
    pub(crate) fn settle(&self) {
        self.syncer.settle();
    }

    /// Whether there is a file to append to.
    pub(crate) fn has_file(&self) -> bool {
        self.appender.is_some()
    }

    /// The files as they are now.
    pub(crate) fn files(&self) -> (Place, Manifest) {
        let rewrite = self.rewrite.as_ref();
        let installed = rewrite.and_then(|rewrite| rewrite.installed.get());
        let manifest = installed.map_or(&self.manifest, |installed| &installed.manifest);
        (self.place.clone(), manifest.clone())
    }

    /// The number of the last increment.
    pub(crate) fn last_increment(&self) -> u64 {
        let named = self.manifest.last_increment_seq();
        named.max(self.last_increment)
    }

    /// How many bases have been written since this AOF began.
    pub(crate) fn rewrites(&self) -> u64 {
        self.facts.rewrites
    }

    /// Ends an AOF that is to consist of its base only. What was written behind the base is not kept, as in Redis.
    ///
    /// # Errors
    /// The increment may still be there.
    pub(crate) fn close_base(&mut self, store: &mut Store) -> io::Result<()> {
        // Its result says something about the increment only.
        let _ = self.end_switch();
        self.take_writes(store);
        self.drop_waiting();
        self.appender = None;
        let mut manifest = self.manifest.clone();
        manifest.history.append(&mut manifest.increments);
        self.place.write(&manifest)?;
        self.manifest = manifest;
        self.remove_history();
        Ok(())
    }

    /// After the end, the thread that makes something for a rewrite which was given up. The directory is locked until it ends.
    pub(crate) fn take_thread(&mut self) -> Option<JoinHandle<()>> {
        self.syncer.leave()
    }

    /// Writes what waits, and marks the end. A rewrite that is being prepared is given up.
    ///
    /// # Errors
    /// Writes may be missing in the file.
    pub(crate) fn close(&mut self, store: &mut Store) -> io::Result<()> {
        self.leave_switch()?;
        self.take_writes(store);
        if self.appender.is_none() && self.facts.last_write_failed {
            return Err(io::Error::other("the append-only file had failed before"));
        }
        self.append_waiting()?;
        if let Some(mut appender) = self.appender.take() {
            appender.close()?;
        }
        self.drop_waiting();
        self.synced = self.written;
        Ok(())
    }
}
