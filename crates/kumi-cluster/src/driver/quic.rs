//! QUIC as nodes use it: which peers are trusted, the listening side, and connections that do not reconnect.
//!
//! Unison can reconnect by itself. A link must not: the core finds out which peers are gone, and the next message to
//! a peer dials again.

use super::error::DriverError;
use crate::core::Authority;
use kumi_unison::driver::Traffic;
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ClientOptions, ClientTls, ClusterKey, ConnectionContext,
    Credentials, NetworkError, ProtocolClient, ProtocolServer, ReconnectPolicy, ServerHandle,
    ServerIdentity, ServerLimits, ServerTls, TlsError, UnisonChannel,
};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::string::{String, ToString};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// Connections that a node accepts: its links, twice over for peers that replace theirs, and operators.
const MAX_CONNECTIONS: usize = 4 * super::MAX_LINKS;
/// Handshakes at a time. Clients that begin one and go no further keep no other client out.
const MAX_HANDSHAKES: usize = super::MAX_LINKS;
/// Streams of one connection: the channels of a link, of an operator, or of the program, and their large calls.
const MAX_STREAMS: u32 = 64;
/// How long one attempt to connect to one address may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The idle timeout of a connection, and its keep-alive interval. A path that was cut for longer is dialled anew.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// How long peers may take to receive the close of their connections.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// Which peers a node accepts, and which certificate it shows: the same for both directions.
#[derive(Clone, Debug)]
pub struct Security {
    server: ServerTls,
    client: ClientTls,
    /// Certificates are for names, so a peer has to show one for the name that was dialled. With a key all are alike.
    by_name: bool,
}

impl Security {
    /// A secret that all nodes and operators of the cluster hold.
    ///
    /// ```
    /// use kumi_cluster::Security;
    /// use kumi_unison::ClusterKey;
    ///
    /// let key = ClusterKey::from_secret(&ClusterKey::random_secret()?)?;
    /// assert!(Security::key(&key).is_ok());
    /// # Ok::<(), kumi_unison::TlsError>(())
    /// ```
    pub fn key(key: &ClusterKey) -> Result<Self, TlsError> {
        Ok(Self {
            server: ServerTls::cluster(key)?,
            client: ClientTls::cluster(key)?,
            by_name: false,
        })
    }

    /// As [`key`](Self::key), and holders of the guests' key may open channels of the program that are
    /// [open to guests](ChannelRegistry::open_to_guests). A guest cannot join, and opens no channel of the node itself.
    pub fn key_with_guests(key: &ClusterKey, guests: &ClusterKey) -> Result<Self, TlsError> {
        Ok(Self {
            server: ServerTls::cluster_with_guests(key, guests)?,
            ..Self::key(key)?
        })
    }

    /// Mutual TLS from PEM files: this node's chain and key, and the authorities that sign the certificates of all nodes.
    ///
    /// A certificate says which node may show it. The host that the node advertises is among its subject alternative
    /// names as a DNS name or an IP address, and the URI `kumi://host:port` with it; `kumi://host` allows every port of
    /// the host. A peer that introduces itself as another node than its certificate names is refused, and so is a message
    /// that names another sender than the peer. To call the channel `cluster.admin`, a certificate needs the URI
    /// `kumi-role:operator`.
    ///
    /// Gossip is not signed. What a member says about third nodes is believed: that they joined, left or died, and that an
    /// operator has quarantined or released them. So a member without the role of an operator cannot call `cluster.admin`,
    /// but it can make up an order in a gossip message, and keep any node out by it. Sign certificates only for nodes that
    /// are trusted with that.
    pub fn mutual(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
        authorities: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        let credentials = Credentials::from_pem_files(chain, key)?;
        let authorities = authorities.as_ref();
        let server = ServerTls::with(credentials.clone())?.require_client_ca(authorities)?;
        let client = ClientTls::ca_file(authorities)?.with_credentials(credentials)?;
        Ok(Self {
            server,
            client,
            by_name: true,
        })
    }
}

/// The URI of a certificate whose holder may call `cluster.admin`.
const OPERATOR_ROLE: &str = "kumi-role:operator";

impl Security {
    /// Whether a peer may introduce itself by this authority, as far as certificates tell. With a shared key every member
    /// may be any other. A connection that has ended shows no certificate, and so proves nothing.
    pub(super) fn proves(&self, peer: Option<&ConnectionContext>, authority: &Authority) -> bool {
        if !self.by_name {
            return true;
        }
        let Some(peer) = peer else {
            return false;
        };
        let host = host_of(authority);
        let text = authority.as_str();
        let any_port = text.rsplit_once(':').map_or(text, |(host, _)| host);
        let is_named = |uri: &String| {
            let named = uri.strip_prefix("kumi://");
            named.is_some_and(|named| {
                named.eq_ignore_ascii_case(text) || named.eq_ignore_ascii_case(any_port)
            })
        };
        peer.peer_is_host(host) && peer.peer_uris().iter().any(is_named)
    }

    /// Whether a peer proves which node it is.
    pub(super) fn checks_identity(&self) -> bool {
        self.by_name
    }

    /// Whether a peer may call `cluster.admin`. With a shared key every member may.
    pub(super) fn is_operator(&self, peer: &ConnectionContext) -> bool {
        !self.by_name || peer.peer_uris().iter().any(|uri| uri == OPERATOR_ROLE)
    }
}

