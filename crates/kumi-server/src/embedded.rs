//! A server inside another program, on a Unix socket in a directory that only its user may enter.

use crate::listen::{ListenError, Listeners};
use crate::server::{ServerError, run};
use crate::shutdown::Shutdown;
use kumi_store::Config;
use kumi_store::config::{ConfigError, Origin};
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use tempfile::TempDir;

/// Why an embedded server could not start. Its directory, socket and thread have been removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The temporary directory or the thread could not be created.
    #[error("the system has no room for an embedded server")]
    System(#[from] io::Error),
    /// The socket could not be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The configuration does not accept the socket's path.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A running server. Dropping it stops the server and removes its socket and its data.
#[derive(Debug)]
pub struct Embedded {
    url: String,
    path: PathBuf,
    shutdown: Shutdown,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
    /// The directory of the socket; only this user may enter it.
    _directory: TempDir,
}

/// Starts a server with default settings on a Unix socket in a private temporary directory.
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
    embedded_with(Config::new())
}

/// Like [`embedded`], with the caller's settings. `port` and `unixsocket` are replaced, because an
/// embedded server listens on its own socket only.
///
/// # Errors
/// As [`embedded`].
pub fn embedded_with(mut config: Config) -> Result<Embedded, EmbedError> {
    let directory = tempfile::Builder::new()
        .prefix("kumi-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let path = directory.path().join("kumi.sock");
    let pairs: [(&[u8], &[u8]); 4] = [
        // It keeps no files.
        (b"save", b""),
        (b"port", b"0"),
        (b"unixsocket", path.as_os_str().as_bytes()),
        (b"unixsocketperm", b"700"),
    ];
    let _changes = config.set_many(&pairs, Origin::Host)?;
    let listeners = Listeners::open(config.settings())?;
    let shutdown = Shutdown::new();
    let stop = shutdown.clone();
    let thread = Builder::new()
        .name("kumi-embedded".into())
        .spawn(move || run(config, listeners, &stop))?;
    Ok(Embedded {
        url: format!("redis+unix://{}", path.display()),
        path,
        shutdown,
        thread: Some(thread),
        _directory: directory,
    })
}

impl Embedded {
    /// The server's URL, as `redis+unix:///path`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The path of the Unix socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stops the server and returns how it ended.
    ///
    /// # Errors
    /// The server's loop had failed before.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ServerError> {
        self.shutdown.request();
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(io::Error::other("the server's thread panicked").into()),
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(?error, "an embedded server ended badly");
        }
    }
}
