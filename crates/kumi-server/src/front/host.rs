//! What the engine may ask of the front: clocks, live configuration, facts, a turn for others.

use crate::base::allocator;
use crate::base::crash;
use crate::base::descriptors;
use crate::base::errors::plain;
use crate::base::process;
use crate::base::random;
use crate::files::config_file::{replace_file, write_back};
use crate::files::{rdb_file, snapshot};
use crate::front::{EngineIo, Front};
use crate::net::listen::{self, Place};
use crate::net::tls;
use crate::net::tls::config::TlsConfigError;
use kumi_store::config::Settings;
use kumi_store::{
    ApplyError, Config, Host, HostFacts, Now, Outputs, RewriteStart, SnapshotEncoder,
    SnapshotPurpose, SnapshotSink, Store, WriteKeys,
};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

impl Host for Front {
    fn now(&mut self) -> Now {
        self.clock.read()
    }

    fn crash(&mut self) {
        if self.config.ends_process {
            crash::segfault();
        }
    }

    fn ticked(&mut self) -> bool {
        self.clock.ticked()
    }

    /// What can fail comes first, so that an error leaves everything as it was.
    fn apply_config(
        &mut self,
        config: &Config,
        changed: &[&'static str],
    ) -> Result<(), ApplyError> {
        let settings = config.settings();
        if changed.contains(&"maxclients") {
            apply_maxclients(settings)?;
        }
        let tls = Self::new_tls(settings, changed)?;
        if let Some(identity) = self.tls.identity()
            && changed.iter().any(|name| name.starts_with("tls-"))
        {
            let set = self.tls.set_identity(identity, &settings.tls);
            set.map_err(|error| refused_tls(&error))?;
        }
        let owns_process = self.config.ends_process;
        let score = self
            .process
            .oom_score
            .apply(settings, changed, owns_process)?;
        let applied = self.apply_places(settings, changed);
        if let (Err(_), Some(before)) = (&applied, score) {
            self.process.oom_score.restore(before);
        }
        applied?;
        if tls.is_some() {
            self.tls.config = tls;
        }
        self.apply_aof(settings, changed);
        self.keep_data_id(settings, changed);
        self.note_key_delay(settings);
        if owns_process && changed.contains(&"crash-log-enabled") {
            crash::enable(settings.crash_log_enabled);
        }
        if changed.contains(&"loglevel")
            && let Some(log) = &self.config.log
        {
            log.set(settings.loglevel);
        }
        Ok(())
    }

    fn absolute(&mut self, directory: &[u8]) -> Vec<u8> {
        match fs::canonicalize(OsStr::from_bytes(directory)) {
            Ok(path) => path.into_os_string().into_vec(),
            Err(_) => directory.to_vec(),
        }
    }

    fn rewrite_config(&mut self, config: &Config) -> Result<(), String> {
        let Some(path) = &self.config.file else {
            return Err("The server is running without a config file".into());
        };
        match write_back(path, config) {
            Ok(()) => {
                tracing::info!("CONFIG REWRITE executed with success.");
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "CONFIG REWRITE failed");
                Err(format!("Rewriting config file: {}", plain(&error)))
            }
        }
    }

