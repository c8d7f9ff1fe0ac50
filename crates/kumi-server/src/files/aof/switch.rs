//! The beginning of a rewrite: a new increment takes the place of the one before it, and the engine's thread waits for no
//! sync of the disk.
//!
//! ```text
//! engine's thread                                      the thread that syncs
//! Preparing: writes go to the old increment  ------->  makes the new increment, writes the manifest that
//!                                                      names it under a temporary name, syncs the old increment
//! Prepared: a snapshot may begin             <-------
//! Ending: the snapshot has begun, and writes wait      syncs the end of the old increment, which was
//!   in memory                                ------->  written since
//! Naming: the manifest has its name, and     <-------
//!   writes go to the new increment           ------->  syncs the directory
//! ```
//!
//! The old increment is on disk before the manifest names the one behind it: a power failure never leaves a hole between
//! two increments. In `Ending` the thread has little to sync. A disk that takes longer than [`BRIEF_WAIT`] for it is slow:
//! writes wait in memory then, for two seconds at most, as they do for any other fsync of `everysec`. After that the switch
//! is given up, and the old increment is written on. With `always`, a write waits until its file has its name for good.

use super::append::Appender;
use super::files::AofFile;
use super::manifest::{Manifest, Part};
use super::place::Place;
use super::running::Aof;
use super::sync::{Job, Work};
use kumi_store::config::Fsync;
use kumi_store::{Now, SnapshotPurpose, Store};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// The engine's thread waits this long for the end of the old increment, so that with a healthy disk no acknowledged
/// write is in memory only.
const BRIEF_WAIT: Duration = Duration::from_millis(50);

/// How far the switch to a new increment is.
#[derive(Debug)]
pub(super) enum Switch {
    /// The thread makes the new increment, which has this path, and the manifest.
    Preparing {
        path: PathBuf,
        progress: Arc<Progress>,
    },
    /// Both are there. A snapshot may begin.
    Prepared(Box<Next>),
    /// The snapshot has begun. The thread syncs the end of the old increment, and writes wait in memory.
    Ending(Box<Next>),
    /// The manifest names the new increment, and the thread syncs the directory. Writes go to the new increment.
    Naming,
}

/// The increment that a rewrite begins with.
#[derive(Debug)]
pub(crate) struct Next {
    part: Part,
    path: PathBuf,
    appender: Appender,
    /// Names it behind the old increment. It has a temporary name.
    manifest: Manifest,
    /// There is no old increment, so that the manifest names the new one only when the base is complete.
    fresh: bool,
}

/// How far the thread is with a [`Prepare`]. It is made until one side wins: the thread that goes on to sync the old increment, or
/// the engine's thread that gives the rewrite up.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicU8);

const MAKING: u8 = 0;
const SYNCING: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Progress {
    /// Moves on from `MAKING`; says whether it was there.
    fn leave_making(&self, next: u8) -> bool {
        let order = Ordering::AcqRel;
        self.0
            .compare_exchange(MAKING, next, order, Ordering::Acquire)
            .is_ok()
    }

    /// # Errors
    /// The rewrite was given up.
    fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Acquire) {
            GIVEN_UP => Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "the rewrite was given up",
            )),
            _ => Ok(()),
        }
    }
}

/// Makes a [`Next`].
#[derive(Debug)]
pub(crate) struct Prepare {
    place: Place,
    /// Keeps other servers away from the directory until this has ended.
    lock: Option<Arc<File>>,
    progress: Arc<Progress>,
    path: PathBuf,
    part: Part,
    manifest: Manifest,
    /// The old increment, if there is one.
    old: Option<Arc<dyn AofFile>>,
    /// How the new increment will be synced.
    fsync: Fsync,
    /// The time that the new increment begins with, if lines with the time are wanted.
    stamp_s: Option<u64>,
}

impl Prepare {
    /// Makes the increment, then syncs the old one: whether that worked is the first result. If no increment can be made, or
    /// if the rewrite is given up before that, the old one is left alone.
    pub(super) fn run(self) -> (io::Result<()>, io::Result<Box<Next>>) {
        let (place, path) = (self.place.clone(), self.path.clone());
        let (old, progress) = (self.old.clone(), self.progress.clone());
        let _lock = self.lock.clone();
        let made = self.make().and_then(|next| {
            if progress.leave_making(SYNCING) {
                return Ok(next);
            }
            progress.check().map(|()| next)
        });
        let next = made.inspect_err(|_| {
            // It may not exist; the error that matters is the first one.
            let _ = place.files.remove(&path);
        });
        let synced = match (&next, old) {
            (Ok(_), Some(old)) => old.sync(),
            _ => Ok(()),
        };
        (synced, next)
    }

