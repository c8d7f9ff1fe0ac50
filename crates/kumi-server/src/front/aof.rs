//! The AOF in the event loop: what each turn writes, how a rewrite begins and ends, how the AOF is turned on and off.

use super::{EngineIo, Front};
use crate::base::errors::plain;
use crate::files::aof::{Aof, Disk, Place, RewritePlan, Start, lock};
use crate::files::rdb_file;
use crate::files::snapshot::Plan;
use kumi_store::config::Settings;
use kumi_store::{AofFacts, ApplyError, Now, RewriteStart, SnapshotPurpose};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What the front holds of the append-only file.
#[derive(Debug, Default)]
pub(crate) struct AofState {
    pub(super) running: Option<Box<Aof>>,
    /// The AOF ends at the end of the turn: `appendonly no`, or BGREWRITEAOF without an AOF.
    ends: bool,
    /// BGREWRITEAOF has asked an AOF that ends for a base which is not begun yet: it waits for a running BGSAVE, or until
    /// the increment is synced.
    pending: bool,
    /// BGREWRITEAOF without an AOF: of an AOF that ends, only a new base is kept. How many it had before that.
    base_only: Option<u64>,
    /// The number of the last increment of this process.
    last_increment: u64,
    /// What INFO shows of AOFs that have ended.
    past: AofFacts,
    /// The thread of an AOF that has ended, if it had to give up something that it made.
    thread: Option<JoinHandle<()>>,
    /// How the snapshot of a rewrite ended, until the end of the turn.
    ended: Option<io::Result<()>>,
    /// Held on the directory of the RDB file, so that another server there can be warned.
    pub(super) directory: Option<File>,
    /// The AOF failed with `appendfsync always`: no reply may be sent any more.
    pub(crate) fatal: Option<io::Error>,
}

impl AofState {
    /// The facts of an AOF together with those of the AOFs before it.
    fn with_past(&self, mut facts: AofFacts) -> AofFacts {
        let past = &self.past;
        if facts.rewrites == 0 && facts.rewrite_failures == 0 {
            facts.last_rewrite_failed = past.last_rewrite_failed;
            facts.last_rewrite_s = past.last_rewrite_s;
        }
        facts.rewrites += past.rewrites;
        facts.delayed_fsyncs += past.delayed_fsyncs;
        facts
    }

    /// Keeps what INFO shows of an AOF that ends.
    fn keep_facts(&mut self, facts: AofFacts) {
        let facts = self.with_past(facts);
        self.past.last_rewrite_failed = facts.last_rewrite_failed;
        self.past.last_rewrite_s = facts.last_rewrite_s;
        self.past.rewrites = facts.rewrites;
        self.past.delayed_fsyncs = facts.delayed_fsyncs;
    }

    /// Waits until the thread of the last AOF has ended: it holds the lock of the directory, and may use its names.
    pub(crate) fn wait_for_thread(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that syncs the append-only file panicked");
        }
    }
}

impl Front {
    /// Writes the engine's writes to the append-only file. False if that failed so that no reply may be sent.
    #[inline]
    pub(crate) fn append_writes(&mut self, engine: &mut EngineIo<'_>) -> bool {
        if self.aof.fatal.is_none()
            && let Some(aof) = &mut self.aof.running
        {
            let now = self.clock.read();
            let flushed = aof.flush(engine.store, engine.outputs, now);
            self.times.aof_ns += self.clock.read().mono_ns - now.mono_ns;
            self.discarder.discard_bytes(aof.take_garbage());
            if self.aof.ends && (flushed.is_err() || aof.has_failed()) {
                self.drop_aof(engine, flushed);
            } else if let Err(error) = flushed {
                tracing::error!(
                    "Can't recover from AOF write error when the AOF fsync policy is 'always': {error}. Exiting..."
                );
                self.aof.fatal.get_or_insert(error);
            }
        }
        self.aof.fatal.is_none()
    }

    /// Ends an AOF that failed and that nothing depends on: `appendonly no`. A rewrite fails with it.
    #[cold]
    fn drop_aof(&mut self, engine: &mut EngineIo<'_>, flushed: io::Result<()>) {
        self.aof.ends = false;
        // The second error says no more than the first one.
        let closed = self.close_aof(engine);
        if let Err(error) = flushed.and(closed) {
            tracing::error!("Background AOF rewrite terminated with error: {error}");
        }
    }

