//! A server: its registry, and the endpoints it listens on.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quinn::{Endpoint, Runtime, ServerConfig, TokioRuntime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::address::Target;
use super::handshakes::Handshakes;
use super::limits::{ServerLimits, bind_socket};
use super::listener::Listener;
use super::reset::server_endpoint_config;
use super::traffic::{Counted, CountingSocket, Traffic};
use super::windows::Windows;
use super::{ClientOptions, ProtocolClient, accept};
use crate::core::EndpointBudget;
use crate::document::LegacyHandler;
use crate::wire::Codec;
use crate::{
    ChannelHandler, ChannelRegistry, ChannelSpec, ChannelStatus, ClientTls, NetworkError,
    ServerIdentity, ServerTls,
};

/// The limits of connection attempts that were not accepted yet: their number, and the bytes of their first packets.
const MAX_INCOMING: usize = 1024;
const INCOMING_BYTES_EACH: u64 = 64 * 1024;
const INCOMING_BYTES_TOTAL: u64 = 8 * 1024 * 1024;

/// A server whose channels clients open over QUIC.
///
/// ```
/// use std::sync::Arc;
/// use kumi_unison::{ClientTls, ConnectionContext, ProtocolClient, ProtocolServer, ServerTls, UnisonChannel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ProtocolServer::new("greeter", "1.0.0", "example");
/// server.register_channel("greet", |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
///     channel.send_event("Hello", serde_json::json!("world")).await?;
///     channel.closed().await;
///     Ok(())
/// });
/// let tls = ServerTls::development(&["localhost"])?;
/// let handle = server.listen("127.0.0.1:0".parse()?, &tls)?;
///
/// let pinned = ClientTls::pinned([tls.fingerprint()])?;
/// let client = ProtocolClient::connect(&handle.local_addr().to_string(), pinned).await?;
/// let channel = client.open_channel("greet").await?;
/// assert_eq!(channel.recv().await?.method, "Hello");
/// client.close().await;
/// handle.shutdown(std::time::Duration::from_secs(1)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ProtocolServer {
    registry: ChannelRegistry,
    limits: ServerLimits,
    /// The address under which clients reach it; by default the one it listens on.
    authority: Option<Arc<str>>,
}

/// Generated `register_...` functions take a server or a registry.
impl AsRef<ChannelRegistry> for ProtocolServer {
    fn as_ref(&self) -> &ChannelRegistry {
        &self.registry
    }
}

impl ProtocolServer {
    /// A server with this identity and no channels.
    pub fn new(name: &str, version: &str, namespace: &str) -> ProtocolServer {
        ProtocolServer::with_registry(ChannelRegistry::new(name, version, namespace))
    }

    /// A server for channels that may be served in memory too.
    pub fn with_registry(registry: ChannelRegistry) -> ProtocolServer {
        ProtocolServer {
            registry,
            limits: ServerLimits::default(),
            authority: None,
        }
    }

    /// Replaces the limits; endpoints that listen already keep theirs.
    pub fn with_limits(mut self, limits: ServerLimits) -> ProtocolServer {
        self.limits = limits;
        self
    }

    /// The address that clients are given, where it is not the one that the server listens on. A server resets connections
    /// of an earlier process with the same private key and the same authority, and of no other.
    #[must_use]
    pub fn with_authority(mut self, authority: &str) -> ProtocolServer {
        self.authority = Some(authority.into());
        self
    }

    /// What is registered.
    pub fn registry(&self) -> &ChannelRegistry {
        &self.registry
    }

    /// Offers a channel; connected clients get an update.
    pub fn register_channel(&self, name: &str, handler: impl ChannelHandler) {
        self.registry.register_channel(name, handler);
    }

    /// Offers a channel with everything a schema says of it; connected clients get an update.
    pub fn register_channel_with(&self, spec: ChannelSpec, handler: impl ChannelHandler) {
        self.registry.register_channel_with(spec, handler);
    }

    /// Answers first messages that name no channel, framed or not.
    pub fn register_legacy(&self, handler: impl LegacyHandler) {
        self.registry.register_legacy(handler);
    }

    /// Withdraws a channel; clients that have it open keep it. Returns whether there was one.
    pub fn remove_channel(&self, name: &str) -> bool {
        self.registry.remove_channel(name)
    }

    /// Changes the status that clients get when they open a channel. Returns whether there is one.
    pub fn set_status(&self, name: &str, status: ChannelStatus) -> bool {
        self.registry.set_status(name, status)
    }

    /// The identity that a client which connects now receives.
    pub fn build_identity(&self) -> ServerIdentity {
        self.registry.build_identity()
    }

