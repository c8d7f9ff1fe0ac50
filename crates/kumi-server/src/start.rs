//! Starting a server from another program: [`Server`] runs one on a thread of its own, and its handle (`handle.rs`) is the way
//! to it while it runs.
//!
//! Nothing here belongs to the process: no signal is handled, nothing is printed, the working directory stays, and nothing
//! ends the process. `program.rs` adds that for a server that is the whole program; `embedded.rs` adds a private socket.

use crate::base::shutdown::Shutdown;
use crate::front::{ServerConfig, ServerError};
use crate::handle::ServerHandle;
use crate::net::listen::{ListenError, Listeners};
use crate::server::run_and_tell;
use kumi_store::config::{ConfigError, Origin};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// Why a server could not start. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address is taken or not this machine's.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The configuration leaves no way to connect.
    #[error("the configuration names no address to listen on")]
    NothingToListenOn,
    /// The configuration's `dir` is not there or may not be entered.
    #[error("the directory '{}' cannot be used", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// The system's name of the directory does not fit the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The thread could not be created.
    #[error("the system has no room for a server")]
    Thread(#[source] io::Error),
    /// The data could not be loaded, another server uses it, or the users or the certificate are not valid.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// A server on a thread of its own. Dropping it stops the server, and waits for that.
///
/// ```
/// use kumi_server::{Config, Listeners, Server};
///
/// let mut listeners = Listeners::none(); // or `Server::start`, with the addresses of the directives
/// listeners.add_tcp(std::net::TcpListener::bind("127.0.0.1:0")?)?;
/// let server = Server::start_on(Config::new(), listeners)?;
/// assert!(server.handle().url().starts_with("redis://127.0.0.1:"));
/// assert!(server.handle().info()?.contains("connected_clients:0"));
/// server.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    handle: ServerHandle,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Server {
    /// Starts a server where its directives say: `port`, `tls-port`, `bind` and `unixsocket`, or by
    /// [`ServerConfig::by_address`]. Returns when clients are served; data has been loaded by then.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(config: impl Into<ServerConfig>) -> Result<Self, StartError> {
        let config = config.into();
        let by_address = config.by_address.is_some();
        let listeners = Listeners::open_by(config.config.settings(), by_address)?;
        if listeners.is_empty() {
            return Err(StartError::NothingToListenOn);
        }
        Self::start_on(config, listeners)
    }

    /// The same with listeners that the caller has opened.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start_on(
        config: impl Into<ServerConfig>,
        listeners: Listeners,
    ) -> Result<Self, StartError> {
        let mut config = config.into();
        if config.keeps_files {
            name_directory(&mut config)?;
        }
        let shutdown = Shutdown::new();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("kumi-server".into())
            .spawn(move || {
                run_and_tell(config, listeners, &shutdown, move |handle| {
                    // The starter waits for this message or for the end of the thread.
                    let _ = ready.send(handle);
                })
            })
            .map_err(StartError::Thread)?;
        // The sender is dropped without a message if the server ends before it serves.
        match is_ready.recv() {
            Ok(handle) => Ok(Self {
                handle,
                thread: Some(thread),
            }),
            Err(_) => {
                join(thread)?;
                // Nobody has a handle yet that could have stopped it.
                Err(ServerError::from(io::Error::other("the server ended at its start")).into())
            }
        }
    }

    /// The way to the server while it runs.
    #[must_use]
    pub fn handle(&self) -> &ServerHandle {
        &self.handle
    }

    /// Waits until the server has ended: a client has sent SHUTDOWN, [`ServerHandle::shutdown`] was used, or it failed.
    ///
    /// # Errors
    /// How it failed. A second call returns `Ok`.
    pub fn wait(&mut self) -> Result<(), ServerError> {
        self.thread.take().map_or(Ok(()), join)
    }

    /// Stops the server and waits until it has ended: it accepts no more clients, replies to the requests that it has
    /// received, and saves what it has to.
    ///
    /// # Errors
    /// The server had failed before, or its data could not be saved.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), ServerError> {
        self.handle.shutdown().request();
        self.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(?error, "a server ended badly");
        }
    }
}

fn join(thread: JoinHandle<Result<(), ServerError>>) -> Result<(), ServerError> {
    let panicked = |_| Err(io::Error::other("the server's thread panicked").into());
    thread.join().unwrap_or_else(panicked)
}

/// Makes `dir` absolute: the working directory is the program's, and may change.
fn name_directory(config: &mut ServerConfig) -> Result<(), StartError> {
    let dir = PathBuf::from(OsStr::from_bytes(&config.config.settings().dir));
    let unusable = |source| StartError::Directory(dir.clone(), source);
    let absolute = fs::canonicalize(&dir).map_err(unusable)?;
    let pair: (&[u8], &[u8]) = (b"dir", absolute.as_os_str().as_bytes());
    let _changes = config.config.set_many(&[pair], Origin::Host)?;
    Ok(())
}