    fn make(self) -> io::Result<Box<Next>> {
        let Self {
            place,
            progress,
            path,
            part,
            manifest,
            old,
            fsync,
            stamp_s,
            ..
        } = self;
        let fresh = old.is_none();
        progress.check()?;
        place.make_directory()?;
        let mut appender = Appender::create(&*place.files, &path, fsync)?;
        if let Some(unix_s) = stamp_s {
            progress.check()?;
            appender.stamp(unix_s)?;
        }
        progress.check()?;
        place.files.sync_directory(&place.directory)?;
        progress.check()?;
        if !fresh {
            place.prepare(&manifest, false)?;
        }
        Ok(Box::new(Next {
            part,
            path,
            appender,
            manifest,
            fresh,
        }))
    }
}

impl Aof {
    /// Whether the thread makes ready what a rewrite begins with, or has done so.
    pub(crate) fn prepares_rewrite(&self) -> bool {
        matches!(
            self.switch,
            Some(Switch::Preparing { .. } | Switch::Prepared(_))
        )
    }

    /// Whether a snapshot may begin. The first call has the thread prepare it; ask again when the thread is done.
    pub(super) fn prepare_rewrite(&mut self) -> bool {
        if !self.syncer.is_free() {
            return false;
        }
        match self.switch.take() {
            Some(Switch::Prepared(next)) if next.fresh == self.appender.is_none() => {
                self.switch = Some(Switch::Prepared(next));
                true
            }
            Some(Switch::Prepared(next)) => {
                // The file has failed since.
                self.discard(&next);
                self.submit_prepare();
                false
            }
            None => {
                self.submit_prepare();
                false
            }
            under_way => {
                self.switch = under_way;
                false
            }
        }
    }

    fn submit_prepare(&mut self) {
        let (_, part) = self.next_parts(self.policy.rdb_base);
        let mut manifest = self.manifest.clone();
        manifest.history.extend_from_slice(&self.left);
        manifest.increments.push(part.clone());
        let old = self.appender.as_ref().map(|old| old.file().clone());
        let path = match old.is_none() {
            true => self.place.temporary_increment(),
            false => self.place.path(&part),
        };
        let progress = Arc::<Progress>::default();
        self.submit(Work::Prepare(Box::new(Prepare {
            place: self.place.clone(),
            lock: self.lock.clone(),
            progress: progress.clone(),
            path: path.clone(),
            part,
            manifest,
            old,
            fsync: self.policy.fsync,
            stamp_s: self.stamp_s(),
        })));
        self.switch = Some(Switch::Preparing { path, progress });
    }

    /// Gives the thread something to do; it has to be free.
    pub(super) fn submit(&self, work: Work) {
        self.syncer.submit(Job {
            work,
            position: self.appender.as_ref().map_or(0, Appender::position),
            stream: self.written(),
            generation: self.generation(),
        });
    }

    /// Forgets what was prepared for a rewrite that does not begin.
    pub(super) fn forget_prepared(&mut self) {
        if let Some(Switch::Prepared(next)) = self
            .switch
            .take_if(|switch| matches!(switch, Switch::Prepared(_)))
        {
            self.discard(&next);
        }
    }

    /// Ends the old increment, for the snapshot that begins before the next command. Returns the number of the new
    /// increment, and whether there was no old one.
    ///
    /// # Errors
    /// The old increment cannot be written. There is no increment to use then.
    pub(super) fn begin_switch(&mut self, store: &mut Store) -> io::Result<(u64, bool)> {
        let prepared = self
            .switch
            .take_if(|switch| matches!(switch, Switch::Prepared(_)));
        let Some(Switch::Prepared(next)) = prepared else {
            return Err(io::Error::other("the rewrite is not prepared"));
        };
        let (seq, fresh) = (next.part.seq, next.fresh);
        if fresh {
            self.earlier_bytes = 0;
        } else if let Err(error) = self.append_waiting() {
            self.appender = None;
            self.discard(&next);
            return Err(error);
        }
        self.drop_waiting();
        store.begin_aof_file();
        match &self.appender {
            None => self.take_appender(next.appender),
            Some(old) => {
                self.submit(Work::Sync(old.file().clone()));
                self.switch = Some(Switch::Ending(next));
            }
        }
        Ok((seq, fresh))
    }

    /// Goes on for a brief time, before the snapshot begins. With `always`, writes would wait for the name as well.
    ///
    /// # Errors
    /// As [`Aof::advance_switch`].
    pub(super) fn hurry_switch(&mut self, always: bool) -> io::Result<()> {
        let start = Instant::now();
        while self.is_ending() || always && self.is_switching() {
            let left = BRIEF_WAIT.saturating_sub(start.elapsed());
            self.syncer.settle_for(left);
            let Some(done) = self.syncer.take() else {
                break;
            };
            if let Some(switch) = self.switch.take() {
                self.advance_switch(switch, done.outcome)?;
            }
        }
        Ok(())
    }