    /// Writes a new base if it is time to, and ends the AOF if it is to end. Called between commands.
    #[inline]
    pub(crate) fn maintain_aof(&mut self, engine: &mut EngineIo<'_>) {
        let now = self.clock.last();
        if let Some(outcome) = self.aof.ended.take()
            && let Some(aof) = &mut self.aof.running
        {
            let engine = (&mut *engine.store, &mut *engine.outputs);
            aof.end_rewrite(Some(engine), outcome, now);
        }
        if let Some(aof) = &mut self.aof.running {
            let busy = engine.store.snapshot_purpose().is_some();
            let is_needed = !self.aof.ends || self.aof.pending;
            if is_needed && aof.may_begin(busy, now) {
                engine.store.listen_to_writes(true);
                self.aof.pending = false;
                self.begin_rewrite(engine);
            }
            let aof = self.aof.running.as_ref();
            let done = aof.is_none_or(|aof| !aof.is_rewriting());
            let prepares = aof.is_some_and(|aof| aof.prepares_rewrite());
            let cancels = !done && self.aof.base_only.is_none();
            if self.aof.ends && (done || cancels) && !self.aof.pending {
                if cancels || prepares {
                    tracing::info!("Killing running AOF rewrite child: appendonly no");
                }
                self.aof.ends = false;
                if let Err(error) = self.close_aof(engine) {
                    tracing::error!(%error, "the append-only file could not be ended");
                }
            }
        }
    }

    /// Begins to write a new base: a snapshot, while clients are served.
    fn begin_rewrite(&mut self, engine: &mut EngineIo<'_>) {
        let now = self.clock.last();
        let Some(aof) = &mut self.aof.running else {
            return;
        };
        if let Err(error) = aof.begin_rewrite(engine.store, now) {
            if aof.lacks_file() {
                engine.store.refuse_writes(Some(&plain(&error)));
                aof.request_base_later();
            }
            return aof.note_failure(&error, now);
        }
        let started = engine.store.start_snapshot(SnapshotPurpose::Rewrite, self);
        match (started, &mut self.aof.running) {
            (Err(error), Some(aof)) => {
                aof.end_rewrite(None, Err(io::Error::other(error.to_string())), now);
            }
            (Err(_), None) => {}
            // Redis names its child here; kumi has none.
            (Ok(()), _) => tracing::info!(
                "Background append only file rewriting started by pid {}",
                std::process::id()
            ),
        }
    }

    /// Where the snapshot of a rewrite goes.
    pub(crate) fn rewrite_plan(&self, settings: &Settings) -> io::Result<Plan> {
        let key_delay_us = self.note_key_delay(settings);
        let aof = self.aof.running.as_ref();
        let RewritePlan {
            temporary,
            path,
            incremental_fsync,
            install,
        } = aof
            .and_then(|aof| aof.rewrite_plan())
            .ok_or_else(|| io::Error::other("no rewrite has begun"))?;
        Ok(Plan {
            temporary,
            incremental_fsync,
            key_delay_us,
            may_commit: install.may_run(),
            commit: Box::new(move |temporary| {
                let (from, to) = (name_of(temporary), name_of(&path));
                tracing::info!("Successfully created the temporary AOF base file {from}");
                install.prepare()?;
                rdb_file::put_in_place(temporary, &path)?;
                tracing::info!("Successfully renamed the temporary AOF base file {from} into {to}");
                install.run()
            }),
            afterwards: Box::new(|| Ok(())),
        })
    }

    /// The snapshot of a rewrite has ended. The AOF takes it over at the end of the turn.
    pub(crate) fn note_rewrite(&mut self, outcome: &io::Result<()>) {
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        self.aof.ended = Some(outcome);
    }

    /// Writes a new base before a stop if the file has failed: what was replied to since then is in memory only.
    pub(crate) fn rescue_aof(&mut self, engine: &mut EngineIo<'_>) {
        let now = self.clock.last();
        if let Some(aof) = &mut self.aof.running
            && !self.aof.ends
            && aof.has_failed()
        {
            // One that is complete already is the new base.
            cancel_rewrite(aof, engine, now);
            if aof.has_failed() {
                aof.rescue(engine.store);
            }
        }
    }

    /// Ends the append-only file.
    pub(crate) fn close_aof(&mut self, engine: &mut EngineIo<'_>) -> io::Result<()> {
        self.aof.pending = false;
        let Some(mut aof) = self.aof.running.take() else {
            return Ok(());
        };
        cancel_rewrite(&mut aof, engine, self.clock.last());
        self.aof.keep_facts(aof.facts(self.clock.last()));
        let last_increment = aof.last_increment();
        let base_only = self.aof.base_only.take();
        let closed = if base_only.is_some_and(|before| aof.rewrites() > before) {
            // The number of the increment that goes is used again.
            self.aof.last_increment = last_increment.saturating_sub(1);
            aof.close_base(engine.store)
        } else {
            self.aof.last_increment = last_increment;
            aof.close(engine.store)
        };
        self.aof.thread = aof.take_thread();
        engine.store.listen_to_writes(false);
        engine.store.refuse_writes(None);
        engine.store.note_aof(false, 0, engine.outputs);
        closed
    }

