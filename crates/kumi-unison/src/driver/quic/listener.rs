//! One endpoint of a server: the state that its tasks share, and how it is closed.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quinn::{AsyncUdpSocket, Endpoint};
use tokio_util::sync::CancellationToken;

use super::CloseCode;
use super::address::any_local;
use super::handshakes::Handshakes;
use super::limits::{ServerLimits, bind_socket};
use super::traffic::Counted;
use super::windows::Windows;
use crate::ChannelRegistry;
use crate::core::EndpointBudget;
use crate::tls::Guests;
use crate::wire::Codec;

/// How long closing waits for the last packets, and then for the socket.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// The interval at which closing polls whether the socket is closed.
const SOCKET_LOOK: Duration = Duration::from_millis(1);

/// The state that the tasks of one endpoint share.
pub(super) struct Listener {
    pub(super) endpoint: Endpoint,
    /// The socket, to know when its last owner is gone.
    pub(super) socket: Weak<dyn AsyncUdpSocket>,
    pub(super) counted: Arc<Counted>,
    pub(super) registry: ChannelRegistry,
    pub(super) limits: ServerLimits,
    /// Shared by all connections, because a compressor's memory is large.
    pub(super) codec: Arc<Codec>,
    /// The memory limit of all connections together.
    pub(super) budget: Arc<EndpointBudget>,
    /// QUIC's flow-control windows.
    pub(super) windows: Windows,
    /// Fires when the endpoint drains: running requests finish, new ones are refused.
    pub(super) drain: CancellationToken,
    /// Fires when the endpoint stops at once.
    pub(super) stop: CancellationToken,
    /// Established connections.
    pub(super) connections: AtomicUsize,
    pub(super) handshakes: Arc<Handshakes>,
    /// All guests' keys since the endpoint listens: connections outlive a change of keys.
    pub(super) guests: Mutex<Guests>,
}

impl Listener {
    pub(super) fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all connections, waits at most [`CLOSE_TIME`] for their last packets, and then as long for the socket. The
    /// address can be bound again afterwards, unless the warning says otherwise.
    pub(super) async fn close(&self, code: CloseCode, reason: &[u8]) {
        self.endpoint.close(code.into(), reason);
        let _ = tokio::time::timeout(CLOSE_TIME, self.endpoint.wait_idle()).await;
        // Connections to silent peers, and handles to the endpoint, keep it alive for seconds more. Rebinding it to another
        // port frees the address; quinn also keeps the previous socket, so it is rebound twice.
        let Ok(address) = self.endpoint.local_addr() else {
            return;
        };
        for _ in 0..2 {
            if let Ok(elsewhere) = bind_socket(any_local(address)) {
                let _ = self.endpoint.rebind(elsewhere);
            }
        }
        // Each remaining connection drops its reference when it is next polled.
        let closed = async {
            while self.socket.strong_count() > 0 {
                tokio::time::sleep(SOCKET_LOOK).await;
            }
        };
        if tokio::time::timeout(CLOSE_TIME, closed).await.is_err() {
            tracing::warn!(%address, "the socket is still open");
        }
    }
}
