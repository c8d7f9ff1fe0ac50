//! Unison over QUIC: servers, clients, and the control stream between them.
//!
//! ```text
//! ProtocolServer -> accept (admission) -> connection (one task per client) -> registry.serve_stream per stream
//! ProtocolClient -> supervisor (reconnects) -> link (one connection) -> channels, reattached when it is lost
//! ```
//!
//! The server opens one stream to each client, the control stream; all others are opened by clients, one per channel
//! or call. Messages on those are decoded by the channels, not here.

mod accept;
mod address;
mod backoff;
mod client;
mod closed;
mod connection;
mod control;
mod handshakes;
mod limits;
mod link;
mod listener;
mod reset;
mod server;
mod supervisor;
mod traffic;
mod transport;
mod windows;

pub use self::backoff::ReconnectPolicy;
pub use self::client::{ClientOptions, ProtocolClient};
pub use self::limits::{ServerLimits, bind_socket, endpoint_config, transport_config};
pub use self::server::{ProtocolServer, ServerHandle};
pub use self::traffic::Traffic;

use quinn::VarInt;

/// The application error code with which a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCode {
    /// Closed in order.
    Done = 0,
    /// The server drained: running requests were finished.
    Draining = 1,
    /// The peer violated the protocol.
    Protocol = 2,
}

impl From<CloseCode> for VarInt {
    fn from(code: CloseCode) -> VarInt {
        VarInt::from_u32(code as u32)
    }
}
