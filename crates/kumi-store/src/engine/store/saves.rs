//! When data is saved, and what is known of the saves: BGSAVE, save points, MISCONF.

use super::snapshot::{Snapshot, SnapshotError, SnapshotPurpose};
use super::{Store, persistence};
use crate::base::clock::Now;
use crate::base::error::CommandError;
use crate::engine::host::Host;
use std::io;

/// After a save that failed, save points wait this long.
const RETRY_S: u64 = 5;

const MISCONF: CommandError = CommandError::fixed(
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.",
);

/// What is known of saves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saves {
    /// When data was last saved, or loaded, or the server started.
    pub(crate) last_unix_s: u64,
    /// The last save in the background failed.
    pub(crate) last_failed: bool,
    /// How many changes there had been at the last save.
    pub(crate) changes: u64,
    /// When a save in the background was last begun.
    tried_unix_s: Option<u64>,
    /// How long the last save in the background took.
    pub(crate) last_duration_s: Option<u64>,
    /// Saves since the start.
    pub(crate) count: u64,
    /// The most memory that the last save in the background took besides the data.
    pub(crate) last_extra_bytes: usize,
    /// The same of the last rewrite of the append-only file.
    pub(crate) rewrite_extra_bytes: usize,
    /// BGSAVE SCHEDULE: save as soon as nothing is in the way.
    pub(crate) scheduled: bool,
    /// Keys of the file that was loaded last.
    pub(crate) loaded: u64,
    /// Keys of that file that had expired.
    pub(crate) loaded_expired: u64,
}

impl Saves {
    pub(super) fn new(now: Now) -> Self {
        Self {
            last_unix_s: now.unix_us / 1_000_000,
            last_failed: false,
            changes: 0,
            tried_unix_s: None,
            last_duration_s: None,
            count: 0,
            last_extra_bytes: 0,
            rewrite_extra_bytes: 0,
            scheduled: false,
            loaded: 0,
            loaded_expired: 0,
        }
    }

    /// A save has succeeded: the file holds what there was after `changes` changes.
    pub(crate) fn note_saved(&mut self, changes: u64, now: Now) {
        self.last_unix_s = now.unix_us / 1_000_000;
        self.last_failed = false;
        self.changes = changes;
        self.count += 1;
    }

    /// A save in the background has ended.
    pub(super) fn note_end(&mut self, ended: &Snapshot, outcome: &io::Result<()>, now: Now) {
        let took_ns = now.mono_ns.saturating_sub(ended.started.mono_ns);
        self.last_duration_s = Some(took_ns / 1_000_000_000);
        self.last_extra_bytes = ended.peak_bytes;
        match outcome {
            Ok(()) => {
                tracing::info!("Background saving terminated with success");
                self.note_saved(ended.changes, now);
            }
            Err(error) => {
                tracing::error!(%error, "Background saving error");
                self.last_failed = true;
            }
        }
    }

    /// Whether a save that no client waits for may begin now.
    fn may_retry(&self, now_s: u64) -> bool {
        let since = self.tried_unix_s.map(|tried| now_s.saturating_sub(tried));
        !self.last_failed || since.is_none_or(|seconds| seconds > RETRY_S)
    }
}

impl Store {
    /// Begins to save in the background.
    ///
    /// # Errors
    /// A snapshot is being taken, or the file cannot be written; then commands that write may be
    /// refused from now on.
    pub(crate) fn save_in_background(&mut self, host: &mut dyn Host) -> Result<(), SnapshotError> {
        self.persistence.saves.tried_unix_s = Some(self.now.unix_us / 1_000_000);
        let started = self.start_snapshot(SnapshotPurpose::Save, host);
        match &started {
            Ok(()) => {
                self.persistence.saves.scheduled = false;
                tracing::info!("Background saving started by pid {}", std::process::id());
            }
            Err(SnapshotError::Host(error)) => {
                tracing::error!(%error, "Can't save in background");
                self.persistence.saves.last_failed = true;
            }
            Err(SnapshotError::Running(_)) => {}
        }
        started
    }

