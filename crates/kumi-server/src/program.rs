//! A server that is the whole program: this is what changes things that belong to the process, its log, panic hook, crash
//! report, signals, working directory and pid file. Nothing else in this crate does, except that CONFIG SET dir changes the
//! working directory of such a server.

mod signals;
pub(crate) mod startup;
mod supervise;

use crate::base::crash;
use crate::base::log::{self, LogControl, Target};
use crate::base::shutdown::Shutdown;
use crate::front::{ServerConfig, ServerError};
use crate::net::listen::{Addresses, ListenError, Listeners};
use crate::server::run_and_tell;
use kumi_store::config::{ConfigError, Origin, Settings};
use kumi_store::{Config, KUMI_VERSION, REDIS_VERSION};
use signals::SignalWatch;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use supervise::Supervisor;

/// Why a program could not start or go on. It should end: what it changed in the process stays changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The operator's `dir` is not there or may not be entered.
    #[error("Can't chdir to '{}'", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// The operator's `logfile` cannot be written to.
    #[error("Can't open the log file '{}'", .0.display())]
    LogFile(PathBuf, #[source] io::Error),
    /// The system's name of a path does not fit the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address is taken or not this machine's.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The operator's configuration leaves no way to connect.
    #[error("Configured to not listen anywhere, exiting.")]
    NothingToListenOn,
    /// Signal handlers cannot be installed.
    #[error("waiting for signals")]
    Signals(#[source] io::Error),
    /// The server failed.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// A server that is ready to take over the process.
#[derive(Debug)]
pub struct Program {
    server: ServerConfig,
    pub(crate) logs_to_file: bool,
}

impl Program {
    /// Enters the configuration's directory, and opens its log as the process's own.
    ///
    /// `file` is where the configuration came from, if from a file. The program is expected to use mimalloc, which is
    /// what INFO says.
    ///
    /// # Errors
    /// The directory or the log cannot be used.
    pub fn prepare(mut config: Config, file: Option<&Path>) -> Result<Self, ProgramError> {
        // Absolute before the working directory changes.
        let file = file.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        enter_directory(&mut config)?;
        let target = log_target(config.settings())?;
        let logs_to_file = matches!(target, Target::File(_));
        crash::install(&target, config.settings().crash_log_enabled);
        let log = log::install(target, config.settings().loglevel);
        prepare_process(config.settings());
        let mut server = ServerConfig::from(config);
        server.file = file;
        server.log = log;
        server.allocator = "mimalloc".into();
        server.ends_process = true;
        Ok(Self {
            server,
            logs_to_file,
        })
    }

    /// Loads the data that the configuration names at startup, and keeps it in files as the configuration says.
    #[must_use]
    pub fn with_files(mut self) -> Self {
        self.server.keeps_files = true;
        self
    }

    /// For a program that starts the server itself, as a node does: what to start it with, and what the process shows of it.
    /// The log has the lines with which a server introduces itself.
    #[must_use]
    pub fn into_server(mut self) -> (ServerConfig, Presence) {
        introduce(
            &self.server.config,
            self.server.file.as_deref(),
            self.server.keeps_files,
        );
        let settings = self.server.config.settings();
        let path = settings.pidfile.as_ref();
        let presence = Presence {
            path: path.map(|path| PathBuf::from(OsStr::from_bytes(path))),
            pid_file: None,
            supervisor: Supervisor::find(settings.supervised),
        };
        self.server.supervised = presence.supervisor.is_some();
        (self.server, presence)
    }

    /// The log of the process; none if the program had one before.
    #[must_use]
    pub fn log(&self) -> Option<LogControl> {
        self.server.log.clone()
    }

    /// Serves until SIGTERM, SIGINT or SHUTDOWN. `ready` is called with the addresses once the data is loaded and
    /// clients are served.
    ///
    /// # Errors
    /// An address cannot be listened on, or the server failed later.
    pub fn run(self, ready: impl FnOnce(&Addresses, &Settings)) -> Result<(), ProgramError> {
        let (server, mut presence) = self.into_server();
        let settings = server.config.settings().clone();
        let listeners = Listeners::open(&settings)?;
        if listeners.is_empty() {
            return Err(ProgramError::NothingToListenOn);
        }
        presence.listening();
        let shutdown = Shutdown::new();
        let _signals = SignalWatch::start(shutdown.clone()).map_err(ProgramError::Signals)?;
        tracing::info!("Server initialized");
        let served = run_and_tell(server, listeners, &shutdown, |handle| {
            ready(handle.addresses(), &settings);
            presence.ready();
        });
        presence.stopping();
        Ok(served?)
    }
}

/// What a process shows of its server: the pid file, which is removed when this is dropped, and messages to the service
/// manager. The order of calls: [`listening`](Self::listening), [`ready`](Self::ready), [`stopping`](Self::stopping).
#[derive(Debug)]
pub struct Presence {
    path: Option<PathBuf>,
    pid_file: Option<PidFile>,
    supervisor: Option<Supervisor>,
}

impl Presence {
    /// Writes the pid file. Call it when the server has its addresses: until then the file may be another server's.
    pub fn listening(&mut self) {
        self.pid_file = self.path.take().and_then(PidFile::write);
    }

    /// Tells the service manager that clients can connect.
    pub fn ready(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.ready();
        }
    }

    /// Tells the service manager that the server stops or has stopped.
    pub fn stopping(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.stopping();
        }
    }
}