    /// The thread has done its part of `Ending` or `Naming`.
    ///
    /// # Errors
    /// The end of the old increment, or the name of the manifest, could not be synced: there is no increment to use.
    pub(super) fn advance_switch(
        &mut self,
        switch: Switch,
        outcome: io::Result<()>,
    ) -> io::Result<()> {
        match (switch, outcome) {
            (Switch::Ending(next), Ok(())) => self.name_increment(next),
            (Switch::Ending(next), Err(error)) => {
                self.appender = None;
                self.discard(&next);
                Err(error)
            }
            (_, outcome) => {
                if outcome.is_err() {
                    self.appender = None;
                } else if let Some(rewrite) = &self.rewrite {
                    // The base may take the place of what is before it.
                    rewrite.may_install.store(true, Ordering::Release);
                }
                outcome
            }
        }
    }

    /// The thread has synced the end of the old increment: the new one takes its place.
    fn name_increment(&mut self, next: Box<Next>) -> io::Result<()> {
        if let Err(error) = self.place.name_manifest() {
            // The manifest on disk may be the old one or the new one.
            self.lose_files([next.part]);
            return Err(error);
        }
        self.earlier_bytes = self.current_bytes();
        self.manifest = next.manifest;
        self.left.clear();
        self.take_appender(next.appender);
        self.submit(Work::SyncDirectory(self.place.clone()));
        self.switch = Some(Switch::Naming);
        Ok(())
    }

    /// The end of the old increment, or the name of the manifest, could not be synced: neither file is trusted any more.
    pub(super) fn fail_switch(&mut self, store: &mut Store, error: &io::Error, now: Now) {
        self.cancel_rewrite(store);
        store.refuse_writes(Some(&crate::base::errors::plain(error)));
        self.request_base_later();
        self.note_failure(error, now);
    }

    /// Goes on with the old increment after writes have waited too long for its sync.
    pub(super) fn give_up_switch(&mut self, store: &mut Store, now: Now) {
        self.forget_ending();
        self.cancel_rewrite(store);
        self.wants_base = true;
        let reason = "the disk takes too long to sync the AOF file";
        self.note_failure(&io::Error::new(io::ErrorKind::TimedOut, reason), now);
    }

    /// Goes on with the old increment, if the manifest does not name another one yet.
    pub(super) fn forget_ending(&mut self) {
        if let Some(Switch::Ending(next)) = self
            .switch
            .take_if(|switch| matches!(switch, Switch::Ending(_)))
        {
            self.discard(&next);
        }
    }

    /// Ends the snapshot of the running rewrite, which has installed nothing.
    fn cancel_rewrite(&mut self, store: &mut Store) {
        store.cancel_snapshot(SnapshotPurpose::Rewrite);
        self.rewrite = None;
    }

    /// Whether the thread works on a switch, so that writes do not wait for it as for an fsync of the file they go to.
    pub(super) fn is_making_names(&self) -> bool {
        matches!(self.switch, Some(Switch::Preparing { .. } | Switch::Naming))
    }

    /// Whether writes wait in memory for the end of the old increment.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.switch, Some(Switch::Ending(_)))
    }

    /// Whether a write cannot be made durable yet: the increment it goes to has no name for good.
    pub(super) fn is_switching(&self) -> bool {
        matches!(self.switch, Some(Switch::Ending(_) | Switch::Naming))
    }

    /// Leaves a switch that has not begun to name its increment. The rewrite, if one ran, is over. This waits for a sync of the
    /// increment that is written to, and of its name; what the thread makes for a rewrite is given up. The thread ends it
    /// at its next step, and may be in the middle of one when this returns.
    ///
    /// # Errors
    /// The file or its name could not be synced.
    pub(super) fn leave_switch(&mut self) -> io::Result<()> {
        if let Some(Switch::Preparing { path, progress }) = &self.switch
            && progress.leave_making(GIVEN_UP)
        {
            self.remove(path);
            self.switch = None;
            return Ok(());
        }
        let done = self.syncer.wait();
        self.forget_prepared();
        self.forget_ending();
        self.switch = None;
        let Some(done) = done else {
            return Ok(());
        };
        if let Some(Ok(next)) = &done.next {
            self.discard(next);
        }
        done.outcome
    }

    /// The same, and waits until the thread makes nothing any more: what follows uses the same names.
    ///
    /// # Errors
    /// As [`Aof::leave_switch`].
    pub(super) fn end_switch(&mut self) -> io::Result<()> {
        let left = self.leave_switch();
        // The result is that of a rewrite that was given up.
        let _ = self.syncer.wait();
        left
    }

    /// Removes an increment that no manifest names.
    fn discard(&self, next: &Next) {
        self.remove(&next.path);
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = self.place.files.remove(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "{} cannot be removed", path.display());
        }
    }
}
