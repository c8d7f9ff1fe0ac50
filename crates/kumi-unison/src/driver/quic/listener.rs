//! One endpoint of a server: what the tasks of its connections share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};
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
use crate::wire::Codec;

/// How long the last packets of closed connections are given.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// How often it is looked whether the socket is closed.
const SOCKET_LOOK: Duration = Duration::from_millis(1);

/// What the tasks of one endpoint share.
pub(super) struct Listener {
    pub(super) endpoint: Endpoint,
    /// The socket that it listens on, to see when it is closed.
    pub(super) socket: Weak<dyn AsyncUdpSocket>,
    pub(super) counted: Arc<Counted>,
    pub(super) registry: ChannelRegistry,
    pub(super) limits: ServerLimits,
    /// Shared by all connections, with the memory its compressor has.
    pub(super) codec: Arc<Codec>,
    /// What all connections may hold together.
    pub(super) budget: Arc<EndpointBudget>,
    /// What QUIC may buffer for each.
    pub(super) windows: Windows,
    /// Fires when what has begun is to be finished and nothing else begun.
    pub(super) drain: CancellationToken,
    /// Fires when everything is to end now.
    pub(super) stop: CancellationToken,
    /// Established connections.
    pub(super) connections: AtomicUsize,
    pub(super) handshakes: Arc<Handshakes>,
}

impl Listener {
    /// Ends all connections, waits for their last packets, but not for ever, and then until the socket is closed.
    pub(super) async fn close(&self, code: CloseCode, reason: &[u8]) {
        self.endpoint.close(code.into(), reason);
        let _ = tokio::time::timeout(CLOSE_TIME, self.endpoint.wait_idle()).await;
        // Peers that never answered keep their connections, and others their handles to the endpoint, for seconds more,
        // but not the address. An endpoint also keeps the socket before its present one: it takes two to let go.
        let Ok(address) = self.endpoint.local_addr() else {
            return;
        };
        for _ in 0..2 {
            if let Ok(elsewhere) = bind_socket(any_local(address)) {
                let _ = self.endpoint.rebind(elsewhere);
            }
        }
        // Each connection that is left has to hear of it before the last reference is gone.
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