    /// Begins the AOF if `appendonly` is turned on; returns whether it did.
    pub(crate) fn turn_on_aof(
        &mut self,
        settings: &Settings,
        changed: &[&'static str],
    ) -> Result<bool, ApplyError> {
        if !changed.contains(&"appendonly") || !settings.appendonly || self.aof.running.is_some() {
            return Ok(false);
        }
        self.begin_aof(settings).map_err(|error| {
            tracing::error!("appendonly yes: {error}");
            ApplyError {
                directive: "appendonly".into(),
                message: "Unable to turn on AOF. Check server logs.".into(),
            }
        })?;
        Ok(true)
    }

    /// Takes back what [`Front::turn_on_aof`] did in the same command.
    pub(crate) fn turn_off_aof(&mut self) {
        self.aof.running = None;
    }

    /// Puts changed directives into effect.
    pub(crate) fn apply_aof(&mut self, settings: &Settings, changed: &[&'static str]) {
        if changed.contains(&"appendonly") {
            self.aof.ends = !settings.appendonly && self.aof.running.is_some();
            self.aof.pending = false;
            if settings.appendonly {
                self.aof.base_only = None;
            }
        }
        if let Some(aof) = &mut self.aof.running {
            aof.configure(settings);
        }
    }

    /// Begins an AOF at run time. Its base is written at the end of the turn.
    fn begin_aof(&mut self, settings: &Settings) -> io::Result<()> {
        if self.aof.running.is_some() {
            return Ok(());
        }
        if !self.config.keeps_files {
            let reason = "this server keeps its data in memory only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        self.aof.wait_for_thread();
        let place = Place::of(settings, Arc::new(Disk));
        place.make_directory()?;
        let lock = lock(&place.directory)?;
        place.probe()?;
        let start = Start {
            // A single file of a version before Redis 7 stays where it is: its data is not loaded.
            manifest: place.manifest()?.unwrap_or_default(),
            place,
            lock: Some(lock),
            lengths: Vec::new(),
            seed: 0,
            stream: 0,
            last_increment: self.aof.last_increment,
        };
        let now = self.clock.last();
        let waker = Some(self.poller.waker.clone());
        let aof = Aof::start(start, settings, waker, false, now)?;
        self.aof.running = Some(Box::new(aof));
        Ok(())
    }

    /// BGREWRITEAOF.
    pub(crate) fn rewrite_aof_now(&mut self, settings: &Settings) -> Result<RewriteStart, String> {
        match &mut self.aof.running {
            Some(aof) if aof.is_rewriting() || aof.prepares_rewrite() => {
                return Err("Background append only file rewriting already in progress".into());
            }
            Some(aof) => {
                aof.request_base();
                self.aof.pending = self.aof.ends;
                self.aof.base_only = self.aof.ends.then(|| aof.rewrites());
            }
            None => {
                self.begin_aof(settings)
                    .map_err(|error| error.to_string())?;
                self.aof.ends = true;
                self.aof.pending = true;
                self.aof.base_only = Some(0);
            }
        }
        Ok(RewriteStart::Started)
    }

    /// Whether the first base of the append-only file is being written.
    pub(crate) fn first_base_is_missing(&self) -> bool {
        let aof = self.aof.running.as_ref().filter(|_| !self.aof.ends);
        aof.is_some_and(|aof| aof.writes_first_base())
    }

    /// Whether a rewrite was answered with "started", and its snapshot is yet to begin.
    pub(crate) fn rewrite_begins(&self) -> bool {
        self.aof
            .running
            .as_ref()
            .is_some_and(|aof| aof.begins_rewrite())
    }

    /// What INFO shows of the append-only file. An AOF that ends counts as off; its rewrite is shown.
    pub(crate) fn aof_facts(&self) -> AofFacts {
        let aof = self.aof.running.as_ref();
        let facts = aof.map_or_else(AofFacts::default, |aof| aof.facts(self.clock.last()));
        let mut facts = self.aof.with_past(facts);
        facts.enabled &= !self.aof.ends;
        facts
    }
}

/// The name of a file without its directory.
fn name_of(path: &Path) -> std::path::Display<'_> {
    path.file_name().map_or(path, Path::new).display()
}

fn cancel_rewrite(aof: &mut Aof, engine: &mut EngineIo<'_>, now: Now) {
    if engine.store.cancel_snapshot(SnapshotPurpose::Rewrite) {
        let cancelled = io::Error::new(io::ErrorKind::Interrupted, "the log ends");
        aof.end_rewrite(None, Err(cancelled), now);
    }
}
