//! Accepts connections: the limits and checks that a connection passes before it gets a session.

use crate::front::{EngineIo, FIRST_LISTENER, Front};
use crate::net::conn::Stream;
use crate::net::listen::{Listener, Place, Transport};
use kumi_store::Peer;
use kumi_store::config::Settings;
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Connections accepted from one listener per turn of the loop.
const ACCEPTS_PER_TURN: usize = 1000;

/// A listener is not tried again for this long after the system had no file descriptor left. Turns
/// of the loop are at most this far apart, even when nothing happens.
const RETRY_NS: u64 = 100_000_000;

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// The first words are Redis's, because client libraries look for them; the advice is kumi's.
const PROTECTED: &[u8] =
    b"-DENIED Redis is running in protected mode because protected mode is enabled and \
no password is set for the default user. In this mode connections are only accepted from the \
loopback interface. To let this client in, set a password (requirepass), or have the server \
listen on addresses that only trusted machines can reach and turn protected-mode off.\r\n";

/// The listening sockets, and those of them that may have clients waiting.
#[derive(Debug, Default)]
pub(crate) struct Acceptor {
    /// A listener keeps its place as long as it is open: its token is derived from the place.
    pub(crate) listeners: Vec<Option<Listener>>,
    /// Listeners that may have more clients waiting than were accepted.
    pub(super) unaccepted: Vec<usize>,
    /// Listeners to try again at this reading of the steady clock: the system had no more
    /// descriptors.
    starved: Vec<(u64, usize)>,
    /// Connections that were refused.
    pub(super) rejected: u64,
}

impl Acceptor {
    /// Registers a listener with the poll.
    pub(super) fn add(&mut self, registry: &Registry, mut listener: Listener) -> io::Result<()> {
        let free = self.listeners.iter().position(Option::is_none);
        let index = free.unwrap_or(self.listeners.len());
        let token = Token(FIRST_LISTENER + index);
        match &mut listener {
            Listener::Tcp { socket, .. } => registry.register(socket, token, Interest::READABLE)?,
            Listener::Unix { socket, .. } => {
                registry.register(socket, token, Interest::READABLE)?
            }
        }
        if index == self.listeners.len() {
            self.listeners.push(None);
        }
        self.listeners[index] = Some(listener);
        Ok(())
    }

    /// The listeners that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().flatten()
    }

    /// The TCP addresses that are listened on.
    pub(super) fn places(&self) -> Vec<Place> {
        self.open().filter_map(Listener::place).collect()
    }

    /// Closes the TCP listeners that `keep` does not want. Closing takes them out of the poll.
    pub(super) fn retain_tcp(&mut self, keep: impl Fn(Place) -> bool) {
        for slot in &mut self.listeners {
            let place = slot.as_ref().and_then(Listener::place);
            if place.is_some_and(|place| !keep(place)) {
                *slot = None;
            }
        }
    }

    /// Lists a listener to be tried again at `retry_ns`. Returns false if it waits already; then that wait goes on.
    fn retry_later(&mut self, retry_ns: u64, index: usize) -> bool {
        let waits = self.starved.iter().any(|&(_, other)| other == index);
        if !waits {
            self.starved.push((retry_ns, index));
        }
        !waits
    }

    /// Tries the listeners again whose wait for a file descriptor ends by `now_ns`.
    pub(super) fn retry_starved(&mut self, now_ns: u64) {
        let due = self.starved.extract_if(.., |(at_ns, _)| *at_ns <= now_ns);
        self.unaccepted.extend(due.map(|(_, index)| index));
    }
}

