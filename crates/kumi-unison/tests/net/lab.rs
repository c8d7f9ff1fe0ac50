//! What the tests share: a server with an echo service on a port of its own, and clients that know its certificate.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kumi_unison::{
    ClientOptions, ClientTls, IncomingRequest, NetworkError, Payload, ProtocolClient,
    ProtocolServer, ReconnectPolicy, RemoteError, ServerHandle, ServerLimits, ServerTls, Service,
    ServiceHandler,
};
use tokio::sync::Semaphore;

/// How long anything may take before a test is considered stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Fails a test that is stuck instead of hanging.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("took too long")
}

/// A server on loopback.
pub(crate) struct Lab {
    pub(crate) server: ProtocolServer,
    pub(crate) handle: ServerHandle,
    pub(crate) tls: ServerTls,
    pub(crate) echo: Echo,
}

impl Lab {
    /// A server with the `echo` channel and the default limits.
    pub(crate) fn start() -> Lab {
        Lab::with(ServerLimits::default(), |_| {})
    }

    /// A server with the `echo` channel and what `set_up` registers.
    pub(crate) fn with(limits: ServerLimits, set_up: impl FnOnce(&ProtocolServer)) -> Lab {
        let tls = ServerTls::development(&["localhost", "127.0.0.1", "::1"]).unwrap();
        Lab::at("127.0.0.1:0".parse().unwrap(), limits, tls, set_up)
    }

    pub(crate) fn at(
        address: SocketAddr,
        limits: ServerLimits,
        tls: ServerTls,
        set_up: impl FnOnce(&ProtocolServer),
    ) -> Lab {
        // Clients reach a lab and its successor by one address, that of a proxy.
        Lab::named("lab", address, limits, tls, set_up)
    }

    /// A server that clients are given this authority of.
    pub(crate) fn named(
        authority: &str,
        address: SocketAddr,
        limits: ServerLimits,
        tls: ServerTls,
        set_up: impl FnOnce(&ProtocolServer),
    ) -> Lab {
        let server = ProtocolServer::new("lab", "1.0.0", "tests")
            .with_limits(limits)
            .with_authority(authority);
        let echo = Echo::default();
        server.register_channel("echo", ServiceHandler::new(echo.clone()));
        set_up(&server);
        let handle = server.listen(address, &tls).unwrap();
        Lab {
            server,
            handle,
            tls,
            echo,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    pub(crate) fn pinned(&self) -> ClientTls {
        ClientTls::pinned([self.tls.fingerprint()]).unwrap()
    }

    /// A client connected directly.
    pub(crate) async fn client(&self) -> ProtocolClient {
        self.client_at(self.address()).await
    }

    /// A client connected through something in between.
    pub(crate) async fn client_at(&self, address: SocketAddr) -> ProtocolClient {
        let address = address.to_string();
        let connecting = ProtocolClient::connect_with(&address, self.pinned(), options());
        within(connecting).await.unwrap()
    }
}

/// What the error of a lost call says: whether it may have run, and the peer's address.
pub(crate) fn lost(error: NetworkError) -> (bool, Option<SocketAddr>) {
    match error {
        NetworkError::ConnectionLost {
            maybe_executed,
            peer,
            ..
        } => (maybe_executed, peer),
        other => panic!("not a lost connection: {other:?}"),
    }
}

/// Options with which tests lose no time.
pub(crate) fn options() -> ClientOptions {
    let policy = ReconnectPolicy::new()
        .first_wait(Duration::from_millis(10))
        .max_wait(Duration::from_millis(100));
    ClientOptions::new()
        .reconnect(policy)
        .connect_timeout(Duration::from_secs(5))
}

/// A service with a method for each thing tests want to see.
///
/// - `echo`: answers what it got.
/// - `fail`: answers an error with the code `nope`.
/// - `gate`: waits until the test adds permits to `gate`, or until it is cancelled.
/// - `deadline`: answers the milliseconds left.
#[derive(Clone)]
pub(crate) struct Echo {
    /// Requests that were run, of any method.
    pub(crate) ran: Arc<AtomicU64>,
    /// Requests to `gate` that saw their cancellation.
    pub(crate) cancelled: Arc<AtomicU64>,
    /// Permits for `gate`.
    pub(crate) gate: Arc<Semaphore>,
    /// A permit per request that has begun, for tests to wait on.
    pub(crate) begun: Arc<Semaphore>,
}

impl Default for Echo {
    fn default() -> Echo {
        Echo {
            ran: Arc::default(),
            cancelled: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            begun: Arc::new(Semaphore::new(0)),
        }
    }
}

impl Echo {
    pub(crate) fn ran(&self) -> u64 {
        self.ran.load(Ordering::SeqCst)
    }

    /// Returns when one more request has begun.
    pub(crate) async fn one_begun(&self) {
        within(self.begun.acquire()).await.unwrap().forget();
    }

    async fn answer(self, request: IncomingRequest) -> Result<Payload, RemoteError> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        self.begun.add_permits(1);
        match request.method() {
            "echo" => Ok(request.into_payload()),
            "fail" => Err(RemoteError::new("nope", "as asked")),
            "gate" => {
                let cancelled = request.cancelled();
                tokio::select! {
                    permit = self.gate.acquire() => permit.expect("never closed").forget(),
                    () = cancelled.cancelled() => {
                        self.cancelled.fetch_add(1, Ordering::SeqCst);
                    }
                }
                Ok(request.into_payload())
            }
            "deadline" => {
                let left = request.deadline().map(|deadline| {
                    let left = deadline.saturating_duration_since(std::time::Instant::now());
                    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
                });
                Payload::json(&left).map_err(RemoteError::from)
            }
            method => Err(RemoteError::method_not_found(method)),
        }
    }
}

impl Service for Echo {
    fn call(
        &self,
        request: IncomingRequest,
    ) -> futures_util::future::BoxFuture<'static, Result<Payload, RemoteError>> {
        Box::pin(self.clone().answer(request))
    }
}
