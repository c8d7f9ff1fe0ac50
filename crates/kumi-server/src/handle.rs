//! The way to a running server: where it listens, what it reports, and what can be changed about it while it runs.

use crate::base::shutdown::Shutdown;
use crate::front::ControlRequest;
use crate::net::listen::{Addresses, Listeners};
use crate::net::tls::config::TlsIdentity;
use kumi_store::{DataId, HostUser};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, SyncSender};

/// Why a running server did not do what its handle was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The server has stopped, or stops.
    #[error("the server has stopped")]
    Stopped,
    /// What was given is not valid; the server goes on as before.
    #[error("{0}")]
    Refused(String),
}

/// The way to a running server, from any thread. Clones lead to the same server.
#[derive(Clone, Debug)]
pub struct ServerHandle {
    places: Places,
    data_id: DataId,
    shutdown: Shutdown,
    control: SyncSender<ControlRequest>,
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    addresses: Addresses,
    url: String,
}

impl Places {
    pub(crate) fn of(listeners: &Listeners) -> Self {
        Self {
            addresses: listeners.addresses(),
            url: local_url(listeners),
        }
    }
}

impl ServerHandle {
    pub(crate) fn new(
        places: Places,
        data_id: DataId,
        shutdown: Shutdown,
        control: SyncSender<ControlRequest>,
    ) -> Self {
        Self {
            places,
            data_id,
            shutdown,
            control,
        }
    }

    /// The TCP addresses that the server listened on when it started.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.places.addresses
    }

    /// The URL for clients on this machine, without a user: a loopback address in plain text if the server listens on
    /// one, else its Unix socket, else another address. Empty if it listens nowhere.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.places.url
    }

    /// The id of the data set.
    #[must_use]
    pub fn data_id(&self) -> DataId {
        self.data_id
    }

    /// Stops the server when it is used.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// The text that INFO replies with, with lines that end in `\n`. It does not wait for the end of a script that takes
    /// long.
    ///
    /// # Errors
    /// The server has stopped.
    pub fn info(&self) -> Result<String, ControlError> {
        self.ask(ControlRequest::Info)
    }

    /// A connection to the server that needs no address, as one of a Unix socket. It has to authenticate if the default
    /// user has a password. The server may refuse it as any other: it is closed then.
    ///
    /// # Errors
    /// The server has stopped, or the system has no descriptor left.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (own, other) = UnixStream::pair()?;
        other.set_nonblocking(true)?;
        self.send(ControlRequest::Connect(other))
            .map_err(|error| io::Error::new(io::ErrorKind::NotConnected, error))?;
        Ok(own)
    }

    /// Serves new connections with another certificate where [`ServerConfig::by_address`](crate::ServerConfig::by_address)
    /// has TLS. Connections that are open go on.
    ///
    /// # Errors
    /// The server has no such listeners, or certificate and key do not fit.
    pub fn replace_identity(&self, identity: TlsIdentity) -> Result<(), ControlError> {
        self.ask(|reply| ControlRequest::Identity(identity, reply))?
            .map_err(ControlError::Refused)
    }

    /// Replaces [`ServerConfig::users`](crate::ServerConfig::users). Connections of users that changed or left are closed.
    /// It waits for the end of a command that takes long.
    ///
    /// # Errors
    /// A name or a rule is not valid; nothing has changed.
    pub fn set_users(&self, users: Vec<HostUser>) -> Result<(), ControlError> {
        self.ask(|reply| ControlRequest::Users(users, reply))?
            .map_err(ControlError::Refused)
    }

    /// Sends a request with a place for its reply, and waits for that.
    fn ask<T>(
        &self,
        request: impl FnOnce(SyncSender<T>) -> ControlRequest,
    ) -> Result<T, ControlError> {
        let (reply, replied) = mpsc::sync_channel(1);
        self.send(request(reply))?;
        replied.recv().map_err(|_| ControlError::Stopped)
    }

    fn send(&self, request: ControlRequest) -> Result<(), ControlError> {
        let sent = self.control.send(request);
        sent.map_err(|_| ControlError::Stopped)?;
        self.shutdown.wake();
        Ok(())
    }
}

/// The URL of the listeners for clients on this machine.
fn local_url(listeners: &Listeners) -> String {
    if let Some(address) = listeners.plain_loopback() {
        return format!("redis://{address}");
    }
    if let Some(path) = listeners.unix_path() {
        return format!("redis+unix://{}", path.display());
    }
    let Addresses { tcp, tls } = listeners.addresses();
    match (tcp.first(), tls.first()) {
        (Some(address), _) => format!("redis://{address}"),
        (None, Some(address)) => format!("rediss://{address}"),
        (None, None) => String::new(),
    }
}
