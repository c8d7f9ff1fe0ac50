//! A client of a registry in the same process.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::stream::memory_stream;
use crate::driver::channel::context::ConnectionContext;
use crate::driver::channel::{ChannelOptions, StreamOpener, UnisonChannel};
use crate::driver::registry::ChannelRegistry;
use crate::driver::subscription::Subscription;
use crate::error::NetworkError;
use crate::identity::{ChannelUpdate, ServerIdentity};

/// Opens channels: what generated code asks of a client, whatever its transport.
pub trait ChannelSource: Send + Sync {
    /// Opens a channel and waits until it is acknowledged.
    fn open_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'_, Result<UnisonChannel, NetworkError>>;

    /// The identity of the server, as last received.
    fn identity(&self) -> ServerIdentity;
}

/// A connection to a [`ChannelRegistry`] of the same process. Clones are the same connection.
///
/// ```
/// use kumi_unison::{ChannelOptions, ChannelRegistry, ChannelSource, IncomingRequest, MemoryClient, ServiceHandler};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), kumi_unison::NetworkError> {
/// let registry = ChannelRegistry::new("demo", "0.1.0", "default");
/// registry.register_channel(
///     "echo",
///     ServiceHandler::new(|request: IncomingRequest| async move { Ok(request.into_payload()) }),
/// );
/// let client = MemoryClient::connect(&registry);
/// let channel = client.open_channel("echo", ChannelOptions::new()).await?;
/// assert_eq!(channel.request("say", json!({ "text": "hello" })).await?, json!({ "text": "hello" }));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: ChannelRegistry,
    /// Our side of the connection, and the server's.
    near: Arc<ConnectionContext>,
    far: Arc<ConnectionContext>,
    next_stream: AtomicU64,
}

impl MemoryClient {
    /// Connects. Nothing can fail and nothing waits.
    pub fn connect(registry: &ChannelRegistry) -> Self {
        Self::connect_with(registry, ConnectionContext::new(), ConnectionContext::new())
    }

    /// Connects with contexts of one's own: ours and the server's.
    pub fn connect_with(
        registry: &ChannelRegistry,
        near: Arc<ConnectionContext>,
        far: Arc<ConnectionContext>,
    ) -> Self {
        registry.add_connection(&far);
        let identity = registry.build_identity();
        near.set_identity(identity.clone());
        far.set_identity(identity);
        let registry = registry.clone();
        Self {
            inner: Arc::new(Inner {
                registry,
                near,
                far,
                next_stream: AtomicU64::new(0),
            }),
        }
    }

    /// The changes to the server's channels from now on.
    pub fn updates(&self) -> Subscription<ChannelUpdate> {
        self.inner.registry.updates()
    }

    /// Our side of the connection.
    pub fn context(&self) -> &Arc<ConnectionContext> {
        &self.inner.near
    }

    /// The server's side of the connection.
    pub fn server_context(&self) -> &Arc<ConnectionContext> {
        &self.inner.far
    }

    /// A channel that is not acknowledged yet. Requests may be sent.
    ///
    /// # Errors
    /// When the name is too long to be one, or the connection was [closed](ConnectionContext::close).
    pub fn begin_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        let Inner {
            registry,
            near,
            far,
            next_stream,
        } = &*self.inner;
        let closings = [near.closing().clone(), far.closing().clone()];
        if closings.iter().any(CancellationToken::is_cancelled) {
            return Err(NetworkError::lost(false, near.peer()));
        }
        let stream_id = next_stream.fetch_add(4, Ordering::Relaxed);
        let ((send, recv), (far_send, far_recv)) = memory_stream();
        let (send, far_send) = (send.with_datagrams(far), far_send.with_datagrams(near));
        let (registry, far) = (registry.clone(), Arc::clone(far));
        let options = match options.opener {
            None if options.part_of.is_none() => options.opener(Arc::new(self.clone())),
            _ => options,
        };
        let channel = UnisonChannel::open(send, recv, stream_id, name, options, near)?;
        let driver = Arc::downgrade(channel.driver());
        tokio::spawn(async move {
            let mut served = pin!(registry.serve_stream(far, far_send, far_recv, stream_id));
            let [near_closing, far_closing] = &closings;
            tokio::select! {
                () = &mut served => return,
                () = near_closing.cancelled() => {}
                () = far_closing.cancelled() => {}
            }
            // The server's side learns of it by the stream, which this resets.
            if let Some(driver) = driver.upgrade() {
                driver.lose_for_good();
            }
            served.await;
        });
        Ok(channel)
    }
}

impl ChannelSource for MemoryClient {
    fn open_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'_, Result<UnisonChannel, NetworkError>> {
        let channel = self.begin_channel(name, options);
        async move {
            let channel = channel?;
            channel.opened().await?;
            Ok(channel)
        }
        .boxed()
    }

    fn identity(&self) -> ServerIdentity {
        self.inner.registry.build_identity()
    }
}

impl StreamOpener for MemoryClient {
    fn open_stream(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'static, Result<UnisonChannel, NetworkError>> {
        std::future::ready(self.begin_channel(name, options)).boxed()
    }
}
