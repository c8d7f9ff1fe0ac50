//! One established connection of a client, and the dialer that makes it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kumi_common::Chain;
use quinn::{ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, TokioRuntime};

use super::CloseCode;
use super::address::{Target, any_local};
use super::client::ClientOptions;
use super::closed::{closed_port, lost_to};
use super::control::ClientControl;
use super::limits::{bind_socket, endpoint_config};
use super::transport::{QuicRecv, QuicSend, Turns, peer_certificates};
use crate::core::Share;
use crate::driver::ConnectionLimits;
use crate::driver::channel::context::Usage;
use crate::tls::Attempt;
use crate::wire::Codec;
use crate::{
    ChannelOptions, ClientTls, ConnectionContext, NetworkError, ServerIdentity, TlsError,
    UnisonChannel,
};

/// Streams a server may open to a client: the control stream.
const SERVER_STREAMS: u32 = 1;
/// How long closing waits for the last packets.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// The wait before the next address is tried in parallel.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// Where TLS alerts begin among QUIC's error codes, and how many there are.
const TLS_ALERTS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;

/// A connection whose identity message has arrived.
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) context: Arc<ConnectionContext>,
    turns: Turns,
}

impl Link {
    /// The server's identity.
    pub(super) fn identity(&self) -> ServerIdentity {
        let unknown = || ServerIdentity::new("", "", "");
        self.context.identity().unwrap_or_else(unknown)
    }

    /// Opens a channel on a new stream, without waiting for the acknowledgement.
    pub(super) async fn open_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        let (send, receive, stream_id) = self.open_stream().await?;
        UnisonChannel::open(send, receive, stream_id, name, options, &self.context)
    }

    pub(super) async fn open_stream(&self) -> Result<(QuicSend, QuicRecv, u64), NetworkError> {
        let opened = self.connection.open_bi().await;
        let (send, receive) = opened.map_err(lost_to(&self.connection))?;
        let stream_id = u64::from(send.id());
        let send = QuicSend::new(send, &self.connection, &self.turns);
        Ok((send, QuicRecv::new(receive), stream_id))
    }
}

/// A socket, and whether this client owns it.
struct Socket {
    is_ipv6: bool,
    endpoint: Endpoint,
    /// If false it is a server's, and neither closed nor moved here.
    is_shared: bool,
}

/// Connects to one server. Has one socket per address family.
pub(super) struct Dialer {
    target: Target,
    tls: ClientTls,
    options: ClientOptions,
    endpoints: Mutex<Vec<Socket>>,
    /// The address of the last connection.
    answered: Mutex<Option<SocketAddr>>,
    /// Shared by all connections, because a compressor's memory is large.
    codec: Arc<Codec>,
    /// The limits and counters that all connections share.
    limits: ConnectionLimits,
    usage: Arc<Usage>,
}

impl Dialer {
    pub(super) fn new(target: Target, tls: ClientTls, options: ClientOptions) -> Dialer {
        let limits = ConnectionLimits::default()
            .max_partial_bytes(options.tuning.max_buffered_bytes)
            .max_held_bytes(options.tuning.max_buffered_bytes);
        Dialer {
            limits,
            usage: Usage::new(&limits, Share::unlimited()),
            target,
            tls,
            options,
            endpoints: Mutex::new(Vec::new()),
            answered: Mutex::new(None),
            codec: Arc::new(Codec::new()),
        }
    }

    /// Uses an endpoint of another owner for all addresses of its family.
    pub(super) fn with_endpoint(self, endpoint: Endpoint, is_ipv6: bool) -> Dialer {
        let socket = Socket {
            is_ipv6,
            endpoint,
            is_shared: true,
        };
        self.endpoints().push(socket);
        self
    }

    /// The server that it connects to.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    fn endpoints(&self) -> MutexGuard<'_, Vec<Socket>> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the first of the server's addresses that responds, and waits for its identity. A name often has an
    /// address on which no server listens, so the next address is tried in parallel after a short wait.
    pub(super) async fn dial(&self) -> Result<(Link, ClientControl), NetworkError> {
        let within = self.options.connect_timeout;
        let in_time = |future| async move {
            tokio::time::timeout(within, future)
                .await
                .unwrap_or_else(|_| {
                    let target = &self.target;
                    let text = format!(
                        "{target} did not answer within {within:?}; is it reachable by UDP?"
                    );
                    Err(NetworkError::Connect(text))
                })
        };
        let attempt = |address| async move { (address, in_time(self.dial_address(address)).await) };
        let mut addresses = self.in_order(self.target.resolve().await?).into_iter();
        let mut attempts = FuturesUnordered::new();
        attempts.extend(addresses.next().map(attempt));
        let mut last = None;
        loop {
            let next_in = tokio::time::sleep(NEXT_ADDRESS);
            tokio::select! {
                Some((address, dialed)) = attempts.next() => match dialed {
                    Ok(dialed) => {
                        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
                        return Ok(dialed);
                    }
                    Err(error) => {
                        tracing::debug!(%address, error = %Chain(&error), "cannot connect");
                        // A certificate error is reported rather than a closed port of another address.
                        if !matches!(last, Some(NetworkError::Tls(_))) {
                            last = Some(error);
                        }
                    }
                },
                () = next_in, if addresses.len() > 0 => {}
                else => return Err(last.unwrap_or(NetworkError::closed())),
            }
            // It failed or is slow: the next address is tried.
            attempts.extend(addresses.next().map(attempt));
        }
    }

    /// The addresses in the order they are tried: the one of the last connection first.
    fn in_order(&self, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
        if let Some(answered) = self.answered() {
            addresses.sort_by_key(|address| *address != answered);
        }
        addresses
    }

