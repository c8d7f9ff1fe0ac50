//! The append-only file in the event loop: what is loaded at startup, what each turn writes, how it ends.

use super::files::{self, Disk};
use super::load::{self, Apply, LoadedLog, LogError};
use super::log::{Log, Start};
use super::manifest::Manifest;
use super::place::{self, Place};
use super::rewrite::RewritePlan;
use crate::front::{EngineIo, Front};
use crate::rdb_file;
use crate::server::ServerError;
use crate::snapshot::{KeyDelay, Plan};
use kumi_store::config::Settings;
use kumi_store::{
    ApplyError, LoadError, LogFacts, Now, Outputs, RewriteStart, SnapshotPurpose, Store,
};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often loading says in the log how far it is.
const TELL: Duration = Duration::from_secs(2);
/// How often clients are answered while data is loaded.
const SERVE: Duration = Duration::from_millis(20);

/// What the front holds of the append-only file.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    log: Option<Box<Log>>,
    /// The log ends at the end of the turn: `appendonly no`, or BGREWRITEAOF without a log.
    ends: bool,
    /// BGREWRITEAOF has asked a log that ends for a base which is not begun yet: it waits for a running BGSAVE, or until
    /// the increment is synced.
    pending: bool,
    /// BGREWRITEAOF without a log: of a log that ends, only a new base is kept. How many it had before that.
    base_only: Option<u64>,
    /// The number of the last increment of this process.
    last_increment: u64,
    /// What INFO shows of logs that have ended.
    past: LogFacts,
    /// The thread of a log that has ended, if it had to give up something that it made.
    thread: Option<JoinHandle<()>>,
    /// How the snapshot of a rewrite ended, until the end of the turn.
    ended: Option<io::Result<()>>,
    /// Held on the directory of the RDB file, so that another server there can be warned.
    directory: Option<File>,
    /// The log failed with `appendfsync always`: no reply may be sent any more.
    pub(crate) fatal: Option<io::Error>,
}

impl LogState {
    /// The facts of a log together with those of the logs before it.
    fn with_past(&self, mut facts: LogFacts) -> LogFacts {
        let past = &self.past;
        if facts.rewrites == 0 && facts.rewrite_failures == 0 {
            facts.last_rewrite_failed = past.last_rewrite_failed;
            facts.last_rewrite_s = past.last_rewrite_s;
        }
        facts.rewrites += past.rewrites;
        facts.delayed_fsyncs += past.delayed_fsyncs;
        facts
    }

    /// Keeps what INFO shows of a log that ends.
    fn keep_facts(&mut self, facts: LogFacts) {
        let facts = self.with_past(facts);
        self.past.last_rewrite_failed = facts.last_rewrite_failed;
        self.past.last_rewrite_s = facts.last_rewrite_s;
        self.past.rewrites = facts.rewrites;
        self.past.delayed_fsyncs = facts.delayed_fsyncs;
    }

    /// Waits until the thread of the last log has ended: it holds the lock of the directory, and may use its names.
    fn wait_for_thread(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that syncs the append-only file panicked");
        }
    }
}

