//! Unison over QUIC: servers, clients, and what they agree on beside channels.
//!
//! ```text
//! ProtocolServer -> accept (who may connect) -> connection (one task per client) -> registry.serve_stream per stream
//! ProtocolClient -> supervisor (keeps a connection up) -> link (one connection) -> channels, reattached when it is lost
//! ```
//!
//! The server opens one stream to each client, the control stream; all others are opened by clients, one per channel
//! or call. What a channel does with its stream is not known here, and no request is looked at.

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

/// How a connection ends, as the number the peer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCode {
    /// It is not needed any more.
    Done = 0,
    /// The server is going away; it finished what it had begun.
    Draining = 1,
    /// The peer broke the protocol.
    Protocol = 2,
}

impl From<CloseCode> for VarInt {
    fn from(code: CloseCode) -> VarInt {
        VarInt::from_u32(code as u32)
    }
}
