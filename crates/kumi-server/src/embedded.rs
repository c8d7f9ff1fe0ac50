//! A server inside another program, on a Unix socket in a directory that only its user may enter.
//!
//! Without a directory for its data it keeps nothing; [`Builder::dir`] makes it load what is there, and keep it.

use crate::front::{ServerConfig, ServerError};
use crate::handle::ServerHandle;
use crate::net::listen::ListenError;
use crate::start::{Server, StartError};
use kumi_store::Config;
use kumi_store::config::{ConfigError, Origin};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Why an embedded server could not start. Its socket and thread have been removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// A directory or the thread could not be created.
    #[error("the system has no room for an embedded server")]
    System(#[from] io::Error),
    /// The socket could not be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A directive is unknown, or does not accept its value. The caller's mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory of [`Builder::dir`] cannot be created or opened.
    #[error("the directory '{}' cannot be used", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// The data in the directory could not be loaded, or another server uses it. The data is as it was.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl From<StartError> for EmbedError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Listen(error) => Self::Listen(error),
            StartError::Config(error) => Self::Config(error),
            StartError::Directory(path, error) => Self::Directory(path, error),
            StartError::Thread(error) => Self::System(error),
            StartError::Server(error) => Self::Server(error),
            StartError::NothingToListenOn => Self::System(io::ErrorKind::AddrNotAvailable.into()),
        }
    }
}

/// A running server. Dropping it stops the server and removes its socket. Its data is gone then too, unless
/// it has a directory ([`embedded_at`]).
#[derive(Debug)]
pub struct Embedded {
    server: Server,
    path: PathBuf,
    /// The directory of the socket; only this user may enter it.
    _directory: TempDir,
}

/// Starts a server with default settings on a Unix socket in a private temporary directory. It keeps nothing on disk.
///
/// # Errors
/// The directory, the socket or the thread could not be created.
///
/// ```
/// use std::io::{Read, Write};
///
/// let server = kumi_server::embedded()?;
/// assert!(server.url().starts_with("redis+unix:///"));
/// let mut client = std::os::unix::net::UnixStream::connect(server.path())?;
/// client.write_all(b"SET greeting hello\r\n")?;
/// let mut reply = [0; 5];
/// client.read_exact(&mut reply)?;
/// assert_eq!(&reply, b"+OK\r\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn embedded() -> Result<Embedded, EmbedError> {
    Embedded::builder().start()
}

/// Starts a server that keeps its data in the directory `path`: an append-only file, synced every second, loaded
/// when the next server starts there. The directory is created if it does not exist; one server uses it at a time.
///
/// # Errors
/// As [`Builder::start`].
///
/// ```
/// let directory = std::env::temp_dir().join(format!("kumi-doc-{}", std::process::id()));
/// let server = kumi_server::embedded_at(&directory)?;
/// assert!(directory.join("appendonlydir").is_dir());
/// server.stop()?;
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn embedded_at(path: impl Into<PathBuf>) -> Result<Embedded, EmbedError> {
    Embedded::builder().dir(path).start()
}

/// Like [`embedded`], with a whole configuration. `port` and `unixsocket` are replaced, because an
/// embedded server listens on its own socket only.
///
/// # Errors
/// As [`Builder::start`].
pub fn embedded_with(config: Config) -> Result<Embedded, EmbedError> {
    let mut builder = Embedded::builder();
    builder.config = config;
    builder.start()
}

/// What an embedded server is started with. [`Embedded::builder`] makes one.
///
/// ```
/// let server = kumi_server::Embedded::builder()
///     .set("maxmemory", "10mb")
///     .set("maxmemory-policy", "allkeys-lru")
///     .start()?;
/// assert!(server.url().starts_with("redis+unix:///"));
/// # Ok::<(), kumi_server::EmbedError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct Builder {
    config: Config,
    dir: Option<PathBuf>,
    /// The first directive that was refused; `start` reports it.
    refused: Option<ConfigError>,
}

impl Builder {
    /// Sets a directive of redis.conf. [`Builder::start`] reports a name that does not exist and a value that does not fit.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        let pair = (name.as_bytes(), value.as_bytes());
        if let Err(error) = self.config.set_many(&[pair], Origin::Startup) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// Keeps the data in this directory, in an append-only file unless `appendonly` or `save` were set to
    /// something else. The directory is created if it does not exist, for this user only.
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.dir = Some(path.into());
        self
    }

    /// Starts the server on a thread of its own, and returns when clients are served: data has been loaded by then.
    ///
    /// # Errors
    /// A directive was refused, the directory, the socket or the thread could not be created, or the data could not be
    /// loaded.
    pub fn start(self) -> Result<Embedded, EmbedError> {
        if let Some(error) = self.refused {
            return Err(error.into());
        }
        let mut config = self.config;
        let socket_dir = tempfile::Builder::new()
            .prefix("kumi-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let path = socket_dir.path().join("kumi.sock");
        let keeps_files = self.dir.is_some();
        match &self.dir {
            Some(dir) => keep_data(&mut config, dir)?,
            None => set(&mut config, "save", b"")?,
        }
        set(&mut config, "port", b"0")?;
        set(&mut config, "unixsocket", path.as_os_str().as_bytes())?;
        set(&mut config, "unixsocketperm", b"700")?;
        let mut server = ServerConfig::from(config);
        server.keeps_files = keeps_files;
        Ok(Embedded {
            server: Server::start(server)?,
            path,
            _directory: socket_dir,
        })
    }
}

/// Makes the directory of the data, and turns the append-only file on unless the caller chose how to save.
fn keep_data(config: &mut Config, dir: &Path) -> Result<(), EmbedError> {
    let unusable = |error| EmbedError::Directory(dir.to_owned(), error);
    if !dir.is_dir() {
        fs::create_dir_all(dir).map_err(unusable)?;
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(unusable)?;
    }
    let absolute = fs::canonicalize(dir).map_err(unusable)?;
    set(config, "dir", absolute.as_os_str().as_bytes())?;
    for (name, value) in [("appendonly", "yes"), ("save", "")] {
        if !config.is_given(name) {
            set(config, name, value.as_bytes())?;
        }
    }
    Ok(())
}

fn set(config: &mut Config, name: &str, value: &[u8]) -> Result<(), ConfigError> {
    let _changes = config.set_many(&[(name.as_bytes(), value)], Origin::Host)?;
    Ok(())
}

impl Embedded {
    /// Options: directives, and a directory for the data.
    pub fn builder() -> Builder {
        Builder {
            config: Config::new(),
            dir: None,
            refused: None,
        }
    }

    /// The server's URL, as `redis+unix:///path`.
    #[must_use]
    pub fn url(&self) -> &str {
        self.server.handle().url()
    }

    /// The path of the Unix socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The way to the server while it runs: its data set's id, INFO.
    #[must_use]
    pub fn handle(&self) -> &ServerHandle {
        self.server.handle()
    }

    /// Stops the server and returns how it ended.
    ///
    /// # Errors
    /// The server's loop had failed before.
    pub fn stop(self) -> Result<(), ServerError> {
        self.server.stop()
    }
}
