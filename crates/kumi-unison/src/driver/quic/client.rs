//! A client: one server, one connection at a time, and persistent channels that outlive a connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use quinn::Endpoint;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::address::Target;
use super::backoff::ReconnectPolicy;
use super::limits::{Tuning, tuning_setters};
use super::link::{Dialer, Link};
use super::supervisor::{self, State};
use crate::driver::{StreamOpener, Subscription};
use crate::{
    ChannelOptions, ChannelSource, ChannelUpdate, ClientTls, ConnectionContext, NetworkError,
    ServerIdentity, UnisonChannel,
};

/// The capacity of the subscription to channel updates.
const UPDATES: usize = 256;
/// Pings waiting to be sent.
const PINGS: usize = 16;

/// The default interval of QUIC keep-alive packets at a client.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The options of a client.
///
/// ```
/// use kumi_unison::{ClientOptions, ReconnectPolicy};
/// use std::time::Duration;
///
/// let options = ClientOptions::new()
///     .connect_timeout(Duration::from_secs(3))
///     .reconnect(ReconnectPolicy::never());
/// assert!(format!("{options:?}").contains("connect_timeout: 3s"));
/// ```
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(crate) connect_timeout: Duration,
    pub(crate) reconnect: ReconnectPolicy,
    pub(crate) bind: Option<SocketAddr>,
    pub(super) tuning: Tuning,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            connect_timeout: Duration::from_secs(10),
            reconnect: ReconnectPolicy::default(),
            bind: None,
            tuning: Tuning::new(Some(KEEP_ALIVE)),
        }
    }
}

impl ClientOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How long one attempt may take, from the handshake to the server's identity. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// When a lost connection is made again, and how often.
    #[must_use]
    pub fn reconnect(mut self, policy: ReconnectPolicy) -> Self {
        self.reconnect = policy;
        self
    }

    /// The local address, for servers of its family. Default: any.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    tuning_setters!();

    /// Whether a client can work with these values.
    fn check(&self) -> Result<(), NetworkError> {
        if self.connect_timeout.is_zero() {
            return Err(NetworkError::Options("connect_timeout is zero".to_owned()));
        }
        self.tuning.check()?;
        self.reconnect.check()
    }
}

/// A client that reconnects after a loss. Clones share its connection, and channels opened through it keep it: when the last
/// clone and the last channel are dropped, it is closed. [`close`](Self::close) ends it, and its channels, at once.
#[derive(Clone)]
pub struct ProtocolClient {
    shared: Arc<Shared>,
    /// Stops the supervisor with the last clone.
    _stop: Arc<StopOnDrop>,
}

