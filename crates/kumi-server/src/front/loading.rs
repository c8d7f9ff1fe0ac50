//! Loading the data at startup and for DEBUG LOADAOF: the RDB file, or the AOF. Clients are answered meanwhile.

use super::{EngineIo, Front, ServerError};
use crate::files::aof::{
    Aof, AofError, Apply, Disk, LoadedAof, Manifest, Place, Start, cut_off, load, lock, total_bytes,
};
use crate::files::rdb_file;
use crate::files::snapshot::KeyDelay;
use kumi_store::{LoadError, Outputs, Store};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often loading says in the log how far it is.
const TELL: Duration = Duration::from_secs(2);
/// How often clients are answered while data is loaded.
const SERVE: Duration = Duration::from_millis(20);

/// What a server found on disk at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No file: there is no data yet.
    Nothing,
    /// A data set, which is loaded.
    Data,
    /// The server was asked to stop before the data was loaded.
    Stopped,
}

impl Front {
    /// Loads the data set at startup, and begins the append-only file. Clients are answered meanwhile.
    pub(crate) fn load_data(&mut self, engine: &mut EngineIo<'_>) -> Result<Found, ServerError> {
        let settings = engine.store.config().settings().clone();
        if !self.config.keeps_files {
            return match settings.appendonly {
                false => Ok(Found::Nothing),
                true => Err(ServerError::Load {
                    path: "appendonly yes".into(),
                    error: "this server keeps its data in memory only".into(),
                }),
            };
        }
        if !settings.appendonly {
            self.aof.directory = rdb_file::mark_directory(&settings);
            rdb_file::remove_stale(&settings, self.aof.directory.is_some());
            return load_rdb(self, engine);
        }
        let place = Place::of(&settings, Arc::new(Disk));
        let failed = |AofError {
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
        let lock = lock(&place.directory).map_err(unusable)?;
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
        let (mut found, mut loaded) = (Found::Data, LoadedAof::default());
        if let Some(manifest) = &manifest {
            let aof = self.load_aof(engine, &place, manifest, settings.aof_load_truncated);
            if self.is_stopping() {
                return Ok(Found::Stopped);
            }
            loaded = aof.map_err(failed)?;
        } else {
            found = load_rdb(self, engine)?;
            if found == Found::Stopped {
                return Ok(found);
            }
        }
        let start = Start {
            place: place.clone(),
            lock: Some(lock),
            manifest: manifest.unwrap_or_default(),
            lengths: loaded.lengths,
            seed: loaded.seed,
            stream: engine.store.write_offset(),
            last_increment: 0,
        };
        let now = self.clock.read();
        let waker = Some(self.poller.waker.clone());
        let mut aof = Aof::start(start, &settings, waker, continues, now).map_err(unusable)?;
        engine.store.listen_to_writes(true);
        aof.maintain(engine.store, engine.outputs, now);
        if !aof.has_file() {
            let error = "the append-only file cannot be written: the log has the reason".into();
            return Err(ServerError::Load {
                path: place.directory.clone(),
                error,
            });
        }
        self.aof.running = Some(Box::new(aof));
        Ok(found)
    }

    /// Loads an append-only file and cuts off what was not written completely.
    fn load_aof(
        &mut self,
        engine: &mut EngineIo<'_>,
        place: &Place,
        manifest: &Manifest,
        may_cut: bool,
    ) -> Result<LoadedAof, AofError> {
        let total = total_bytes(place, manifest)?;
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
        let loaded = load(place, manifest, &mut loader);
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
            let error = |reason: String| AofError {
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
            let cut_file = cut_off(&*place.files, &place.path(part), cut.at);
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

    /// DEBUG LOADAOF.
    pub(crate) fn reload_aof_now(
        &mut self,
        store: &mut Store,
        outputs: &mut Outputs,
    ) -> Result<(), String> {
        let (place, manifest, _lock) = match &mut self.aof.running {
            Some(aof) => {
                let (place, manifest) = aof.files_to_load(store, outputs, self.clock.last())?;
                (place, manifest, None)
            }
            None => {
                self.aof.wait_for_thread();
                let place = Place::of(store.config().settings(), Arc::new(Disk));
                let lock = lock(&place.directory);
                let manifest = lock.and_then(|lock| Ok((place.manifest()?, lock)));
                match manifest.map_err(|error| error.to_string())? {
                    (Some(manifest), lock) => (place, manifest, Some(lock)),
                    (None, _) => return Err("there is no append-only file".into()),
                }
            }
        };
        let listens = self.aof.running.is_some();
        let total = total_bytes(&place, &manifest).map_err(|error| error.to_string())?;
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
        let loaded = load(&place, &manifest, &mut loader);
        store.end_loading(outputs);
        store.listen_to_writes(listens);
        loaded.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Loads the data set, if there is one.
fn load_rdb(front: &mut Front, engine: &mut EngineIo<'_>) -> Result<Found, ServerError> {
    let path = rdb_file::path(engine.store.config().settings());
    let failed = |error: String| ServerError::Load {
        path: path.clone(),
        error,
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(failed(error.to_string())),
    };
    let total = file.metadata().map_or(0, |facts| facts.len()).max(1);
    let (start, mut pace) = (Instant::now(), Pace::new(total));
    let mut delay = KeyDelay::fixed(engine.store.config().settings().key_load_delay_us);
    engine.store.begin_loading(total, false);
    let outputs = &mut *engine.outputs;
    let loaded = engine.store.load_rdb_while(file, |store, offset| {
        // Nothing cancels loading.
        let _ = delay.wait(|| false);
        pace.keep(front, store, outputs, offset)
    });
    engine.store.end_loading(engine.outputs);
    let loaded = match loaded {
        // The server was asked to stop.
        Err(LoadError::Stopped) => return Ok(Found::Stopped),
        Err(LoadError::Damaged(error)) => {
            return Err(ServerError::Damaged {
                path: path.clone(),
                error,
            });
        }
        loaded => loaded.map_err(|error| failed(error.to_string()))?,
    };
    engine
        .store
        .load_libraries(&loaded.libraries, false, front)
        .map_err(|error| failed(error.to_string()))?;
    tracing::info!(
        "DB loaded from disk: {:.3} seconds; {} keys from {} (RDB version {}, written by {}), {} expired",
        start.elapsed().as_secs_f64(),
        loaded.keys,
        path.display(),
        loaded.version,
        if loaded.written_by.is_empty() {
            "an unknown server"
        } else {
            &loaded.written_by
        },
        loaded.expired,
    );
    Ok(Found::Data)
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
struct Pace {
    told: Instant,
    served: Instant,
    total: u64,
    serves: bool,
}

impl Pace {
    fn new(total: u64) -> Self {
        let now = Instant::now();
        Self {
            told: now,
            served: now,
            total: total.max(1),
            serves: true,
        }
    }

    /// `bytes` are loaded. False if the server was asked to stop.
    fn keep(
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