    /// Listens on an address, with tasks on the current tokio runtime, until the handle is shut down or dropped.
    ///
    /// An IPv6 address takes IPv6 only, `[::]` too; for both families listen twice. Clients of an earlier process with the
    /// same private key on this address, or with the same [authority](Self::with_authority), get a reset as soon as they send
    /// anything.
    ///
    /// After [`ChannelRegistry::start_draining`] this fails with [`NetworkError::Draining`]: no client would be served.
    pub fn listen(
        &self,
        address: SocketAddr,
        tls: &ServerTls,
    ) -> Result<ServerHandle, NetworkError> {
        if self.registry.is_draining() {
            return Err(NetworkError::draining());
        }
        let config = server_config(&self.limits, tls)?;
        let cannot = |error: std::io::Error| NetworkError::Listen {
            address: address.to_string(),
            reason: error.to_string(),
        };
        let socket = bind_socket(address).map_err(cannot)?;
        let runtime = Arc::new(TokioRuntime);
        let listening = socket.local_addr().map_err(cannot)?.to_string();
        let authority = self.authority.as_deref().unwrap_or(&listening);
        let endpoint_config = server_endpoint_config(&tls.reset_secret()?, authority);
        let socket = runtime.wrap_udp_socket(socket).map_err(cannot)?;
        // Of the inner socket, because a waiting writer holds that one.
        let open = Arc::downgrade(&socket);
        let counted = Arc::new(Counted::default());
        let socket = Arc::new(CountingSocket {
            socket,
            counted: counted.clone(),
        });
        let config = Some(config);
        let endpoint =
            Endpoint::new_with_abstract_socket(endpoint_config, config, socket, runtime.clone())
                .map_err(cannot)?;
        let local_addr = endpoint.local_addr().map_err(cannot)?;
        let listener = Arc::new(Listener {
            endpoint,
            socket: open,
            counted,
            registry: self.registry.clone(),
            limits: self.limits.clone(),
            codec: Arc::new(Codec::new()),
            budget: Arc::new(EndpointBudget::new(self.limits.max_total_bytes)),
            windows: Windows::new(&self.limits),
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
            connections: AtomicUsize::new(0),
            handshakes: Handshakes::new(self.limits.max_handshakes),
            guests: Mutex::new(tls.guests().clone()),
        });
        let task = tokio::spawn(accept::run(listener.clone()));
        tracing::info!(address = %local_addr, "listening");
        Ok(ServerHandle {
            listener,
            local_addr,
            task: Some(task),
        })
    }
}

/// The QUIC configuration of a server with these limits and this certificate.
pub(super) fn server_config(
    limits: &ServerLimits,
    tls: &ServerTls,
) -> Result<ServerConfig, NetworkError> {
    let mut config = ServerConfig::with_crypto(tls.quic_config()?);
    limits.tuning.check()?;
    let mut transport = limits.tuning.config(limits.max_streams);
    // A window that was granted in the handshake cannot be reduced, so the smallest is granted; `Windows` enlarges it.
    transport.receive_window(limits.receive_window(limits.max_connections));
    config
        .transport_config(Arc::new(transport))
        .migration(true)
        .max_incoming(MAX_INCOMING)
        .incoming_buffer_size(INCOMING_BYTES_EACH)
        .incoming_buffer_size_total(INCOMING_BYTES_TOTAL);
    Ok(config)
}

/// A listening endpoint. Dropping it ends its connections at once; [`shutdown`](Self::shutdown) lets them finish.
pub struct ServerHandle {
    listener: Arc<Listener>,
    local_addr: SocketAddr,
    task: Option<JoinHandle<()>>,
}

impl ServerHandle {
    /// The address it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Clients connected now.
    pub fn connections(&self) -> usize {
        self.listener.connections.load(Ordering::Relaxed)
    }

    /// Handshakes under way now, at most [`ServerLimits::max_handshakes`].
    pub fn handshakes(&self) -> usize {
        self.listener.handshakes.len()
    }

    /// The counters of the socket since it was opened, including connections that this server made.
    pub fn traffic(&self) -> Traffic {
        self.listener.counted.snapshot()
    }

    /// Replaces the certificate and the rule that decides which clients may connect. Open connections stay as they are; new
    /// ones use the new values.
    pub fn set_tls(&self, tls: &ServerTls) -> Result<(), NetworkError> {
        let config = server_config(&self.listener.limits, tls)?;
        // Before the first of them can connect.
        self.listener.guests().add(tls.guests());
        self.listener.endpoint.set_server_config(Some(config));
        Ok(())
    }

    /// Connects to another server from this one's socket, so that both directions have one address. The client ends with
    /// this server at the latest.
    pub async fn connect(
        &self,
        address: &str,
        tls: ClientTls,
        options: ClientOptions,
    ) -> Result<ProtocolClient, NetworkError> {
        self.connect_target(address.parse()?, tls, options).await
    }

    /// Like [`connect`](Self::connect), to one address of a host that has several. The certificate has to be for
    /// `host`, which is not looked up.
    pub async fn connect_at(
        &self,
        host: &str,
        address: SocketAddr,
        tls: ClientTls,
        options: ClientOptions,
    ) -> Result<ProtocolClient, NetworkError> {
        self.connect_target(Target::at(host, address), tls, options)
            .await
    }

    async fn connect_target(
        &self,
        target: Target,
        tls: ClientTls,
        options: ClientOptions,
    ) -> Result<ProtocolClient, NetworkError> {
        let endpoint = self.listener.endpoint.clone();
        let is_ipv6 = self.local_addr.is_ipv6();
        ProtocolClient::connect_from(target, tls, options, Some((endpoint, is_ipv6))).await
    }

    /// Sends GOAWAY to all clients of this endpoint, refuses their new requests, waits at most `grace` for running ones,
    /// closes the endpoint, and waits until the address is free. Other endpoints of the same registry continue, and the
    /// registry can listen again; [`ChannelRegistry::start_draining`] drains all of them.
    ///
    /// When this future is dropped the endpoint ends at once.
    pub async fn shutdown(mut self, grace: Duration) {
        self.listener.drain.cancel();
        let Some(mut task) = self.task.take() else {
            return;
        };
        if tokio::time::timeout(grace, &mut task).await.is_err() {
            self.listener.stop.cancel();
            // It ends by itself now. If it panicked, everything it owned was dropped.
            let _ = task.await;
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.listener.stop.cancel();
    }
}