/// Puts directives into effect that concern the whole process. A program that embeds a server
/// decides these things for itself, so only a program that is the server calls this.
pub fn prepare_process(settings: &Settings) {
    if settings.disable_huge_pages
        && let Err(error) = disable_huge_pages()
    {
        tracing::warn!("cannot turn transparent huge pages off: {error}");
    }
}

/// The first touch of a huge page clears two megabytes, in the middle of whatever command did it.
#[cfg(target_os = "linux")]
fn disable_huge_pages() -> io::Result<()> {
    Ok(rustix::thread::disable_transparent_huge_pages(true)?)
}

#[cfg(not(target_os = "linux"))]
fn disable_huge_pages() -> io::Result<()> {
    Ok(())
}

/// Makes `dir` the working directory and notes its absolute path.
fn enter_directory(config: &mut Config) -> Result<(), ProgramError> {
    let dir = PathBuf::from(OsStr::from_bytes(&config.settings().dir));
    let unusable = |source| ProgramError::Directory(dir.clone(), source);
    if dir != Path::new(".") {
        std::env::set_current_dir(&dir).map_err(unusable)?;
    }
    let dir = std::env::current_dir().map_err(unusable)?;
    let pair: (&[u8], &[u8]) = (b"dir", dir.as_os_str().as_bytes());
    let _changes = config.set_many(&[pair], Origin::Host)?;
    Ok(())
}

/// A log file that cannot be written to is an error at startup.
fn log_target(settings: &Settings) -> Result<Target, ProgramError> {
    let Some(path) = &settings.logfile else {
        return Ok(Target::Stdout);
    };
    let path = PathBuf::from(OsStr::from_bytes(path));
    File::options()
        .append(true)
        .create(true)
        .open(&path)
        .map_err(|source| ProgramError::LogFile(path.clone(), source))?;
    Ok(Target::File(std::path::absolute(&path).unwrap_or(path)))
}

fn introduce(config: &Config, file: Option<&Path>, keeps_files: bool) {
    let pid = std::process::id();
    tracing::info!(
        "kumi version={KUMI_VERSION}, Redis version={REDIS_VERSION}, bits={}, pid={pid}, just started",
        usize::BITS
    );
    match file {
        Some(_) => tracing::info!("Configuration loaded"),
        None => tracing::info!("No configuration file given: defaults and flags hold"),
    }
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let settings = config.settings();
    let port = settings.port;
    if settings.always_show_logo {
        let bits = usize::BITS;
        tracing::info!("kumi {KUMI_VERSION} (Redis {REDIS_VERSION}) {bits} bit");
        tracing::info!("Running in standalone mode");
        tracing::info!("Port: {port}");
        tracing::info!("PID: {pid}");
    } else {
        tracing::info!("Running mode=standalone, port={port}.");
    }
    if keeps_files && (settings.appendonly || !settings.save_points.is_empty()) {
        return;
    }
    // A notice, because `kumi up` shows warnings and its banner says the same.
    tracing::info!(
        "Nothing is saved to disk unless SAVE or SHUTDOWN SAVE is called: the data is in memory and is lost when the server stops."
    );
}

/// The file with the process id, removed at the end.
#[derive(Debug)]
struct PidFile(PathBuf);

impl PidFile {
    /// A pid file is a courtesy: the server runs without it if it cannot be written.
    fn write(path: PathBuf) -> Option<Self> {
        let text = format!("{}\n", std::process::id());
        let path = std::path::absolute(&path).unwrap_or(path);
        match fs::write(&path, text) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                tracing::warn!("Failed to write PID file '{}': {error}", path.display());
                None
            }
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "the pid file was gone already");
        }
    }
}
