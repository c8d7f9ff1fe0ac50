//! New bases: when one is due, how it is written while the AOF goes on, and how it takes the place of what was before.
//!
//! A snapshot's thread writes the base, and then the manifest that names it ([`Install`]): the engine's thread waits for
//! none of the syncs at the end of a rewrite. What the beginning waits for is in `switch.rs`.

use super::append::Appender;
use super::files::Sink;
use super::manifest::{Manifest, Part};
use super::place::Place;
use super::running::{Aof, Retry, Rewrite};
use kumi_store::{Now, Outputs, SnapshotPurpose, Store};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A base is synced after this many bytes, with `aof-rewrite-incremental-fsync`.
const SYNC_EVERY: u64 = 4 * 1024 * 1024;
/// After a failed attempt to write a new base, the next one waits for this long, doubled each time ...
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// ... up to this.
const LAST_RETRY: Duration = Duration::from_secs(60);

/// The last step of a rewrite: the manifest that names the new base. It runs where the base is written, once the base is
/// on disk under its name.
#[derive(Debug)]
pub(crate) struct Install {
    place: Place,
    base: Part,
    manifest: Manifest,
    /// `aof-disable-auto-gc`, which may change while the base is written.
    keeps_history: Arc<AtomicBool>,
    /// There is no manifest yet.
    first: bool,
    /// The increment behind the base, if it has its name only when the base is complete.
    increment: Option<Part>,
    /// Whether the increment behind the base has its name for good.
    may_run: Arc<AtomicBool>,
    installed: Arc<OnceLock<Installed>>,
}

/// What an [`Install`] has put in place.
#[derive(Clone, Debug)]
pub(super) struct Installed {
    pub(super) manifest: Manifest,
    base_bytes: u64,
}

impl Install {
    /// Whether it may run. Until then the engine's thread gives another manifest its name.
    pub(crate) fn may_run(&self) -> Arc<AtomicBool> {
        self.may_run.clone()
    }

    /// What comes before the base gets its name.
    ///
    /// # Errors
    /// The manifest on disk is the old one.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        if self.first {
            self.place.prepare(&self.manifest, true)?;
        }
        Ok(())
    }

    /// Writes the manifest, then removes the files it no longer uses.
    ///
    /// # Errors
    /// The manifest on disk may be the old one or the new one. All files of both are there.
    pub(crate) fn run(self) -> io::Result<()> {
        let (_, base_bytes) = self.place.files.read(&self.place.path(&self.base))?;
        let mut manifest = self.manifest;
        if let Some(part) = &self.increment {
            let (files, place) = (&self.place.files, &self.place);
            files.rename(&place.temporary_increment(), &place.path(part))?;
            files.sync_directory(&place.directory)?;
        }
        if self.first {
            self.place.commit_first(&manifest)?;
        } else {
            self.place.write(&manifest)?;
        }
        if !self.keeps_history.load(Ordering::Relaxed) {
            self.place.remove_history(&mut manifest);
        }
        // Each rewrite has a cell of its own, and installs once.
        let _ = self.installed.set(Installed {
            manifest,
            base_bytes,
        });
        Ok(())
    }
}

/// Where the snapshot of a rewrite goes.
#[derive(Debug)]
pub(crate) struct RewritePlan {
    /// The name of the base while it is written.
    pub(crate) temporary: PathBuf,
    /// Its name when it is complete.
    pub(crate) path: PathBuf,
    /// Whether it is synced while it is written.
    pub(crate) incremental_fsync: bool,
    /// What follows then.
    pub(crate) install: Install,
}

