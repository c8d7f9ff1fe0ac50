//! The thread that accepts and serves, its listeners, and its end.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connections;
use super::hosts::is_loopback;
use super::options::{HttpOptions, TlsSource};
use super::places::{Activity, NoPlace, Places};
use super::shared::{Counters, LastScrape, Listening, Shared};
use super::snapshot::Source;

/// After a failed accept, such as for want of descriptors, the next one waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Sent to clients beyond the limit of connections, whose request is not read.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 21\r\nconnection: close\r\n\r\ntoo many connections\n";

/// Why the HTTP server could not start. Nothing of it runs then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The thread or its runtime could not be made.
    #[error("cannot start the HTTP server's thread")]
    Thread(#[source] io::Error),
}

/// A bound address. Its policy follows from the address: one on loopback shows metrics without a token.
pub struct HttpListener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsSource>,
}

impl HttpListener {
    /// Binds an address; port 0 takes a free one. An IPv6 address takes no IPv4 clients: the node may bind both wildcards.
    pub fn bind(address: SocketAddr) -> Result<HttpListener, HttpError> {
        let listen = |source| HttpError::Listen { address, source };
        let socket = open(address).map_err(listen)?;
        Ok(HttpListener {
            address: socket.local_addr().map_err(listen)?,
            socket,
            tls: None,
        })
    }

    /// Speaks TLS on this address, and nothing else.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsSource) -> HttpListener {
        self.tls = Some(tls);
        self
    }

    /// The address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A running HTTP server. Dropping it stops it, without waiting for responses under way.
#[derive(Debug)]
pub struct HttpServer {
    addresses: Vec<SocketAddr>,
    stopping: CancellationToken,
    stopped: Option<oneshot::Receiver<()>>,
}

impl HttpServer {
    /// Serves on these listeners until [`HttpServer::stop`], on a thread of its own.
    pub fn start(
        listeners: Vec<HttpListener>,
        options: HttpOptions,
        source: Arc<dyn Source>,
    ) -> Result<HttpServer, HttpError> {
        let addresses = listeners.iter().map(HttpListener::address).collect();
        let stopping = CancellationToken::new();
        let shared = Arc::new(Shared {
            options,
            source,
            stopping: stopping.clone(),
            counters: Counters::default(),
            last_scrape: LastScrape::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HttpError::Thread)?;
        let listeners = {
            let _reactor = runtime.enter();
            let listeners = listeners.into_iter().map(Accepting::new);
            listeners.collect::<Result<Vec<_>, _>>()?
        };
        let (done, stopped) = oneshot::channel();
        thread::Builder::new()
            .name("kumi-http".into())
            .spawn(move || {
                runtime.block_on(run(listeners, shared));
                // The server may have been dropped.
                let _ = done.send(());
            })
            .map_err(HttpError::Thread)?;
        Ok(HttpServer {
            addresses,
            stopping,
            stopped: Some(stopped),
        })
    }

    /// Where it listens, in the order of its listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Accepts no more connections, finishes the responses under way within [`HttpOptions::stop_wait`], and returns when
    /// all sockets are closed. Dropping the future leaves that to the server's thread.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        if let Some(stopped) = self.stopped.take() {
            let _ = stopped.await;
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

async fn run(listeners: Vec<Accepting>, shared: Arc<Shared>) {
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, shared.clone()));
    }
    while accepting.join_next().await.is_some() {}
}

/// A listener on the server's runtime.
struct Accepting {
    socket: tokio::net::TcpListener,
    listening: Arc<Listening>,
}

impl Accepting {
    fn new(listener: HttpListener) -> Result<Accepting, HttpError> {
        let HttpListener {
            socket,
            address,
            tls,
        } = listener;
        let socket = tokio::net::TcpListener::from_std(socket)
            .map_err(|source| HttpError::Listen { address, source })?;
        let is_loopback = is_loopback(address.ip());
        let listening = Arc::new(Listening { is_loopback, tls });
        Ok(Accepting { socket, listening })
    }
}

/// An open connection. Dropping it counts its end, however it ended.
struct OpenConnection(Arc<Shared>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.closed.add();
    }
}

/// Accepts until the stop, then waits for the connections.
async fn accept(listener: Accepting, shared: Arc<Shared>) {
    let Accepting { socket, listening } = listener;
    let options = &shared.options;
    let mut places: Places<AbortHandle> = Places::new(options.connection_limit, options.peer_limit);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            Some(ended) = connections.join_next_with_id() => {
                give_back(&mut places, ended);
                continue;
            }
            () = shared.stopping.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, peer.ip().to_canonical()),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while let Some(ended) = connections.try_join_next_with_id() {
            give_back(&mut places, ended);
        }
        match places.make_room(peer) {
            Ok(None) => {}
            Ok(Some(idle)) => {
                shared.counters.evicted.add();
                idle.abort();
            }
            Err(NoPlace) => {
                shared.counters.refused.add();
                refuse(stream, &listening);
                continue;
            }
        }
        shared.counters.accepted.add();
        let open = OpenConnection(shared.clone());
        let activity = Arc::new(Activity::new());
        let serving =
            connections::serve(stream, listening.clone(), shared.clone(), activity.clone());
        let handle = connections.spawn(async move {
            let _open = open;
            serving.await;
        });
        places.take(peer, activity, handle);
    }
    drop(socket);
    let ending = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(shared.options.stop_wait, ending).await;
}

fn give_back(places: &mut Places<AbortHandle>, ended: Result<(Id, ()), JoinError>) {
    let id = match ended {
        Ok((id, ())) => id,
        // It lost its place, or panicked, which tokio has reported.
        Err(error) => error.id(),
    };
    places.give_back(|handle| handle.id() == id);
}

/// Tells a client that there is no place, where that can be said without TLS.
fn refuse(stream: TcpStream, listening: &Listening) {
    if listening.tls.is_none()
        && let Ok(mut stream) = stream.into_std()
    {
        // It fits the socket's buffer, or the client sees the end alone.
        let _ = stream.write(FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn both_wildcards_have_one_port() {
        if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_err() {
            // A machine without IPv6.
            return;
        }
        let four = HttpListener::bind((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a port");
        let port = four.address().port();
        let six = HttpListener::bind((Ipv6Addr::UNSPECIFIED, port).into());
        assert_eq!(six.expect("IPv6 alone").address().port(), port);
    }
}