    /// Saves in the background if a save point is reached or BGSAVE SCHEDULE asked for it.
    pub(super) fn save_when_due(&mut self, host: &mut dyn Host) {
        if self.persistence.loading.is_some() {
            // The data is not complete.
            return;
        }
        let now_s = self.now.unix_us / 1_000_000;
        let busy = self.persistence.snapshot.is_some() || host.begins_rewrite();
        if busy || !host.keeps_files() || !self.persistence.saves.may_retry(now_s) {
            return;
        }
        let changes = self.unsaved_changes();
        let passed_s = now_s.saturating_sub(self.persistence.saves.last_unix_s);
        let points = &self.config.settings().save_points;
        let reached = points
            .iter()
            .find(|point| changes >= point.changes && passed_s > point.seconds);
        if let Some(point) = reached {
            let seconds = point.seconds;
            tracing::info!("{} changes in {seconds} seconds. Saving...", point.changes);
        } else if !self.persistence.saves.scheduled {
            return;
        }
        // What went wrong is in the log, and in INFO.
        let _ = self.save_in_background(host);
    }

    /// Saves, with nothing else done meanwhile.
    ///
    /// # Errors
    /// The file cannot be written. The old one is as it was.
    pub fn save_now(&mut self, host: &mut dyn Host) -> io::Result<()> {
        let store = &*self;
        host.save_rdb(&store.config, &mut |sink, each_key| {
            persistence::save(store, sink, each_key)
        })?;
        let changes = self.keyspace.dirty;
        self.persistence.saves.note_saved(changes, self.now);
        Ok(())
    }

    /// What is saved before the server ends, if anything: a running save is cancelled, and with save
    /// points, or when `save` asks for it, the data is saved unless `save` forbids it.
    ///
    /// Returns whether it saved.
    ///
    /// # Errors
    /// The file cannot be written, or the first base of the append-only file is not complete and `force` is not set.
    pub fn save_at_end(
        &mut self,
        save: Option<bool>,
        force: bool,
        host: &mut dyn Host,
    ) -> io::Result<bool> {
        if host.writes_first_base() {
            if !force {
                tracing::warn!("Writing initial AOF, can't exit.");
                return Err(io::Error::other("the initial AOF is not complete"));
            }
            tracing::warn!("Writing initial AOF. Exit anyway.");
        }
        if self.cancel_snapshot(SnapshotPurpose::Save) {
            tracing::warn!("There is a child saving an .rdb. Killing it!");
        }
        let has_points = host.keeps_files() && !self.config.settings().save_points.is_empty();
        // As in Redis, data that is not loaded completely is not saved.
        let saves = save.unwrap_or(has_points) && self.persistence.loading.is_none();
        if saves {
            tracing::info!("Saving the final RDB snapshot before exiting.");
            self.save_now(host).inspect_err(|error| {
                if force {
                    tracing::error!(%error, "Error trying to save the DB. Exit anyway.");
                } else {
                    tracing::error!(%error, "Error trying to save the DB, can't exit.");
                }
            })?;
        }
        Ok(saves)
    }

    /// Changes of the data since it was last saved.
    #[must_use]
    pub fn unsaved_changes(&self) -> u64 {
        self.keyspace.dirty - self.persistence.saves.changes
    }

    /// All databases were flushed: with save points the file becomes empty too. A FLUSHALL that is
    /// replayed from the AOF leaves the file as it is: what follows in the AOF is not in memory yet.
    pub(crate) fn reset_file(&mut self, host: &mut dyn Host) {
        if self.persistence.loading.is_none()
            && host.keeps_files()
            && !self.config.settings().save_points.is_empty()
            && let Err(error) = self.save_now(host)
        {
            tracing::error!(%error, "Error saving DB on disk");
        }
    }

    /// Why commands that write are refused, if they are: what they change could not be saved.
    pub(crate) fn disk_error(&self) -> Option<CommandError> {
        if let Some(error) = &self.persistence.aof_error {
            let text = format!("MISCONF Errors writing to the AOF file: {error}");
            return Some(CommandError::new(text));
        }
        let settings = self.config.settings();
        let refuses = self.persistence.saves.last_failed
            && settings.stop_writes_on_save_error
            && !settings.save_points.is_empty();
        refuses.then_some(MISCONF)
    }
}