impl Front {
    /// Loads the data set at startup, and begins the append-only file. Clients are answered meanwhile.
    /// False if the server was asked to stop before it was done.
    pub(crate) fn load_data(&mut self, engine: &mut EngineIo<'_>) -> Result<bool, ServerError> {
        let settings = engine.store.config().settings().clone();
        if !self.config.keeps_files {
            return match settings.appendonly {
                false => Ok(true),
                true => Err(ServerError::Load {
                    path: "appendonly yes".into(),
                    error: "this server keeps its data in memory only".into(),
                }),
            };
        }
        if !settings.appendonly {
            self.log.directory = rdb_file::mark_directory(&settings);
            rdb_file::remove_stale(&settings, self.log.directory.is_some());
            return rdb_file::load(self, engine);
        }
        let place = Place::of(&settings, Arc::new(Disk));
        let failed = |LogError {
                          path,
                          at,
                          is_damaged_rdb,
                          reason,
                      }| {
            if is_damaged_rdb {
                return ServerError::Damaged {
                    path,
                    error: reason,
                };
            }
            let error = match at {
                Some(at) => format!(
                    "at byte {at}: {reason}. `kumi check-aof --fix {}` cuts the file off there, and keeps the rest beside it",
                    place.directory.display()
                ),
                None => reason,
            };
            ServerError::Load { path, error }
        };
        let unusable = |error: io::Error| ServerError::Load {
            path: place.directory.clone(),
            error: error.to_string(),
        };
        place.make_directory().map_err(unusable)?;
        let lock = place::lock(&place.directory).map_err(unusable)?;
        place.remove_stale();
        rdb_file::remove_stale(&settings, true);
        // Without a manifest the RDB file is loaded; Redis would begin with no data beside it.
        let manifest = place.read().map_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData {
                // Its text is wrong. The reason follows, with the file.
                tracing::error!("*** FATAL AOF MANIFEST FILE ERROR ***");
            }
            unusable(error)
        })?;
        let continues = manifest.is_some();
        let mut found = LoadedLog::default();
        if let Some(manifest) = &manifest {
            let loaded = self.load_log(engine, &place, manifest, settings.aof_load_truncated);
            if self.is_stopping() {
                return Ok(false);
            }
            found = loaded.map_err(failed)?;
        } else if !rdb_file::load(self, engine)? {
            return Ok(false);
        }
        let start = Start {
            place: place.clone(),
            lock: Some(lock),
            manifest: manifest.unwrap_or_default(),
            lengths: found.lengths,
            seed: found.seed,
            stream: engine.store.write_offset(),
            last_increment: 0,
        };
        let now = self.clock.read();
        let waker = Some(self.waker.clone());
        let mut log = Log::start(start, &settings, waker, continues, now).map_err(unusable)?;
        engine.store.listen_to_writes(true);
        log.maintain(engine.store, engine.outputs, now);
        if !log.has_file() {
            let error = "the append-only file cannot be written: the log has the reason".into();
            return Err(ServerError::Load {
                path: place.directory.clone(),
                error,
            });
        }
        self.log.log = Some(Box::new(log));
        Ok(true)
    }

    /// Loads an append-only file and cuts off what was not written completely.
    fn load_log(
        &mut self,
        engine: &mut EngineIo<'_>,
        place: &Place,
        manifest: &Manifest,
        may_cut: bool,
    ) -> Result<LoadedLog, LogError> {
        let total = load::total_bytes(place, manifest)?;
        let start = Instant::now();
        engine.store.begin_loading(total, true);
        let delay_us = engine.store.config().settings().key_load_delay_us;
        let mut loader = Loader {
            front: self,
            store: engine.store,
            outputs: engine.outputs,
            total: total.max(1),
            loaded: 0,
            told: start,
            served: start,
            serves: true,
            delay: KeyDelay::fixed(delay_us),
        };
        let loaded = load::load(place, manifest, &mut loader);
        let errors = engine.store.end_loading(engine.outputs);
        if errors > 0 {
            tracing::warn!(
                "{errors} commands of the append-only file failed, as they did when they were first run"
            );
        }
        let loaded = loaded?;
        if let Some(cut) = &loaded.cut
            && let Some(part) = manifest.data().last()
        {
            let error = |reason: String| LogError {
                path: place.path(part),
                at: Some(cut.at),
                is_damaged_rdb: false,
                reason,
            };
            if !may_cut {
                return Err(error(format!(
                    "Unexpected end of file reading the append only file: {}; 'aof-load-truncated yes' would load what is before it",
                    cut.reason
                )));
            }
            tracing::warn!(
                "!!! Warning: short read while loading the AOF file {}!!!",
                part.name
            );
            let cut_file = files::cut_off(&*place.files, &place.path(part), cut.at);
            let kept =
                cut_file.map_err(|failed| error(format!("it cannot be cut off here: {failed}")))?;
            tracing::warn!(
                "AOF {} loaded anyway because aof-load-truncated is enabled. It is cut off at byte {}, before its last {} bytes, which are now in {}: {}",
                part.name,
                cut.at,
                cut.lost,
                kept.display(),
                cut.reason
            );
        }
        tracing::info!(
            "DB loaded from append only file: {:.3} seconds",
            start.elapsed().as_secs_f64()
        );
        Ok(loaded)
    }

    /// Writes the engine's writes to the append-only file. False if that failed so that no reply may be sent.
    #[inline]
    pub(crate) fn append_writes(&mut self, engine: &mut EngineIo<'_>) -> bool {
        if self.log.fatal.is_none()
            && let Some(log) = &mut self.log.log
        {
            let now = self.clock.read();
            let flushed = log.flush(engine.store, engine.outputs, now);
            self.times.log_ns += self.clock.read().mono_ns - now.mono_ns;
            self.discarder.discard_bytes(log.take_garbage());
            if self.log.ends && (flushed.is_err() || log.has_failed()) {
                self.drop_log(engine, flushed);
            } else if let Err(error) = flushed {
                tracing::error!(
                    "Can't recover from AOF write error when the AOF fsync policy is 'always': {error}. Exiting..."
                );
                self.log.fatal.get_or_insert(error);
            }
        }
        self.log.fatal.is_none()
    }

    /// Ends a log that failed and that nothing depends on: `appendonly no`. A rewrite fails with it.
    #[cold]
    fn drop_log(&mut self, engine: &mut EngineIo<'_>, flushed: io::Result<()>) {
        self.log.ends = false;
        // The second error says no more than the first one.
        let closed = self.close_log(engine);
        if let Err(error) = flushed.and(closed) {
            tracing::error!("Background AOF rewrite terminated with error: {error}");
        }
    }

    /// Writes a new base if it is time to, and ends the log if it is to end. Called between commands.
    #[inline]
    pub(crate) fn maintain_log(&mut self, engine: &mut EngineIo<'_>) {
        let now = self.clock.last();
        if let Some(outcome) = self.log.ended.take()
            && let Some(log) = &mut self.log.log
        {
            let engine = (&mut *engine.store, &mut *engine.outputs);
            log.end_rewrite(Some(engine), outcome, now);
        }
        if let Some(log) = &mut self.log.log {
            let busy = engine.store.snapshot_purpose().is_some();
            let is_needed = !self.log.ends || self.log.pending;
            if is_needed && log.may_begin(busy, now) {
                engine.store.listen_to_writes(true);
                self.log.pending = false;
                self.begin_rewrite(engine);
            }
            let log = self.log.log.as_ref();
            let done = log.is_none_or(|log| !log.is_rewriting());
            let prepares = log.is_some_and(|log| log.prepares_rewrite());
            let cancels = !done && self.log.base_only.is_none();
            if self.log.ends && (done || cancels) && !self.log.pending {
                if cancels || prepares {
                    tracing::info!("Killing running AOF rewrite child: appendonly no");
                }
                self.log.ends = false;
                if let Err(error) = self.close_log(engine) {
                    tracing::error!(%error, "the append-only file could not be ended");
                }
            }
        }
    }

    /// Begins to write a new base: a snapshot, while clients are served.
    fn begin_rewrite(&mut self, engine: &mut EngineIo<'_>) {
        let now = self.clock.last();
        let Some(log) = &mut self.log.log else {
            return;
        };
        if let Err(error) = log.begin_rewrite(engine.store, now) {
            if log.lacks_file() {
                engine
                    .store
                    .refuse_writes(Some(&crate::host::plain(&error)));
                log.request_base_later();
            }
            return log.note_failure(&error, now);
        }
        let started = engine.store.start_snapshot(SnapshotPurpose::Rewrite, self);
        match (started, &mut self.log.log) {
            (Err(error), Some(log)) => {
                log.end_rewrite(None, Err(io::Error::other(error.to_string())), now);
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
        let log = self.log.log.as_ref();
        let RewritePlan {
            temporary,
            path,
            incremental_fsync,
            install,
        } = log
            .and_then(|log| log.rewrite_plan())
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

    /// The snapshot of a rewrite has ended. The log takes it over at the end of the turn.
    pub(crate) fn note_rewrite(&mut self, outcome: &io::Result<()>) {
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        self.log.ended = Some(outcome);
    }

    /// Writes a new base before a stop if the file has failed: what was replied to since then is in memory only.
    pub(crate) fn rescue_log(&mut self, engine: &mut EngineIo<'_>) {
        let now = self.clock.last();
        if let Some(log) = &mut self.log.log
            && !self.log.ends
            && log.has_failed()
        {
            // One that is complete already is the new base.
            cancel_rewrite(log, engine, now);
            if log.has_failed() {
                log.rescue(engine.store);
            }
        }
    }

    /// Ends the append-only file.
    pub(crate) fn close_log(&mut self, engine: &mut EngineIo<'_>) -> io::Result<()> {
        self.log.pending = false;
        let Some(mut log) = self.log.log.take() else {
            return Ok(());
        };
        cancel_rewrite(&mut log, engine, self.clock.last());
        self.log.keep_facts(log.facts(self.clock.last()));
        let last_increment = log.last_increment();
        let base_only = self.log.base_only.take();
        let closed = if base_only.is_some_and(|before| log.rewrites() > before) {
            // The number of the increment that goes is used again.
            self.log.last_increment = last_increment.saturating_sub(1);
            log.close_base(engine.store)
        } else {
            self.log.last_increment = last_increment;
            log.close(engine.store)
        };
        self.log.thread = log.take_thread();
        engine.store.listen_to_writes(false);
        engine.store.refuse_writes(None);
        engine.store.note_log(false, 0, engine.outputs);
        closed
    }

    /// Begins the log if `appendonly` is turned on; returns whether it did.
    pub(crate) fn turn_on_log(
        &mut self,
        settings: &Settings,
        changed: &[&'static str],
    ) -> Result<bool, ApplyError> {
        if !changed.contains(&"appendonly") || !settings.appendonly || self.log.log.is_some() {
            return Ok(false);
        }
        self.begin_log(settings).map_err(|error| {
            tracing::error!("appendonly yes: {error}");
            ApplyError {
                directive: "appendonly".into(),
                message: "Unable to turn on AOF. Check server logs.".into(),
            }
        })?;
        Ok(true)
    }

    /// Takes back what [`Front::turn_on_log`] did in the same command.
    pub(crate) fn turn_off_log(&mut self) {
        self.log.log = None;
    }

    /// Puts changed directives into effect.
    pub(crate) fn apply_log(&mut self, settings: &Settings, changed: &[&'static str]) {
        if changed.contains(&"appendonly") {
            self.log.ends = !settings.appendonly && self.log.log.is_some();
            self.log.pending = false;
            if settings.appendonly {
                self.log.base_only = None;
            }
        }
        if let Some(log) = &mut self.log.log {
            log.configure(settings);
        }
    }

    /// Begins a log at run time. Its base is written at the end of the turn.
    fn begin_log(&mut self, settings: &Settings) -> io::Result<()> {
        if self.log.log.is_some() {
            return Ok(());
        }
        if !self.config.keeps_files {
            let reason = "this server keeps its data in memory only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        self.log.wait_for_thread();
        let place = Place::of(settings, Arc::new(Disk));
        place.make_directory()?;
        let lock = place::lock(&place.directory)?;
        place.probe()?;
        let start = Start {
            // A single file of a version before Redis 7 stays where it is: its data is not loaded.
            manifest: place.manifest()?.unwrap_or_default(),
            place,
            lock: Some(lock),
            lengths: Vec::new(),
            seed: 0,
            stream: 0,
            last_increment: self.log.last_increment,
        };
        let now = self.clock.last();
        let waker = Some(self.waker.clone());
        let log = Log::start(start, settings, waker, false, now)?;
        self.log.log = Some(Box::new(log));
        Ok(())
    }

    /// BGREWRITEAOF.
    pub(crate) fn rewrite_log_now(&mut self, settings: &Settings) -> Result<RewriteStart, String> {
        match &mut self.log.log {
            Some(log) if log.is_rewriting() || log.prepares_rewrite() => {
                return Err("Background append only file rewriting already in progress".into());
            }
            Some(log) => {
                log.request_base();
                self.log.pending = self.log.ends;
                self.log.base_only = self.log.ends.then(|| log.rewrites());
            }
            None => {
                self.begin_log(settings)
                    .map_err(|error| error.to_string())?;
                self.log.ends = true;
                self.log.pending = true;
                self.log.base_only = Some(0);
            }
        }
        Ok(RewriteStart::Started)
    }

    /// DEBUG LOADAOF.
    pub(crate) fn reload_log_now(
        &mut self,
        store: &mut Store,
        outputs: &mut Outputs,
    ) -> Result<(), String> {
        let (place, manifest, _lock) = match &mut self.log.log {
            Some(log) => {
                let (place, manifest) = settle(log, store, outputs, self.clock.last())?;
                (place, manifest, None)
            }
            None => {
                self.log.wait_for_thread();
                let place = Place::of(store.config().settings(), Arc::new(Disk));
                let lock = place::lock(&place.directory);
                let manifest = lock.and_then(|lock| Ok((place.manifest()?, lock)));
                match manifest.map_err(|error| error.to_string())? {
                    (Some(manifest), lock) => (place, manifest, Some(lock)),
                    (None, _) => return Err("there is no append-only file".into()),
                }
            }
        };
        let listens = self.log.log.is_some();
        let total = load::total_bytes(&place, &manifest).map_err(|error| error.to_string())?;
        store.clear();
        store.begin_loading(total, true);
        let start = Instant::now();
        let mut loader = Loader {
            front: self,
            store,
            outputs,
            total: total.max(1),
            loaded: 0,
            told: start,
            served: start,
            serves: false,
            delay: KeyDelay::fixed(0),
        };
        let loaded = load::load(&place, &manifest, &mut loader);
        store.end_loading(outputs);
        store.listen_to_writes(listens);
        loaded.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Whether the first base of the append-only file is being written.
    pub(crate) fn first_base_is_missing(&self) -> bool {
        let log = self.log.log.as_ref().filter(|_| !self.log.ends);
        log.is_some_and(|log| log.writes_first_base())
    }

    /// Whether a rewrite was answered with "started", and its snapshot is yet to begin.
    pub(crate) fn rewrite_begins(&self) -> bool {
        self.log
            .log
            .as_ref()
            .is_some_and(|log| log.begins_rewrite())
    }

    /// What INFO shows of the append-only file. A log that ends counts as off; its rewrite is shown.
    pub(crate) fn log_facts(&self) -> LogFacts {
        let log = self.log.log.as_ref();
        let facts = log.map_or_else(LogFacts::default, |log| log.facts(self.clock.last()));
        let mut facts = self.log.with_past(facts);
        facts.enabled &= !self.log.ends;
        facts
    }
}

/// The name of a file without its directory.
fn name_of(path: &Path) -> std::path::Display<'_> {
    path.file_name().map_or(path, Path::new).display()
}

fn cancel_rewrite(log: &mut Log, engine: &mut EngineIo<'_>, now: Now) {
    if engine.store.cancel_snapshot(SnapshotPurpose::Rewrite) {
        let cancelled = io::Error::new(io::ErrorKind::Interrupted, "the log ends");
        log.end_rewrite(None, Err(cancelled), now);
    }
}

/// Brings the files of a running log up to date, so that they can be loaded; returns them.
pub(super) fn settle(
    log: &mut Log,
    store: &mut Store,
    outputs: &mut Outputs,
    now: Now,
) -> Result<(Place, Manifest), String> {
    if log.is_incomplete() || !log.has_file() {
        return Err("the append-only file is not complete yet".into());
    }
    // Or writes would stay in memory, which what is loaded replaces.
    log.settle();
    log.flush(store, outputs, now)
        .map_err(|error| error.to_string())?;
    if !log.has_file() {
        return Err("the append-only file has failed".into());
    }
    // Its thread may remove files that are loaded here.
    if store.cancel_snapshot(SnapshotPurpose::Rewrite) {
        let cancelled = io::Error::new(io::ErrorKind::Interrupted, "the data is loaded again");
        log.end_rewrite(None, Err(cancelled), now);
        log.request_base();
    }
    Ok(log.files())
}

/// Executes what is loaded, and answers clients meanwhile.
struct Loader<'a> {
    front: &'a mut Front,
    store: &'a mut Store,
    outputs: &'a mut Outputs,
    total: u64,
    loaded: u64,
    told: Instant,
    served: Instant,
    /// Clients are answered meanwhile; not inside of a command.
    serves: bool,
    /// `key-load-delay`
    delay: KeyDelay,
}

impl Apply for Loader<'_> {
    fn requests(&mut self, bytes: &[u8]) -> Result<(), (usize, String)> {
        self.store
            .replay(bytes, self.outputs, self.front)
            .map_err(|error| (error.at, error.reason))
    }

    fn rdb(&mut self, source: &mut (dyn Read + Send)) -> Result<u64, LoadError> {
        let mut pace = Pace {
            told: self.told,
            served: self.served,
            total: self.total,
            serves: self.serves,
        };
        let (front, outputs) = (&mut *self.front, &mut *self.outputs);
        let delay = &mut self.delay;
        let loaded = self.store.load_rdb_while(source, |store, offset| {
            // Nothing cancels loading.
            let _ = delay.wait(|| false);
            pace.keep(front, store, outputs, offset)
        });
        (self.told, self.served) = (pace.told, pace.served);
        let loaded = loaded?;
        self.store
            .load_libraries(&loaded.libraries, true, self.front)?;
        self.loaded = loaded.bytes;
        Ok(loaded.bytes)
    }

    fn progress(&mut self, bytes: u64) -> io::Result<()> {
        let mut pace = Pace {
            told: self.told,
            served: self.served,
            total: self.total,
            serves: self.serves,
        };
        let goes_on = pace.keep(self.front, self.store, self.outputs, bytes);
        (self.told, self.served) = (pace.told, pace.served);
        if goes_on {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "the server was asked to stop",
            ))
        }
    }
}

/// Says how far loading is, and answers clients, now and then.
pub(crate) struct Pace {
    told: Instant,
    served: Instant,
    total: u64,
    serves: bool,
}

impl Pace {
    pub(crate) fn new(total: u64) -> Self {
        let now = Instant::now();
        Self {
            told: now,
            served: now,
            total: total.max(1),
            serves: true,
        }
    }

    /// `bytes` are loaded. False if the server was asked to stop.
    pub(crate) fn keep(
        &mut self,
        front: &mut Front,
        store: &mut Store,
        outputs: &mut Outputs,
        bytes: u64,
    ) -> bool {
        if !self.serves {
            return true;
        }
        let now = Instant::now();
        if now.duration_since(self.served) >= SERVE {
            store.note_loaded(bytes);
            let mut engine = EngineIo { store, outputs };
            if let Err(error) = front.turn(&mut engine, Duration::ZERO) {
                tracing::warn!(%error, "serving clients while loading failed");
            }
            self.served = Instant::now();
        }
        if now.duration_since(self.told) >= TELL {
            self.told = now;
            tracing::info!(
                "loading the data: {}% of {} bytes",
                bytes * 100 / self.total,
                self.total
            );
        }
        !front.is_stopping()
    }
}