/// The state that the handles, the supervisor and the channels' openers share.
pub(super) struct Shared {
    pub(super) dialer: Dialer,
    pub(super) options: ClientOptions,
    pub(super) state: watch::Sender<State>,
    pub(super) updates: broadcast::Sender<ChannelUpdate>,
    /// A task per persistent channel, which opens it again after a loss.
    pub(super) keepers: TaskTracker,
    pub(super) pings: mpsc::Sender<oneshot::Sender<Duration>>,
    pub(super) stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct StopOnDrop(CancellationToken);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ProtocolClient {
    /// Connects with the default options; see [`connect_with`](Self::connect_with).
    pub async fn connect(address: &str, tls: ClientTls) -> Result<ProtocolClient, NetworkError> {
        ProtocolClient::connect_with(address, tls, ClientOptions::default()).await
    }

    /// Connects to `host:port` (or `[address]:port`) and returns when the server's identity has arrived.
    ///
    /// The first connection is tried once, so that a wrong address or certificate is an error and not retried. From then
    /// on a task on the current tokio runtime reconnects after a loss. Dropping the future closes what was opened.
    pub async fn connect_with(
        address: &str,
        tls: ClientTls,
        options: ClientOptions,
    ) -> Result<ProtocolClient, NetworkError> {
        ProtocolClient::connect_from(address.parse()?, tls, options, None).await
    }

    /// As [`connect_with`](Self::connect_with), from an endpoint of another owner, if one is given with its family.
    pub(super) async fn connect_from(
        target: Target,
        tls: ClientTls,
        options: ClientOptions,
        endpoint: Option<(Endpoint, bool)>,
    ) -> Result<ProtocolClient, NetworkError> {
        options.check()?;
        let mut dialer = Dialer::new(target, tls, options.clone());
        if let Some((endpoint, is_ipv6)) = endpoint {
            dialer = dialer.with_endpoint(endpoint, is_ipv6);
        }
        let (link, control) = match dialer.dial().await {
            Ok(dialed) => dialed,
            Err(error) => {
                dialer.abandon();
                return Err(error);
            }
        };
        let link = Arc::new(link);
        let (pings, asked) = mpsc::channel(PINGS);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            dialer,
            options,
            state: watch::channel(State::Up(link.clone())).0,
            updates: broadcast::channel(UPDATES).0,
            keepers: TaskTracker::new(),
            pings,
            stop: stop.clone(),
            task: Mutex::new(None),
        });
        let task = tokio::spawn(supervisor::run(shared.clone(), link, control, asked));
        *shared.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
        Ok(ProtocolClient {
            shared,
            _stop: Arc::new(StopOnDrop(stop)),
        })
    }

    /// The server's identity, with all updates that were received.
    pub fn identity(&self) -> ServerIdentity {
        match &*self.shared.state.borrow() {
            State::Up(link) => link.identity(),
            State::Down { identity } | State::Ended { identity } => identity.clone(),
        }
    }

    /// The updates of the server's channels from now on.
    pub fn updates(&self) -> Subscription<ChannelUpdate> {
        Subscription::new(self.shared.updates.subscribe())
    }

    /// The current connection; `None` between two.
    pub fn context(&self) -> Option<Arc<ConnectionContext>> {
        match &*self.shared.state.borrow() {
            State::Up(link) => Some(link.context.clone()),
            _ => None,
        }
    }

    /// Whether the client is connected.
    pub fn is_connected(&self) -> bool {
        self.context().is_some()
    }

    /// Opens a channel and returns when the server has acknowledged it. Between two connections it waits for the next.
    pub async fn open_channel(&self, name: &str) -> Result<UnisonChannel, NetworkError> {
        self.open_channel_with(name, ChannelOptions::default())
            .await
    }

    /// Opens a channel with options and returns when the server has acknowledged it. Dropping the future closes the channel.
    pub async fn open_channel_with(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        let channel = self.open_channel_early(name, options).await?;
        channel.opened().await?;
        Ok(channel)
    }

    /// Opens a channel and returns before the server has acknowledged it. Requests sent meanwhile follow the opening, and
    /// fail with the server's reason if it refuses.
    pub async fn open_channel_early(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        let link = self.shared.link().await?;
        let opener = Arc::new(Opener {
            shared: Arc::downgrade(&self.shared),
        });
        let options = options.opener(opener);
        let persistent = options.is_persistent();
        let channel = link.open_channel(name, options).await?;
        if persistent {
            let keeping = supervisor::keep(self.shared.clone(), channel.keeper());
            self.shared.keepers.spawn(keeping);
        }
        channel.keep(self._stop.clone());
        Ok(channel)
    }

    /// Resolves when the client was closed or reconnecting was given up.
    pub async fn closed(&self) {
        let mut state = self.shared.state.subscribe();
        // The sender lives in `shared`.
        let _ = state
            .wait_for(|state| matches!(state, State::Ended { .. }))
            .await;
    }

    /// Sends a ping on the control stream and returns the time until its response.
    pub async fn ping(&self) -> Result<Duration, NetworkError> {
        let (answer, answered) = oneshot::channel();
        let gone = |_| NetworkError::lost(false, self.shared.dialer.answered());
        self.shared
            .pings
            .send(answer)
            .await
            .map_err(|_| self.shared.closed())?;
        answered.await.map_err(gone)
    }

    /// Moves the connection to a new local port, as when this machine changed networks. Calls in flight continue.
    pub fn rebind(&self) -> Result<(), NetworkError> {
        self.shared.dialer.rebind()
    }

    /// Closes the connection and its channels, and waits until the closing packets were sent.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        let task = self
            .shared
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            // If it panicked, the connection was dropped with it.
            let _ = task.await;
        }
    }
}

impl Shared {
    /// The current connection, or the next one.
    pub(super) async fn link(&self) -> Result<Arc<Link>, NetworkError> {
        let mut state = self.state.subscribe();
        let is_decided = |state: &State| match state {
            // A connection that is closed will be replaced by the supervisor.
            State::Up(link) => link.connection.close_reason().is_none(),
            State::Down { .. } => false,
            State::Ended { .. } => true,
        };
        let state = state
            .wait_for(is_decided)
            .await
            .map_err(|_| self.closed())?;
        match &*state {
            State::Up(link) => Ok(link.clone()),
            State::Down { .. } | State::Ended { .. } => Err(self.closed()),
        }
    }

    /// The error of a client that has ended.
    fn closed(&self) -> NetworkError {
        NetworkError::closed().at(self.dialer.answered())
    }
}

/// Opens the streams of calls that have their own.
struct Opener {
    /// Weak, because channels hold their opener and must not keep the client alive through it.
    shared: std::sync::Weak<Shared>,
}

impl StreamOpener for Opener {
    fn open_stream(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'static, Result<UnisonChannel, NetworkError>> {
        let shared = self.shared.upgrade();
        let name = name.to_owned();
        Box::pin(async move {
            let link = shared.ok_or(NetworkError::closed())?.link().await?;
            link.open_channel(&name, options).await
        })
    }
}

impl ChannelSource for ProtocolClient {
    fn open_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'_, Result<UnisonChannel, NetworkError>> {
        let name = name.to_owned();
        Box::pin(async move { self.open_channel_with(&name, options).await })
    }

    fn identity(&self) -> ServerIdentity {
        ProtocolClient::identity(self)
    }
}