    /// The address of the last connection.
    pub(super) fn answered(&self) -> Option<SocketAddr> {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn dial_address(
        &self,
        address: SocketAddr,
    ) -> Result<(Link, ClientControl), NetworkError> {
        let host = &self.target.host;
        let (attempt, crypto) = self.tls.attempt(host, address)?;
        let mut config = ClientConfig::new(crypto);
        config.transport_config(Arc::new(self.options.tuning.config(SERVER_STREAMS)));
        let endpoint = self.endpoint(address)?;
        let target = &self.target;
        let connecting = endpoint
            .connect_with(config, address, self.tls.server_name(host))
            .map_err(|error: ConnectError| NetworkError::Connect(format!("{target}: {error}")))?;
        let connection = tokio::select! {
            biased;
            connected = connecting => {
                connected.map_err(|error| refused(target, address, error, Some(&attempt)))?
            }
            () = closed_port(address) => {
                let text = format!("nothing listens on UDP port {} of {}", address.port(), address.ip());
                return Err(NetworkError::Connect(format!("{}: {text}", named(target, address))));
            }
        };
        attempt.confirm()?;
        let closing = CloseOnDrop(Some(connection.clone()));
        // With mutual TLS the server verifies this side after the handshake is complete here, so its refusal arrives while
        // the identity is waited for.
        let (control, identity) = ClientControl::accept(&connection).await.map_err(|error| {
            match connection.close_reason() {
                Some(reason) => refused(target, address, reason, None),
                None => error,
            }
        })?;
        closing.keep();
        let (codec, usage) = (self.codec.clone(), self.usage.clone());
        let context = ConnectionContext::with_usage(self.limits, codec, usage);
        context.set_peer(address);
        context.set_peer_certificates(peer_certificates(&connection));
        context.set_identity(identity);
        Ok((
            Link {
                connection,
                context,
                turns: Turns::default(),
            },
            control,
        ))
    }

    /// The socket for an address's family, bound when it is first needed.
    fn endpoint(&self, address: SocketAddr) -> Result<Endpoint, NetworkError> {
        let mut endpoints = self.endpoints();
        let is_ipv6 = address.is_ipv6();
        if let Some(known) = endpoints.iter().find(|known| known.is_ipv6 == is_ipv6) {
            return Ok(known.endpoint.clone());
        }
        let cannot = |error| NetworkError::Connect(format!("cannot bind a UDP socket: {error}"));
        let wanted = self.options.bind.filter(|bind| bind.is_ipv6() == is_ipv6);
        let socket = bind_socket(wanted.unwrap_or(any_local(address))).map_err(cannot)?;
        let endpoint = Endpoint::new(endpoint_config(), None, socket, Arc::new(TokioRuntime))
            .map_err(cannot)?;
        endpoints.push(Socket {
            is_ipv6,
            endpoint: endpoint.clone(),
            is_shared: false,
        });
        Ok(endpoint)
    }

    /// Moves this client's own sockets to new local ports. Connections continue.
    pub(super) fn rebind(&self) -> Result<(), NetworkError> {
        let cannot = |error| NetworkError::Connect(format!("cannot bind a UDP socket: {error}"));
        let endpoints = self.endpoints();
        for Socket { endpoint, .. } in endpoints.iter().filter(|socket| !socket.is_shared) {
            let mut address = endpoint.local_addr().map_err(cannot)?;
            address.set_port(0);
            let socket = bind_socket(address).map_err(cannot)?;
            endpoint.rebind(socket).map_err(cannot)?;
        }
        Ok(())
    }

    /// Closes all sockets of a client that never had a connection.
    pub(super) fn abandon(&self) {
        for Socket { endpoint, .. } in self
            .endpoints()
            .drain(..)
            .filter(|socket| !socket.is_shared)
        {
            endpoint.close(CloseCode::Done.into(), b"");
        }
    }

    /// Closes all sockets. Waits at most [`CLOSE_TIME`] for the last packets.
    pub(super) async fn close(&self) {
        let endpoints = std::mem::take(&mut *self.endpoints());
        let own = endpoints.into_iter().filter(|socket| !socket.is_shared);
        for Socket { endpoint, .. } in own {
            endpoint.close(CloseCode::Done.into(), b"");
            let _ = tokio::time::timeout(CLOSE_TIME, endpoint.wait_idle()).await;
        }
    }
}

/// Closes a connection that was made and is not used.
struct CloseOnDrop(Option<Connection>);

impl CloseOnDrop {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.close(CloseCode::Protocol.into(), b"");
        }
    }
}

/// The server, and the address that was tried where a name has several.
fn named(target: &Target, address: SocketAddr) -> String {
    let (target, address) = (target.to_string(), address.to_string());
    match target == address {
        true => target,
        false => format!("{target} ({address})"),
    }
}

/// The error of a failed attempt: the verifier's if it refused the certificate, else the server's alert, else QUIC's.
fn refused(
    target: &Target,
    address: SocketAddr,
    error: ConnectionError,
    attempt: Option<&Attempt>,
) -> NetworkError {
    if let Some(refusal) = attempt.and_then(Attempt::refusal) {
        return refusal.into();
    }
    let peer = || named(target, address);
    let reason = error.to_string();
    match &error {
        // Raised on this side.
        ConnectionError::TransportError(error) if TLS_ALERTS.contains(&u64::from(error.code)) => {
            let peer = peer();
            TlsError::Handshake { peer, reason }.into()
        }
        ConnectionError::ConnectionClosed(close)
            if TLS_ALERTS.contains(&u64::from(close.error_code)) =>
        {
            TlsError::Refused {
                peer: peer(),
                alert: (u64::from(close.error_code) & 0xff) as u8,
                reason,
            }
            .into()
        }
        _ => NetworkError::Connect(format!("{}: {reason}", peer())),
    }
}
