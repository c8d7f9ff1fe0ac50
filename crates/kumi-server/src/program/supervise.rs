//! Notifies the service manager that the server is ready or stopping.
//!
//! Only systemd is supported: one datagram to the socket that `NOTIFY_SOCKET` names. `supervised upstart` logs a
//! warning.

use kumi_store::config::Supervision;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The environment variable with the socket of a service of `Type=notify`.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// The service manager's notification socket.
#[derive(Debug)]
pub(crate) struct Supervisor {
    address: SocketAddr,
}

impl Supervisor {
    /// Finds the service manager that `supervised` asks for. The server starts without one, too.
    pub(crate) fn find(wanted: Supervision) -> Option<Self> {
        let socket = std::env::var_os(NOTIFY_SOCKET).filter(|socket| !socket.is_empty());
        match (wanted, socket) {
            (Supervision::No, _) | (Supervision::Auto, None) => None,
            (Supervision::Upstart, _) => {
                tracing::warn!(
                    "supervised upstart: kumi-server does not stop itself for upstart to notice"
                );
                None
            }
            (Supervision::Systemd, None) => {
                tracing::warn!(
                    "supervised systemd: {NOTIFY_SOCKET} is not set, so no supervisor is notified"
                );
                None
            }
            (_, Some(socket)) => match Self::at(&socket) {
                Ok(supervisor) => Some(supervisor),
                Err(error) => {
                    tracing::warn!("cannot use {NOTIFY_SOCKET} {}: {error}", socket.display());
                    None
                }
            },
        }
    }

    fn at(socket: &OsStr) -> io::Result<Self> {
        let address = match socket.as_bytes().strip_prefix(b"@") {
            Some(name) => abstract_address(name)?,
            None => SocketAddr::from_pathname(OsString::from(socket))?,
        };
        Ok(Self { address })
    }

    /// Reports that clients can connect.
    pub(crate) fn ready(&self) {
        self.tell("READY=1\nSTATUS=Ready to accept connections\n");
    }

    /// Reports that the server has stopped.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\n");
    }

    fn tell(&self, state: &str) {
        let sent = UnixDatagram::unbound()
            .and_then(|socket| socket.send_to_addr(state.as_bytes(), &self.address));
        if let Err(error) = sent {
            tracing::warn!("cannot tell systemd: {error}");
        }
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}