impl Front {
    /// Accepts the connections that wait at a listener.
    pub(crate) fn accept(&mut self, engine: &mut EngineIo<'_>, index: usize) {
        for _ in 0..ACCEPTS_PER_TURN {
            match self.accept_one(engine, index) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_about_one_client(&error) => {}
                Err(error) => {
                    // Most likely no file descriptor is left. The system reports a waiting
                    // connection once, so the listener is tried again later.
                    let retry_ns = self.clock.last().mono_ns + RETRY_NS;
                    if self.acceptor.retry_later(retry_ns, index) {
                        tracing::warn!(%error, "Accepting client connection failed");
                    }
                    return;
                }
            }
        }
        self.acceptor.unaccepted.push(index);
    }

    /// Returns false when the listener no longer exists.
    fn accept_one(&mut self, engine: &mut EngineIo<'_>, index: usize) -> io::Result<bool> {
        let Some(Some(listener)) = self.acceptor.listeners.get(index) else {
            return Ok(false);
        };
        let (stream, remote, peer) = match listener {
            Listener::Tcp {
                socket,
                address,
                access,
            } => {
                let (stream, addr) = socket.accept()?;
                let local = stream.local_addr();
                let local_ip = local.as_ref().map_or(address.ip(), SocketAddr::ip);
                let transport = access.transport(local_ip);
                let peer = Peer {
                    addr: addr.to_string(),
                    laddr: local.map_or_else(|_| String::new(), |addr| addr.to_string()),
                    named_users_only: transport == Transport::TlsForUsers,
                    ..Peer::default()
                };
                let stream = self.tls.begin(stream, transport)?;
                (stream, Some(addr.ip()), peer)
            }
            Listener::Unix { socket, path, .. } => {
                let (stream, _) = socket.accept()?;
                let name = format!("{}:0", path.display());
                let peer = Peer {
                    addr: name.clone(),
                    laddr: name,
                    unix: true,
                    ..Peer::default()
                };
                (Stream::Unix(stream), None, peer)
            }
        };
        self.admit(engine, stream, remote, peer);
        Ok(true)
    }

    pub(super) fn admit(
        &mut self,
        engine: &mut EngineIo<'_>,
        mut stream: Stream,
        remote: Option<IpAddr>,
        peer: Peer,
    ) {
        let settings = engine.store.config().settings();
        let refusal = if engine.store.session_count() >= settings.maxclients {
            Some(TOO_MANY)
        } else if settings.protected_mode
            && engine.store.default_user_is_nopass()
            && !peer.named_users_only
            && remote.is_some_and(|ip| !ip.to_canonical().is_loopback())
        {
            Some(PROTECTED)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.acceptor.rejected += 1;
            tracing::debug!(client = %peer.addr, "refusing a client");
            // The send buffer of a new socket has room for this. If the write fails, the client sees the close.
            let _ = stream.write(refusal);
            stream.drain();
            return;
        }
        prepare(&stream, settings);
        let peer = Peer {
            fd: stream.fd_number(),
            ..peer
        };
        let now = self.clock.last();
        tracing::debug!(client = %peer.addr, "Accepted");
        let key = engine.store.connect(peer, now);
        let is_tls = matches!(stream, Stream::Tls(_));
        let registry = self.poller.poll.registry();
        if let Err(error) = self.connections.add(registry, key, stream) {
            tracing::warn!(%error, "a client's socket cannot be watched");
            engine.store.disconnect(key);
        } else if is_tls {
            self.tls.limit_handshake(key, now.mono_ns);
        }
    }
}

/// Errors of a connection that its client closed before it was accepted; the next one may succeed.
fn is_about_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Sets a TCP socket's options. The connection is served even if they cannot be set.
fn prepare(stream: &Stream, settings: &Settings) {
    let stream = match stream {
        Stream::Tcp(stream) => stream,
        Stream::Tls(stream) => &stream.socket,
        Stream::Unix(_) => return,
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    if settings.tcp_keepalive_s == 0 {
        return;
    }
    let probes = u64::from(settings.tcp_keepalive_s);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(probes))
        .with_interval(Duration::from_secs((probes / 3).max(1)))
        .with_retries(3);
    if let Err(error) = SockRef::from(stream).set_tcp_keepalive(&keepalive) {
        tracing::debug!(%error, "TCP keepalive could not be set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_without_descriptors_waits_once() {
        let mut acceptor = Acceptor::default();
        assert!(acceptor.retry_later(100, 0));
        assert!(acceptor.retry_later(110, 1));
        // Clients that connect meanwhile neither add a wait nor make it longer.
        for at_ns in 120..150 {
            assert!(!acceptor.retry_later(at_ns, 0));
        }
        let due = |acceptor: &mut Acceptor, now_ns| {
            acceptor.retry_starved(now_ns);
            std::mem::take(&mut acceptor.unaccepted)
        };
        assert_eq!(due(&mut acceptor, 99), []);
        assert_eq!(due(&mut acceptor, 105), [0]);
        assert!(acceptor.retry_later(205, 0));
        assert_eq!(due(&mut acceptor, 300), [1, 0]);
    }
}
