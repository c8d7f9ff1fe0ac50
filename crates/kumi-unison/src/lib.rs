//! Unison: typed requests and events over QUIC, and in memory.
//!
//! A server registers channels by name in a [`ChannelRegistry`]. A client opens one and gets a [`UnisonChannel`]: both
//! sides may ask ([`UnisonChannel::request`]), answer ([`UnisonChannel::serve`]), and tell
//! ([`UnisonChannel::send_event`], [`UnisonChannel::recv`]), all on one stream. Every call ends once, by its deadline;
//! events have credit, so a slow consumer does not hold up others. [`NetworkError`] says for each failure whether the request
//! may have been executed.
//!
//! ```
//! use kumi_unison::{
//!     ChannelOptions, ChannelRegistry, ChannelSource, IncomingRequest, MemoryClient, Payload, RemoteError,
//!     ServiceHandler,
//! };
//! use serde_json::json;
//!
//! async fn add(request: IncomingRequest) -> Result<Payload, RemoteError> {
//!     match request.method() {
//!         "add" => {
//!             let (a, b): (i64, i64) = request.payload().to_json()?;
//!             Ok(Payload::json(&(a + b))?)
//!         }
//!         other => Err(RemoteError::method_not_found(other)),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), kumi_unison::NetworkError> {
//! let registry = ChannelRegistry::new("calculator", "1.0.0", "default");
//! registry.register_channel("sums", ServiceHandler::new(add));
//!
//! let client = MemoryClient::connect(&registry);
//! let sums = client.open_channel("sums", ChannelOptions::new()).await?;
//! assert_eq!(sums.request("add", json!([2, 3])).await?, json!(5));
//! # Ok(()) }
//! ```
//!
//! `docs/unison.md` is the guide and has the guarantees, `docs/unison-protocol.md` the wire format. The state machine of a
//! channel ([`core`]) and the bytes ([`wire`]) have no task, no clock and no socket; [`driver`] runs them. What most programs
//! need is at the root of the crate.

pub mod core;
pub mod document;
pub mod driver;
mod error;
mod identity;
pub mod local;
mod payload;
mod text;
#[cfg(feature = "quic")]
pub mod tls;
mod trace;
pub mod typed;
pub mod validation;
pub mod wire;

pub use crate::core::EventPolicy;
pub use driver::{
    CallOptions, ChannelHandler, ChannelOptions, ChannelRegistry, ChannelSource, ChannelSpec,
    ConnectionContext, EventReceiver, IncomingRequest, MemoryClient, Service, ServiceHandler,
    UnisonChannel,
};
#[cfg(feature = "quic")]
pub use driver::{
    ClientOptions, ProtocolClient, ProtocolServer, ReconnectPolicy, ServerHandle, ServerLimits,
};
pub use error::{NetworkError, RemoteError, TransportError};
pub use identity::{
    ChannelDirection, ChannelInfo, ChannelStatus, ChannelUpdate, Delivery, Lifetime, SchemaId,
    ServerIdentity,
};
pub use payload::{Payload, TypedPayload};
pub use text::Shown;
#[cfg(feature = "quic")]
pub use tls::{ClientTls, ClusterKey, Credentials, Fingerprint, ServerTls, TlsError, TrustStore};
pub use trace::{TraceContext, TraceError};
pub use typed::{
    Call, EventStream, Json, Message, Problem, StreamItem, Timestamp, TypedChannel,
    ValidationError, open_channels,
};
pub use wire::ProtocolMessage;
pub use {rkyv, serde, serde_json};