impl Aof {
    /// Whether a snapshot becomes a new base.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.rewrite.is_some()
    }

    /// Whether a snapshot is about to begin, or would be if no other one ran.
    pub(crate) fn begins_rewrite(&self) -> bool {
        self.rewrite.is_none()
            && (self.prepares_rewrite() || (self.wants_base && self.retry.is_none()))
    }

    /// Asks for a new base after the time that a failure sets.
    pub(crate) fn request_base_later(&mut self) {
        self.wants_base = true;
        self.facts.last_write_failed = true;
    }

    /// Whether the first base of an AOF that began at run time is being written, or is to be.
    pub(crate) fn writes_first_base(&self) -> bool {
        self.initial && (self.rewrite.is_some() || self.retry.is_none())
    }

    /// Whether writes have to be refused: there is no file for them, although there was one.
    pub(crate) fn lacks_file(&self) -> bool {
        self.appender.is_none() && !self.initial
    }

    /// Asks for a new base: BGREWRITEAOF.
    pub(crate) fn request_base(&mut self) {
        self.wants_base = true;
        self.retry = None;
    }

    /// Whether data is still missing in the files, until the running rewrite ends.
    pub(super) fn is_incomplete(&self) -> bool {
        self.rewrite.as_ref().is_some_and(|rewrite| rewrite.fresh)
    }

    /// Whether it is time for a new base. Ask between commands, after `flush`.
    fn is_due(&self, now: Now) -> bool {
        self.rewrite.is_none()
            && (self.wants_base || self.has_grown())
            && self.retry.is_none_or(|retry| now.mono_ns >= retry.at_ns)
    }

    /// Whether to begin a new base now. One that is due waits for a running snapshot, which `busy` says, and until the
    /// thread that syncs has prepared it.
    pub(crate) fn may_begin(&mut self, busy: bool, now: Now) -> bool {
        let is_due = self.is_due(now);
        if !is_due || busy {
            // It was prepared, and the configuration has changed since, or another snapshot has begun.
            self.forget_prepared();
        }
        if is_due && busy {
            self.request_base();
        }
        is_due && !busy && self.prepare_rewrite()
    }

    /// Begins a new increment for what is written from now on, after [`Aof::may_begin`]. Start a snapshot before the next command, into
    /// the file of [`Aof::rewrite_plan`], and report its end with [`Aof::end_rewrite`].
    pub(crate) fn begin_rewrite(&mut self, store: &mut Store, now: Now) -> io::Result<()> {
        let (base, _) = self.next_parts(self.policy.rdb_base);
        let (first_seq, fresh) = self.begin_switch(store)?;
        self.wants_base = false;
        self.rewrite = Some(Rewrite {
            base,
            first_seq,
            fresh,
            started_ns: now.mono_ns,
            may_install: Arc::new(AtomicBool::new(fresh)),
            installed: Arc::default(),
        });
        let always = self.policy.is_always();
        self.hurry_switch(always)
            .inspect_err(|_| self.rewrite = None)
    }

    /// Writes what waits to the increment, if there is one.
    pub(super) fn append_waiting(&mut self) -> io::Result<()> {
        match &mut self.appender {
            Some(appender) if !self.waiting.is_empty() => {
                appender.append(&self.waiting, self.synced_position, None)
            }
            _ => Ok(()),
        }
    }

    /// The next base and the next increment. Numbers of failed attempts are not used again: the manifest on disk may name
    /// their files.
    pub(super) fn next_parts(&self, rdb: bool) -> (Part, Part) {
        let left = Manifest {
            history: self.left.clone(),
            ..Manifest::default()
        };
        let base = self.manifest.last_base_seq().max(left.last_base_seq());
        let increment = self.last_increment().max(left.last_increment_seq());
        let base = self.place.base(base + 1, rdb);
        (base, self.place.increment(increment + 1))
    }

    /// A manifest that names these files may be on disk or not: neither the old increment nor a new one can be used.
    pub(super) fn lose_files(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.appender = None;
        self.left.extend(parts);
    }

    /// Where the snapshot of the running rewrite goes, and what follows when it is there.
    pub(crate) fn rewrite_plan(&self) -> Option<RewritePlan> {
        let rewrite = self.rewrite.as_ref()?;
        Some(RewritePlan {
            temporary: self.place.temporary_base(),
            path: self.place.path(&rewrite.base),
            incremental_fsync: self.policy.incremental_fsync,
            install: Install {
                place: self.place.clone(),
                base: rewrite.base.clone(),
                manifest: self.rewritten(rewrite),
                keeps_history: self.keeps_history.clone(),
                first: self.has_no_manifest(),
                increment: rewrite
                    .fresh
                    .then(|| self.place.increment(rewrite.first_seq)),
                may_run: rewrite.may_install.clone(),
                installed: rewrite.installed.clone(),
            },
        })
    }

    /// The manifest that names the new base, and only what is behind it. Until the rewrite ends, no other manifest is
    /// written.
    fn rewritten(&self, rewrite: &Rewrite) -> Manifest {
        let increments = vec![self.place.increment(rewrite.first_seq)];
        let history = self
            .unused()
            .filter(|part| !increments.contains(part))
            .cloned()
            .collect();
        Manifest {
            base: Some(rewrite.base.clone()),
            history,
            increments,
        }
    }

    /// The snapshot of the running rewrite is complete and installed, or failed. One that was cancelled too late counts
    /// as complete.
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
        let Some(installed) = rewrite.installed.get() else {
            // If the manifest does not name the new increment yet, the old one is used on.
            self.forget_ending();
            // The manifest on disk may name it.
            self.left.push(rewrite.base);
            if rewrite.fresh {
                self.lose_files([self.place.increment(rewrite.first_seq)]);
                self.wants_base = true;
            }
            let error = outcome.err();
            let error = error.unwrap_or_else(|| io::Error::other("the manifest was not written"));
            return self.note_failure(&error, now);
        };
        self.manifest = installed.manifest.clone();
        self.left.clear();
        self.earlier_bytes = installed.base_bytes;
        self.base_bytes = self.current_bytes();
        self.remove_history();
        self.note_success();
        if self.appender.is_none() {
            // The increment failed meanwhile. Writes stay refused until another base has the data it lacks.
            return self.request_base_later();
        }
        if let Some((store, outputs)) = store {
            store.refuse_writes(None);
            store.note_aof(true, self.synced, outputs);
        }
    }

    fn note_success(&mut self) {
        self.wants_base = false;
        self.retry = None;
        self.initial = false;
        self.facts.rewrites += 1;
        self.facts.rewrite_failures = 0;
        self.facts.last_rewrite_failed = false;
        self.facts.last_write_failed = false;
        tracing::info!("Background AOF rewrite finished successfully");
    }

    pub(crate) fn note_failure(&mut self, error: &io::Error, now: Now) {
        // The system's own EINTR is a failure.
        if error.kind() == io::ErrorKind::Interrupted && error.raw_os_error().is_none() {
            tracing::info!("Background AOF rewrite cancelled: {error}");
            return;
        }
        let wait = self
            .retry
            .map_or(FIRST_RETRY, |retry| (retry.wait * 2).min(LAST_RETRY));
        let at_ns = now.mono_ns.saturating_add(wait.as_nanos() as u64);
        self.retry = Some(Retry { at_ns, wait });
        self.facts.rewrite_failures += 1;
        self.facts.last_rewrite_failed = true;
        match self.wants_base {
            true => tracing::error!(
                "Background AOF rewrite terminated with error: {error}. It is tried again in {wait:?}."
            ),
            false => tracing::error!("Background AOF rewrite terminated with error: {error}."),
        }
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
                store.note_aof(true, self.synced, outputs);
            }
            Err(error) => {
                if self.lacks_file() {
                    store.refuse_writes(Some(&crate::base::errors::plain(&error)));
                    self.request_base_later();
                }
                self.note_failure(&error, now);
            }
        }
    }

    /// Writes a new base in place of files that have failed, before the server ends.
    pub(crate) fn rescue(&mut self, store: &mut Store) {
        tracing::warn!("The AOF file had failed: a new base is written before the end");
        match self.write_base(store) {
            Ok(()) => self.note_success(),
            Err(error) => {
                tracing::error!("Error writing the base of the AOF file: {error}");
                self.facts.last_write_failed = true;
            }
        }
    }

    /// Brings the files up to date, so that they can be loaded; returns them.
    ///
    /// # Errors
    /// They are not complete, or cannot be written.
    pub(crate) fn files_to_load(
        &mut self,
        store: &mut Store,
        outputs: &mut Outputs,
        now: Now,
    ) -> Result<(Place, Manifest), String> {
        if self.is_incomplete() || !self.has_file() {
            return Err("the append-only file is not complete yet".into());
        }
        // Or writes would stay in memory, which what is loaded replaces.
        self.settle();
        self.flush(store, outputs, now)
            .map_err(|error| error.to_string())?;
        if !self.has_file() {
            return Err("the append-only file has failed".into());
        }
        // Its thread may remove files that are loaded here.
        if store.cancel_snapshot(SnapshotPurpose::Rewrite) {
            let cancelled = io::Error::new(io::ErrorKind::Interrupted, "the data is loaded again");
            self.end_rewrite(None, Err(cancelled), now);
            self.request_base();
        }
        Ok(self.files())
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
    /// new ones. Nothing else is done meanwhile: this is for the start of a server.
    fn write_base(&mut self, store: &mut Store) -> io::Result<()> {
        if let Err(error) = self.end_switch() {
            // The old increment is not trusted any more. The new base has its data.
            tracing::error!("Error syncing the AOF file: {error}");
            self.appender = None;
        }
        self.place.make_directory()?;
        let files = self.place.files.clone();
        let (base, part) = self.next_parts(self.policy.rdb_base);
        let manifest = self.successor(base.clone(), part.clone());
        let first = self.has_no_manifest();
        let temporary = self.place.temporary_base();
        let sync_every = self.policy.incremental_fsync.then_some(SYNC_EVERY);
        let mut sink = Sink::new(files.create(&temporary)?, sync_every);
        let rdb = self.policy.rdb_base;
        let saved = if rdb {
            store.save_rdb(&mut sink)
        } else {
            store.save_requests(&mut sink)
        };
        // If any of this fails, the old increment is used on, if there is one.
        let written = saved.and_then(|()| {
            let base_bytes = sink.finish()?;
            if first {
                self.place.prepare(&manifest, true)?;
            }
            files.rename(&temporary, &self.place.path(&base))?;
            let appender = Appender::create(&*files, &self.place.path(&part), self.policy.fsync)?;
            files.sync_directory(&self.place.directory)?;
            if !first {
                self.place.prepare(&manifest, false)?;
            }
            Ok((base_bytes, appender))
        });
        let (base_bytes, appender) = written.inspect_err(|_| {
            // It may not exist; the error that matters is the first one.
            let _ = files.remove(&temporary);
        })?;
        let committed = match first {
            true => self.place.commit_first(&manifest),
            false => self.place.commit(),
        };
        committed.inspect_err(|_| self.lose_files([base, part]))?;
        self.left.clear();
        self.manifest = manifest;
        store.begin_aof_file();
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
        manifest.history = self.unused().cloned().collect();
        manifest
    }

    /// All files before a new base, in the order in which Redis names them: the newest first.
    fn unused(&self) -> impl Iterator<Item = &Part> {
        let Manifest {
            base,
            history,
            increments,
        } = &self.manifest;
        let data = increments.iter().chain(base);
        data.chain(history).chain(&self.left)
    }

    fn has_no_manifest(&self) -> bool {
        self.manifest == Manifest::default()
    }

    /// Removes files that are no longer used, unless they are to be kept.
    pub(super) fn remove_history(&mut self) {
        if !self.keeps_history.load(Ordering::Relaxed) {
            self.place.remove_history(&mut self.manifest);
        }
    }
}