    fn save_rdb(&mut self, config: &Config, write: &mut WriteKeys<'_>) -> io::Result<()> {
        if !self.config.keeps_files {
            let reason = "this server keeps its data in memory only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        rdb_file::save(config.settings(), &self.stop.handle, write)
    }

    fn keeps_files(&self) -> bool {
        self.config.keeps_files
    }

    fn start_snapshot(
        &mut self,
        config: &Config,
        purpose: SnapshotPurpose,
        encoder: SnapshotEncoder,
    ) -> io::Result<Box<dyn SnapshotSink>> {
        match purpose {
            SnapshotPurpose::Save if self.config.keeps_files => {
                let delay_us = self.note_key_delay(config.settings());
                snapshot::start(encoder, rdb_file::plan(config.settings(), delay_us))
            }
            SnapshotPurpose::Rewrite if self.config.keeps_files => {
                snapshot::start(encoder, self.rewrite_plan(config.settings())?)
            }
            _ => {
                let reason = "this server keeps its data in memory only";
                Err(io::Error::new(io::ErrorKind::Unsupported, reason))
            }
        }
    }

    fn snapshot_ended(&mut self, purpose: SnapshotPurpose, outcome: &io::Result<()>) {
        if purpose == SnapshotPurpose::Rewrite {
            self.note_rewrite(outcome);
        }
    }

    fn open_rdb(&mut self, config: &Config) -> io::Result<Box<dyn Read>> {
        let file = rdb_file::open(config.settings())?;
        Ok(Box::new(file))
    }

    fn rewrite_aof(&mut self, config: &Config) -> Result<RewriteStart, String> {
        self.rewrite_aof_now(config.settings())
    }

    fn abort_shutdown(&mut self) -> bool {
        self.stop.abort()
    }

    fn writes_first_base(&self) -> bool {
        self.first_base_is_missing()
    }

    fn begins_rewrite(&self) -> bool {
        self.rewrite_begins()
    }

    fn reload_aof(&mut self, store: &mut Store, outputs: &mut Outputs) -> Result<(), String> {
        self.reload_aof_now(store, outputs)
    }

    fn facts(&mut self) -> HostFacts {
        self.gather_facts()
    }

    fn purge_memory(&mut self) {
        allocator::collect(true);
    }

    fn resident_bytes(&mut self) -> usize {
        if !allocator::knows_pages() {
            return 0;
        }
        let grown = process::rss_bytes().saturating_sub(self.process.startup_rss_bytes);
        usize::try_from(grown).unwrap_or(usize::MAX)
    }

    fn is_in_sparse_page(&mut self, block: *const u8) -> bool {
        allocator::is_in_sparse_page(block)
    }

    fn read_file(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        fs::read(OsStr::from_bytes(path)).map_err(|error| plain(&error))
    }

    fn write_file(&mut self, path: &[u8], text: &[u8]) -> Result<(), String> {
        replace_file(Path::new(OsStr::from_bytes(path)), text).map_err(|error| plain(&error))
    }

    fn fill_random(&mut self, bytes: &mut [u8]) -> bool {
        random::fill(bytes).is_ok()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Serves every connection but the running one. A command that runs inside of it gets no turn
    /// of its own: one level is enough to answer BUSY.
    fn serve_others(&mut self, store: &mut Store, outputs: &mut Outputs) -> bool {
        if !std::mem::replace(&mut self.inner, true) {
            let mut engine = EngineIo { store, outputs };
            if let Err(error) = self.turn(&mut engine, Duration::ZERO) {
                tracing::warn!(%error, "serving others failed");
            }
            self.inner = false;
        }
        !self.is_stopping()
    }

    fn has_failed(&self) -> bool {
        self.aof.fatal.is_some()
    }
}

impl Front {
    /// Tells the thread that writes a snapshot how long to wait behind each key.
    pub(crate) fn note_key_delay(&self, settings: &Settings) -> Arc<AtomicI64> {
        let delay_us = &self.key_save_delay_us;
        delay_us.store(settings.key_save_delay_us, Ordering::Relaxed);
        Arc::clone(delay_us)
    }

    /// Applies what names directories, files and addresses, all of it or nothing.
    fn apply_places(
        &mut self,
        settings: &Settings,
        changed: &[&'static str],
    ) -> Result<(), ApplyError> {
        let directory = match changed.contains(&"dir") {
            true => self.apply_dir(settings)?,
            false => None,
        };
        let applied = self.turn_on_aof(settings, changed).and_then(|begun| {
            let listens = ["port", "bind", "tls-port"];
            if !listens.iter().any(|name| changed.contains(name)) {
                return Ok(());
            }
            let applied = self.apply_listeners(settings, changed);
            if applied.is_err() && begun {
                self.turn_off_aof();
            }
            applied
        });
        if let (Err(_), Some(before)) = (&applied, &directory) {
            // Gone in the meantime at worst; the first error is the one to tell.
            let _ = std::env::set_current_dir(before);
        }
        applied
    }

    /// Makes `dir` the working directory if the process belongs to the server, and returns the one before. The working
    /// directory of a program that embeds the server is that program's: `dir` has to be usable, and nothing else happens.
    fn apply_dir(&self, settings: &Settings) -> Result<Option<PathBuf>, ApplyError> {
        let dir = Path::new(OsStr::from_bytes(&settings.dir));
        let applied = if self.config.ends_process {
            let before = std::env::current_dir().ok();
            std::env::set_current_dir(dir).map(|()| before)
        } else {
            // As for a change of directory, the "." asks for a directory that may be searched.
            let found = fs::canonicalize(dir).and_then(|dir| fs::metadata(dir.join(".")));
            found.map(|_| None)
        };
        applied.map_err(|error| ApplyError {
            directive: "dir".into(),
            message: plain(&error),
        })
    }

    /// Listens where the configuration says now. Addresses that stay keep their socket, and with
    /// it the clients that wait to be accepted.
    fn apply_listeners(
        &mut self,
        settings: &Settings,
        changed: &[&'static str],
    ) -> Result<(), ApplyError> {
        let open = self.acceptor.places();
        let by_address = self.config.by_address.is_some();
        let opened = listen::open_tcp(settings, by_address, &open).or_else(|error| {
            if error.source.kind() != io::ErrorKind::AddrInUse {
                return Err(error);
            }
            // A wildcard address of ours may be what is in the way of a specific one.
            self.acceptor.retain_tcp(|_| false);
            listen::open_tcp(settings, by_address, &[])
                .inspect_err(|_| self.reopen(&open, listen::backlog(settings)))
        });
        let failed = |error: anyhow::Error| {
            tracing::warn!("{error:#}");
            let port = ["tls-port", "port"].into_iter();
            if let Some(port) = port.rev().find(|port| changed.contains(port)) {
                ApplyError {
                    directive: port.into(),
                    message: "Unable to listen on this port. Check server logs.".into(),
                }
            } else {
                ApplyError {
                    directive: "bind".into(),
                    message: "Failed to bind to specified addresses.".into(),
                }
            }
        };
        let opened = opened.map_err(|error| failed(error.into()))?;
        self.acceptor
            .retain_tcp(|place| opened.kept.contains(&place));
        for listener in opened.new {
            let registry = self.poller.poll.registry();
            let added = self.acceptor.add(registry, listener);
            added.map_err(|error| failed(error.into()))?;
        }
        Ok(())
    }

    /// The TLS configuration for new connections, if the change concerns it.
    fn new_tls(
        settings: &Settings,
        changed: &[&'static str],
    ) -> Result<Option<Arc<rustls::ServerConfig>>, ApplyError> {
        let concerned = changed.iter().any(|name| name.starts_with("tls-"));
        if !concerned || settings.tls.port == 0 {
            return Ok(None);
        }
        let built = tls::config::build(&settings.tls).map_err(|error| refused_tls(&error))?;
        Ok(Some(built))
    }

    /// Listens again where it did before a change that failed.
    fn reopen(&mut self, places: &[Place], backlog: i32) {
        for &place in places {
            let registry = self.poller.poll.registry();
            let reopened = listen::open_address(place, backlog)
                .and_then(|listener| self.acceptor.add(registry, listener));
            if let Err(error) = reopened {
                tracing::error!(address = %place.address, %error, "an address could not be listened on again");
            }
        }
    }
}

fn refused_tls(error: &TlsConfigError) -> ApplyError {
    tracing::warn!("Failed to configure TLS: {error}");
    ApplyError {
        directive: error.directive.into(),
        message: format!("Unable to update TLS configuration: {}", error.reason),
    }
}

fn apply_maxclients(settings: &Settings) -> Result<(), ApplyError> {
    let fit = descriptors::make_room(settings.maxclients);
    if fit < settings.maxclients {
        return Err(ApplyError {
            directive: "maxclients".into(),
            message: format!(
                "The operating system is not able to handle the specified number of clients, try with {fit}"
            ),
        });
    }
    Ok(())
}
