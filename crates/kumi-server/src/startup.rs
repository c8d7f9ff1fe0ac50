//! `kumi-server` as a program: from its arguments to its exit code.
//!
//! Only this module changes what belongs to the whole process: its log, panic hook, signals,
//! working directory and pid file.

use crate::config_file;
use crate::listen::Listeners;
use crate::log::{self, Target};
use crate::server::{ServerConfig, run};
use crate::shutdown::Shutdown;
use crate::signals::SignalWatch;
use anyhow::{Context, Result, bail};
use kumi_store::config::{Origin, Settings, parse_command_line};
use kumi_store::{Config, KUMI_VERSION, REDIS_VERSION};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Usage: kumi-server [/path/to/redis.conf] [--directive value ...] [-]
       kumi-server -              read the configuration from standard input
       kumi-server -v, --version  print the version
       kumi-server -h, --help     print this text

Every directive of redis.conf may be given as a flag, and wins over the file:

       kumi-server --port 7777 --loglevel verbose
       kumi-server /etc/redis/redis.conf --unixsocket /run/kumi.sock
       echo 'maxmemory 128mb' | kumi-server -

Without a file, defaults hold: port 6379 on the loopback addresses. Log lines are in UTC.
";

/// Runs `kumi-server` with these arguments, the program's name not included, and tells how it
/// ended: 0 after an orderly stop, 1 when it could not start or go on.
///
/// The program is expected to use mimalloc, which is what INFO and `--version` say.
pub fn main_from_args(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_vec).collect();
    match args.first().map(Vec::as_slice) {
        Some(b"-v" | b"--version") => {
            println!("{}", version_line());
            return ExitCode::SUCCESS;
        }
        Some(b"-h" | b"--help") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<Logged>() {
                eprintln!("{error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The line that tools read a version from.
fn version_line() -> String {
    format!(
        "Redis server v={REDIS_VERSION} sha=00000000:0 malloc=mimalloc bits={} build=0 kumi={KUMI_VERSION}",
        usize::BITS
    )
}

/// Errors up to here go to the terminal: there is no log yet.
fn start(args: &[Vec<u8>]) -> Result<()> {
    refuse_other_modes(args)?;
    let command_line = parse_command_line(args);
    let mut config = config_file::load(&command_line)?;
    let file = match &command_line.file {
        // Absolute before the working directory changes.
        Some(path) => Some(std::path::absolute(OsStr::from_bytes(path)).context("config file")?),
        None => None,
    };
    enter_directory(&mut config)?;
    let target = log_target(config.settings())?;
    let logs_to_file = matches!(target, Target::File(_));
    let log = log::install(target, config.settings().loglevel);
    log::install_panic_hook();
    let config = ServerConfig {
        config,
        file,
        log,
        allocator: "mimalloc".into(),
    };
    match serve(config) {
        Ok(()) => Ok(()),
        Err(error) => {
            tracing::error!("{error:#}");
            // Whoever started the program sees the log only if it is on the terminal.
            if logs_to_file {
                Err(error)
            } else {
                Err(Logged.into())
            }
        }
    }
}

/// An error that was told already.
#[derive(Debug, thiserror::Error)]
#[error("told already")]
struct Logged;

fn serve(config: ServerConfig) -> Result<()> {
    introduce(&config.config, config.file.as_deref());
    let settings = config.config.settings();
    let listeners = Listeners::open(settings)?;
    if listeners.is_empty() {
        bail!("Configured to not listen anywhere, exiting.");
    }
    let _pid_file = settings.pidfile.as_ref().and_then(|path| {
        let path = PathBuf::from(OsStr::from_bytes(path));
        PidFile::write(path)
    });
    let shutdown = Shutdown::new();
    let _signals = SignalWatch::start(shutdown.clone()).context("waiting for signals")?;
    run(config, listeners, &shutdown)?;
    Ok(())
}

fn refuse_other_modes(args: &[Vec<u8>]) -> Result<()> {
    match args.first().map(Vec::as_slice) {
        Some(b"--test-memory") => {
            bail!("kumi-server does not test memory; use memtest86 or memtester for that")
        }
        Some(b"--check-system") => bail!("kumi-server has no system check"),
        _ => {}
    }
    if args.iter().any(|arg| arg == b"--sentinel") {
        bail!("kumi-server has no sentinel mode");
    }
    Ok(())
}

/// Makes `dir` the working directory and notes its absolute path.
fn enter_directory(config: &mut Config) -> Result<()> {
    let dir = PathBuf::from(OsStr::from_bytes(&config.settings().dir));
    if dir != Path::new(".") {
        std::env::set_current_dir(&dir)
            .with_context(|| format!("Can't chdir to '{}'", dir.display()))?;
    }
    let dir = std::env::current_dir().context("the working directory")?;
    let pair: (&[u8], &[u8]) = (b"dir", dir.as_os_str().as_bytes());
    let _changes = config.set_many(&[pair], Origin::Host)?;
    Ok(())
}

/// A log file that cannot be written to is an error now, while somebody looks.
fn log_target(settings: &Settings) -> Result<Target> {
    let Some(path) = &settings.logfile else {
        return Ok(Target::Stdout);
    };
    let path = PathBuf::from(OsStr::from_bytes(path));
    File::options()
        .append(true)
        .create(true)
        .open(&path)
        .with_context(|| format!("Can't open the log file '{}'", path.display()))?;
    Ok(Target::File(std::path::absolute(&path).unwrap_or(path)))
}

fn introduce(config: &Config, file: Option<&Path>) {
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
    let port = config.settings().port;
    tracing::info!("Running mode=standalone, port={port}.");
}

/// The file with the process id, removed at the end.
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