/// What a certificate has to be for: an authority without its port, and an IPv6 address without its brackets.
pub(super) fn host_of(authority: &Authority) -> &str {
    let text = authority.as_str();
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let bare = bare.unwrap_or(host);
    // A zone says which interface to use, and belongs to no name.
    bare.split_once('%').map_or(bare, |(host, _)| host)
}

fn client_options() -> ClientOptions {
    ClientOptions::new()
        .connect_timeout(CONNECT_TIMEOUT)
        .reconnect(ReconnectPolicy::never())
        .idle_timeout(IDLE_TIMEOUT)
        .keep_alive(KEEP_ALIVE)
        // Most messages are small, and the probes of a connection would weigh as much as minutes of heartbeats.
        .mtu_discovery(false)
}

/// The socket that others connect to, and that this node dials from: it is known by one address.
pub(super) struct QuicListener {
    /// Read for as long as a connection is being made, taken at the end.
    handle: RwLock<Option<ServerHandle>>,
    address: SocketAddr,
}

impl QuicListener {
    pub(super) fn open(
        bind: SocketAddr,
        advertise: Option<&Authority>,
        security: &Security,
        registry: &ChannelRegistry,
    ) -> Result<Self, DriverError> {
        // Tried first, because the system's own words say whether the address is taken.
        let tried = UdpSocket::bind(bind);
        tried.map_err(|source| DriverError::Listen {
            address: bind,
            source,
        })?;
        let limits = ServerLimits::new()
            .max_connections(MAX_CONNECTIONS)
            .max_streams(MAX_STREAMS)
            .max_handshakes(MAX_HANDSHAKES)
            .handshake_timeout(CONNECT_TIMEOUT)
            .idle_timeout(IDLE_TIMEOUT)
            .mtu_discovery(false);
        let mut server = ProtocolServer::with_registry(registry.clone()).with_limits(limits);
        // All nodes have one key: each may reset only connections to its own authority.
        if let Some(authority) = advertise {
            server = server.with_authority(authority.as_str());
        }
        let handle = server.listen(bind, &security.server)?;
        let address = handle.local_addr();
        Ok(Self {
            handle: RwLock::new(Some(handle)),
            address,
        })
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Dials one address of a peer. A certificate has to be for `host`.
    pub(super) async fn connect(
        &self,
        host: &str,
        address: SocketAddr,
        security: &Security,
    ) -> Result<QuicConnection, NetworkError> {
        let handle = self.handle.read().await;
        let Some(handle) = handle.as_ref() else {
            return Err(NetworkError::closed());
        };
        let (tls, options) = (security.client.clone(), client_options());
        let connecting = match security.by_name {
            true => handle.connect_at(host, address, tls, options).await,
            // With a key names are not checked, and one may be no DNS name at all.
            false => handle.connect(&address.to_string(), tls, options).await,
        };
        Ok(QuicConnection(connecting?))
    }

    /// Shows another certificate from now on; connections that are open stay.
    pub(super) async fn set_security(&self, security: &Security) -> Result<(), NetworkError> {
        match self.handle.read().await.as_ref() {
            Some(handle) => handle.set_tls(&security.server),
            None => Err(NetworkError::closed()),
        }
    }

    /// What went through the socket; `None` once it is closed.
    pub(super) fn traffic(&self) -> Option<Traffic> {
        let handle = self.handle.try_read().ok()?;
        handle.as_ref().map(ServerHandle::traffic)
    }

    /// Closes all connections, and waits a bounded time until peers have received that.
    pub(super) async fn shut(&self) {
        let handle = self.handle.write().await.take();
        if let Some(handle) = handle {
            handle.shutdown(SHUTDOWN_GRACE).await;
        }
    }

    /// Ends everything on this socket, without waiting. A connection that is being made at this very moment keeps it
    /// open; the task that makes it has been told to stop, and takes the last handle to this listener along.
    pub(super) fn close_now(&self) {
        if let Ok(mut handle) = self.handle.try_write() {
            handle.take();
        }
    }
}

impl core::fmt::Debug for QuicListener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("QuicListener").field(&self.address).finish()
    }
}

/// A connection that this process made. Dropping it closes it, [`close`](Self::close) also waits.
pub(super) struct QuicConnection(ProtocolClient);

impl QuicConnection {
    /// Connects to `host:port` from a socket of its own, for a client that does not listen.
    pub(super) async fn open(node: &str, security: &Security) -> Result<Self, NetworkError> {
        let client = security.client.clone();
        let connecting = ProtocolClient::connect_with(node, client, client_options());
        Ok(Self(connecting.await?))
    }

    pub(super) async fn channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        self.0.open_channel_with(name, options).await
    }

    /// The identity of the server.
    pub(super) fn identity(&self) -> ServerIdentity {
        self.0.identity()
    }

    /// The state of the connection, while it is there.
    pub(super) fn context(&self) -> Option<Arc<ConnectionContext>> {
        self.0.context()
    }

    pub(super) async fn close(&self) {
        self.0.close().await;
    }
}

impl core::fmt::Debug for QuicConnection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("QuicConnection")
    }
}
