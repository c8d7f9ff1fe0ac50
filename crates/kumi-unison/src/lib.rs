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
//! `docs/unison.md` is the guide and has the guarantees, `docs/unison-protocol.md` the wire format. The rules of a channel
//! (`core`) and the bytes (`wire`) know no task, no clock and no socket.

mod channel;
mod context;
mod core;
mod error;
mod identity;
mod local;
mod memory;
mod metrics;
mod payload;
#[cfg(feature = "quic")]
mod quic;
mod registry;
mod subscription;
mod text;
#[cfg(feature = "quic")]
mod tls;
mod trace;
pub mod typed;
mod wire;

pub use channel::{
    CLOSED_CODE, CallOptions, ChannelOptions, DEFAULT_DEADLINE, DEFAULT_FRAME_TIMEOUT,
    DEFAULT_MAX_IN_FLIGHT, DEFAULT_OPEN_TIMEOUT, DatagramLink, EventReceiver, IncomingRequest,
    OWN_STREAM_BYTES, RESET_CODE, Service, StreamHandle, StreamOpener, SystemStream, TransportRecv,
    TransportSend, UnisonChannel, UnisonStream,
};
pub use context::{ChannelHandle, ConnectionContext, ConnectionLimits};
pub use core::{EventPolicy, Window};
pub use error::{NetworkError, RemoteError, TransportError};
pub use identity::{
    ChannelDirection, ChannelInfo, ChannelStatus, ChannelUpdate, Delivery, Lifetime, SchemaId,
    ServerIdentity,
};
pub use local::{
    BidirectionalChannel, IncomingQuestion, PeerChannel, ReceiveChannel, RequestChannel,
    RespondChannel, SendChannel, ServiceChannel, StreamReceiver, StreamSender,
};
pub use memory::{ChannelSource, MemoryClient, MemoryRecv, MemorySend, memory_stream};
pub use metrics::{Metrics, MetricsSnapshot};
pub use payload::{Payload, TypedPayload};
#[cfg(feature = "quic")]
pub use quic::{
    ClientOptions, ProtocolClient, ProtocolServer, ReconnectPolicy, ServerHandle, ServerLimits,
    Traffic, bind_socket, endpoint_config, transport_config,
};
pub use registry::{ChannelHandler, ChannelRegistry, ChannelSpec, LegacyHandler, ServiceHandler};
pub use subscription::{Lagged, Subscription};
pub use text::Shown;
#[cfg(feature = "quic")]
pub use tls::{
    CertificateFault, ClientTls, ClusterKey, Credentials, Fingerprint, ServerTls, TlsError,
    TrustStore, check_private_file,
};
pub use trace::{TraceContext, TraceError};
pub use typed::{
    Call, EventStream, Json, Message, Problem, StreamItem, Timestamp, TypedChannel,
    ValidationError, open_channels,
};
pub use wire::{
    ALPN, ArchivedProtocolMessage, COMPRESSION_SAMPLE, COMPRESSION_THRESHOLD, Codec, ContentType,
    FrameReader, HEADER_LEN, MAX_MESSAGE_SIZE, MessageType, Metadata, PROTOCOL_VERSION, Packet,
    PacketFlags, PacketHeader, PacketType, ProtocolMessage, WireError, encode_frame,
    encode_unframed,
};
pub use {rkyv, serde, serde_json};
